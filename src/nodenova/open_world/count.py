"""Estimate of the number of new classes; docs/counting.md has the mathematics.

A conditional logit over 1..40 new classes and a logit for "is any class new" give a probability for
each number from 0 on. The weights were learned on tasks with known answers
(tools/learn_counting.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import torch
from scipy.special import expit, softmax
from torch import Tensor

from nodenova.display import html_table, percent
from nodenova.encoders.prism.lda import LDASettings
from nodenova.nn.multirank import MultiRank
from nodenova.nn.numerics import numerics_error
from nodenova.nn.seeding import sample
from nodenova.nn.statistics import ClassStatistics
from nodenova.open_world.count_features import (
    NOVELTY_FEATURES,
    NUMBER_FEATURES,
    STRICT_FEATURES,
    Candidates,
    Measures,
    Novelty,
    compute,
    count_by_size,
)
from nodenova.open_world.count_weights import MIXED, NEW, NEW_BIAS, STRICT, THRESHOLD
from nodenova.open_world.mixed import WhitenedSpace
from nodenova.open_world.novelty import (
    Partition,
    bonferroni_test,
    cell_novelty,
    numpy_generator,
    odds_of_new,
    probability_of_new,
)

SET_SHARE = 0.8  # probability of the set of likely numbers
VAGUE = 0.25  # probability below which the best number is reported as uncertain
MAX_SAMPLED = 20_000  # nodes that are put into cells
MAX_GROUPED = 1_500  # nodes among them that are grouped
PATHS = range(3)  # paths of candidates that are averaged
DISAGREEMENT = 2.0  # ratio of two estimates of the number from which both are reported
CLIP = 4.0  # standard deviations from the mean at which a feature is clipped


@dataclass(frozen=True)
class ClassCountEstimate:
    """Estimated number of new classes among some unlabelled nodes.

    Attributes:
        number: Best estimate: 0 if there is no evidence of a new class, else the k >= 1 with most
            probability at and next to it: p(k) + (p(k-1) + p(k+1)) / 2 up to 6 classes.
        probabilities: Probabilities of 0, 1, 2, ... new classes.
        p_new: Probability that any class is new; 1 where all nodes are declared new.
        p_value: p-value of the novelty test: how often cells would hold as few labelled nodes if
            every node were of a known class. None where all nodes are declared new.
        share: Estimated share of nodes that belong to new classes.
        nodes: Number of nodes in the task.
        by_size: Number of new classes if they are as large as known ones on average; None where
            all nodes are declared new. It is part of the evidence.

    Examples:
        >>> count = ClassCountEstimate(2, (0.02, 0.2, 0.5, 0.2, 0.08), 0.98, 0.001, 0.41, 2000)
        >>> count.low, count.high
        (1, 3)
        >>> print(count.finding.split(";")[0])
        About 41% of the 2,000 unlabelled nodes seem to belong to new classes
    """

    number: int
    probabilities: tuple[float, ...]
    p_new: float
    p_value: float | None
    share: float
    nodes: int
    by_size: float | None = None

    @property
    def likely(self) -> tuple[int, ...]:
        """The fewest numbers that together have 80% of the probability, ascending."""
        p = self.probabilities
        ranked = sorted(range(len(p)), key=lambda k: -p[k])
        totals = accumulate(p[k] for k in ranked)
        enough = next((n for n, total in enumerate(totals, 1) if total >= SET_SHARE), len(p))
        return tuple(sorted(ranked[:enough]))

    @property
    def low(self) -> int:
        """Smallest of the likely numbers."""
        return self.likely[0]

    @property
    def high(self) -> int:
        """Largest of the likely numbers."""
        return self.likely[-1]

    @property
    def is_vague(self) -> bool:
        """Whether there are new classes, but their number is uncertain."""
        return self.number > 0 and self.probabilities[self.number] < VAGUE * self.p_new

    def sentence(self) -> str:
        """Return the finding and how to set the number."""
        if not self.number:
            advice = "No class was added; num_new (--num-new) searches for a given number anyway."
        elif self.other_number is not None:
            advice = (
                f"If new classes are as large as yours, there are rather {self.other_number}: try "
                f"num_new={self.other_number} (--num-new {self.other_number}) and compare."
            )
        else:
            advice = "Set it yourself with num_new (--num-new)."
        return f"{self.finding} {advice}"

    @property
    def other_number(self) -> int | None:
        """The number by size, if it differs from `number` by a factor of two or more."""
        if self.by_size is None or not self.number:
            return None
        other = max(1, min(round(self.by_size), len(self.probabilities) - 1))
        ratio = max(other, self.number) / min(other, self.number)
        return other if ratio >= DISAGREEMENT and abs(other - self.number) > 1 else None

    @property
    def finding(self) -> str:
        """How many new classes there seem to be, in words."""
        if not self.number:
            p = "" if self.p_value is None else f" (p = {self.p_value:.2g})"
            return (
                f"No new class found{p}. "
                "A class smaller than 10% of the nodes would usually be missed."
            )
        about = (
            f"All {self.nodes:,} unlabelled nodes were declared new"
            if self.p_value is None
            else f"About {percent(self.share)} of the {self.nodes:,} unlabelled nodes seem to "
            "belong to new classes"
        )
        low, high = max(self.low, 1), self.high
        if self.is_vague:
            return f"{about}; their number is uncertain ({low} to {high}), using {self.number}."
        many = "class" if self.number == 1 else "classes"
        range_ = "" if low == high else f" ({low} to {high})"
        return f"{about}; probably {self.number} new {many}{range_}."

    def _repr_html_(self) -> str:
        most = len(self.probabilities) - 1
        numbers = range(max(self.low - 1, 0), min(self.high + 1, most) + 1)
        rows = [(str(number), percent(self.probabilities[number])) for number in numbers]
        return html_table(("new classes", "probability"), rows, self.sentence())

    def capped(self, most: int) -> ClassCountEstimate:
        """Return the same estimate with at most `most` classes."""
        return self if self.number <= most else replace(self, number=most)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> ClassCountEstimate:
        """Load an estimate from the dict that `dataclasses.asdict` made of it."""
        return cls(**{**document, "probabilities": tuple(document["probabilities"])})


@dataclass(frozen=True)
class LinearScore:
    """bias + sum over features of weight (value - mean) / spread, each clipped to CLIP spreads."""

    features: Mapping[str, tuple[float, float, float]]  # {name: (mean, spread, weight)}
    bias: float = 0.0

    def __call__(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        total = np.asarray(self.bias)
        for name, (mean, spread, weight) in self.features.items():
            total = total + weight * np.clip((values[name] - mean) / spread, -CLIP, CLIP)
        return total


@dataclass(frozen=True, eq=False)
class Evidence:
    """Features of some unlabelled nodes, before they are weighed."""

    number: Mapping[str, np.ndarray]  # {name: (40,) values for 1..40 new classes}
    # {name: () value} of whether any class is new; empty where all nodes are new
    novelty: Mapping[str, np.ndarray]
    p_value: float | None  # of the novelty test; None where all nodes are new
    share: float  # estimated share of new nodes
    nodes: int
    by_size: float | None = None  # see `count_by_size`


@torch.no_grad()
def collect_evidence(
    multirank: MultiRank,
    known: ClassStatistics,
    cells: Partition | None,
    z: Tensor,
    mixed: bool,
    lda: LDASettings,
) -> Evidence:
    """Compute the features of unlabelled nodes z (n, hidden); a mixture needs the cells."""
    o, n, rng = len(known.center), len(z), numpy_generator()
    z = z[sample(n, MAX_SAMPLED, z.device)]
    rows = sample(len(z), MAX_GROUPED, z.device)
    num_new = max(o, 4, 6 - o)  # for which the space is built
    if not mixed:
        space = WhitenedSpace.of(multirank, known, z[rows], num_new, lda)
        number = []
        for _ in PATHS:
            measures = Measures.of(Candidates.of(space, mixed, rng), None, o, rng)
            number.append(compute(STRICT_FEATURES, measures))
        return Evidence(_mean(number), {}, None, 1.0, n)
    assert cells is not None
    novelty = cell_novelty(multirank, known, cells, lda, z)
    probability, at = probability_of_new(novelty), rows.cpu().numpy()
    space = WhitenedSpace.of(multirank, known, z[rows], num_new, lda, odds_of_new(novelty)[at])
    paths = [Candidates.of(space, mixed, rng) for _ in PATHS]
    share = float(probability.mean())
    by_size = count_by_size(share, n, float(known.nodes.sum()), o)
    each = [Measures.of(path, probability[at], by_size, rng) for path in paths]
    number = [compute(NUMBER_FEATURES, measures) for measures in each]
    new = [compute(NOVELTY_FEATURES, Novelty(path, novelty, probability)) for path in paths]
    p_value = bonferroni_test(novelty)
    return Evidence(_mean(number), _mean(new), p_value, share, n, by_size)


def _mean(each: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Mean of each feature."""
    return {name: np.mean([one[name] for one in each], axis=0) for name in each[0]}


def estimate_count(
    evidence: Evidence,
    number_score: LinearScore | None = None,
    novelty_score: LinearScore | None = None,
    threshold: float = THRESHOLD,
) -> ClassCountEstimate:
    """Weigh the evidence, by default with the shipped weights."""
    mixed = bool(evidence.novelty)
    for name, value in (*evidence.number.items(), *evidence.novelty.items()):
        if not np.isfinite(value).all():
            raise numerics_error(f"{name}, a feature of the number of new classes, is not finite")
    number_score = number_score or LinearScore(MIXED if mixed else STRICT)
    novelty_score = novelty_score or LinearScore(NEW, NEW_BIAS)
    each = softmax(number_score(evidence.number))
    score = float(novelty_score(evidence.novelty)) if mixed else np.inf
    p_new = float(expit(score))
    return ClassCountEstimate(
        best_number(each) if score > threshold else 0,
        (1 - p_new, *(p_new * each).tolist()),
        p_new,
        evidence.p_value,
        evidence.share,
        evidence.nodes,
        evidence.by_size,
    )


def best_number(probabilities: np.ndarray) -> int:
    """The k that maximizes sum_j p(j) max(0, 1 - |j - k| / width); p from 1 on.

    The width is 2 up to 6 classes, so that a neighbor counts half, and a third of k from there on:
    the larger the number, the less one class more or less matters. p(0) := p(1).

    Examples:
        >>> best_number(np.array([0.3, 0.0, 0.3, 0.3, 0.1]))
        4
    """
    k = np.arange(1, len(probabilities) + 1)
    share = np.maximum(1 - np.abs(k[:, None] - k) / np.maximum(2, k / 3)[:, None], 0)
    share[0, 0] += 0.5  # p(0)
    return 1 + int((share @ probabilities).argmax())
