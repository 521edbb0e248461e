"""Results of a discovery: printed on the terminal and written to a run folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.padding import Padding
from rich.table import Column, Table

from nodenova.cli.app import OUTPUT, err, out, print_notes, program
from nodenova.cli.progress import Bars
from nodenova.errors import SettingError
from nodenova.files.own_code import split_command

if TYPE_CHECKING:
    from nodenova.data.labels import UserGraph
    from nodenova.io.table_options import TableOptions
    from nodenova.model.decisions import Edit
    from nodenova.model.info import ClassInfo
    from nodenova.model.model import Stage
    from nodenova.review.trust import Trust
    from nodenova.runs.run import DiscoveryRun

MAX_SUGGESTIONS = 3  # after a discovery
LONG = ("name", "node")  # table columns that take the space that is left
MAX_TABLE = 100  # width of a table on a wide terminal

Title = Annotated[
    str | None,
    typer.Option(rich_help_panel=OUTPUT, help="Title of the page (default: the name of --out)."),
]
Show = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMNS",
        rich_help_panel=OUTPUT,
        help="Columns of --nodes that the page shows for a node: title,url "
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
SafeCsv = Annotated[
    bool | None,
    typer.Option(
        "--safe-csv/--no-safe-csv",
        rich_help_panel=OUTPUT,
        help="Put an apostrophe before text of CSV cells that a spreadsheet would run as a formula "
        "(default: as in the run, else no).",
    ),
]
NamerCommand = Annotated[
    str | None,
    typer.Option(
        "--namer",
        metavar="COMMAND",
        rich_help_panel=OUTPUT,
        help="Command that suggests names for the discovered classes: it is run, and gets their "
        "keywords and members as JSON (docs: Classes and reviews).",
    ),
]
DISCLOSED = (
    "{folder} holds the {what} and the labels; `{program} export {folder} --to model --out DIR` "
    "leaves them out."
)


@dataclass(frozen=True)
class RunOutput:
    """Output options of a command that writes a run folder."""

    folder: Path
    overwrite: bool = False
    keep_graph: bool = True
    title: str | None = None
    show: tuple[str, ...] = ()
    report: bool = True
    quiet: bool = False
    safe_csv: bool = False
    namer: str | None = None

    def check(self, nodes: Path | None) -> None:
        """Raise if --show is given without a table of nodes, or --namer is no command."""
        if self.namer is not None:
            split_command(self.namer, "--namer")
        if self.show and nodes is None:
            raise SettingError("--show names columns of the table of nodes: give --nodes FILE")

    def node_texts(
        self, loaded: UserGraph, nodes: Path | None, options: TableOptions
    ) -> dict[str, list[str]]:
        """Texts of the nodes by column: those of --show, else the text columns."""
        text_columns = () if loaded.recipe is None else loaded.recipe.text_columns
        columns = self.show or tuple(text_columns)
        if nodes is None or not columns:
            return {}
        from nodenova.review.node_text import shown_columns

        names = ("id_column", "delimiter", "encoding")
        reading = {name: str(getattr(options, name)) for name in names if getattr(options, name)}
        return shown_columns(nodes, columns, loaded.graph.node_ids.tolist(), **reading)

    def write(self, run: DiscoveryRun, options: TableOptions | None = None) -> None:
        """Write a run and print its classes; `options` are those by which its files were read."""
        from nodenova.runs.folder import RunFolder
        from nodenova.runs.naming import CommandNamer, name_after_discovery

        if self.namer is not None:
            with Bars(not self.quiet, "naming the classes"):
                run, notes = name_after_discovery(run, CommandNamer(self.namer))
            if not self.quiet:
                print_notes(notes)
        with Bars(not self.quiet) as bars:
            RunFolder.write(
                self.folder,
                run,
                keep_graph=self.keep_graph,
                overwrite=self.overwrite,
                reading=None if options is None else options.to_json(),
                report=self.report,
                safe_csv=self.safe_csv,
                progress=bars,
            )
        if self.quiet:
            return
        print_classes(run.classes, run.model.stages, run.last_edits)
        more = f"What is in them: {program()} classes {self.folder}"
        out.print(escape(more), highlight=False, soft_wrap=True)
        print_suggestions(run)
        page = self.folder / "report.html"
        written = f"Report: {page}" if self.report else f"Written: {self.folder}"
        out.print(f"\n{escape(written)}", soft_wrap=True, highlight=self.report)
        what = "graph" if self.keep_graph else "ids of the nodes"
        disclosed = DISCLOSED.format(folder=self.folder, what=what, program=program())
        out.print(escape(disclosed), soft_wrap=True, highlight=False)


def print_verdict(run: DiscoveryRun, notes: Sequence[str]) -> None:
    """Print notes, the estimated number of new classes, and a warning if labels contradict it."""
    print_notes(notes)
    if run.verdict:
        out.print(f"{escape(run.verdict)}\n", highlight=False, soft_wrap=True)
    if run.held_out_scores is not None and run.held_out_scores.sentence:
        out.print(f"{escape(run.held_out_scores.sentence)}\n", highlight=False, soft_wrap=True)
    if run.warning:
        warning = f"[bold yellow]warning:[/] [bold]{escape(run.warning)}[/]"
        err.print(warning, highlight=False, soft_wrap=True)


def print_suggestions(run: DiscoveryRun, most: int | None = MAX_SUGGESTIONS) -> None:
    """Print the strongest suggestions of a run, one per line."""
    _print_sentences(run.suggestions.sentences({info.id: info.name for info in run.classes}, most))


def print_stored_suggestions(path: Path, most: int | None = MAX_SUGGESTIONS) -> None:
    """Print the suggestions that a run folder stores, without loading its model."""
    from nodenova.review.review_file import cached_names
    from nodenova.review.suggestions import Suggestions

    if (path / "suggestions.json").is_file():
        _print_sentences(Suggestions.load(path).sentences(cached_names(path), most))


def _print_sentences(sentences: Sequence[str]) -> None:
    if sentences:
        out.print("\nSuggested:")
    for sentence in sentences:
        out.print(f"- {escape(sentence)}", highlight=False, soft_wrap=True)


def one_line_table(*heads: str) -> Table:
    """A table with one line per row on any terminal: long names and nodes are cut."""
    columns = [
        Column(head, no_wrap=True, overflow="ellipsis", ratio=1 if head in LONG else None)
        for head in heads
    ]
    return Table(*columns, box=None, pad_edge=False, width=min(out.width, MAX_TABLE))


def print_classes(
    infos: Sequence[ClassInfo],
    stages: Sequence[Stage] = (),
    last_edits: Mapping[int, Edit] | None = None,
) -> None:
    """Print a table of the classes, discovered ones first; `last_edits` as in `last_edits`."""
    from nodenova.review.trust import display_confidence

    verdicts = _verdicts(infos, stages, last_edits or {})
    last = max((info.stage for info in infos), default=0)
    stage_head = ["stage"] if last > 1 else []  # which of several discoveries found a class
    table = one_line_table("", *stage_head, "class", "name", "nodes", "confidence", "verdict")
    for info in _in_order(infos):
        stage = [str(info.stage or "")] if stage_head else []
        size = "" if info.size is None else f"{info.size:,}"
        verdict = verdicts[info.id] if info.is_new else None
        table.add_row(
            info.kind, *stage, str(info.id), escape(info.name), size,
            display_confidence(info, verdict), verdict.word if verdict else "",
        )  # fmt: skip
    out.print(table)


def print_contents(
    infos: Sequence[ClassInfo],
    stages: Sequence[Stage] = (),
    last_edits: Mapping[int, Edit] | None = None,
) -> None:
    """Print features, typical nodes and the reasons of the verdict of each class."""
    verdicts = _verdicts(infos, stages, last_edits or {})
    for info in _in_order(infos):
        words = ", ".join(word.name for word in info.keywords[:10])
        nodes = ", ".join(str(node) for node in info.representatives[:5])
        reasons = verdicts[info.id].reasons if info.is_new else ()
        lines = {"features": words, "for example": nodes, "verdict": " ".join(reasons)}
        out.print(f"\n[bold]{info.id}  {escape(info.name)}[/]", highlight=False)
        for head, text in lines.items():
            if text:
                out.print(Padding(escape(f"{head}: {text}"), (0, 0, 0, 3)), highlight=False)


def _verdicts(
    infos: Sequence[ClassInfo], stages: Sequence[Stage], last_edits: Mapping[int, Edit]
) -> dict[int, Trust]:
    """The verdict on each discovered class, by id."""
    from nodenova.review.trust import found_in, trust

    groupings = found_in(stages)
    return {
        info.id: trust(info, infos, groupings.get(info.id), last_edits.get(info.id))
        for info in infos
        if info.is_new
    }


def _in_order(infos: Sequence[ClassInfo]) -> list[ClassInfo]:
    """Discovered classes first."""
    return sorted(infos, key=lambda info: (not info.is_new, info.id))
