"""What Prism is compared with in the open world, on the same representation.

Semi-supervised k-means of generalized category discovery, and rules that count classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from nodenova.bench.counting_rules import RULES
from nodenova.bench.features import directions, draw_seed, features_of
from nodenova.data.labels import OldTask
from nodenova.model.model import Model
from nodenova.settings import check_settings, setting
from nodenova.task import NewTask

MAX_STEPS = 100  # of Lloyd's algorithm


@runtime_checkable
class Rival(Protocol):
    """Says of every node of a graph which class it is of; it sees labelled nodes and says so."""

    sees: ClassVar[tuple[str, ...]]

    def assign(self, model: Model, old: OldTask, task: NewTask) -> np.ndarray:
        """(N,) the class of every node.

        PyTorch's generator is seeded before the call; every random number comes from it.

        Args:
            model: Of the old classes.
            old: Their labelled nodes.
            task: Unlabelled nodes, and how many new classes there are among them.

        Returns:
            Old classes by number, new ones behind them.
        """


@dataclass(frozen=True)
class GCDKMeans:
    """Semi-supervised k-means of Vaze et al. (Generalized Category Discovery, CVPR 2022).

    k-means of labelled and unlabelled nodes together. Labelled nodes stay in the cluster of their
    class, whose center starts at their mean; further centers start by k-means++ among unlabelled
    nodes; all centers move. A node that took no part goes to the nearest center.

    Attributes:
        restarts: How often all of it is done; the best counts.

    Examples:
        >>> import nodenova as nova
        >>> world = nova.split_mixed(nova.synthetic(nodes=300, classes=4), old=[0, 1])
        >>> said = GCDKMeans(restarts=1).assign(nova.fit(world.old), world.old, world.tasks[0])
        >>> len(said), sorted(set(said.tolist()))
        (300, [0, 1, 2, 3])
    """

    prefers: ClassVar[str] = "prism"
    sees: ClassVar[tuple[str, ...]] = ("graph", "new_ids", "old_nodes", "old_labels")

    restarts: int = setting(10, at_least=1)

    def __post_init__(self) -> None:
        check_settings(self)

    def assign(self, model: Model, old: OldTask, task: NewTask) -> np.ndarray:
        """(N,) the class of every node; see `Rival`."""
        num_old, num_new = len(old.class_names), task.num_new or 0
        u = features_of(model, task.graph, num_old + num_new)
        x = directions(u, np.concatenate([old.train_ids, task.ids]), num_old + num_new)
        fixed, y, free = x[old.train_ids], old.train_y, x[task.ids]
        means = np.stack([fixed[y == c].mean(axis=0) for c in range(num_old)])
        best, centers = np.inf, means
        for _ in range(self.restarts):
            found = self._cluster(fixed, y, free, means, num_new)
            loss = float(_squares(free, found).min(axis=1).sum())
            if loss < best:
                best, centers = loss, found
        return _squares(x, centers).argmin(axis=1)

    @staticmethod
    def _cluster(
        fixed: np.ndarray, y: np.ndarray, free: np.ndarray, means: np.ndarray, num_new: int
    ) -> np.ndarray:
        rng, centers = np.random.default_rng(draw_seed()), means
        for _ in range(num_new):  # k-means++
            distance = _squares(free, centers).min(axis=1) + 1e-12
            place = rng.choice(len(free), p=distance / distance.sum())
            centers = np.concatenate([centers, free[place : place + 1]])
        rows, before = np.concatenate([fixed, free]), np.full(len(free), -1)
        for _ in range(MAX_STEPS):
            said = _squares(free, centers).argmin(axis=1)
            if (said == before).all():
                break
            member = np.concatenate([y, said])
            size = np.bincount(member, minlength=len(centers))
            total = np.zeros_like(centers)
            np.add.at(total, member, rows)
            # A new center that lost all its nodes stays where it was.
            centers = np.where(size[:, None] > 0, total / np.maximum(size, 1)[:, None], centers)
            before = said
        return centers


RIVALS: dict[str, type[Any]] = {"gcd": GCDKMeans, **RULES}


def _squares(rows: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """(n, k) squared distances."""
    cross = rows @ centers.T
    return np.square(rows).sum(axis=1)[:, None] - 2 * cross + np.square(centers).sum(axis=1)
