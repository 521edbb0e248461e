"""What an encoder is, whichever family it is of.

A module that turns a graph into z, and a description of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Protocol

from torch import Tensor, nn

from nodenova.graph import Graph
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
