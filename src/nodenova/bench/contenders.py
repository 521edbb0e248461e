"""What may be run under the protocol: methods without labels, methods given labels, and a user's own from a file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from nodenova.methods import registry
from nodenova.methods.registry import METHODS, Method
from nodenova.supervised import LABELLED, LabelledMethod

AnyMethod: TypeAlias = "Method | LabelledMethod"

CONTENDERS: dict[str, type[Any]] = METHODS | LABELLED


def contender(name: str, settings: Mapping[str, str]) -> Any:
    """A method by name, or by path/to/mine.py:Mine, with settings given as text."""
    return registry.get_method(name, settings, CONTENDERS)


def is_given_labels(method: object) -> bool:
    """Whether a method enters by the other door, which hands it labels and says so in the row."""
    return type(method) in LABELLED.values()


def encoder_for(name: str, encoder: str | None) -> str:
    """The encoder to run a method on: the one asked for if it can work on it, the one it prefers if none was asked for."""
    return registry.choose_encoder(name, encoder, CONTENDERS)


def name_of(method: object) -> str:
    """What rows and tables call a method: its name; for a user's own the name of its class."""
    return registry.name_of(method, CONTENDERS)
