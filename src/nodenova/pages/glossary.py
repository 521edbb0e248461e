"""What the terms on pages mean, in a sentence each: shown when the pointer rests on one."""

from __future__ import annotations

from nodenova.evaluation.scores import SCORES

GLOSSARY = {
    "cosine": "How alike the middles of two classes are: 1 the same, 0 nothing in common.",
    "Typical": "What its nodes have more often than all others, the most telling first; "
    "low: they have less of it.",
    "Typical features": "How far the class lies off all other nodes, in standard errors: "
    "above 4 is plain, below 2 may be chance.",
    "labels held out": "Of your labelled nodes of this class, judged without their labels, "
    "so many land in it.",
    "clear-cut": "How clearly the model prefers this class for its nodes, on average. It is not "
    "how often it is right: only labels can say that.",
    "unsure": "Nodes in it that are less likely than the limit to be of this class.",
    "cohesion": "How much closer its nodes are to its own middle than to the next class: "
    "near 0 is hardly a class.",
    "own edges": "The share of its nodes' edges that stay inside the class.",
    "fit none": "Nodes in it that are farther from every class than nearly all labelled nodes are.",
    "of known classes": "Of test nodes of known classes, so many are in theirs.",
    "of discovered classes": "Of test nodes whose class had no label, so many are in the "
    "discovered class that stands for theirs, one to one.",
    **{score.title: score.meaning for score in SCORES.values()},
}
