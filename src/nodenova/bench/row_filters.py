"""Selects rows for tables and figures: the paper's setting, methods, and variants of SWORD."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Sequence

import numpy as np

from nodenova.bench.paper import LEFT_OUT
from nodenova.bench.plan import AS_RELEASED, HIDDEN, hidden_size
from nodenova.bench.registry import NCD
from nodenova.bench.row import Row, Value
from nodenova.bench.table import GIVEN, Entry
from nodenova.bench.titles import (
    DATASETS,
    ENCODERS,
    JOINTS,
    LOSSES,
    METHODS,
    PARAMETERS,
    encoder_title,
    in_order,
    is_trained,
    method_title,
)
from nodenova.evaluation import metrics
from nodenova.fitting import LDA, TRAINING

# Settings of phase 1 with lines of their own in the comparison; depth has a table, and fewer epochs
# are for trying.
PHASE_1 = (
    "head", "prototype_passes", "early_stopping", "dropout", "input_dropout", "attention", "heads",
    "lr", "weight_decay", "patience",
)  # fmt: skip
# Fields by which rows are sorted, before their seed.
ORDER = (
    "dataset", "encoder", "method", "class_split", "draw", "changed", "fit_changed", "visibility",
    "protocol", "handed",
)  # fmt: skip


def latest(rows: Sequence[Row]) -> list[Row]:
    """Return one row per key, the later one, in an order that does not depend on time."""
    by_key = {row.key or i: row for i, row in enumerate(rows)}

    def place(row: Row) -> tuple[str, ...]:
        parts = (json.dumps(getattr(row, name), sort_keys=True) for name in ORDER)
        return (*parts, f"{row.seed:012d}", row.key)

    return sorted(by_key.values(), key=place)


def in_setting(
    rows: Sequence[Row], fit: tuple[str, ...] = (), visibility: str = "transductive"
) -> list[Row]:
    """Return rows with the paper's class order and split, of any hidden size and schedule.

    Settings of phase 1 are the defaults, except for those of `fit`.
    """
    return [
        row
        for row in latest(rows)
        if not row.protocol
        and row.class_split is None
        and row.draw == "published"
        and row.visibility == visibility
        and set(row.fit_changed) <= {"hidden", "schedule", *fit, *_own_settings(row, fit)}
    ]


def _own_settings(row: Row, fit: Collection[str] = PHASE_1) -> set[str]:
    """Settings of a user's encoder, where those of phase 1 have lines of their own."""
    if row.encoder in ENCODERS or not is_trained(row.encoder) or not {*PHASE_1} <= {*fit}:
        return set()
    return row.fit_changed.keys() - {"hidden", "schedule", "layers", *TRAINING, *LDA}


def in_paper_setting(
    rows: Sequence[Row], fit: tuple[str, ...] = (), visibility: str = "transductive"
) -> list[Row]:
    """Return rows of `in_setting` with the usual hidden size and schedule."""
    return with_usual_schedule(in_setting(rows, fit, visibility))


def with_usual_schedule(rows: Sequence[Row]) -> list[Row]:
    """Return rows without a variant (see `variants`)."""
    return [row for row, variant in zip(rows, variants(rows), strict=True) if not variant]


def variants(rows: Sequence[Row]) -> list[str]:
    """Return for each row how it differs from the usual: "", "hidden 64", "released schedule", ...

    Usual is the paper's schedule (for SWORD as released its own, wherever it was run on it) and the
    paper's hidden size for the dataset, or the smallest one where no run has that.
    """
    sizes: dict[str, set[int]] = {}
    for row in rows:
        if is_trained(row.encoder):
            sizes.setdefault(row.dataset, set()).add(_hidden(row))
    usual = {
        name: min(each, key=lambda h: (h != hidden_size(name), h)) for name, each in sizes.items()
    }
    as_released = [row for row in rows if row.method == AS_RELEASED and _schedule(row) != "paper"]
    released = {(row.dataset, row.encoder, row.method) for row in as_released}
    found = []
    for row in rows:
        default = "released" if (row.dataset, row.encoder, row.method) in released else "paper"
        schedule = f"{_schedule(row)} schedule" if _schedule(row) != default else ""
        trained = is_trained(row.encoder)
        hidden = f"hidden {_hidden(row)}" if trained and _hidden(row) != usual[row.dataset] else ""
        named = {*PHASE_1, *_own_settings(row)}
        phase_1 = [f"phase 1 {k}={value}" for k, value in row.fit_changed.items() if k in named]
        found.append(", ".join(filter(None, (schedule, hidden, *phase_1))))
    return found


def _hidden(row: Row) -> int:
    return int(str(row.fit_changed.get("hidden", HIDDEN)))


def _schedule(row: Row) -> str:
    return str(row.fit_changed.get("schedule", "paper"))


def with_defaults(rows: Sequence[Row]) -> list[Row]:
    """Return rows of methods with their default settings."""
    return [row for row in rows if not row.changed]


def without_ncd(rows: Sequence[Row]) -> list[Row]:
    """Return rows without the NCD methods, which answer another question."""
    return [row for row in rows if row.method not in NCD]


def with_comparable_settings(rows: Sequence[Row], run_keys: Collection[str] = ()) -> list[Row]:
    """Return rows of default methods, of those with heads joined otherwise, and `run_keys`."""
    return [row for row in rows if set(row.changed) <= {"new_rows"} or row.key in run_keys]


def changes(row: Row) -> str:
    """Return the changed settings except for the joining of heads: "" or "η=0.5, k=2"."""
    moved = ((name, value) for name, value in row.changed.items() if name != "new_rows")
    return ", ".join(f"{PARAMETERS.get(name, name)}={value}" for name, value in moved)


def by_method(rows: Sequence[Row], variants: Sequence[str] | None = None) -> list[Entry]:
    """Return lines by encoder and method; methods on their own encoder (Prism) close every block.

    `variants` names the variant of each row; each has a line of its own.
    """
    names = list(variants) if variants is not None else [""] * len(rows)
    lines = [
        (row.method, str(row.changed.get("new_rows", "")), more)
        for row, more in zip(rows, names, strict=True)
    ]
    encoders = in_order({row.encoder for row in rows}, ENCODERS)
    blocks = [encoder for encoder in encoders if is_trained(encoder)] or encoders
    given = {row.method for row in rows if GIVEN & set(row.sees)}
    of: dict[tuple[str, tuple[str, str, str]], list[Row]] = {}
    for row, line in zip(rows, lines, strict=True):
        of.setdefault((row.encoder, line), []).append(row)
    methods = in_order({row.method for row in rows}, METHODS)
    ordered = [(m, j, v) for m in methods for j in ("", *JOINTS) for v in sorted(set(names))]
    found = []
    for block in blocks:
        closing = [e for e in encoders if e == block or e not in blocks]
        here = [(e, line) for e in closing for line in ordered if (e, line) in of]
        for encoder, line in sorted(here, key=lambda pair: (pair[0] != block, pair[1][0] in given)):
            method, joint, more = line
            own = "" if encoder == block else " (own encoder)"
            variant = f", {more}" if more else ""
            label = method_title(method) + JOINTS.get(joint, "") + variant + own
            plain = method == "sword" and not own and not more
            printed = "" if more else method
            its = of[encoder, line]
            found.append(Entry(encoder_title(block), (label,), its, block, printed, plain))
    return found


def is_left_out(setting: str, value: Value) -> bool:
    """Return whether this is a zero weight of a loss; λ weighs two of them."""
    return setting in {*LOSSES, "lam"} and value == 0


def left_out(row: Row, beside: bool = False) -> str | None:
    """Return SWORD's losses of weight zero as the ablation names them: "replay+omega", "none".

    None for another method and, unless `beside`, where anything else was changed.
    """
    changed = row.changed
    if row.method != "sword" or not (beside or all(is_left_out(*item) for item in changed.items())):
        return None
    zero = {key for key, value in changed.items() if is_left_out(key, value)}
    zero = zero - {"lam"} | ({"replay", "omega"} if "lam" in zero else set())
    order = ("pseudo", "alpha2", "alpha1", "replay", "omega")
    return "+".join(loss for loss in order if loss in zero) or "none"


def where(found: Sequence[tuple[str, Row]], varied: Callable[[Row], bool]) -> list[tuple[str, Row]]:
    """Return rows of the datasets and encoders on which something was varied."""

    def place(kind: str, row: Row) -> tuple[str, ...]:
        return kind, row.dataset, row.encoder, row.method

    places = {place(*pair) for pair in found if varied(pair[1])}
    return [pair for pair in found if place(*pair) in places]


def beside(
    rows: Sequence[Row], vary: Callable[[str, Value], bool], fit: tuple[str, ...] = ()
) -> list[tuple[str, Row]]:
    """Return rows on trained encoders, each with its settings that `vary` does not vary.

    These are "" or "η=0.5, hidden 64".
    """
    rows = without_ncd(in_setting(rows, fit))
    found = []
    for row, variant in zip(rows, variants(rows), strict=True):
        if is_trained(row.encoder):
            others = {k: v for k, v in row.changed.items() if not vary(k, v)}
            set_to = [f"{PARAMETERS.get(k, k)}={v}" for k, v in others.items()]
            found.append((", ".join([*set_to, *filter(None, [variant])]), row))
    return sorted(found, key=lambda pair: pair[0])


def ablation_rows(rows: Sequence[Row]) -> list[tuple[str, Row]]:
    """Return runs without some losses, and those with all, as (other settings, row)."""
    pairs = beside(rows, is_left_out)
    found = [pair for pair in pairs if left_out(pair[1], beside=True) in LEFT_OUT]
    return where(found, lambda row: left_out(row, beside=True) != "none")


def sweep_rows(rows: Sequence[Row], parameter: str) -> dict[tuple[str, float], list[Row]]:
    """Return SWORD's rows by (other settings, value of one parameter)."""
    found = [
        (kind, row)
        for kind, row in beside(rows, lambda key, _: key == parameter)
        if row.method == "sword"
        and not any(is_left_out(*item) for item in row.changed.items() if item[0] != parameter)
    ]
    found = where(found, lambda row: parameter in row.changed)
    usual = {  # the default value; a failed run does not record it
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
    """Return the number of layers of the encoder."""
    return int(str(row.fit_changed.get("layers") or row.fit_settings.get("layers", 2)))


def depth_rows(rows: Sequence[Row]) -> list[tuple[str, Row]]:
    """Return runs with more layers, and those with two, as (other settings, row)."""
    found = beside(rows, lambda key, value: False, ("layers",))
    return where(found, lambda row: "layers" in row.fit_changed)


def panels(rows: Sequence[Row]) -> dict[tuple[str, str, str], list[Row]]:
    """Return rows by (dataset, encoder, title): SWORD, its ablations, then the other methods."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    done = [row for row in without_ncd(in_paper_setting(rows)) if row.is_done]

    def place(row: Row) -> tuple[int, int, int]:
        order = ["sword", *METHODS]
        method = order.index(row.method) if row.method in order else len(order)
        line = LEFT_OUT.index(left_out(row) or "none") if row.changed else -1
        return not is_trained(row.encoder), method, line

    for row in sorted((r for r in done if not r.changed or left_out(r) in LEFT_OUT), key=place):
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


def run_of(row: Row) -> tuple[str, ...]:
    """Return what makes a run: equal for two rows that differ in their code or key alone."""
    return tuple(json.dumps(getattr(row, name), sort_keys=True) for name in (*ORDER, "seed"))


def once(rows: Sequence[Row]) -> list[Row]:
    """Return rows without runs for a map that repeat another run."""
    plain = {run_of(row) for row in rows if not row.map}
    return [row for row in rows if not row.map or run_of(row) not in plain]


def confusions(rows: Sequence[Row]) -> np.ndarray:
    """(runs, true, true + 1) matched counts (block); the last column has unmatched classes."""
    found = []
    for row in rows:
        counts = row.grade.confusion
        moved = metrics.matched_confusion(counts, row.grade.matched("block"))
        n = len(counts)
        found.append(np.column_stack([moved[:, :n], moved[:, n:].sum(axis=1)]))
    return np.stack(found)
