"""Which rows belong to what: the paper's setting, a method on an encoder."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from nodenova.bench.registry import NCD
from nodenova.bench.row import Row
from nodenova.bench.schedules import AS_RELEASED, HIDDEN, hidden_size
from nodenova.bench.table import GIVEN, Entry
from nodenova.bench.titles import (
    ENCODERS,
    JOINTS,
    METHODS,
    PARAMETERS,
    encoder_title,
    in_order,
    method_title,
)

# Settings of phase 1 that make a line of their own in the comparison;
# depth has a table, fewer epochs are for trying.
PHASE_1 = (
    "head", "prototype_passes", "early_stopping", "dropout", "input_dropout", "attention", "heads",
    "lr", "weight_decay", "patience",
)  # fmt: skip
# What rows are ordered by, before their seed.
ORDER = (
    "dataset", "encoder", "method", "class_split", "draw", "changed", "fit_changed", "visibility",
    "protocol", "handed",
)  # fmt: skip


def latest(rows: Sequence[Row]) -> list[Row]:
    """One row a key, the later one, in an order that does not depend on when each was done."""
    by_key = {row.key or i: row for i, row in enumerate(rows)}

    def place(row: Row) -> tuple[str, ...]:
        parts = (json.dumps(getattr(row, name), sort_keys=True) for name in ORDER)
        return (*parts, f"{row.seed:012d}", row.key)

    return sorted(by_key.values(), key=place)


def in_setting(
    rows: Sequence[Row], fit: tuple[str, ...] = (), visibility: str = "transductive"
) -> list[Row]:
    """Rows with the paper's class order and split, whatever their hidden size and schedule.

    Args:
        rows: Of any tables.
        fit: Settings of phase 1 that may differ; the others are as by default.
        visibility: "transductive" or "inductive".
    """
    return [
        row
        for row in latest(rows)
        if not row.protocol
        and row.class_split is None
        and row.draw == "published"
        and row.visibility == visibility
        and set(row.fit_changed) <= {"hidden", "schedule", *fit}
    ]


def of_the_paper(
    rows: Sequence[Row], fit: tuple[str, ...] = (), visibility: str = "transductive"
) -> list[Row]:
    """Rows in the paper's setting: those of `in_setting` with its hidden sizes and schedule."""
    return at_home(in_setting(rows, fit, visibility))


def at_home(rows: Sequence[Row]) -> list[Row]:
    """Rows that differ in neither schedule nor hidden size from what is usual (see `variants`)."""
    return [row for row, variant in zip(rows, variants(rows), strict=True) if not variant]


def variants(rows: Sequence[Row]) -> list[str]:
    """In what each row differs from what is usual where it is.

    Usual is the paper's schedule, and the released one for SWORD as released wherever it has been
    run on it; and the paper's hidden size for the dataset, or, where no run has that, the smallest
    there is.

    Returns:
        "", "released schedule", "hidden 64", "phase 1 head=cosine", or several of these.
    """
    sizes: dict[str, set[int]] = {}
    for row in rows:
        if row.encoder in ENCODERS:
            sizes.setdefault(row.dataset, set()).add(_hidden(row))
    usual = {
        name: min(each, key=lambda h: (h != hidden_size(name), h)) for name, each in sizes.items()
    }
    as_released = [row for row in rows if row.method == AS_RELEASED and _schedule(row) != "paper"]
    released = {(row.dataset, row.encoder, row.method) for row in as_released}
    found = []
    for row in rows:
        home = "released" if (row.dataset, row.encoder, row.method) in released else "paper"
        schedule = f"{_schedule(row)} schedule" if _schedule(row) != home else ""
        trained = row.encoder in ENCODERS
        hidden = f"hidden {_hidden(row)}" if trained and _hidden(row) != usual[row.dataset] else ""
        phase_1 = [f"phase 1 {k}={value}" for k, value in row.fit_changed.items() if k in PHASE_1]
        found.append(", ".join(filter(None, (schedule, hidden, *phase_1))))
    return found


def _hidden(row: Row) -> int:
    return int(str(row.fit_changed.get("hidden", HIDDEN)))


def _schedule(row: Row) -> str:
    return str(row.fit_changed.get("schedule", "paper"))


def unchanged(rows: Sequence[Row]) -> list[Row]:
    """Methods with the settings they have by default."""
    return [row for row in rows if not row.changed]


def no_ncd(rows: Sequence[Row]) -> list[Row]:
    """Without the methods that answer another question (see `settings_table`)."""
    return [row for row in rows if row.method not in NCD]


def compared(rows: Sequence[Row], asked: Collection[str] = ()) -> list[Row]:
    """Methods as they are, and with the other way of joining their two heads.

    Args:
        rows: Of one setting.
        asked: Keys of rows that are wanted with whatever else was changed.
    """
    return [row for row in rows if set(row.changed) <= {"new_rows"} or row.key in asked]


def changes(row: Row) -> str:
    """What was changed of the method, the way of joining its heads aside: "" or "η=0.5, k=2"."""
    moved = ((name, value) for name, value in row.changed.items() if name != "new_rows")
    return ", ".join(f"{PARAMETERS.get(name, name)}={value}" for name, value in moved)


def by_method(rows: Sequence[Row], variants: Sequence[str] | None = None) -> list[Entry]:
    """Blocks by encoder, methods in them.

    A method on an encoder of its own (Prism) closes every block.

    Args:
        rows: Of one setting.
        variants: What each row is beside the method as it is, if that makes a line of its own.
    """
    said = list(variants) if variants is not None else [""] * len(rows)
    lines = [
        (row.method, str(row.changed.get("new_rows", "")), more)
        for row, more in zip(rows, said, strict=True)
    ]
    encoders = in_order({row.encoder for row in rows}, ENCODERS)
    blocks = [encoder for encoder in encoders if encoder in ENCODERS] or encoders
    given = {row.method for row in rows if GIVEN & set(row.sees)}
    of: dict[tuple[str, tuple[str, str, str]], list[Row]] = {}
    for row, line in zip(rows, lines, strict=True):
        of.setdefault((row.encoder, line), []).append(row)
    methods = in_order({row.method for row in rows}, METHODS)
    ordered = [(m, j, v) for m in methods for j in ("", *JOINTS) for v in sorted(set(said))]
    found = []
    for block in blocks:
        closing = [e for e in encoders if e == block or e not in blocks]
        here = [(e, line) for e in closing for line in ordered if (e, line) in of]
        for encoder, line in sorted(here, key=lambda pair: (pair[0] != block, pair[1][0] in given)):
            method, joint, more = line
            own = "" if encoder == block else " (own encoder)"
            said_of = f", {more}" if more else ""
            label = method_title(method) + JOINTS.get(joint, "") + said_of + own
            plain = method == "sword" and not own and not more
            printed = "" if more else method
            its = of[encoder, line]
            found.append(Entry(encoder_title(block), (label,), its, block, printed, plain))
    return found
