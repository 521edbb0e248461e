"""Which encoders there are."""

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
    """How an encoder of a name is built empty, and how it gets its weights.

    Attributes:
        build: An empty one, from the fields of its spec.
        closed_form: Whose `fit` computes it; None: trained by gradient descent.
        hears: What of a graph it uses beside features and edges.
    """

    build: Callable[[Mapping[str, Any]], Encoder]
    closed_form: type[PrismEncoder] | None = None
    hears: tuple[str, ...] = ("edge_weight",)

    @property
    def trainable(self) -> bool:
        """Whether its weights are learned by gradient descent."""
        return self.closed_form is None


def _prism(spec: Mapping[str, Any]) -> Encoder:
    return PrismEncoder(PrismEncoderSpec(**spec))


def _gnn(spec: Mapping[str, Any]) -> Encoder:
    # As the first models have it.
    saved = {"row_normalize" if name == "row_normalise" else name: spec[name] for name in spec}
    return GNN(GNNSpec(**saved))


ENCODERS: dict[str, EncoderKind] = {
    "prism": EncoderKind(_prism, PrismEncoder, ("edge_weight", "vectors")),
    **{name: EncoderKind(_gnn) for name in LAYERS},
    "gat": EncoderKind(_gnn, hears=()),  # attention decides among neighbors, whatever edges weigh
}


def encoder_kind(name: str) -> EncoderKind:
    """The kind of a name.

    Raises:
        SettingError: There is none of this name; the known ones are listed.

    Examples:
        >>> encoder_kind("prism").trainable, encoder_kind("gcn").trainable
        (False, True)
    """
    if name not in ENCODERS:
        raise one_of("encoder", name, ENCODERS)
    return ENCODERS[name]


def unused_edge_weights(name: str, graph: Graph) -> tuple[str, ...]:
    """What an encoder does not use of a graph, a sentence each.

    Args:
        name: Of the encoder.
        graph: Which it is to encode.

    Examples:
        >>> unused_edge_weights("gat", Graph.of([[1], [2]], [[0], [1]], edge_weight=[3.0]))
        ('gat does not use weights of edges: all count alike',)
    """
    said = {
        "edge_weight": "weights of edges: all count alike",
        "vectors": "vectors of texts: words and other features alone count",
    }
    hears = encoder_kind(name).hears
    unused = [part for part in said if part not in hears and getattr(graph, part) is not None]
    return tuple(f"{name} does not use {said[part]}" for part in unused)


def build_encoder(spec: Mapping[str, Any]) -> Encoder:
    """An empty encoder of a saved kind and shape.

    Args:
        spec: The fields of its spec, `name` among them.

    Raises:
        SettingError: No encoder has this name.

    Examples:
        >>> build_encoder({"name": "sage", "num_features": 100, "hidden": 8}).spec.hidden
        8
    """
    return encoder_kind(spec["name"]).build(spec)
