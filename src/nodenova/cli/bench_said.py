"""What `nodenova bench` says: names that are unknown at once, and the table at the end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nodenova.cli.app import out, print_notes
from nodenova.cli.registered import LABELLED, METHODS, OLD_METHODS, names_in
from nodenova.errors import one_of

if TYPE_CHECKING:
    from nodenova.bench.grid import RunSpec
    from nodenova.bench.row import Row

DATASETS = names_in("DATASETS", "io/dataset_table.py")
ASKED = ("gcn", "gat", "sage")  # what --encoders takes
MAX_VARIANTS = 5  # that are named; tables of variants have many
MAX_PRINTED = 60  # lines of a table; longer ones are in the file


def check_known(datasets: Sequence[str], methods: Sequence[str]) -> None:
    """Refuse datasets and methods that have no such name, before PyTorch is loaded.

    Raises:
        SettingError: There is none of this name.
    """
    for name in datasets:
        if name not in DATASETS and not name.startswith("synthetic"):
            raise one_of("dataset", name, [*DATASETS, "synthetic"])
    for name in methods:
        if ".py" not in name and name not in (*METHODS, *LABELLED, *OLD_METHODS):
            raise one_of("method", name, (*METHODS, *LABELLED))


def print_tables(written: Sequence[Path]) -> None:
    """The tables that were written as Markdown, as far as they are short enough to read."""
    for path in written:
        if path.suffix != ".md":
            continue
        text = path.read_text(encoding="utf-8").rstrip().splitlines()
        # What the numbers are is a long paragraph; it is in the file.
        lines = [line for line in text if line.startswith(("#", "|", "**"))]
        for line in lines[:MAX_PRINTED]:
            out.print(line, markup=False, highlight=False, soft_wrap=True)
        if len(lines) > MAX_PRINTED:
            out.print(f"and {len(lines) - MAX_PRINTED} more lines in {path}", markup=False)
        out.print()


def print_remarks(specs: Sequence[RunSpec], rows: Sequence[Row]) -> None:
    """What a reader of the table would wonder about, a line each.

    Args:
        specs: What was asked for.
        rows: What was run.
    """
    print_notes([*own_encoders(specs), *variants(specs), *same_for_all_seeds(specs, rows)])


def own_encoders(specs: Sequence[RunSpec]) -> list[str]:
    """Methods that run on an encoder of their own, in tables by encoder."""
    found: dict[str, set[str]] = defaultdict(set)
    for spec in specs:
        if not spec.plan.protocol and spec.plan.encoder not in ASKED:
            found[spec.plan.method_name].add(spec.plan.encoder)
    return [
        f"{method} runs on its own encoder ({', '.join(sorted(names))}), whatever --encoders says"
        for method, names in sorted(found.items())
    ]


def variants(specs: Sequence[RunSpec]) -> list[str]:
    """Methods that come with variants that nobody named."""
    found: dict[str, dict[str, object]] = defaultdict(dict)
    for spec in specs:
        found[spec.plan.method_name].setdefault(str(spec.plan.method), spec.plan.method)
    said = []
    for method, made in sorted(found.items()):
        first, *others = made.values()
        for other in others:
            differs = [f"{k}={v}" for k, v in vars(other).items() if vars(first)[k] != v]
            said.append(f"{method} comes along with {', '.join(differs)} as a line of its own")
    return said[:MAX_VARIANTS]


def same_for_all_seeds(specs: Sequence[RunSpec], rows: Sequence[Row]) -> list[str]:
    """Methods whose ± says nothing: all seeds have the same scores."""
    wanted = {spec.key: spec for spec in specs}
    by_line: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for row in {row.key: row for row in rows if row.key in wanted and not row.is_failed}.values():
        plan = wanted[row.key].plan
        line = (plan.method_name, plan.dataset, plan.encoder, str(plan.method), str(plan.old))
        by_line[line].append(row.scores()["all"])
    same = {line[0] for line, scores in by_line.items() if len(scores) > 1 and len({*scores}) == 1}
    if not same:
        return []
    named = ", ".join(sorted(same))
    return [
        f"± 0.0 of {named}: the split is the published one and all seeds give the same result; "
        "it says nothing about other splits (`nodenova bench class-splits` varies them)"
    ]
