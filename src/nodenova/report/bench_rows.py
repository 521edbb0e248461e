"""Which rows belong to what: the paper's setting, a method on an encoder, an ablation, a sweep."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np

from nodenova.evaluation import metrics
from nodenova.experiments.paper import LEFT_OUT
from nodenova.experiments.run import Row
from nodenova.report.bench_cells import DATASETS, GIVEN, Entry, in_order

ENCODERS = {"gcn": "GCN", "gat": "GAT", "sage": "GraphSAGE"}
METHODS = {
    "autonovel": "AutoNovel",
    "restune": "ResTune",
    "ncl": "NCL",
    "dtc": "DTC",
    "frozen_kmeans": "frozen k-means",
    "never_new": "never new (floor)",
    "sword": "SWORD",
    "taught": "GNN taught by Prism",
    "prism": "Prism",
    "gem": "GEM",
    "er_gnn": "ER-GNN",
    "twp": "TWP",
    "cpca": "CPCA",
    "sword_as_released": "SWORD as released",
    "oracle": "oracle (ceiling)",
}
# The two ways in which an old head and a new one become one, where it is not the method's own.
JOINTS = {"concatenated": ", two heads side by side", "strict": ", joint head alone"}
LOSSES = {"pseudo": "L_Ps", "alpha2": "L_Pt", "alpha1": "L_Se", "replay": "L_Re", "omega": "L_Ds"}
PARAMETERS = {"alpha1": "α1", "alpha2": "α2", "eta": "η", "lam": "λ", "k": "k"}


def latest(rows: Sequence[Row]) -> list[Row]:
    """One row a key, the later one, in an order that does not depend on when each was done."""
    by_key = {row.get("key") or i: row for i, row in enumerate(rows)}

    def place(row: Row) -> tuple[str, ...]:
        names = ("dataset", "encoder", "method", "class_split", "draw", "changed", "fit_changed", "visibility")
        parts = (json.dumps(row.get(name), sort_keys=True) for name in names)
        return (*parts, f"{row['seed']:012d}", str(row.get("key")))

    return sorted(by_key.values(), key=place)


def of_the_paper(rows: Sequence[Row], fit: tuple[str, ...] = ()) -> list[Row]:
    """Rows in the paper's setting: its class order and split, the whole graph visible, phase 1 as it is by default.

    The hidden size may be another (the paper varies it by dataset), and so may the settings named in `fit`.
    """
    return [
        row
        for row in latest(rows)
        if row.get("class_split") is None
        and row.get("draw", "published") == "published"
        and row.get("visibility", "transductive") == "transductive"
        and set(row.get("fit_changed") or ()) <= {"hidden", *fit}
    ]


def unchanged(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if not row.get("changed")]


def compared(rows: Sequence[Row]) -> list[Row]:
    """Methods as they are, and with the other way of joining their two heads, which is a line of its own."""
    return [row for row in rows if set(row.get("changed") or ()) <= {"joint"}]


def encoder_title(encoder: str) -> str:
    return ENCODERS.get(encoder, encoder)


def by_method(rows: Sequence[Row]) -> list[Entry]:
    """Blocks by encoder, methods in them. A method on an encoder of its own (Prism) closes every block."""
    encoders = in_order({row["encoder"] for row in rows}, ENCODERS)
    blocks = [encoder for encoder in encoders if encoder in ENCODERS] or encoders
    given = {row["method"] for row in rows if GIVEN & set(row.get("sees") or ())}
    pairs = {(row["encoder"], _line(row)) for row in rows}
    methods = [(m, j) for m in in_order({row["method"] for row in rows}, METHODS) for j in ("", *JOINTS)]
    found = []
    for block in blocks:
        here = [(e, m) for e in encoders if e == block or e not in blocks for m in methods if (e, m) in pairs]
        for encoder, (method, joint) in sorted(here, key=lambda pair: (pair[0] != block, pair[1][0] in given)):
            own = "" if encoder == block else " (own encoder)"
            mine = [row for row in rows if (row["encoder"], _line(row)) == (encoder, (method, joint))]
            label = METHODS.get(method, method) + JOINTS.get(joint, "") + own
            found.append(Entry(encoder_title(block), (label,), mine, block, method, method == "sword" and not own))
    return found


def _line(row: Row) -> tuple[str, str]:
    return row["method"], (row.get("changed") or {}).get("joint", "")


def left_out(row: Row) -> str | None:
    """Which of SWORD's losses have weight zero, as the ablation names it; None if anything else was changed."""
    changed = row.get("changed") or {}
    if row["method"] != "sword" or any(value != 0 or key not in {*LOSSES, "lam"} for key, value in changed.items()):
        return None
    zero = set(changed) - {"lam"} | ({"replay", "omega"} if "lam" in changed else set())
    order = ("pseudo", "alpha2", "alpha1", "replay", "omega")
    return "+".join(loss for loss in order if loss in zero) or "none"


def where(rows: Sequence[Row], varied: Callable[[Row], bool]) -> list[Row]:
    """Rows of the datasets and encoders on which something was varied, so that defaults alone make no table."""
    there = {(row["dataset"], row["encoder"]) for row in rows if varied(row)}
    return [row for row in rows if (row["dataset"], row["encoder"]) in there]


def swept(rows: Sequence[Row], parameter: str) -> dict[float, list[Row]]:
    """SWORD's rows by the value of one parameter, all others being as they are by default."""
    rows = [r for r in of_the_paper(rows) if r["method"] == "sword" and set(r.get("changed") or ()) <= {parameter}]
    rows = where(rows, lambda row: bool(row.get("changed")))
    defaults = [row["settings"][parameter] for row in unchanged(rows) if parameter in (row.get("settings") or {})]
    found: dict[float, list[Row]] = {}
    for row in rows:
        value = (row.get("changed") or {}).get(parameter, defaults[0] if defaults else None)
        if value is not None:
            found.setdefault(value, []).append(row)
    return dict(sorted(found.items()))


def depth_of(row: Row) -> int:
    return (row.get("fit_changed") or {}).get("layers") or (row.get("fit_settings") or {}).get("layers", 2)


def panels(rows: Sequence[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """Rows by (dataset, encoder, title) for the figures that show one method each: SWORD, its ablations, the others."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    shown = [row for row in of_the_paper(rows) if row.get("status", "done") == "done"]

    def place(row: Row) -> tuple[int, int, int]:
        order = ["sword", *METHODS]
        line = LEFT_OUT.index(left_out(row) or "none") if row.get("changed") else -1
        return (row["encoder"] not in ENCODERS, order.index(row["method"]) if row["method"] in order else len(order), line)

    for row in sorted((r for r in shown if not r.get("changed") or left_out(r) in LEFT_OUT), key=place):
        title = str(METHODS.get(row["method"], row["method"]))
        if row.get("changed"):
            title += " without " + ", ".join(LOSSES[loss] for loss in str(left_out(row)).split("+"))
        if GIVEN & set(row.get("sees") or ()):
            title += " †"
        found.setdefault((row["dataset"], row["encoder"], title), []).append(row)
    datasets = in_order({key[0] for key in found}, DATASETS)
    encoders = in_order({key[1] for key in found}, ENCODERS)
    return {key: found[key] for d in datasets for e in encoders for key in found if key[:2] == (d, e)}


def confusions(rows: Sequence[Row]) -> np.ndarray:
    """(runs, true classes, true classes + 1) matched counts (block); the last column has what no true class stands for."""
    found = []
    for row in rows:
        counts = np.array(row["confusion"])
        moved = metrics.matched_confusion(counts, metrics.match_block(counts, row["sizes"], row["predicted_sizes"]))
        n = len(counts)
        found.append(np.column_stack([moved[:, :n], moved[:, n:].sum(axis=1)]))
    return np.stack(found)
