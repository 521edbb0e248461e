"""SWORD with something varied: losses left out, a setting moved, layers added.

And the runs a figure shows a panel of.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from nodenova.bench.paper import LEFT_OUT
from nodenova.bench.row import Row, Value
from nodenova.bench.row_filters import in_setting, no_ncd, of_the_paper, variants
from nodenova.bench.table import GIVEN
from nodenova.bench.titles import (
    DATASETS,
    ENCODERS,
    LOSSES,
    METHODS,
    PARAMETERS,
    in_order,
    method_title,
)
from nodenova.evaluation import metrics


def is_left_out(setting: str, value: Value) -> bool:
    """Is this the weight of a loss, and zero? λ weighs two of them."""
    return setting in {*LOSSES, "lam"} and value == 0


def left_out(row: Row, beside: bool = False) -> str | None:
    """Which of SWORD's losses have weight zero, as the ablation names it: "replay+omega", "none".

    Args:
        row: Of any method.
        beside: Whatever else was changed.

    Returns:
        None if it is not SWORD, or, unless `beside`, if anything else was changed.
    """
    changed = row.changed
    if row.method != "sword" or not (beside or all(is_left_out(*item) for item in changed.items())):
        return None
    zero = {key for key, value in changed.items() if is_left_out(key, value)}
    zero = zero - {"lam"} | ({"replay", "omega"} if "lam" in zero else set())
    order = ("pseudo", "alpha2", "alpha1", "replay", "omega")
    return "+".join(loss for loss in order if loss in zero) or "none"


def where(found: Sequence[tuple[str, Row]], varied: Callable[[Row], bool]) -> list[tuple[str, Row]]:
    """Rows of the datasets and encoders on which something was varied.

    Defaults alone make no table.
    """

    def place(kind: str, row: Row) -> tuple[str, ...]:
        return kind, row.dataset, row.encoder, row.method

    there = {place(*pair) for pair in found if varied(pair[1])}
    return [pair for pair in found if place(*pair) in there]


def beside(
    rows: Sequence[Row], vary: Callable[[str, Value], bool], fit: tuple[str, ...] = ()
) -> list[tuple[str, Row]]:
    """Rows on trained encoders, each with what was set besides what `vary` says is varied.

    That is "" or "η=0.5, hidden 64".
    """
    rows = no_ncd(in_setting(rows, fit))
    found = []
    for row, variant in zip(rows, variants(rows), strict=True):
        if row.encoder in ENCODERS:
            others = {k: v for k, v in row.changed.items() if not vary(k, v)}
            set_to = [f"{PARAMETERS.get(k, k)}={v}" for k, v in others.items()]
            found.append((", ".join([*set_to, *filter(None, [variant])]), row))
    return sorted(found, key=lambda pair: pair[0])


def ablated(rows: Sequence[Row]) -> list[tuple[str, Row]]:
    """Runs in which losses were left out, and those with all of them beside these.

    Returns:
        Pairs of what else was set and a row.
    """
    found = [
        (kind, row)
        for kind, row in beside(rows, is_left_out)
        if left_out(row, beside=True) in LEFT_OUT
    ]
    return where(found, lambda row: left_out(row, beside=True) != "none")


def swept(rows: Sequence[Row], parameter: str) -> dict[tuple[str, float], list[Row]]:
    """SWORD's rows by what else was set and the value of one parameter."""
    found = [
        (kind, row)
        for kind, row in beside(rows, lambda key, _: key == parameter)
        if row.method == "sword"
        and not any(is_left_out(*item) for item in row.changed.items() if item[0] != parameter)
    ]
    found = where(found, lambda row: parameter in row.changed)
    usual = {  # the value where it was not moved; a failed run does not say it
        kind: row.settings[parameter]
        for kind, row in found
        if parameter not in row.changed and parameter in row.settings
    }
    by_value: dict[tuple[str, float], list[Row]] = {}
    for kind, row in found:
        value = row.changed.get(parameter, usual.get(kind))
        if isinstance(value, int | float):
            by_value.setdefault((kind, value), []).append(row)
    # Two runs that differ in two settings are a curve of neither:
    # where something else was set, a curve has three values.
    values = Counter(kind for kind, _ in by_value)
    return {key: by_value[key] for key in sorted(by_value) if not key[0] or values[key[0]] > 2}


def depth_of(row: Row) -> int:
    """How many layers the encoder had."""
    return int(str(row.fit_changed.get("layers") or row.fit_settings.get("layers", 2)))


def deep(rows: Sequence[Row]) -> list[tuple[str, Row]]:
    """Runs in which layers were added, and those with two layers beside these.

    Returns:
        Pairs of what else was set and a row.
    """
    found = beside(rows, lambda key, value: False, ("layers",))
    return where(found, lambda row: "layers" in row.fit_changed)


def panels(rows: Sequence[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """Rows by (dataset, encoder, title) for the figures that show one method each.

    SWORD, its ablations, then the others.
    """
    found: dict[tuple[str, str, str], list[Row]] = {}
    shown = [row for row in no_ncd(of_the_paper(rows)) if row.is_done]

    def place(row: Row) -> tuple[int, int, int]:
        order = ["sword", *METHODS]
        method = order.index(row.method) if row.method in order else len(order)
        line = LEFT_OUT.index(left_out(row) or "none") if row.changed else -1
        return row.encoder not in ENCODERS, method, line

    for row in sorted((r for r in shown if not r.changed or left_out(r) in LEFT_OUT), key=place):
        title = method_title(row.method)
        if row.changed:
            title += " without " + ", ".join(LOSSES[loss] for loss in str(left_out(row)).split("+"))
        if GIVEN & set(row.sees):
            title += " †"
        found.setdefault((row.dataset, row.encoder, title), []).append(row)
    datasets = in_order({key[0] for key in found}, DATASETS)
    encoders = in_order({key[1] for key in found}, ENCODERS)
    return {
        key: found[key] for d in datasets for e in encoders for key in found if key[:2] == (d, e)
    }


def confusions(rows: Sequence[Row]) -> np.ndarray:
    """Matched counts (block) of some runs.

    Returns:
        (runs, true classes, true classes + 1); the last column has what no true class stands for.
    """
    found = []
    for row in rows:
        counts = row.grade.confusion
        moved = metrics.matched_confusion(counts, row.grade.matched("block"))
        n = len(counts)
        found.append(np.column_stack([moved[:, :n], moved[:, n:].sum(axis=1)]))
    return np.stack(found)
