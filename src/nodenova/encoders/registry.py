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
    """How an encoder of a name is built empty, and how it gets its weights.

    Attributes:
        build: An empty one, from the fields of its spec.
        closed_form: Whose `fit` computes it; None: trained by gradient descent.
    """

    build: Callable[[Mapping[str, Any]], Encoder]
    closed_form: type[PrismEncoder] | None = None

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
    "prism": EncoderKind(_prism, PrismEncoder),
    **{name: EncoderKind(_gnn) for name in LAYERS},
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
