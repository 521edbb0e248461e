"""Encoders by name: how they are built and get their weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nodenova.encoders.gnn import GNN, LAYERS, GNNSpec
from nodenova.encoders.prism.encoder import PrismEncoder, PrismEncoderSpec
from nodenova.errors import one_of
from nodenova.graph import Graph
from nodenova.nn.encoder import Encoder


@dataclass(frozen=True)
class EncoderKind:
    """How an encoder is built, and how it gets its weights."""

    build: Callable[[Mapping[str, Any]], Encoder]  # builds an empty one from the fields of its spec
    # class whose `fit` computes it; None if it is trained
    closed_form: type[PrismEncoder] | None = None
    # parts of a graph that it uses beside features and edges
    uses: tuple[str, ...] = ("edge_weight",)

    @property
    def trainable(self) -> bool:
        """Whether its weights are learned by gradient descent."""
        return self.closed_form is None


# The first models have the British spelling.
FIRST_NAMES = {"row_normalise": "row_normalize"}


def _prism(spec: Mapping[str, Any]) -> Encoder:
    return PrismEncoder(PrismEncoderSpec(**spec))


def _gnn(spec: Mapping[str, Any]) -> Encoder:
    return GNN(GNNSpec(**{FIRST_NAMES.get(name, name): value for name, value in spec.items()}))


ENCODERS: dict[str, EncoderKind] = {
    "prism": EncoderKind(_prism, PrismEncoder, ("edge_weight", "vectors")),
    **{name: EncoderKind(_gnn) for name in LAYERS},
    "gat": EncoderKind(_gnn, uses=()),  # attention weighs the neighbors
}


def encoder_kind(name: str) -> EncoderKind:
    """The kind of a name; a SettingError lists the known names."""
    if name not in ENCODERS:
        raise one_of("encoder", name, ENCODERS)
    return ENCODERS[name]


def unused_edge_weights(name: str, graph: Graph) -> tuple[str, ...]:
    """One sentence on each part of a graph that an encoder does not use."""
    descriptions = {
        "edge_weight": "edge weights: all edges count equally",
        "vectors": "vectors of texts: only words and other features count",
    }
    uses = encoder_kind(name).uses
    there = [part for part in descriptions if getattr(graph, part) is not None]
    return tuple(f"{name} does not use {descriptions[part]}" for part in there if part not in uses)


def build_encoder(spec: Mapping[str, Any]) -> Encoder:
    """An empty encoder from the fields of its saved spec, `name` among them."""
    return encoder_kind(spec["name"]).build(spec)
