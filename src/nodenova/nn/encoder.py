"""What a method for few nodes needs of a large graph.

What an encoder is, whichever family it is of.

A module that turns a graph into z, and a description of it.
"""

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
        """What it is called in `ENCODERS`."""

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
        """Steps within which nodes have a say in z of a node; None if it is best seen whole."""

    @property
    def multirank(self) -> MultiRank:
        """How z is read to compare nodes and classes, at all ranks classes are remembered at."""

    @property
    def is_random(self) -> bool:
        """Whether z differs from pass to pass in training."""

    def as_settings(self) -> dict[str, object]:
        """What a stage of a model says of it."""


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
    """The k-hop subgraph that z of the nodes `ids` depends on, and where they are in it.

    Args:
        graph: The whole graph.
        ids: (n,) numbers of nodes, ascending.
        g: The encoder; the whole graph if its receptive field is.

    Returns:
        The subgraph and the (n,) numbers of `ids` in it.
    """
    field = g.spec.receptive_field
    # One step more than the field: every node that speaks has all its neighbors, hence its true
    # degree.
    return (graph, ids) if field is None else graph.k_hop_subgraph(ids, field + 1)


def restrict_to_receptive_field(task: NewTask, g: Encoder) -> NewTask:
    """The same task on the part of its graph that z of the new nodes depends on.

    z at `ids` is that of the whole graph. A method that trains on nothing but z of the new nodes
    (and what surrounds them) takes this task instead of its own.

    Args:
        task: The task as it was given.
        g: The encoder.
    """
    graph, ids = receptive_subgraph(task.graph, task.ids, g)
    return NewTask(graph, ids, task.number)
