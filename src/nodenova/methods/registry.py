"""Which methods there are without labels in phase 2. To add one: its file, and its line here (see CONTRIBUTING.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any, Protocol, TypeVar, runtime_checkable

from nodenova.encoders.registry import encoder_kind
from nodenova.errors import needs_training, one_of
from nodenova.methods._plugin import is_own, origin_of, own_method
from nodenova.methods.autonovel import AutoNovel
from nodenova.methods.dtc import Dtc
from nodenova.methods.frozen_kmeans import FrozenKmeans
from nodenova.methods.ncl import Ncl
from nodenova.methods.never_new import NeverNew
from nodenova.methods.restune import ResTune
from nodenova.methods.sword import Sword
from nodenova.methods.taught import Taught
from nodenova.model.model import Model
from nodenova.prism.method import Prism
from nodenova.settings import current_names, from_text
from nodenova.task import NewTask

AMethod = TypeVar("AMethod")


@runtime_checkable
class Method(Protocol):
    """A frozen dataclass: its fields are its settings, `discover` is its one function.

    `prefers` names the encoder it is meant for, gcn unless it says otherwise.
    """

    def discover(self, model: Model, task: NewTask) -> Model: ...


METHODS: dict[str, type[Any]] = {
    "prism": Prism,
    "taught": Taught,
    "sword": Sword,
    "autonovel": AutoNovel,
    "restune": ResTune,
    "ncl": Ncl,
    "dtc": Dtc,
    "frozen_kmeans": FrozenKmeans,
    "never_new": NeverNew,
}


def get_method(name: str, settings: Mapping[str, str], methods: Mapping[str, type[Any]] = METHODS) -> Any:
    """A method from its name and settings given as text, as on the command line: get_method("sword", {"eta": "0.5"}).

    `methods` says where to look: methods without labels in phase 2 unless told otherwise; path/to/mine.py:Mine is a user's
    own. A method that has named readings takes `reading` too, which the other settings then change:
    {"reading": "printed", "epochs": "200"}.
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


def choose_encoder(method: str, encoder: str | None, methods: Mapping[str, type[Any]] = METHODS) -> str:
    """The encoder to use: the one asked for if the method can work on it, the one it prefers if none was asked for."""
    preferred = preferred_encoder(_kind(method, methods))
    if encoder and not encoder_kind(encoder).trainable and encoder_kind(preferred).trainable:
        raise needs_training(method, encoder)
    return encoder or preferred


def preferred_encoder(method: object) -> str:
    """The encoder that a method, or its class, is meant for."""
    return getattr(method, "prefers", "gcn")


def name_of(method: object, methods: Mapping[str, type[Any]] = METHODS) -> str:
    """What rows and tables call a method: its name in the registry; for any other the name of its class."""
    origin = origin_of(method)
    if origin is not None:
        return origin.class_name
    return next((name for name, kind in methods.items() if kind is type(method)), type(method).__name__)


def settings_of(method: object) -> dict[str, Any]:
    """The settings of a method, resolved."""
    return asdict(method)  # type: ignore[call-overload]


def with_settings(method: AMethod, **settings: object) -> AMethod:
    """The same method with some settings changed."""
    return replace(method, **settings)  # type: ignore[type-var]


def _kind(name: str, methods: Mapping[str, type[Any]]) -> type[Any]:
    if is_own(name):
        return own_method(name)
    if name not in methods:
        raise one_of("method", name, methods)
    return methods[name]
