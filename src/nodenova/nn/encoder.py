"""What an encoder is: a module that turns a graph into z, and its spec."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

import numpy as np
from torch import Tensor, nn

from nodenova.graph import Graph, NewTask
from nodenova.nn.multirank import MultiRank


class EncoderSpec(Protocol):
    """A frozen dataclass with everything but the weights, saved beside them."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def name(self) -> str:
        """Its name in `ENCODERS`."""

    @property
    def num_features(self) -> int:
        """Columns of a graph's x."""

    @property
    def hidden(self) -> int:
        """Columns of z."""

    @property
    def trainable(self) -> bool:
        """Whether its weights are learned by gradient descent; if not, they are computed."""

    @property
    def receptive_field(self) -> int | None:
        """Hops within which nodes affect z of a node; None if the whole graph is used."""

    @property
    def multirank(self) -> MultiRank:
        """Multi-rank features of z, at all ranks that classes are remembered at."""

    @property
    def is_random(self) -> bool:
        """Whether z differs between passes in training."""

    def as_settings(self) -> dict[str, object]:
        """Settings that a stage of a model records."""


class Encoder(nn.Module, ABC):
    """g: Graph -> z of shape (nodes, spec.hidden).

    Attributes:
        spec: Everything but the weights.
    """

    spec: EncoderSpec

    @abstractmethod
    def forward(self, graph: Graph) -> Tensor:
        """(nodes, spec.hidden) z of all nodes."""

    def rows(self, graph: Graph, ids: Tensor) -> Tensor:
        """(n, spec.hidden) z of the nodes `ids`."""
        z: Tensor = self(graph)[ids]
        return z


def receptive_subgraph(graph: Graph, ids: np.ndarray, g: Encoder) -> tuple[Graph, np.ndarray]:
    """The subgraph that z of the nodes `ids` (n,) depends on, and (n,) their indices in it."""
    field = g.spec.receptive_field
    # One hop more than the field: all nodes that count keep their neighbors, hence their degree.
    return (graph, ids) if field is None else graph.k_hop_subgraph(ids, field + 1)


def restrict_to_receptive_field(task: NewTask, g: Encoder) -> NewTask:
    """The same task on the part of its graph that z of the new nodes depends on.

    For methods that train on z of the new nodes and their surroundings only; z at `ids` is
    unchanged.
    """
    graph, ids = receptive_subgraph(task.graph, task.ids, g)
    return NewTask(graph, ids, task.number)
