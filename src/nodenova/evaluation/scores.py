"""Titles and meanings of scores, their means over seeds, and both as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import fmean, stdev


@dataclass(frozen=True)
class Score:
    """Title and meaning of a score."""

    title: str  # heading of a column
    meaning: str
    name: str = ""  # longer title, "" if the title is long enough

    @property
    def long(self) -> str:
        """The longer title."""
        return self.name or self.title


# Scores under each matching, in the order in which they are shown.
SCORES = {
    "old": Score("Old", "how many test nodes of old classes got their class"),
    "new": Score("New", "how many test nodes of new classes got the class that stands for theirs"),
    "all": Score(
        "All",
        "how many of all test nodes are right; it can look good while no new class is found at all",
    ),
    "h": Score("H", "harmonic mean of Old and New: high only when both are, and 0 when either is"),
    "old_new_accuracy": Score(
        "Old-new accuracy",
        "how many test nodes land on the right side, old or new, whichever class it is there",
    ),
    "nmi": Score(
        "NMI",
        "normalized mutual information of true and predicted classes; needs no matching",
    ),
    "ari": Score(
        "ARI",
        "adjusted Rand index: pairs of nodes rightly kept together or apart; "
        "0 is chance, needs no matching",
    ),
    "old_n": Score(
        "Old-N",
        "the same as Old in an easier exam: old nodes only, classified among old classes",
    ),
    "new_n": Score(
        "New-N",
        "the same as New in an easier exam: new nodes only, classified by the head for new classes",
    ),
    "all_n": Score(
        "All-N",
        "the same as All when each node is known to be of an old or of a new class: "
        "both easier exams",
    ),
}
# Measured once: AA and AF under the headline matching only, the others without any.
ONCE = {
    "aa": Score(
        "AA",
        "average accuracy: the mean of Old and New (block matching) after the last phase",
    ),
    "af": Score(
        "AF",
        "average forgetting: Old after phase 2 minus Old after phase 1; negative means forgotten",
    ),
    "new_used": Score(
        "Used",
        "how many of the discovered classes are predicted for at least one test node",
        "New classes used",
    ),
    "new_largest": Score(
        "Largest",
        "its share of the test nodes that are called new; near 100: the others collapsed",
        "Largest of them",
    ),
}
SHARES = {"new_all": Score("Full", "percent of the seeds in which every discovered class is used")}
SECONDS = {
    "fit": Score("Seconds, phase 1", "time to learn the old classes"),
    "discover": Score("Seconds, phase 2", "time to discover the new ones"),
}
MATCHING_MEANINGS = {
    "block": "old classes keep their names and discovered classes are paired with true new ones "
    "as well as possible; an old node called new, or a new node called old, is wrong. "
    "The headline.",
    "identity": "the discovered class with number i has to be the true class with number i. "
    "Without labels a method cannot know those numbers, so New is a matter of luck here; "
    "only for comparison with papers that use it.",
    "global": "all predicted classes, old ones too, are paired with true classes "
    "as well as possible.",
}


def score_title(score: str) -> str:
    """Return the title of a score by its name in a document."""
    return (SCORES | ONCE | SHARES)[score].title


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation of n values, None if there are too few."""

    mean: float | None = None
    std: float | None = None
    n: int = 0


def mean_std(values: Sequence[float | None]) -> Spread:
    """Return the spread of the values that are neither None nor nan."""
    finite = [value for value in values if value is not None and isfinite(value)]
    std = stdev(finite) if len(finite) > 1 else None
    return Spread(fmean(finite) if finite else None, std, len(finite))


def number(value: float | None) -> str:
    """Return a number with one decimal, a dash if there is none."""
    return f"{value:.1f}".replace("-", "−") if value is not None and isfinite(value) else "–"


def spread_text(value: Spread) -> str:
    """Return mean ± std, or the mean alone for one value: "55.0 ± 7.1", "50.0"."""
    mean = number(value.mean)
    return mean if value.std is None else f"{mean} ± {number(value.std)}"
