"""What a discovery found, said on the terminal and written to its folder.

What a run suggests, on the terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.padding import Padding
from rich.table import Column, Table

from nodenova.cli.app import OUTPUT, err, out, print_notes, program
from nodenova.cli.progress import Bars
from nodenova.display import percent
from nodenova.errors import SettingError
from nodenova.io.table_options import TableOptions

if TYPE_CHECKING:
    from nodenova.data.labels import UserGraph
    from nodenova.model.info import ClassInfo
    from nodenova.model.model import Stage
    from nodenova.runs.run import DiscoveryRun


MOST = 3  # sentences after a discovery


def print_suggestions(run: DiscoveryRun, most: int | None = MOST) -> None:
    """The strongest suggestions of a run, a line each; nothing where there are none.

    Args:
        run: Whose.
        most: How many lines at the most.
    """
    _print(run.suggestions.sentences({info.id: info.name for info in run.classes}, most))


def print_kept_suggestions(path: Path, most: int | None = MOST) -> None:
    """The same of a run in a folder, as its files say it; nothing where it has none.

    Args:
        path: Of the folder.
        most: How many lines at the most.
    """
    from nodenova.review.review_file import cached_names
    from nodenova.review.suggestions import Suggestions

    if (path / "suggestions.json").is_file():
        _print(Suggestions.load(path).sentences(cached_names(path), most))


def _print(said: Sequence[str]) -> None:
    if said:
        out.print("\nSuggested:")
    for sentence in said:
        out.print(f"- {escape(sentence)}", highlight=False, soft_wrap=True)


LONG = ("name", "node")  # columns of any length
MAX_TABLE = 100  # columns, so that a wide terminal does not tear a table apart
Title = Annotated[
    str | None,
    typer.Option(rich_help_panel=OUTPUT, help="Title of the page (default: the name of --out)."),
]
Show = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        rich_help_panel=OUTPUT,
        help="Columns of --nodes that the page shows of a node: title,url "
        "(default: the text columns).",
    ),
]
Report = Annotated[
    bool,
    typer.Option(
        "--report/--no-report",
        rich_help_panel=OUTPUT,
        help="Write report.html; without it, `nodenova review` or `report` makes it later.",
    ),
]


@dataclass(frozen=True)
class PageOptions:
    """How the page of a run is wanted.

    Attributes:
        title: --title.
        show: --show, column by column.
        report: --report.
    """

    title: str | None = None
    show: tuple[str, ...] = ()
    report: bool = True

    def check(self, nodes: Path | None) -> None:
        """Refuse columns of a table that is not given.

        Raises:
            SettingError: There is no table of nodes.
        """
        if self.show and nodes is None:
            raise SettingError("--show names columns of the table of nodes: give --nodes FILE")

    def shown(
        self, loaded: UserGraph, nodes: Path | None, options: TableOptions
    ) -> dict[str, list[str]]:
        """What the page shows of the nodes of a graph: the columns asked for, else their texts.

        Args:
            loaded: The graph.
            nodes: The table that its nodes came from, if it was one.
            options: Options by which it was read.

        Raises:
            SettingError: The table has no such column.
        """
        text = () if loaded.recipe is None else loaded.recipe.text_columns
        columns = self.show or tuple(text)
        if nodes is None or not columns:
            return {}
        from nodenova.review.node_text import shown_columns

        names = ("id_column", "delimiter", "encoding")
        given = {name: str(getattr(options, name)) for name in names if getattr(options, name)}
        return shown_columns(nodes, columns, loaded.graph.node_ids.tolist(), **given)


def print_verdict(run: DiscoveryRun, notes: Sequence[str]) -> None:
    """How many new classes there seem to be, and what speaks against them."""
    print_notes(notes)
    if run.verdict:
        out.print(f"{escape(run.verdict)}\n", highlight=False, soft_wrap=True)
    if run.warning:
        warning = f"[bold yellow]warning:[/] [bold]{escape(run.warning)}[/]"
        err.print(warning, highlight=False, soft_wrap=True)


def write(
    folder: Path,
    run: DiscoveryRun,
    keep_graph: bool,
    overwrite: bool,
    quiet: bool,
    options: TableOptions | None = None,
    report: bool = True,
) -> None:
    """Write a run and say what was found and where it is.

    Args:
        folder: Where to.
        run: What was found.
        keep_graph: Whether the graph is kept.
        overwrite: Whether an earlier run may be there.
        quiet: Whether nothing is said.
        options: Options by which its files were read.
        report: Whether the page is made now.
    """
    from nodenova.runs.folder import DiscoveryFolder

    with Bars(not quiet) as bars:
        DiscoveryFolder.write(
            folder,
            run,
            keep_graph=keep_graph,
            overwrite=overwrite,
            reading=None if options is None else options.to_json(),
            report=report,
            progress=bars,
        )
    if not quiet:
        print_classes(run.classes, run.model.stages)
        more = f"What is in them: {program()} classes {folder}"
        out.print(escape(more), highlight=False, soft_wrap=True)
        print_suggestions(run)
        made = f"Report: {folder / 'report.html'}" if report else f"Written: {folder}"
        out.print(f"\n{escape(made)}", soft_wrap=True, highlight=report)


def one_line_table(*heads: str) -> Table:
    """A table whose rows are a line each on any terminal: names are cut where they have to be.

    Args:
        heads: Of its columns; "name" and "node" take the room that is left.
    """
    columns = [
        Column(head, no_wrap=True, overflow="ellipsis", ratio=1 if head in LONG else None)
        for head in heads
    ]
    return Table(*columns, box=None, pad_edge=False, width=min(out.width, MAX_TABLE))


def print_classes(found: Sequence[ClassInfo], stages: Sequence[Stage] = ()) -> None:
    """The classes as a table, discovered ones first: one line each, on any terminal.

    Args:
        found: What is in each class.
        stages: How the model was made: says in how many groupings a class was found.
    """
    from nodenova.review.trust import found_in, trust

    often, last = found_in(stages), max((info.stage for info in found), default=0)
    since = ["stage"] if last > 1 else []  # which discovery brought a class, where there were two
    table = one_line_table("", *since, "class", "name", "nodes", "confidence", "verdict")
    for info in in_order(found):
        confidence = "" if info.confidence is None else percent(info.confidence)
        size = "" if info.size is None else f"{info.size:,}"
        said = trust(info, found, often.get(info.id)).word if info.is_new else ""
        stage = [str(info.stage or "")] if since else []
        name, told = escape(info.name), (size, confidence, said)
        table.add_row(info.kind, *stage, str(info.id), name, *told)
    out.print(table)


def print_contents(found: Sequence[ClassInfo], stages: Sequence[Stage] = ()) -> None:
    """What is in each class: its words, some of its nodes, and what speaks for and against it."""
    from nodenova.review.trust import found_in, trust

    often = found_in(stages)
    for info in in_order(found):
        words = ", ".join(feature.display_text for feature in info.features[:10])
        nodes = ", ".join(str(node) for node in info.representatives[:5])
        reasons = trust(info, found, often.get(info.id)).reasons if info.is_new else ()
        lines = {"in it": words, "for example": nodes, "verdict": " ".join(reasons)}
        out.print(f"\n[bold]{info.id}  {escape(info.name)}[/]", highlight=False)
        for head, said in lines.items():
            if said:
                out.print(Padding(escape(f"{head}: {said}"), (0, 0, 0, 3)), highlight=False)


def in_order(found: Sequence[ClassInfo]) -> list[ClassInfo]:
    """Discovered classes first."""
    return sorted(found, key=lambda info: (not info.is_new, info.id))
