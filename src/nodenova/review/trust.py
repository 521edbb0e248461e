"""What a discovery comes to in three sentences: what was found, how sure it is, what to do.

Can a class be trusted? What speaks for it and against it, and one word for the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nodenova.display import percent, plural
from nodenova.model.info import ClassInfo
from nodenova.model.model import Stage
from nodenova.review.cross_validation import HeldOut
from nodenova.review.user_labels import labels_against

MIN_ONE = 0.5  # probability from which on two classes look like one
MIN_TWO = 0.3  # and from which on one looks like two
MIN_SHARE = 0.002  # of all nodes; a smaller class is probably nothing
MIN_NODES = 5
MIN_COHESION = 0.02  # below it a class is hardly apart from the nearest
SURE = 0.9  # probability from which on a held-out node counts as sure

# From good to bad.
LEVELS = {"good": "Holds up", "look": "Look closer", "doubt": "Doubtful"}


@dataclass(frozen=True)
class Trust:
    """The verdict on a discovered class.

    Attributes:
        level: good, look or doubt.
        reasons: What speaks for it and against it, a sentence each.
    """

    level: str
    reasons: tuple[str, ...]

    @property
    def word(self) -> str:
        """The level in words."""
        return LEVELS[self.level]


@dataclass(frozen=True)
class HeldOutScores:
    """How often labelled nodes that are judged without their labels land in the class of these.

    Attributes:
        by_class: (right, of) for every class.
        sure: (right, of) where the probability was 90 % or more.
        unsure: (right, of) elsewhere.

    Examples:
        >>> p = np.array([[0.95, 0.05], [0.6, 0.4], [0.3, 0.7]])
        >>> judged = HeldOut(np.array([0, 1, 2]), p, np.zeros(3))
        >>> told = HeldOutScores.of(judged, np.array([0, 1, 1]))
        >>> told.by_class, told.sure, told.unsure
        (((1, 1), (1, 2)), (1, 1), (1, 2))
        >>> told.sentence
        'Your 3 labels, each judged without itself: 67% land in their class; 100% of 1 where the \
model is 90% sure or more, 50% of 2 elsewhere.'
    """

    by_class: tuple[tuple[int, int], ...]
    sure: tuple[int, int]
    unsure: tuple[int, int]

    @classmethod
    def of(cls, judged: HeldOut, rows: np.ndarray) -> HeldOutScores:
        """From what was judged and (N,) the class of every node's label, -1 for none."""
        there = ~np.isnan(judged.p).any(axis=1)
        p, y = judged.p[there], rows[judged.ids[there]]
        right, is_sure = p.argmax(axis=1) == y, p.max(axis=1, initial=0) >= SURE

        def counts(some: np.ndarray) -> tuple[int, int]:
            return int(right[some].sum()), int(some.sum())

        by_class = tuple(counts(y == c) for c in range(judged.p.shape[1]))
        return cls(by_class, counts(is_sure), counts(~is_sure))

    @property
    def sentence(self) -> str:
        """All of it in one sentence; "" where there are no labels."""
        right, total = (a + b for a, b in zip(self.sure, self.unsure, strict=True))
        if not total:
            return ""
        said = f"Your {plural(total, 'label')}, each judged without itself: "
        said += f"{percent(right / total)} land in their class"
        if all((self.sure[1], self.unsure[1])):
            said += (
                f"; {_share(self.sure)} where the model is {percent(SURE)} sure or more, "
                f"{_share(self.unsure)} elsewhere"
            )
        return said + "."


def found_in(stages: Sequence[Stage]) -> dict[int, tuple[int, int]]:
    """In how many groupings of resampled nodes each class was found, and of how many, by its id."""
    told: dict[int, tuple[int, int]] = {}
    for stage in stages:
        told |= {c: (k, of) for c, (k, of) in stage.found_in.items() if of}
    return told


def trust(
    info: ClassInfo, classes: Sequence[ClassInfo], groupings: tuple[int, int] | None = None
) -> Trust:
    """The verdict on a discovered class.

    Args:
        info: Of the class.
        classes: All of them.
        groupings: In how many groupings it was found, and of how many there were.

    Examples:
        >>> old = ClassInfo(0, "oak", "oak", "known", 0, size=200, labelled=100)
        >>> new = ClassInfo(1, "elm", "elm", "discovered", 1, size=40, share=0.1, labelled=0)
        >>> said = trust(new, [old, new], (11, 12))
        >>> said.word, said.reasons
        ('Holds up', ('Found in 11 of 12 groupings.', 'None of your 100 labels lies inside.'))
    """
    level, reasons = 0, []

    def weigh(at_least: int, reason: str) -> None:
        nonlocal level
        level = max(level, at_least)
        reasons.append(reason)

    if groupings is not None and groupings[1]:
        share = groupings[0] / groupings[1]
        worse = 0 if share >= 0.75 else 1 if share >= 0.5 else 2
        weigh(worse, f"Found in {groupings[0]} of {groupings[1]} groupings.")
    against = labels_against(info, classes)
    labels = sum(c.labelled or 0 for c in classes)
    if against:
        weigh(2, against)
    elif labels and info.labelled is not None:
        inside = f"{info.labelled:,}" if info.labelled else "None"
        verb = "lies" if info.labelled in (0, 1) else "lie"
        weigh(0, f"{inside} of your {plural(labels, 'label')} {verb} inside.")
    if (info.size or 0) < MIN_NODES or (info.share or 1.0) < MIN_SHARE:
        weigh(2, f"Only {plural(info.size or 0, 'node')}: probably nothing.")
    if info.cohesion is not None and info.cohesion < MIN_COHESION:
        weigh(1, "Hardly apart from the class next to it.")
    if (info.same_as_probability or 0) >= MIN_ONE:
        level = max(level, 1)
    if (info.two or 0) >= MIN_TWO:
        weigh(1, f"May be two classes ({percent(info.two)}).")
    return Trust(list(LEVELS)[level], tuple(reasons))


def tally(found: Sequence[Trust]) -> str:
    """How many of the discovered classes hold up, in one sentence; "" if there are none.

    Examples:
        >>> tally([Trust("good", ()), Trust("good", ()), Trust("doubt", ())])
        '2 of 3 discovered classes hold up; 1 is doubtful.'
    """
    if not found:
        return ""
    levels = [one.level for one in found]
    good, look, bad = (levels.count(level) for level in LEVELS)
    if good == len(found):
        return "The discovered class holds up." if good == 1 else f"All {good} hold up."
    said = f"{good} of {plural(len(found), 'discovered class', 'discovered classes')} "
    said += "holds up" if good == 1 or len(found) == 1 else "hold up"
    said += f"; {look} {'needs' if look == 1 else 'need'} a closer look" if look else ""
    said += f"; {bad} {'is' if bad == 1 else 'are'} doubtful" if bad else ""
    return said + "."


def _share(right_of: tuple[int, int]) -> str:
    right, total = right_of
    return f"{percent(right / total)} of {total:,}"


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
    listed = ", ".join(f"{info.name!r} ({plural(info.size or 0, 'node')})" for info in new)
    many = plural(len(new), "discovered class", "discovered classes")
    found = f"{many}: {listed}." if new else "Nothing was discovered."
    against = tuple(f"{c.name!r}: {said}" for c in new if (said := labels_against(c, classes)))
    if last.count is not None:
        step = LOOK if last.count.number else ANYWAY
        return Verdict(found, last.count.sentence(), step, against)
    unlabelled, inside = (sum(_unlabelled(c) for c in some) for some in (classes, new))
    asked = f"{plural(len(new), 'class was', 'classes were')} asked for"
    into = "it" if len(new) == 1 else "them"
    share = f"{percent(inside / max(unlabelled, 1))} of {plural(unlabelled, 'unlabelled node')}"
    return Verdict(found, f"{asked}; {share} are in {into}.", LOOK, against)


def _unlabelled(info: ClassInfo) -> int:
    return (info.size or 0) - (info.labelled or 0)
