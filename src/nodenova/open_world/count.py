"""How many new classes? A conditional logit over candidates 1..15, and a logit for whether there is
anything new.

Every feature is a number that grows or falls with how well a candidate fits; what each is worth was
learnt on tasks whose answer is known (tools/learn_counting.py), its sign fixed beforehand. The two
logits together give a probability for each number from 0 on.

How many new classes there seem to be: a probability for each number, and a sentence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.special import expit, softmax
from torch import Tensor

from nodenova.display import html_table, percent
from nodenova.encoders.prism.lda import LDASettings
from nodenova.nn.multirank import MultiRank
from nodenova.nn.seeding import sample
from nodenova.nn.statistics import ClassStatistics
from nodenova.open_world.count_features import Candidates, candidate_features
from nodenova.open_world.count_weights import MIXED, NEW, NEW_BIAS, STRICT, THRESHOLD
from nodenova.open_world.mixed import WhitenedSpace
from nodenova.open_world.novelty import (
    FLOOR,
    Coverage,
    Partition,
    chance_of_new,
    coverage_test,
    coverages,
    generator,
    odds_of_new,
    simes_test,
)

HELD = 0.8  # of the probability is in the range
VAGUE = 0.25  # a most likely number with less than this is no answer
UNSEEN = "one of under 10% of the nodes would be missed more often than not"


@dataclass(frozen=True)
class ClassCountEstimate:
    """How many new classes there seem to be among some unlabelled nodes.

    number:        the answer: 0 if there is no evidence of anything new, else the number from 1 on
                   with most of the probability at it and, counting by half, one beside it.
    probabilities: of 0, 1, 2, ... new classes.
    p_new:         the probability that anything is new: 1 where every node was said to be.
    p_value:       of the coverage test: how often cells as empty of labelled nodes as these would
                   be seen if every node were of a known class. None where every node was said to be
                   new.
    share:         the estimated share of nodes that are new.
    nodes:         how many nodes were asked about.

    Examples:
        >>> count = ClassCountEstimate(2, (0.02, 0.2, 0.5, 0.2, 0.08), 0.98, 0.001, 0.41, 2000)
        >>> count.low, count.high
        (1, 3)
        >>> print(count.sentence().split(";")[0])
        About 41% of 2,000 unlabelled nodes look unknown
    """

    number: int
    probabilities: tuple[float, ...]
    p_new: float
    p_value: float | None
    share: float
    nodes: int

    @property
    def likely(self) -> tuple[int, ...]:
        """The fewest numbers that together have 80 % of the probability, ascending."""
        by_probability = sorted(
            range(len(self.probabilities)), key=lambda k: -self.probabilities[k]
        )
        chosen: list[int] = []
        total = 0.0
        for k in by_probability:
            chosen.append(k)
            total += self.probabilities[k]
            if total >= HELD:
                break
        return tuple(sorted(chosen))

    @property
    def low(self) -> int:
        """The least of `likely`."""
        return self.likely[0]

    @property
    def high(self) -> int:
        """The largest of `likely`."""
        return self.likely[-1]

    @property
    def is_vague(self) -> bool:
        """Whether something is new, but how many classes cannot be told."""
        return self.number > 0 and self.probabilities[self.number] < VAGUE * self.p_new

    def sentence(self) -> str:
        """The finding, and how to choose another number."""
        advice = (
            "Whoever knows better says so with num_new (--num-new)."
            if self.number
            else "Nothing was added; a number given as num_new (--num-new) is looked for anyway."
        )
        return f"{self.finding} {advice}"

    @property
    def finding(self) -> str:
        """How many unknown classes there seem to be, in one sentence."""
        if not self.number:
            p = "" if self.p_value is None else f" (p = {self.p_value:.2g})"
            return f"No evidence of an unknown class{p}; {UNSEEN}."
        low, high = max(self.low, 1), self.high
        many = "class" if self.number == 1 else "classes"
        if self.is_vague:
            said = f"how many classes cannot be told ({low} to {high}), taking {self.number}"
        elif low == high:
            said = f"probably {self.number} unknown {many}"
        else:
            said = f"probably {self.number} unknown {many} ({low} to {high})"
        about = (
            f"All of {self.nodes:,} unlabelled nodes are said to be of unknown classes"
            if self.p_value is None
            else f"About {percent(self.share)} of {self.nodes:,} unlabelled nodes look unknown"
        )
        return f"{about}; {said}."

    def _repr_html_(self) -> str:
        most = len(self.probabilities) - 1
        numbers = range(max(self.low - 1, 0), min(self.high + 1, most) + 1)
        rows = [(str(number), percent(self.probabilities[number])) for number in numbers]
        return html_table(("unknown classes", "probability"), rows, self.sentence())

    def capped(self, most: int) -> ClassCountEstimate:
        """The same where there cannot be more classes than nodes."""
        return self if self.number <= most else replace(self, number=most)

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> ClassCountEstimate:
        """From what `dataclasses.asdict` made of one."""
        return cls(**{**saved, "probabilities": tuple(saved["probabilities"])})


MAX_COVERED = 20_000  # nodes whose cells are looked at
MAX_COUNTED = 1_500  # of them, nodes that are grouped
SURE = 0.7  # chance of being new from which on a node is
PATHS = range(3)  # times that they are, each from other starting points
CLIP = 4.0  # spreads from the mean beyond which a feature says no more


@dataclass(frozen=True)
class Logit:
    """A linear score: sum over features of weight (feature - mean) / spread, each within `CLIP`
    spreads.

    features: name -> (mean, spread, weight).
    """

    features: Mapping[str, tuple[float, float, float]]
    bias: float = 0.0

    def score(self, values: Mapping[str, np.ndarray]) -> np.ndarray:
        total = np.asarray(self.bias)
        for name, (mean, spread, weight) in self.features.items():
            total = total + weight * np.clip((values[name] - mean) / spread, -CLIP, CLIP)
        return total


@dataclass(frozen=True, eq=False)
class Evidence:
    """What speaks for each number, before it is weighed.

    by_number: name -> (15,) a feature for each of 1..15.
    of_new:    name -> () a feature of whether anything is new; empty where all nodes are.
    p_value:   of the coverage test, and
    share:     the estimated share of new nodes; None and 1 where all nodes are new.
    """

    by_number: Mapping[str, np.ndarray]
    of_new: Mapping[str, np.ndarray]
    p_value: float | None
    share: float
    nodes: int


@torch.no_grad()
def gather(
    multirank: MultiRank,
    known: ClassStatistics,
    cells: Partition | None,
    z: Tensor,
    mixed: bool,
    lda: LDASettings,
) -> Evidence:
    """The evidence in unlabelled nodes z (n, hidden). A mixture needs the cells of phase 1."""
    o, n, rng = len(known.center), len(z), generator()
    z = z[sample(n, MAX_COVERED, z.device)]
    some = sample(len(z), MAX_COUNTED, z.device)
    wanted = max(o, 4, 6 - o)
    if not mixed:
        scene = WhitenedSpace.of(multirank, known, z[some], wanted, lda)
        each = [candidate_features(Candidates.of(scene, mixed, rng), None, rng) for _ in PATHS]
        return Evidence(_mean(each), {}, None, 1.0, n)
    assert cells is not None
    found = coverages(multirank, known, cells, lda, z)
    chance, at = chance_of_new(found), some.cpu().numpy()
    scene = WhitenedSpace.of(multirank, known, z[some], wanted, lda, odds_of_new(found)[at])
    made = [Candidates.of(scene, mixed, rng) for _ in PATHS]
    by_number = _mean([candidate_features(one, chance[at], rng) for one in made])
    of_new = _mean([_of_new(one, found, chance) for one in made])
    return Evidence(by_number, of_new, coverage_test(found), float(chance.mean()), n)


def _mean(each: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Feature by feature."""
    return {name: np.mean([one[name] for one in each], axis=0) for name in each[0]}


def judge(
    evidence: Evidence,
    number: Logit | None = None,
    new: Logit | None = None,
    threshold: float = THRESHOLD,
) -> ClassCountEstimate:
    """The probability of each number of new classes, by the shipped weights unless others are
    given."""
    mixed = bool(evidence.of_new)
    number = Logit(MIXED if mixed else STRICT) if number is None else number
    new = Logit(NEW, NEW_BIAS) if new is None else new
    each = softmax(number.score(evidence.by_number))
    score = float(new.score(evidence.of_new)) if mixed else np.inf
    p_new = float(expit(score))
    return ClassCountEstimate(
        best_number(each) if score > threshold else 0,
        (1 - p_new, *(p_new * each).tolist()),
        p_new,
        evidence.p_value,
        evidence.share,
        evidence.nodes,
    )


def best_number(probabilities: np.ndarray) -> int:
    """The best guess, by the probabilities of 1, 2, ...; who is one off is half right.

    Nothing is below 1, so it counts as its own neighbor there.

    Examples:
        >>> best_number(np.array([0.3, 0.0, 0.3, 0.3, 0.1]))
        4
    """
    beside = np.concatenate([probabilities[:1], probabilities, [0.0]])
    return 1 + int((probabilities + (beside[:-2] + beside[2:]) / 2).argmax())


def _of_new(
    candidates: Candidates, found: list[Coverage], chance: np.ndarray
) -> dict[str, np.ndarray]:
    """Features of whether anything is new."""
    pooled = float(np.median([one.pooled() for one in found]))
    numbers = {
        "like_old_1": candidates.like_old(1),
        "like_old_2": candidates.like_old(2),
        "like_old_4": candidates.like_old(4),
        "share_4": candidates.share_of_new(4),
        "scatter_0": np.log(max(candidates.scatter[0], 1e-12) / candidates.old_scatter),
        "simes": np.log10(max(simes_test(found), FLOOR)),
        "bonferroni": np.log10(max(coverage_test(found), FLOOR)),
        "pooled": np.log10(max(pooled, FLOOR)),
        "share": chance.mean(),
        "sure": (chance > SURE).mean(),
    }
    return {name: np.asarray(value) for name, value in numbers.items()}
