"""What may be run under the protocol.

Methods without labels, methods given labels, and a user's own from a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from nodenova.bench.baselines import BASELINES
from nodenova.methods import registry
from nodenova.methods.registry import METHODS, Method
from nodenova.supervised import LABELLED, LabelledMethod

AnyMethod: TypeAlias = "Method | LabelledMethod"

ALL_METHODS = METHODS | LABELLED
# They answer another question, which new class a new node is of; only the table `settings` asks it.
NCD = ("autonovel_ncd", "ncl_ncd", "dtc_ncd")


def get_method(name: str, settings: Mapping[str, str]) -> Any:
    """A method by name, or by path/to/mine.py:Mine, with settings given as text.

    Args:
        name: One of `ALL_METHODS`, or a file and a class in it.
        settings: Values as text, by name.

    Raises:
        SettingError: There is no such method, or a setting of it is wrong.

    Examples:
        >>> get_method("sword", {"epochs": "300"}).epochs
        300
    """
    return registry.get_method(name, settings, ALL_METHODS)


def get_baseline(name: str) -> Any:
    """A method by name as it is by default, also one that only the league knows.

    Args:
        name: One of `ALL_METHODS` or `BASELINES`, or a file and a class in it.

    Raises:
        SettingError: There is no such method.

    Examples:
        >>> get_baseline("gcd").restarts
        10
    """
    return registry.get_method(name, {}, {**ALL_METHODS, **BASELINES})


def is_given_labels(method: object) -> bool:
    """Whether a method takes the other entrance, which hands it labels and says so in the row.

    Examples:
        >>> import nodenova as nova
        >>> is_given_labels(nova.Sword()), is_given_labels(nova.LABELLED["oracle"]())
        (False, True)
    """
    return LABELLED.name_of(type(method)) is not None


def encoder_for(name: str, encoder: str | None) -> str:
    """The encoder to run a method on.

    Args:
        name: Of the method, as in `get_method`.
        encoder: The one asked for; None for the one that the method prefers.

    Raises:
        SettingError: The method trains its encoder, and the one asked for is computed.

    Examples:
        >>> encoder_for("sword", None), encoder_for("sword", "gat"), encoder_for("prism", None)
        ('gcn', 'gat', 'prism')
    """
    return registry.choose_encoder(name, encoder, ALL_METHODS)


def name_of(method: object) -> str:
    """What rows and tables call a method: its name; for a user's own the name of its class.

    Examples:
        >>> import nodenova as nova
        >>> name_of(nova.FrozenKMeans())
        'frozen_kmeans'
    """
    baselines = {kind: name for name, kind in BASELINES.items()}
    return baselines.get(type(method)) or registry.name_of(method, ALL_METHODS)
