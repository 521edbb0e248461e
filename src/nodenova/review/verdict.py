"""What a discovery comes to in three sentences: what was found, how sure it is, what to do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nodenova.model.info import ClassInfo
from nodenova.model.stage import Stage
from nodenova.pages.html import count, percent
from nodenova.review.user_labels import labels_against

LOOK = (
    "Look at the cards below: name what is a class, merge two that are one, split one that is two, "
    "reject what is none. To decide the number yourself: nodenova discover --num-new N."
)
ANYWAY = "If you know better: nodenova discover --num-new N looks for N classes all the same."


@dataclass(frozen=True)
class Verdict:
    """The first things a reader wants to know of a discovery.

    Attributes:
        found: Which classes the last stage found, the largest first, and how large they are.
        sure: How many there seem to be, or how many were asked for and what share is in them.
        next_step: What the reader can do now.
        against: What the user's labels say against classes that were found, a sentence each.
    """

    found: str
    sure: str
    next_step: str
    against: tuple[str, ...] = ()


def verdict(stages: Sequence[Stage], classes: Sequence[ClassInfo]) -> Verdict | None:
    """The verdict on the last stage.

    Args:
        stages: How the model was made.
        classes: What is in each class of a graph.

    Returns:
        None where all nodes were said to be new and how many classes they are of: there is no doubt
        to speak of.

    Examples:
        >>> fit = Stage("fit", {}, 0, ())
        >>> old = ClassInfo(0, "oak", "oak", "known", 0, size=70, labelled=50)
        >>> new = ClassInfo(1, "elm", "elm", "discovered", 1, size=30, labelled=0)
        >>> said = verdict([fit, Stage("prism", {}, 0, (), mixed=True)], [old, new])
        >>> said.found
        "1 discovered class: 'elm' (30 nodes)."
        >>> said.sure
        '1 class was asked for; 60% of 50 unlabelled nodes are in it.'
    """
    last = stages[-1]
    if not last.mixed and last.count is None:
        return None
    new = sorted((c for c in classes if c.stage == len(stages) - 1), key=lambda c: -(c.size or 0))
    listed = ", ".join(f"{info.name!r} ({count(info.size or 0, 'node')})" for info in new)
    many = count(len(new), "discovered class", "discovered classes")
    found = f"{many}: {listed}." if new else "Nothing was discovered."
    against = tuple(f"{c.name!r}: {said}" for c in new if (said := labels_against(c, classes)))
    if last.count is not None:
        step = LOOK if last.count.number else ANYWAY
        return Verdict(found, last.count.sentence(), step, against)
    unlabelled, inside = (sum(_unlabelled(c) for c in some) for some in (classes, new))
    asked = f"{count(len(new), 'class was', 'classes were')} asked for"
    into = "it" if len(new) == 1 else "them"
    share = f"{percent(inside / max(unlabelled, 1))} of {count(unlabelled, 'unlabelled node')}"
    return Verdict(found, f"{asked}; {share} are in {into}.", LOOK, against)


def _unlabelled(info: ClassInfo) -> int:
    return (info.size or 0) - (info.labelled or 0)
