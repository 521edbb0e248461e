"""What a model says of the nodes of a graph."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nodenova.errors import GraphError
from nodenova.graph import Graph
from nodenova.model.classes import NodeClass
from nodenova.model.parts import ModelParts
from nodenova.nn.passes import passes_kept
from nodenova.settings import accepts_old_arguments

UNSURE = -1


@dataclass(frozen=True, eq=False)
class ModelOutputs(ModelParts):
    """The parts of a model with classes to put nodes into.

    Attributes:
        classes: In the order of stages, and by id within one.
        column_class_ids: For every column of the joint head the id of the class it belongs to.
    """

    classes: tuple[NodeClass, ...]
    column_class_ids: tuple[int, ...] = ()

    @property
    def classes_per_stage(self) -> tuple[int, ...]:
        """How many classes each phase brought: (labelled, found by the first discover, ...)."""
        stages = [c.stage for c in self.classes]
        return tuple(stages.count(stage) for stage in range(max(stages) + 1))

    @property
    def num_old(self) -> int:
        """How many classes were known before the newest stage; all when nothing was discovered."""
        return sum(self.classes_per_stage[:-1]) or len(self.classes)

    def embed(self, graph: Graph) -> np.ndarray:
        """(N, hidden) representations z of all nodes."""
        return self._run(graph, lambda z: z)

    def predict_proba(self, graph: Graph, *, only: Iterable[object] | None = None) -> np.ndarray:
        """(N, classes) probability of each class for each node, or `only` for some: see `predict`.

        The columns are in the order of `classes`.
        """
        return self._run_head(graph, lambda h: self._by_class(h).softmax(dim=1), only)

    def embed_and_predict(self, graph: Graph) -> tuple[np.ndarray, np.ndarray]:
        """`embed` and `predict_proba` for the price of one."""
        with passes_kept():
            return self.embed(graph), self.predict_proba(graph)

    @accepts_old_arguments(unsure_below="min_confidence")
    def predict(
        self,
        graph: Graph,
        min_confidence: float = 0.0,
        *,
        only: Iterable[object] | None = None,
    ) -> np.ndarray:
        """The most likely class of each node.

        Args:
            graph: With features the model was trained on, matched by name where they have names.
            min_confidence: Nodes whose most likely class is less probable get UNSURE (-1) instead.
            only: Names (`graph.node_ids`) of the nodes that are asked for; all unless given. A few
                take milliseconds: what is near them is looked at, and rounding alone differs.

        Returns:
            (N,) ids of classes, or (n,) of those asked for; `class_of(id)` says what each is.

        Raises:
            GraphError: The graph has other features, or no such node.
        """
        ids = np.array([c.id for c in self.classes])
        if min_confidence <= 0:
            return ids[self._run_head(graph, lambda h: self._by_class(h).argmax(dim=1), only)]
        probabilities = self.predict_proba(graph, only=only)
        unsure = probabilities.max(axis=1) < min_confidence
        return np.where(unsure, UNSURE, ids[probabilities.argmax(axis=1)])

    def predict_new(self, graph: Graph) -> np.ndarray:
        """(N,) id of the most likely of the newest stage's classes, by h^u if there is one (New-N).

        Raises:
            GraphError: Nothing was discovered yet, or the graph has other features.
        """
        n_old = self.num_old
        if n_old == len(self.classes):
            raise GraphError("the model has no discovered classes yet: call discover first")
        new_ids = np.array([c.id for c in self.classes[n_old:]])
        if self._novel_head is not None:
            novel_head = self._novel_head
            return new_ids[self._run(graph, lambda z: novel_head(z).argmax(dim=1))]
        return new_ids[self._run_head(graph, lambda h: self._by_class(h)[:, n_old:].argmax(dim=1))]

    def _by_class(self, logits: Tensor) -> Tensor:
        """(N, classes) the head's columns, those of a merged class added as probabilities are."""
        if self.column_class_ids == tuple(c.id for c in self.classes):
            return logits
        of = torch.tensor(self.column_class_ids, device=logits.device)
        return torch.stack([logits[:, of == c.id].logsumexp(dim=1) for c in self.classes], dim=1)
