"""nodenova diff: what became of classes and nodes between two runs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from nodenova.cli.app import OWN, Quiet, app, loading, out
from nodenova.cli.output import one_line_table
from nodenova.errors import StorageError
from nodenova.runs.run_dir import run_document

if TYPE_CHECKING:
    from nodenova.runs.diff import ClassChange, RunDiff

MAX_MOVES = 10  # nodes that are listed on the terminal
LONGEST_NAME = 30  # letters of a class, and
LONGEST_NODE = 20  # of a node, so that a line has 80


@app.command(rich_help_panel=OWN)
def diff(
    before: Annotated[Path, typer.Argument(metavar="EARLIER", help="The folder of a run of `nodenova discover`.")],
    after: Annotated[Path, typer.Argument(metavar="LATER", help="That of a later one, on a graph with some of its nodes.")],
    json_path: Annotated[Path | None, typer.Option("--json", help="Write all of it as JSON.")] = None,
    moves_path: Annotated[Path | None, typer.Option("--out", help="Table of the nodes that moved: .csv or .parquet.")] = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """What has changed between two runs: classes that came, went, grew, merged; nodes that moved.

    Nodes are matched by their ids. Where the later run goes on from the earlier (--from), classes
    are matched by theirs; otherwise one to one by the nodes they share.
    """
    run_document(before)
    run_document(after)
    written = [path for path in (json_path, moves_path) if path is not None]
    for path in written:
        if path.is_dir():
            raise StorageError(f"{path} is a folder, not a file to write to")
    with loading(quiet):
        from nodenova.files import to_json, write_atomically
        from nodenova.runs.diff import diff_runs, moves_table
    found = diff_runs(before, after)
    if json_path is not None:
        write_atomically(json_path, to_json(asdict(found)))
    if moves_path is not None:
        write_atomically(moves_path, moves_table(found, moves_path))
    if not quiet:
        _print(found)
        for path in written:
            out.print(f"Written: {escape(str(path))}", soft_wrap=True, highlight=False)


def _print(found: RunDiff) -> None:
    names = {change.id: change.name for change in found.classes if change.after is not None}
    table = one_line_table("", "class", "name", "before", "after", "moved in", "out")
    for change in found.classes:
        sizes = ("" if size is None else f"{size:,}" for size in (change.before, change.after))
        moved = (f"{number:,}" if number else "" for number in (change.moved_in, change.moved_out))
        table.add_row(change.what, str(change.id), escape(change.name), *sizes, *moved)
    out.print(table)
    for line in filter(None, (_told(change, names) for change in found.classes)):
        out.print(f"- {escape(line)}", highlight=False, soft_wrap=True)
    stayed = found.shared - len(found.moves)
    shared = f"{found.shared:,} nodes are in both runs, {stayed:,} of them in the same class; "
    out.print(
        f"\n{shared}{found.nodes_came:,} came, {found.nodes_went:,} went.",
        highlight=False,
        soft_wrap=True,
    )
    if not found.continued:
        out.print(
            "The later run does not go on from the earlier: classes are matched by their nodes.",
            highlight=False,
            soft_wrap=True,
        )
    for move in found.moves[:MAX_MOVES]:
        named = (_short(name, LONGEST_NAME // 2 + 8) for name in (move.before, move.after))
        line = f"{_short(move.node, LONGEST_NODE)}: {' -> '.join(named)}"
        out.print(f"  {escape(line)}", highlight=False, soft_wrap=True)
    if len(found.moves) > MAX_MOVES:
        more = f"  and {len(found.moves) - MAX_MOVES:,} more; --out FILE.csv has them all"
        out.print(more, highlight=False, soft_wrap=True)


def _told(change: ClassChange, names: dict[int, str]) -> str:
    """What a number does not say."""
    into = ", ".join(names.get(one, str(one)) for one in change.into)
    if change.what in ("merged", "split"):
        return f"{change.name} was {change.what} into {into}."
    if change.what == "rejected":
        return f"{change.name} was rejected."
    if change.was and change.what == "came":
        return f"{change.name} is a part of what was {change.was}."
    return f"{change.name} was called {change.was}." if change.was else ""


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
