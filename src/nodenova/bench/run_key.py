"""Keys of runs: a row file goes on only where they are found again, so their words never change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from nodenova.bench.registry import ALL_METHODS
from nodenova.bench.row import OLD_METHODS, OLD_VALUES, OLD_VISIBILITIES, RENAMED
from nodenova.encoders.prism.lda import LDASettings
from nodenova.methods.registry import settings_of

# Settings that came later count where they are not as by default.
ADDED: Mapping[str, object] = {"weigh": True}


def key_of(what: Mapping[str, object]) -> str:
    """A hash of everything that decides the result of a run.

    Examples:
        >>> key_of({"seed": 0}) == key_of({"seed": 0}) != key_of({"seed": 1})
        True
    """
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]


def first_words(name: str) -> str:
    """What a method, or what a phase sees, was called when keys were first written.

    Examples:
        >>> first_words("inductive"), first_words("sword")
        ('induced', 'sword')
    """
    was = {now: then for then, now in (OLD_METHODS | OLD_VISIBILITIES).items()}
    return was.get(name, name)


def first_settings(method: object, fit_settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a method by the names and values of the first keys."""
    names = {ALL_METHODS.name_of(kind) for kind in type(method).__mro__} - {None}
    renamed = {now: then for then, now in RENAMED.items()} if names else {}
    found = {}
    for name, value in settings_of(method).items():
        if name in ADDED and value == ADDED[name]:
            continue
        was = {now: then for then, now in OLD_VALUES.get(name, {}).items()} if names else {}
        found[renamed.get(name, name)] = was.get(value, value) if isinstance(value, str) else value
    resolved = asdict(LDASettings()) | dict(fit_settings)
    # These were settings of Prism; they are settings of phase 1 now.
    moved = ("rank_low", "rank_high", "prior") if "prism" in names else ()
    return found | {name: resolved[name] for name in moved}
