"""How many new classes there seem to be: a probability for each number, and a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from nodenova.notebook.tables import html_table, share

HELD = 0.8  # of the probability is in the range
VAGUE = 0.25  # a most likely number with less than this is no answer
UNSEEN = "one of under 10 % of the nodes would be missed more often than not"


@dataclass(frozen=True)
class Count:
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
        >>> count = Count(2, (0.02, 0.2, 0.5, 0.2, 0.08), 0.98, 0.001, 0.41, 2000)
        >>> count.low, count.high
        (1, 3)
        >>> print(count.sentence().split(";")[0])
        About 41 % of 2,000 unlabelled nodes look unknown
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
        """The answer as one would give it to a person."""
        if not self.number:
            p = "" if self.p_value is None else f" (p = {self.p_value:.2g})"
            return (
                f"No evidence of an unknown class{p}; {UNSEEN}. "
                "Nothing was added; a number given as num_new (--num-new) is looked for anyway."
            )
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
            else f"About {100 * self.share:.0f} % of {self.nodes:,} unlabelled nodes look unknown"
        )
        return f"{about}; {said}. Whoever knows better says so with num_new (--num-new)."

    def _repr_html_(self) -> str:
        most = len(self.probabilities) - 1
        numbers = range(max(self.low - 1, 0), min(self.high + 1, most) + 1)
        rows = [(str(number), share(self.probabilities[number])) for number in numbers]
        return html_table(("unknown classes", "probability"), rows, self.sentence())

    def capped(self, most: int) -> Count:
        """The same where there cannot be more classes than nodes."""
        return self if self.number <= most else replace(self, number=most)

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Count:
        """From what `dataclasses.asdict` made of one."""
        return cls(**{**saved, "probabilities": tuple(saved["probabilities"])})
