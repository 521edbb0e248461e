"""Encoders by name: how they are built and get their weights, and a user's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from nodenova.encoders.gnn import GNN, LAYERS, RUNNING, GNNSpec
from nodenova.encoders.own import OWN, OwnClass, OwnEncoder, OwnSpec
from nodenova.encoders.prism.encoder import PrismEncoder, PrismEncoderSpec
from nodenova.errors import SettingError, brief, one_of
from nodenova.files.own_code import Origin, is_path, load_class
from nodenova.graph import Graph
from nodenova.nn.encoder import Encoder, TrainedEncoder
from nodenova.nn.sparse import are_counts

# Settings of gcn, gat and sage that `fit` takes, with their defaults.
SHAPE = {
    each.name: each.default
    for each in fields(GNNSpec)
    if each.name in ("hidden", "layers", "dropout", "heads", "input_dropout", "attention", *RUNNING)
}


@dataclass(frozen=True)
class EncoderKind:
    """How an encoder is built, and how it gets its weights."""

    name: str
    build: Callable[[Mapping[str, Any]], Encoder]  # builds an empty one from the fields of its spec
    # class whose `fit` computes it; None if it is trained
    closed_form: type[PrismEncoder] | None = None
    weighs: bool = True  # whether it uses edge weights
    settings: Mapping[str, Any] = field(default_factory=dict)  # of its shape, with defaults
    own: OwnClass | None = None  # the user's class, if it is one

    @property
    def trainable(self) -> bool:
        """Whether its weights are learned by gradient descent."""
        return self.closed_form is None

    @property
    def origin(self) -> Origin | None:
        """File and class of a user's encoder; None for any other, and for a class without file."""
        return None if self.own is None else self.own.origin

    def check(self, settings: Mapping[str, Any]) -> None:
        """Raise a SettingError for settings of its shape that are unknown or impossible."""
        if self.own is None:
            GNNSpec(self.name, **settings)
            return
        GNNSpec(hidden=settings.get("hidden", SHAPE["hidden"]))
        self.own.check({key: value for key, value in settings.items() if key != "hidden"})

    def fresh(self, graph: Graph, settings: Mapping[str, Any]) -> TrainedEncoder:
        """An encoder with initial weights, for a graph."""
        width = 0 if graph.vectors is None else graph.vectors.shape[1]
        size: dict[str, Any] = {"num_features": graph.num_features, "vector_size": width}
        size |= {"row_normalize": are_counts(graph)}
        if self.own is None:
            return GNN(GNNSpec(self.name, **size, **settings)).standardize(graph)
        own = {key: value for key, value in settings.items() if key != "hidden"}
        hidden = settings.get("hidden", SHAPE["hidden"])
        spec = OwnSpec(self.name, hidden=hidden, settings=own, **size)
        return OwnEncoder(spec, self.own).standardize(graph)


# The first models have the British spelling.
FIRST_NAMES = {"row_normalise": "row_normalize"}


def _prism(spec: Mapping[str, Any]) -> Encoder:
    return PrismEncoder(PrismEncoderSpec(**spec))


def _gnn(spec: Mapping[str, Any]) -> Encoder:
    return GNN(GNNSpec(**{FIRST_NAMES.get(name, name): value for name, value in spec.items()}))


ENCODERS: dict[str, EncoderKind] = {
    "prism": EncoderKind("prism", _prism, PrismEncoder),
    **{name: EncoderKind(name, _gnn, settings=SHAPE) for name in LAYERS},
    # attention weighs the neighbors
    "gat": EncoderKind("gat", _gnn, weighs=False, settings=SHAPE),
}
# Classes of the user that this process was given, by name.
_OWN: dict[str, EncoderKind] = {}


def register_encoder(encoder: str | type[Any]) -> str:
    """Make an encoder of your own known by its name, for `fit` and for saved models.

    A saved model holds weights and no code: `load_model` and `open_run` need the class before.
    An encoder that `fit` was given in the same process is known already.

    Args:
        encoder: Class of the encoder, or path/to/mine.py:Net, whose file is run.

    Returns:
        Its name: that of the class.

    Raises:
        SettingError: If it is not an encoder, or has the name of one of nodenova's.

    Examples:
        >>> import nodenova as nova
        >>> import torch
        >>> class Alone(torch.nn.Linear):
        ...     def forward(self, x, edge_index):
        ...         return super().forward(x)
        >>> nova.register_encoder(Alone)
        'Alone'
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> nova.fit(old, "Alone", epochs=5)
        Model(Alone, 2 classes, 0 of them discovered)
    """
    if isinstance(encoder, str):
        found, origin = load_class(encoder, "an encoder")
    elif isinstance(encoder, type):
        found, origin = encoder, None
    else:
        raise SettingError(
            f"an encoder is a class or path/to/mine.py:Net, not {brief(encoder)}; give the class, "
            "not an instance"
        )
    own = OwnClass.of(found, origin)
    if own.name in ENCODERS or own.name == OWN:
        raise SettingError(f"{own.name} is the name of an encoder of nodenova; name it otherwise")
    _OWN[own.name] = EncoderKind(
        own.name,
        lambda spec: OwnEncoder(OwnSpec.from_json(spec), own),
        weighs=own.weighs,
        settings={"hidden": SHAPE["hidden"], **own.settings},
        own=own,
    )
    return own.name


def encoder_kind(encoder: str | type[Any]) -> EncoderKind:
    """The kind of a name, of a class, or of path/to/mine.py:Net; else names the known ones."""
    if not isinstance(encoder, str) or is_path(encoder):
        return _OWN[register_encoder(encoder)]
    if encoder not in ENCODERS and encoder not in _OWN:
        raise one_of("encoder", encoder, [*ENCODERS, *_OWN])
    return ENCODERS[encoder] if encoder in ENCODERS else _OWN[encoder]


def unused_edge_weights(encoder: str | type[Any], graph: Graph) -> tuple[str, ...]:
    """One sentence if a graph has edge weights that an encoder does not use."""
    kind = encoder_kind(encoder)
    if graph.edge_weight is None or kind.weighs:
        return ()
    return (f"{kind.name} does not use edge weights: all edges count equally",)


def missing_class(spec: Mapping[str, Any]) -> str | None:
    """The name of a user's class that a saved encoder needs and this process does not have."""
    return spec["class"] if spec["name"] == OWN and spec["class"] not in _OWN else None


def build_encoder(spec: Mapping[str, Any]) -> Encoder:
    """An empty encoder from the fields of its saved spec, `name` among them; runs no file."""
    if spec["name"] == OWN:
        return _OWN[spec["class"]].build(spec)
    return ENCODERS[spec["name"]].build(spec)
