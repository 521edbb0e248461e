"""What may be run under the protocol: methods without labels, methods given labels, and a user's own from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nodenova.labelled import LABELLED
from nodenova.methods import METHODS, choose_encoder, make_method
from nodenova.methods.own import is_own, own_method

CONTENDERS: dict[str, type[Any]] = METHODS | LABELLED


def is_given_labels(method: Any) -> bool:
    """Whether a method enters by the other door, which hands it labels and says so in the row."""
    return type(method) in LABELLED.values()


def contender(name: str, settings: Mapping[str, str]) -> Any:
    """A method by name, or by path/to/mine.py:Mine, with settings given as text."""
    return make_method(name, settings, _known(name))


def encoder_for(name: str, encoder: str | None) -> str:
    """The encoder to run a method on: the one asked for if it can work on it, the one it prefers if none was asked for."""
    return choose_encoder(name, encoder, _known(name))


def title(name: str) -> str:
    """What rows and tables call a method: its name; for a user's own the name of its class."""
    return name.rpartition(":")[2] if is_own(name) else name


def _known(name: str) -> Mapping[str, type[Any]]:
    return {name: own_method(name)} if is_own(name) else CONTENDERS
