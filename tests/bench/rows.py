"""Rows as the bench writes them, made up: counts follow from the seed and a level.

Nothing is trained.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from nodenova.bench.row import Row

NAMES = ["a", "b", "c"]
# Of each class in the test: a score in hundredths of a percent is a whole number of them.
NODES = 10_000
DEFAULTS = {
    "alpha1": 0.08,
    "alpha2": 5.0,
    "eta": 0.2,
    "lam": 0.4,
    "k": 3,
    "replay": 1.0,
    "omega": 10.0,
    "pseudo": 1.0,
}


def row(
    method: str = "sword",
    seed: int = 0,
    level: float = 50.0,
    dataset: str = "cora",
    encoder: str = "gcn",
    *,
    old: float | None = None,
    new: float | None = None,
    **more: Any,
) -> Row:
    """One finished run whose Old is about one above `level` and whose New about three.

    Or what is given.
    """
    return Row.from_json(document(method, seed, level, dataset, encoder, old=old, new=new, **more))


def document(
    method: str = "sword",
    seed: int = 0,
    level: float = 50.0,
    dataset: str = "cora",
    encoder: str = "gcn",
    *,
    old: float | None = None,
    new: float | None = None,
    **more: Any,
) -> dict[str, Any]:
    """The same as JSON has it. Other counts that are given are the only ones there are."""
    if "confusion" in more:
        more = dict.fromkeys(("confusion_fit", "confusion_old", "confusion_new")) | more
    changed, fit_changed = more.get("changed", {}), more.get("fit_changed", {})
    other = [more.get(key) for key in ("class_split", "draw", "visibility")]
    name = [dataset, method, encoder, seed, changed, fit_changed, *other]
    wobble = float(np.random.default_rng([seed, len(method), int(level)]).normal())
    o = round(NODES * (level + 1 + wobble if old is None else old) / 100)
    n = round(NODES * (level + 3 + wobble if new is None else new) / 100)
    return {
        "schema": 2, "key": json.dumps(name), "status": "done",
        "dataset": dataset, "method": method, "encoder": encoder, "seed": seed,
        "num_old": 2, "num_new": 1, "old_classes": [0, 1], "class_names": NAMES,
        "sizes": [2, 1], "predicted_sizes": [2, 1],
        "confusion": [[o, NODES - o, 0], [NODES - o, o, 0], [NODES - n, 0, n]],
        "confusion_fit": [[NODES, 0, 0], [0, NODES, 0], [NODES, 0, 0]],
        "confusion_old": [[o, NODES - o], [NODES - o, o]], "confusion_new": [[NODES]],
        "visibility": "transductive", "draw": "published", "split": "published",
        "nodes": {"unlabelled_new": 20, "test": 3 * NODES},
        "settings": DEFAULTS | changed, "changed": changed,
        "fit_settings": {"hidden": 16, "layers": 2} | fit_changed, "fit_changed": fit_changed,
        "class_split": None, "sees": ["graph", "new_ids"],
        "seconds": {"fit": 1.0, "discover": 2.0}, "device": "cpu", "commit": "c0ffee",
        "map": None, "data": "d", "versions": {"python": "3.11"},
    } | more  # fmt: skip


def failed(**more: Any) -> Row:
    """A run that ended in an error: no counts."""
    said = {"status": "failed", "error": "Traceback:\nRuntimeError: 50% of_it & <b>x</b>"}
    given = {key: value for key, value in more.items() if key in ("error", "schema")}
    kept = document(**more) | said | given
    unknown = (
        "class_names", "split", "sizes", "predicted_sizes", "confusion", "confusion_fit",
        "confusion_old", "confusion_new", "settings", "fit_settings", "sees", "versions", "data",
        "seconds", "nodes", "device", "map",
    )  # fmt: skip
    for key in unknown:
        del kept[key]
    return Row.from_json(kept)


def seeds(n: int, method: str = "sword", level: float = 50.0, **more: Any) -> list[Row]:
    return [row(method, seed, level, **more) for seed in range(n)]


def bench() -> list[Row]:
    """Something for every table."""
    rows = []
    for dataset in ("cora", "citeseer"):
        for encoder in ("gcn", "gat"):
            rows += seeds(6, dataset=dataset, encoder=encoder)
            rows += seeds(6, "dtc", 40, dataset=dataset, encoder=encoder)
        rows += seeds(6, "prism", 70, dataset=dataset, encoder="prism")
        rows += seeds(6, "gem", 90, dataset=dataset, sees=["graph", "new_ids", "new_labels"])
        rows += seeds(6, "sword", 30, dataset=dataset, changed={"alpha1": 0.0})
        rows += seeds(6, "sword", 20, dataset=dataset, changed={"lam": 0.0})
        rows += seeds(6, "sword", 55, dataset=dataset, changed={"eta": 0.5})
        rows += seeds(6, "sword", 35, dataset=dataset, fit_changed={"layers": 8})
        for split in range(6):
            rows += [
                row(seed=s, level=40 + split, dataset=dataset, class_split=split, draw="balanced")
                for s in (0, 1)
            ]
            rows += [row("dtc", 0, 30, dataset=dataset, class_split=split, draw="balanced")]
    return rows
