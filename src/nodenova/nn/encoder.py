"""What an encoder is: a module that turns a graph into z, and its spec."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import torch
from torch import Tensor, nn

from nodenova.graph import Graph, NewTask
from nodenova.nn.multirank import MultiRank
from nodenova.nn.sparse import text_vectors


class EncoderSpec(Protocol):
    """A frozen dataclass with everything but the weights, saved beside them."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def name(self) -> str:
        """Its name in `ENCODERS`; of a user's own, that of the class."""

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


class TrainedSpec(EncoderSpec, Protocol):
    """Spec of an encoder that gradients train."""

    @property
    def vector_size(self) -> int:
        """Columns of the text vectors that it gets beside x; 0 without them."""


class TrainedEncoder(Encoder):
    """An encoder that gradients train; text vectors V are columns beside x.

    A column of V is standardized on the graph of phase 1 and divided by sqrt(k), for k columns, so
    that the mean squared length of a vector is 1.
    """

    spec: TrainedSpec

    def __init__(self, spec: TrainedSpec) -> None:
        super().__init__()
        self.spec = spec
        if spec.vector_size:
            self.register_buffer("vector_mean", torch.zeros(spec.vector_size))
            self.register_buffer("vector_scale", torch.ones(spec.vector_size))
        self.vector_mean: Tensor
        self.vector_scale: Tensor

    def standardize(self, graph: Graph) -> Self:
        """Take mean and spread of the text vectors from a graph."""
        if self.spec.vector_size:
            vectors = text_vectors(graph, self.spec.vector_size, self.vector_mean.device).double()
            mean, spread = vectors.mean(dim=0), vectors.std(dim=0, unbiased=False)
            size = self.spec.vector_size**0.5
            # A column that is the same at all nodes is zero.
            scale = torch.where(spread > 1e-6 * mean.abs(), 1.0 / (size * spread), 0.0)
            self.vector_mean.copy_(mean)
            self.vector_scale.copy_(scale.nan_to_num(posinf=0.0))
        return self

    def vector_columns(self, graph: Graph) -> Tensor:
        """(N, vector_size) the text vectors of a graph as columns beside x."""
        vectors = text_vectors(graph, self.spec.vector_size, self.vector_mean.device)
        return (vectors - self.vector_mean) * self.vector_scale

    @abstractmethod
    def fresh(self, **settings: Any) -> TrainedEncoder:
        """An encoder with initial weights and other settings, as far as its kind has them."""

    @abstractmethod
    def last_layer(self) -> Sequence[nn.Parameter]:
        """Weight (hidden, ...) and bias (hidden,) that z is linear in; added where unknown."""


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
