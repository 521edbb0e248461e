"""Rows as the bench writes them, made up: scores follow from the seed and a level, nothing is trained."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

NAMES = ["a", "b", "c"]
DEFAULTS = {"alpha1": 0.08, "alpha2": 5.0, "eta": 0.2, "lam": 0.4, "k": 3, "replay": 1.0, "omega": 10.0, "pseudo": 1.0}


def row(
    method: str = "sword", seed: int = 0, level: float = 50.0, dataset: str = "cora", encoder: str = "gcn", **more: Any
) -> dict[str, Any]:
    """One finished run whose block scores are about `level` and whose identity scores are ten lower."""
    changed, fit_changed = more.get("changed", {}), more.get("fit_changed", {})
    other = [more.get(key) for key in ("class_split", "draw", "visibility")]
    name = [dataset, method, encoder, seed, changed, fit_changed, *other]
    wobble = float(np.random.default_rng([seed, len(method), int(level)]).normal())
    names = ("old", "new", "all", "h", "gate", "nmi", "ari", "new_n", "old_n", "all_n")
    block = {s: level + i + wobble for i, s in enumerate(names)}
    return {
        "key": json.dumps(name), "status": "done", "dataset": dataset, "method": method, "encoder": encoder, "seed": seed,
        "num_old": 2, "num_new": 1, "class_names": NAMES, "sizes": [2, 1], "predicted_sizes": [2, 1],
        "confusion": [[8, 1, 1], [2, 16, 2], [5, 10, 15 + seed]], "visibility": "transductive", "draw": "published",
        "settings": DEFAULTS | changed, "fit_settings": {"hidden": 16, "layers": 2} | fit_changed, "changed": changed,
        "fit_changed": fit_changed, "class_split": None, "sees": ["graph", "new_ids"], "commit": "c0ffee", "map": None,
        "scores": {"block": block, "identity": {s: v - 10 for s, v in block.items()}, "global": block},
        "aa": level + wobble, "af": -level + wobble, "data": "d", "versions": {"python": "3.11"},
    } | more  # fmt: skip


def failed(**more: Any) -> dict[str, Any]:
    """A run that ended in an error: no scores."""
    kept = row(**more)
    for key in ("scores", "aa", "af", "confusion", "settings", "fit_settings", "sees", "versions", "data"):
        del kept[key]
    return kept | {"status": "failed", "error": "Traceback:\nRuntimeError: 50% of_it & <b>x</b>"}


def seeds(n: int, method: str = "sword", level: float = 50.0, **more: Any) -> list[dict[str, Any]]:
    return [row(method, seed, level, **more) for seed in range(n)]


def bench() -> list[dict[str, Any]]:
    """Something for every table."""
    rows = []
    for dataset in ("cora", "citeseer"):
        for encoder in ("gcn", "gat"):
            rows += seeds(6, dataset=dataset, encoder=encoder) + seeds(6, "dtc", 40, dataset=dataset, encoder=encoder)
        rows += seeds(6, "prism", 70, dataset=dataset, encoder="prism")
        rows += seeds(6, "gem", 90, dataset=dataset, sees=["graph", "new_ids", "new_labels"])
        rows += seeds(6, "sword", 30, dataset=dataset, changed={"alpha1": 0.0})
        rows += seeds(6, "sword", 20, dataset=dataset, changed={"lam": 0.0})
        rows += seeds(6, "sword", 55, dataset=dataset, changed={"eta": 0.5})
        rows += seeds(6, "sword", 35, dataset=dataset, fit_changed={"layers": 8})
        for split in range(6):
            rows += [row(seed=s, level=40 + split, dataset=dataset, class_split=split, draw="balanced") for s in (0, 1)]
            rows += [row("dtc", 0, 30, dataset=dataset, class_split=split, draw="balanced")]
    return rows
