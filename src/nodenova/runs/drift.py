"""How the nodes of a graph fall on the classes of a model, and how that differs from before.

Nothing here needs PyTorch: what was before is read from the predictions.csv of a run.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nodenova.display import percent
from nodenova.errors import StorageError

Z_95 = 1.96  # standard errors within which 95 % of samples are


@dataclass(frozen=True)
class Shares:
    """How many nodes are in each class, and how many are unsure.

    Attributes:
        counts: Nodes by the id of their class.
        unsure: Nodes whose class is not probable enough.
    """

    counts: Mapping[int, int]
    unsure: int

    @property
    def nodes(self) -> int:
        """How many there are."""
        return sum(self.counts.values())

    def of(self, class_id: int) -> float:
        """The share of a class."""
        return self.counts.get(class_id, 0) / max(self.nodes, 1)

    @property
    def unsure_share(self) -> float:
        """The share of unsure nodes."""
        return self.unsure / max(self.nodes, 1)

    @classmethod
    def read(cls, run: Path, min_confidence: float) -> Shares:
        """Those when a run was made, or reviewed last.

        Args:
            run: Its folder.
            min_confidence: Nodes whose class is less probable are unsure.

        Raises:
            StorageError: It has no table of predictions.
        """
        lines = kept_predictions(run)
        counts = Counter(int(line["class"]) for line in lines)
        return cls(counts, sum(float(line["probability"]) < min_confidence for line in lines))


@dataclass(frozen=True)
class Drift:
    """How far shares are from those before.

    Attributes:
        before: Those of the run.
        now: Those of the graph that was given.

    Examples:
        >>> drift = Drift(Shares({0: 500, 1: 500}, 100), Shares({0: 300, 1: 700}, 120))
        >>> round(drift.distance, 2), drift.exceeds(0.1), drift.exceeds(0.3)
        (0.2, True, False)
        >>> few = Drift(Shares({0: 500, 1: 500}, 100), Shares({0: 3, 1: 7}, 1))
        >>> round(few.distance, 2), few.exceeds(0.1)  # ten nodes fall so by chance
        (0.2, False)
    """

    before: Shares
    now: Shares

    @property
    def distance(self) -> float:
        """The total variation: the share of nodes that are in other classes than one would think.

        Unsure and sure nodes are two classes of their own: the larger of the two distances counts.
        """
        return max(self._classes()[0], self._unsure()[0])

    @property
    def by_chance(self) -> float:
        """What the distance would hardly exceed if nothing but chance had changed."""
        return max((self._classes(), self._unsure()), key=lambda both: both[0])[1]

    def exceeds(self, most: float) -> bool:
        """Whether classes or unsure nodes changed by more than this, and by more than chance."""
        return any(far > most and far > chance for far, chance in (self._classes(), self._unsure()))

    def sentence(self) -> str:
        """What changed, for people.

        Examples:
            >>> Drift(Shares({0: 50}, 10), Shares({0: 50}, 5)).sentence()
            '10.0% of the nodes are unsure (20.0% before); 0.0% are in other classes'
        """
        unsure, before = self.now.unsure_share, self.before.unsure_share
        return (
            f"{percent(unsure, 1)} of the nodes are unsure ({percent(before, 1)} before); "
            f"{percent(self._classes()[0], 1)} are in other classes"
        )

    def to_json(self) -> dict[str, object]:
        """For machines."""
        return {
            "distance": round(self.distance, 4),
            "by_chance": round(self.by_chance, 4),
            "unsure_before": round(self.before.unsure_share, 4),
            "unsure": round(self.now.unsure_share, 4),
            "shares_before": {str(c): round(self.before.of(c), 4) for c in self._ids()},
        }

    def _ids(self) -> list[int]:
        return sorted({*self.before.counts, *self.now.counts})

    def _classes(self) -> tuple[float, float]:
        return self._far([(self.before.of(c), self.now.of(c)) for c in self._ids()])

    def _unsure(self) -> tuple[float, float]:
        then, now = self.before.unsure_share, self.now.unsure_share
        return self._far([(then, now), (1 - then, 1 - now)])

    def _far(self, pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
        """The total variation, and half the sum of what each share differs by at most by chance."""
        far = sum(abs(now - then) for then, now in pairs) / 2
        rate = 1 / max(self.before.nodes, 1) + 1 / max(self.now.nodes, 1)
        both = [(then + now) / 2 for then, now in pairs]
        errors = [math.sqrt(max(share * (1 - share), 0.0) * rate) for share in both]
        return far, Z_95 * sum(errors) / 2


def kept_predictions(run: Path) -> list[dict[str, str]]:
    """The rows of the predictions.csv of a run.

    Raises:
        StorageError: It has none.
    """
    path = run / "predictions.csv"
    if not path.is_file():
        raise StorageError(f"{run} has no predictions.csv: nodenova report writes it")
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
