"""Which encoders there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from nodenova.encoders.gnn import GNN, LAYERS, GNNSpec
from nodenova.errors import one_of
from nodenova.nn.encoder import Encoder
from nodenova.prism.encoder import PrismEncoder, PrismEncoderSpec


@dataclass(frozen=True)
class EncoderKind:
    """How an encoder of a name is built empty, and how it gets its weights."""

    build: Callable[[Mapping[str, Any]], Encoder]  # from the fields of its spec
    closed_form: type[PrismEncoder] | None = None  # computed by its `fit`; None: trained by gradient descent

    @property
    def trainable(self) -> bool:
        return self.closed_form is None


def _prism(spec: Mapping[str, Any]) -> Encoder:
    return PrismEncoder(PrismEncoderSpec(**spec))


def _gnn(spec: Mapping[str, Any]) -> Encoder:
    return GNN(GNNSpec(**spec))


ENCODERS: dict[str, EncoderKind] = {
    "prism": EncoderKind(_prism, PrismEncoder),
    **{name: EncoderKind(_gnn) for name in LAYERS},
}


def encoder_kind(name: str) -> EncoderKind:
    """The kind of a name, or an error that lists the known ones.

    >>> encoder_kind("prism").trainable, encoder_kind("gcn").trainable
    (False, True)
    """
    if name not in ENCODERS:
        raise one_of("encoder", name, ENCODERS)
    return ENCODERS[name]


def build_encoder(spec: Mapping[str, Any]) -> Encoder:
    """An empty encoder of a saved kind and shape."""
    return encoder_kind(spec["name"]).build(spec)
