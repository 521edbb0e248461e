"""nodenova predict --only, --add and --max-drift: some nodes, and how much has changed since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from nodenova.cli.app import err, fail, listed_names, out
from nodenova.cli.written import one_line_table
from nodenova.errors import GraphError, SettingError
from nodenova.model.classes import kind_read
from nodenova.review.shares import Drift, Shares, kept_predictions, percent

if TYPE_CHECKING:
    from nodenova.review.predictions import Predictions

Only = Annotated[
    str | None,
    typer.Option(
        "--only",
        metavar="FILE|IDS",
        help="Only these nodes, by what is near them: a file with an id a line, or a,b,c.",
    ),
]
Add = Annotated[
    bool,
    typer.Option(
        "--add",
        help="The files hold only nodes and edges that came or changed: they are added to the "
        "graph of the run, and they alone are classified.",
    ),
]
MaxDrift = Annotated[
    float | None,
    typer.Option(
        help="End with exit code 3 if the shares of the classes, or of unsure nodes, differ by "
        "more than this from when the run was made or reviewed, and by more than chance."
    ),
]
WARNED_DRIFT = 0.1  # above which a change is a warning, whether or not --max-drift is given
NO_PREDICTIONS = "{} keeps no predictions of the graph it was made on: no change can be told"
MAX_LISTED = 20  # nodes whose classes are printed


def ids_of(only: str | None) -> list[str] | None:
    """The nodes that --only names.

    Raises:
        SettingError: It names none, or a file that cannot be read.

    Examples:
        >>> ids_of("cat, dog")
        ['cat', 'dog']
    """
    if only is None:
        return None
    path = Path(only)
    if path.is_file():
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, ValueError) as error:
            raise SettingError(f"--only: {path} cannot be read ({error})") from error
        ids = [line.strip() for line in lines if line.strip()]
    else:
        ids = listed_names(only)
    if not ids:
        raise SettingError(f"--only names no node: {only!r}")
    return ids


def check_shares(shares: Mapping[str, float | None], some: bool) -> None:
    """Refuse what is no share, or asks about all nodes where some are asked for.

    Args:
        shares: By the name of the option.
        some: Whether some nodes are asked for.

    Raises:
        SettingError: It is so.
    """
    for option, most in shares.items():
        if most is not None and not 0 <= most <= 1:
            raise SettingError(f"{option} is a share from 0 to 1, not {most}")
        if most is not None and some:
            raise SettingError(f"{option} is about all nodes: not with --only or --add")


def check_comparable(run: Path, files_given: bool, relabel: bool) -> None:
    """Refuse --max-drift where nothing can be compared, before anything is computed.

    Raises:
        SettingError: It is so.
    """
    if not files_given:
        raise SettingError("--max-drift: give files; the graph of the run is what is compared with")
    if relabel:
        raise SettingError("--max-drift compares labels as they are: not with --relabel")
    if not (run / "predictions.csv").is_file():
        raise SettingError(f"--max-drift: {NO_PREDICTIONS.format(run)}")


def kept_rows(run: Path, ids: Sequence[str], min_confidence: float) -> dict[str, list[object]]:
    """What a run has said of nodes of its own graph, by column. Needs no PyTorch.

    Args:
        run: Its folder.
        ids: Of the nodes.
        min_confidence: Below which a node is unsure.

    Raises:
        GraphError: The run has no such node.
    """
    known = {line["node"]: line for line in kept_predictions(run)}
    unknown = [node for node in ids if node not in known]
    if unknown:
        more = f", nor {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
        raise GraphError(f"{run} has no node {unknown[0]!r}{more}")
    rows = [known[node] for node in ids]
    columns: dict[str, list[object]] = {name: [row[name] for row in rows] for name in rows[0]}
    sure = [float(row["probability"]) for row in rows]
    columns["class"] = [int(row["class"]) for row in rows]
    columns["kind"] = [kind_read(row["kind"]) for row in rows]
    columns["probability"] = list(sure)
    columns["unsure"] = ["yes" if p < min_confidence else "no" for p in sure]
    return columns


def write_asked(
    columns: Mapping[str, list[object]], path: Path | None, json_path: Path | None,
    min_confidence: float, how: str, notes: Sequence[str], quiet: bool,
) -> None:  # fmt: skip
    """Say and write what is said of some nodes.

    Args:
        columns: As predictions.csv has them.
        path: --out, if it was given.
        json_path: --json, if it was given.
        min_confidence: Below which a node is unsure.
        how: "kept" where the run had said it, "neighborhood" where it was computed by what is near,
            "whole graph" where there were many.
        notes: On what was repaired.
        quiet: Whether nothing is printed.
    """
    from nodenova.files import to_json, write_atomically

    if path is not None:
        from nodenova.review.predictions import table_content

        write_atomically(path, table_content(dict(columns), path))
    if json_path is not None:
        names = list(columns)
        lines = [dict(zip(names, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        unsure = sum(cell == "yes" for cell in columns["unsure"])
        summary: dict[str, Any] = {"nodes": len(lines), "unsure": unsure, "how": how}
        summary |= {"min_confidence": min_confidence, "predictions": lines, "notes": list(notes)}
        write_atomically(json_path, to_json(summary))
    if quiet:
        return
    table = one_line_table("node", "class", "name", "", "probability", "")
    shown = ("node", "class", "name", "kind", "probability", "unsure")
    for row in list(zip(*(columns[name] for name in shown), strict=True))[:MAX_LISTED]:
        said = "unsure" if row[5] == "yes" else ""
        table.add_row(*(escape(str(cell)) for cell in row[:4]), f"{row[4]:.0%}", said)
    out.print(table)
    more = len(columns["node"]) - MAX_LISTED
    if more > 0:
        out.print(f"and {more:,} more")
    if path is not None:
        out.print(f"Predictions: {escape(str(path))}", soft_wrap=True)


def drift_of(run: Path, found: Predictions, min_confidence: float) -> Drift | str:
    """How far predictions are from those that a run keeps; a sentence where nobody can tell.

    Args:
        run: Of the model, or of a saved model.
        found: Of the graph as it is now.
        min_confidence: Below which a node is unsure.
    """
    if not (run / "predictions.csv").is_file():
        return NO_PREDICTIONS.format(run)
    before = Shares.read(run, min_confidence)
    ids = {c.id for c in found.model.classes}
    if not set(before.counts) <= ids:
        return f"{run} was reviewed without its graph: no change can be told"
    counts = {c.id: n for c, n in zip(found.model.classes, found.counts.tolist(), strict=True)}
    return Drift(before, Shares(counts, int(found.unsure.sum())))


def judge(drift: Drift, max_drift: float | None, quiet: bool) -> None:
    """Warn of a change, and end with exit code 3 where that was asked for.

    Args:
        drift: How far shares are from before.
        max_drift: --max-drift.
        quiet: Whether only an error is said.
    """
    far, chance = percent(drift.distance), percent(drift.by_chance)
    said = f"shares changed by {far} (by chance at most {chance}): {drift.sentence()}"
    if max_drift is not None and drift.exceeds(max_drift):
        fail(f"{said}; more than --max-drift {max_drift:g} allows", 3)
    if max_drift is None and not quiet and drift.exceeds(WARNED_DRIFT):
        hint = "a new discovery may be due; --max-drift makes this exit code 3"
        err.print(f"[yellow]warning:[/] {escape(said)}; {hint}", highlight=False, soft_wrap=True)
