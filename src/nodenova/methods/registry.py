"""Which methods there are without labels in phase 2.

To add one: its file, and its line here (see CONTRIBUTING.md).

Examples:
    >>> import nodenova as nova
    >>> nova.METHODS["sword"]
    <class 'nodenova.methods.sword.Sword'>
    >>> nova.METHODS["sword"]().epochs
    600
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

from nodenova.encoders.registry import encoder_kind
from nodenova.errors import needs_training, one_of, warn_renamed
from nodenova.graph import NewTask
from nodenova.methods._plugin import is_own, origin_of, own_method
from nodenova.methods.autonovel import AutoNovel
from nodenova.methods.distilled_gnn import DistilledGNN
from nodenova.methods.dtc import DTC
from nodenova.methods.frozen_kmeans import FrozenKMeans
from nodenova.methods.ncl import NCL
from nodenova.methods.never_new import NeverNew
from nodenova.methods.prism import Prism
from nodenova.methods.restune import ResTune
from nodenova.methods.sword import Sword
from nodenova.model.model import Model
from nodenova.settings import current_names, from_text

AMethod = TypeVar("AMethod")


@runtime_checkable
class Method(Protocol):
    """A frozen dataclass: its fields are its settings, `discover` is its one function.

    A class variable `prefers` names the encoder it is meant for, gcn unless it says otherwise;
    `title` what tables call it, the name of its class unless it says otherwise.

    Examples:
        >>> import nodenova as nova
        >>> isinstance(nova.Sword(epochs=5), nova.Method)
        True
    """

    def discover(self, model: Model, task: NewTask) -> Model:
        """Find `task.number` new classes among the unlabelled nodes `task.ids`.

        PyTorch's generator is seeded before the call; every random number comes from it.

        Args:
            model: Of the classes known so far. `encoder()` and `head()` are copies to be trained.
            task: The visible graph, the new nodes, and how many classes to find among them.

        Returns:
            The model with `task.number` more classes: what `Model.grown` makes.
        """


METHODS: dict[str, type[Any]] = {
    "prism": Prism,
    "distilled_gnn": DistilledGNN,
    "sword": Sword,
    "autonovel": AutoNovel,
    "restune": ResTune,
    "ncl": NCL,
    "dtc": DTC,
    "frozen_kmeans": FrozenKMeans,
    "never_new": NeverNew,
}
"""The methods without labels in phase 2, by the names they have on the command line."""


def get_method(
    name: str, settings: Mapping[str, str], methods: Mapping[str, type[Any]] = METHODS
) -> Any:
    """A method from its name and settings given as text, as on the command line.

    Args:
        name: As registered; path/to/mine.py:Mine is a user's own.
        settings: {setting: value}. A method that has named readings takes `reading` too, which the
            other settings then change: {"reading": "printed", "epochs": "200"}.
        methods: Where to look: methods without labels in phase 2 unless told otherwise.

    Raises:
        SettingError: The method, a setting or a reading is unknown, or a value impossible.

    Examples:
        >>> get_method("sword", {"eta": "0.5"}).eta
        0.5
    """
    kind = _kind(name, methods)
    known = {f.name: f for f in fields(kind)}
    readings: Mapping[str, Mapping[str, object]] = getattr(kind, "READINGS", {})
    values: dict[str, object] = {}
    if readings and "reading" in settings:
        if settings["reading"] not in readings:
            raise one_of(f"reading of {name}", settings["reading"], readings)
        values |= readings[settings["reading"]]
    for key, text in current_names(kind, settings).items():
        if readings and key == "reading":
            continue
        if key not in known:
            raise one_of(f"setting of {name}", key, known)
        values[key] = from_text(key, text, known[key].default)
    return kind(**values)


make_method = get_method  # the name it had


def choose_encoder(
    method: str, encoder: str | None, methods: Mapping[str, type[Any]] = METHODS
) -> str:
    """The encoder to use: the one asked for, or else the one the method prefers.

    Args:
        method: Its name.
        encoder: The one asked for; None if none was.
        methods: Where to look: methods without labels in phase 2 unless told otherwise.

    Raises:
        SettingError: The method trains its encoder, and the one asked for is computed.

    Examples:
        >>> choose_encoder("sword", None)
        'gcn'
    """
    preferred = preferred_encoder(_kind(method, methods))
    if encoder and not encoder_kind(encoder).trainable and encoder_kind(preferred).trainable:
        raise needs_training(method, encoder)
    return encoder or preferred


def preferred_encoder(method: object) -> str:
    """The encoder that a method, or its class, is meant for."""
    return getattr(method, "prefers", "gcn")


def name_of(method: object, methods: Mapping[str, type[Any]] = METHODS) -> str:
    """What rows and tables call a method: its registered name; for any other that of its class."""
    origin = origin_of(method)
    if origin is not None:
        return origin.class_name
    registered = (name for name, kind in methods.items() if kind is type(method))
    return next(registered, type(method).__name__)


def settings_of(method: object) -> dict[str, Any]:
    """The settings of a method, resolved."""
    return asdict(method)  # type: ignore[call-overload]


def with_settings(method: AMethod, **settings: object) -> AMethod:
    """The same method with some settings changed."""
    return replace(method, **settings)  # type: ignore[type-var]


OLD_METHODS = {"taught": "distilled_gnn"}


def _kind(name: str, methods: Mapping[str, type[Any]]) -> type[Any]:
    if name in OLD_METHODS:
        warn_renamed(f"the method {name}", OLD_METHODS[name], stacklevel=4)
        name = OLD_METHODS[name]
    if is_own(name):
        return own_method(name)
    if name not in methods:
        raise one_of("method", name, methods)
    return methods[name]
