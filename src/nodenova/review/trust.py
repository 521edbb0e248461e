"""The verdict on a discovered class, the evidence for it, and the estimated number of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nodenova.display import percent, plural
from nodenova.model.info import ClassInfo
from nodenova.model.model import Stage
from nodenova.review.suggestions import MIN_SAME, MIN_TWO
from nodenova.review.user_labels import labels_against

MIN_SHARE = 0.002  # of all nodes; a smaller class is probably nothing
MIN_NODES = 5
MIN_COHESION = 0.02  # below it a class is barely separated from the nearest one

# From good to bad.
LEVELS = {"good": "Holds up", "look": "Look closer", "doubt": "Doubtful"}


@dataclass(frozen=True)
class Trust:
    """The verdict on a discovered class: a level (good, look or doubt) and its reasons."""

    level: str
    reasons: tuple[str, ...]

    @property
    def word(self) -> str:
        """The level in words."""
        return LEVELS[self.level]


def found_in(stages: Sequence[Stage]) -> dict[int, tuple[int, int]]:
    """(groupings of resampled nodes that have the class, all groupings), by the id of the class."""
    groupings: dict[int, tuple[int, int]] = {}
    for stage in stages:
        groupings |= {c: (k, of) for c, (k, of) in stage.found_in.items() if of}
    return groupings


def trust(
    info: ClassInfo, classes: Sequence[ClassInfo], groupings: tuple[int, int] | None = None
) -> Trust:
    """Judge a discovered class among all `classes`; `groupings` as in `found_in`.

    Examples:
        >>> old = ClassInfo(0, "oak", "oak", "known", 0, size=200, labelled=100)
        >>> new = ClassInfo(1, "elm", "elm", "discovered", 1, size=40, share=0.1, labelled=0)
        >>> verdict = trust(new, [old, new], (11, 12))
        >>> verdict.word, verdict.reasons
        ('Holds up', ('Found in 11 of 12 groupings.', 'Contains none of your labelled nodes.'))
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
    if against:
        weigh(2, against)
    elif info.labelled is not None and any(c.labelled for c in classes):
        inside = f"{info.labelled:,}" if info.labelled else "none"
        weigh(0, f"Contains {inside} of your labelled nodes.")
    if (info.size or 0) < MIN_NODES or (info.share or 1.0) < MIN_SHARE:
        weigh(2, f"Only {plural(info.size or 0, 'node')}: probably not a class.")
    if info.cohesion is not None and info.cohesion < MIN_COHESION:
        weigh(1, "Barely separated from the nearest class.")
    if (info.same_as_probability or 0) >= MIN_SAME:
        level = max(level, 1)
    if (info.two or 0) >= MIN_TWO:
        weigh(1, f"May be two classes ({percent(info.two)}).")
    return Trust(list(LEVELS)[level], tuple(reasons))


def tally(verdicts: Sequence[Trust]) -> str:
    """Count the discovered classes by verdict, in one sentence; "" if there are none.

    Examples:
        >>> tally([Trust("good", ()), Trust("good", ()), Trust("doubt", ())])
        '2 of 3 discovered classes hold up; 1 is doubtful.'
    """
    if not verdicts:
        return ""
    levels = [verdict.level for verdict in verdicts]
    good, look, bad = (levels.count(level) for level in LEVELS)
    if good == len(verdicts) == 1:
        return "The discovered class holds up."
    if good == len(verdicts):
        return f"All {good} discovered classes hold up."
    text = f"{good} of {plural(len(verdicts), 'discovered class', 'discovered classes')} "
    text += "holds up" if good == 1 or len(verdicts) == 1 else "hold up"
    text += f"; {plural(look, 'needs', 'need')} a closer look" if look else ""
    text += f"; {plural(bad, 'is', 'are')} doubtful" if bad else ""
    return text + "."


def number_sentence(
    stages: Sequence[Stage], classes: Sequence[ClassInfo], advice: bool = False
) -> str:
    """How many new classes the last stage estimated, or which share the requested ones have.

    "" where all searched nodes were given as new, and the number as well: nothing is uncertain.
    """
    last = stages[-1]
    if last.count is not None:
        return last.count.sentence() if advice else last.count.finding
    if not last.mixed:
        return ""
    new = [c for c in classes if c.stage == len(stages) - 1]
    unlabelled, inside = (
        sum(c.predicted_size - (c.labelled or 0) for c in some) for some in (classes, new)
    )
    share = percent(inside / max(unlabelled, 1))
    return (
        f"You asked for {plural(len(new), 'new class', 'new classes')}; "
        f"{'it has' if len(new) == 1 else 'they have'} {share} of the "
        f"{plural(unlabelled, 'unlabelled node')}."
    )
