"""Methods without labels in phase 2. To add one: write its file, add its line here (see CONTRIBUTING.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Protocol, runtime_checkable

from nodenova.errors import needs_training, one_of
from nodenova.methods.autonovel import AutoNovel
from nodenova.methods.dtc import Dtc
from nodenova.methods.frozen_kmeans import FrozenKmeans
from nodenova.methods.ncl import Ncl
from nodenova.methods.never_new import NeverNew
from nodenova.methods.prism import Prism
from nodenova.methods.restune import ResTune
from nodenova.methods.sword import Sword
from nodenova.methods.taught import Taught
from nodenova.model import Model
from nodenova.settings import from_text
from nodenova.task import NewTask


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


def choose_encoder(method: str, encoder: str | None, methods: Mapping[str, type[Any]] = METHODS) -> str:
    """The encoder to use: the one asked for if the method can work on it, the one it prefers if none was asked for."""
    if method not in methods:
        raise one_of("method", method, methods)
    preferred: str = getattr(methods[method], "prefers", "gcn")
    if encoder == "prism" and preferred != "prism":
        raise needs_training(method, encoder)
    return encoder or preferred


def make_method(name: str, settings: Mapping[str, str], methods: Mapping[str, type[Any]] = METHODS) -> Any:
    """A method from its name and settings given as text, as on the command line: make_method("sword", {"eta": "0.5"}).

    `methods` says where to look: methods without labels in phase 2 unless told otherwise. A method that has named readings
    takes `reading` too, which the other settings then change: {"reading": "printed", "epochs": "200"}.
    """
    if name not in methods:
        raise one_of("method", name, methods)
    known = {f.name: f for f in fields(methods[name])}
    readings: Mapping[str, Mapping[str, object]] = getattr(methods[name], "READINGS", {})
    values: dict[str, object] = {}
    if readings and "reading" in settings:
        if settings["reading"] not in readings:
            raise one_of(f"reading of {name}", settings["reading"], readings)
        values |= readings[settings["reading"]]
    for key, text in settings.items():
        if readings and key == "reading":
            continue
        if key not in known:
            raise one_of(f"setting of {name}", key, known)
        values[key] = from_text(key, text, known[key].default)
    return methods[name](**values)
