"""nodenova classes, review, apply-review, undo and diff: inspect a run, decide, and compare."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from nodenova.cli.app import OWN, Quiet, app, loading, out, print_notes
from nodenova.cli.output import (
    NamerCommand,
    SafeCsv,
    one_line_table,
    print_classes,
    print_contents,
    print_stored_suggestions,
    print_suggestions,
)
from nodenova.cli.progress import Bars
from nodenova.display import plural
from nodenova.errors import SettingError, StorageError
from nodenova.files.atomic import write_atomically
from nodenova.files.content import to_json
from nodenova.files.documents import has_safe_csv, read_json
from nodenova.files.folders import FolderState, has_completed
from nodenova.files.own_code import split_command
from nodenova.runs.run_dir import run_document

if TYPE_CHECKING:
    from nodenova.review.review_file import Review
    from nodenova.runs.diff import ClassChange, RunDiff
    from nodenova.runs.folder import RunFolder
    from nodenova.runs.run import DiscoveryRun

MAX_MOVES = 10  # nodes that `nodenova diff` prints
MAX_NAME = 23  # letters of a class, and
MAX_NODE = 20  # of a node, so that a line has at most 80

DiscoveryPath = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="A folder that `nodenova discover` or `nodenova demo` wrote."
    ),
]


@app.command(rich_help_panel=OWN)
def classes(
    run_path: DiscoveryPath,
    num_new: Annotated[int | None, typer.Option(min=0, metavar="N", help="Describe the classes at another number of new classes (only where the number was estimated).")] = None,
    use: Annotated[bool, typer.Option("--use", help="With --num-new: make it the number of the run; model, tables and page change together.")] = False,
    namer: NamerCommand = None,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the same as JSON.")] = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Describe each class: size, confidence, characteristic features, typical nodes.

    With --num-new, the classes are those that the run would have at another number of new classes.
    The run stays as it is, unless --use is given. Classes that stay keep their ids.

    With --namer, a command suggests names for the classes that have none of yours, and the run
    keeps them in place of the automatic ones.
    """
    if namer is not None:
        split_command(namer, "--namer")
        if num_new is not None and not use:
            raise SettingError(
                "--namer names the classes of the run: leave out --num-new, or give --use"
            )
    if use and num_new is None:
        raise SettingError("--use needs the number of new classes to use: give --num-new N")
    _check_files(json_path)
    folder = _open(run_path, quiet)
    if num_new is None:
        run = folder.run
    else:
        with Bars(not quiet) as bars:
            if use:
                folder.use_number(num_new, progress=bars)
            run = folder.run if use else folder.at(num_new, progress=bars)
    if namer is not None:
        from nodenova.runs.naming import CommandNamer

        with Bars(not quiet, "naming the classes") as bars:
            notes = folder.name_classes(CommandNamer(namer), progress=bars)
        run = folder.run
        if not quiet:
            print_notes(notes)
    if json_path is not None:
        write_atomically(json_path, to_json({"classes": [asdict(info) for info in run.classes]}))
    if not quiet:
        print_classes(run.classes, run.model.stages, run.last_edits)
        print_contents(run.classes, run.model.stages, run.last_edits)
        print_suggestions(run, None)
        if num_new is not None:
            _print_number(run, run_path, use)


@app.command(rich_help_panel=OWN)
def review(
    run_path: DiscoveryPath,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port on this machine (default: a free one).")
    ] = 0,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in the browser.")
    ] = True,
    quiet: Quiet = False,
) -> None:
    """Review the classes in the browser: name, merge, split or reject them.

    Decisions are saved into the run. The page is served to this machine only, and only to the
    browser that opens the link, which works once. Ctrl-C ends it.
    """
    import webbrowser

    from nodenova.runs.server import ReviewServer

    run_document(run_path)
    session = ReviewSession(run_path, quiet)
    session.page()
    with ReviewServer(session.page, session.save, port, session.undo) as server:
        out.print(f"Review: {server.url}", soft_wrap=True, highlight=False)
        if not quiet:
            print_stored_suggestions(run_path)
            out.print(
                "The link works once. Ctrl-C ends the review; saved decisions stay in the run.",
                highlight=False,
            )
        if open_browser:
            webbrowser.open(server.url)
        with suppress(KeyboardInterrupt):
            server.serve_forever()


@app.command("apply-review", rich_help_panel=OWN)
def apply_review(
    run_path: DiscoveryPath,
    review_path: Annotated[
        Path, typer.Argument(metavar="REVIEW", help="The review.json that the page saved.")
    ],
    quiet: Quiet = False,
) -> None:
    """Apply the decisions of a review to a run: rename, merge, split or reject classes."""
    from nodenova.review.review_file import History, Review

    run_document(run_path)
    document = read_json(review_path, error=SettingError)
    try:
        review = Review.from_json(document)
        History.read(run_path).check(review)  # a stale review does not wait for PyTorch
        run = _open(run_path, quiet)
        with Bars(not quiet) as bars:
            model = run.apply(review, progress=bars)
    except SettingError as error:
        raise SettingError(f"{review_path}: {error}") from error
    if not quiet:
        out.print(
            f"{plural(len(document['decisions']), 'decision is', 'decisions are')} part of the "
            f"model now; it has {plural(len(model.classes), 'class', 'classes')}."
        )
        out.print(f"Report: {escape(str(run.path / 'report.html'))}", soft_wrap=True)


@app.command(rich_help_panel=OWN)
def undo(
    run_path: DiscoveryPath,
    last: Annotated[int, typer.Option(min=1, help="Number of decisions, the last ones.")] = 1,
    quiet: Quiet = False,
) -> None:
    """Take back the last decisions that were saved into a run."""
    from nodenova.review.review_file import History, sentence

    run_document(run_path)
    history = History.read(run_path)
    if has_completed(run_path):  # taking back another decision is not what was asked for
        left = plural(len(history.decisions), "decision is", "decisions are")
        out.print(
            f"A change that was interrupted has been completed: {left} part of the model now. "
            "Give the command again to take back more.",
            highlight=False,
            soft_wrap=True,
        )
        return
    history.without_last(last)
    run = _open(run_path, quiet)
    with Bars(not quiet) as bars:
        run.undo(last, progress=bars)
    if not quiet:
        for decision in history.decisions[-last:]:
            out.print(f"Taken back: {escape(sentence(decision))}", highlight=False, soft_wrap=True)
        left = plural(len(run.history.decisions), "decision is", "decisions are")
        out.print(f"{left} part of the model.")


@app.command(rich_help_panel=OWN)
def diff(
    before: Annotated[Path, typer.Argument(metavar="EARLIER", help="The folder of a run of `nodenova discover`.")],
    after: Annotated[Path, typer.Argument(metavar="LATER", help="The folder of a later run that shares nodes with it.")],
    json_path: Annotated[Path | None, typer.Option("--json", help="Write all changes as JSON.")] = None,
    moves_path: Annotated[Path | None, typer.Option("--out", help="Table of the nodes that moved: .csv or .parquet.")] = None,
    safe_csv: SafeCsv = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Compare two runs: classes that came, went, grew or merged, and nodes that moved.

    Nodes are matched by their ids. If the later run continues the earlier one (`nodenova discover --from`), classes are
    matched by their ids too; otherwise one to one by the nodes they share.
    """
    run_document(after)
    paths = _check_files(json_path, moves_path)
    changes = _open(before, quiet).diff(after)
    if json_path is not None:
        write_atomically(json_path, to_json(asdict(changes)))
    if moves_path is not None:
        safe = has_safe_csv(after) if safe_csv is None else safe_csv
        write_atomically(moves_path, changes.moves_table(moves_path, safe))
    if not quiet:
        _print_diff(changes)
        for path in paths:
            out.print(f"Written: {escape(str(path))}", soft_wrap=True, highlight=False)


def _check_files(*paths: Path | None) -> list[Path]:
    """The paths that are given; raise if one is a folder, before anything is written."""
    given = [path for path in paths if path is not None]
    for path in given:
        if path.is_dir():
            raise StorageError(f"{path} is a folder, not a file to write to")
    return given


def _open(run_path: Path, quiet: bool) -> RunFolder:
    """Open a run; what is no run is refused before PyTorch is loaded."""
    run_document(run_path)
    with loading(quiet):
        from nodenova.runs.folder import RunFolder
    return RunFolder(run_path)


def _print_number(run: DiscoveryRun, run_path: Path, use: bool) -> None:
    """Print whether the run has this number now, and which numbers its page shows."""
    assert run.numbers is not None
    shown = ", ".join(map(str, run.numbers.previews))
    text = f"\nThe run now has {plural(run.num_new, 'new class', 'new classes')}."
    if not use:
        command = f"nodenova classes {run_path} --num-new {run.num_new} --use"
        text = f"\nThe run is unchanged. To give it this number: {command}"
    counted = run.numbers.count.number
    text += f"\n{counted} were counted; its page shows {shown}. Any other number can be given."
    out.print(escape(text), highlight=False, soft_wrap=True)


def _print_diff(changes: RunDiff) -> None:
    def line(text: str) -> None:
        out.print(escape(text), highlight=False, soft_wrap=True)

    names = {change.id: change.name for change in changes.classes if change.after is not None}
    table = one_line_table("", "class", "name", "before", "after", "moved in", "out")
    for change in changes.classes:
        sizes = ("" if size is None else f"{size:,}" for size in (change.before, change.after))
        moved = (f"{number:,}" if number else "" for number in (change.moved_in, change.moved_out))
        table.add_row(change.what, str(change.id), escape(change.name), *sizes, *moved)
    out.print(table)
    for text in filter(None, (_explain(change, names) for change in changes.classes)):
        line(f"- {text}")
    stayed = changes.shared - len(changes.moves)
    line(
        f"\n{changes.shared:,} nodes are in both runs, {stayed:,} of them in the same class; "
        f"{changes.nodes_came:,} came, {changes.nodes_went:,} went."
    )
    if not changes.continued:
        line("The later run does not continue the earlier one: classes are matched by their nodes.")
    for move in changes.moves[:MAX_MOVES]:
        before, after = (_shorten(name, MAX_NAME) for name in (move.before, move.after))
        line(f"  {_shorten(move.node, MAX_NODE)}: {before} -> {after}")
    if len(changes.moves) > MAX_MOVES:
        line(f"  and {len(changes.moves) - MAX_MOVES:,} more; --out FILE.csv has them all")


def _explain(change: ClassChange, names: dict[int, str]) -> str:
    """A sentence on a class that was merged, split, rejected or renamed, else ""."""
    into = ", ".join(names.get(one, str(one)) for one in change.into)
    if change.what in ("merged", "split"):
        return f"{change.name} was {change.what} into {into}."
    if change.what == "rejected":
        return f"{change.name} was rejected."
    if change.was and change.what == "came":
        return f"{change.name} is a part of what was {change.was}."
    return f"{change.name} was called {change.was}." if change.was else ""


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


class ReviewSession:
    """The page of a run, and the reviews of it; PyTorch is loaded when it is needed."""

    def __init__(self, run_path: Path, quiet: bool) -> None:
        self._path = run_path
        self._quiet = quiet
        self._page: str | None = None
        self._state = FolderState(run_path, "run.json")
        self._run: RunFolder | None = None

    def page(self) -> str:
        """The page as it is now, also if another process has changed the run."""
        from nodenova.review.review_file import cached_page

        if self._page is None or not self._state.is_current:
            self._state = FolderState(self._path, "run.json")
            self._page = cached_page(self._path)
        if self._page is None:
            with Bars(not self._quiet) as bars:
                self._page = self._opened().page(progress=bars)
        return self._page

    def save(self, review: Review) -> None:
        """Make a review part of the run; a stale one is refused before PyTorch is loaded."""
        self._check(review)
        self._opened().apply(review)
        self._page = None

    def undo(self, seen: Review) -> None:
        """Take back the last decision, if the run is as the reader has seen it."""
        self._check(seen)
        run = self._opened()
        run.history.check(seen)
        run.undo()
        self._page = None

    def _check(self, review: Review) -> None:
        from nodenova.review.review_file import History

        History.read(self._path).check(review)

    def _opened(self) -> RunFolder:
        if self._run is None or not self._run.is_current:
            self._run = _open(self._path, self._quiet)
        return self._run
