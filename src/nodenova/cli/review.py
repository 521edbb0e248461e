"""What a discovery found, looked at and decided on: classes, review, apply-review, undo."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from nodenova.cli.app import OWN, Quiet, app, loading, out
from nodenova.cli.output import (
    print_classes,
    print_contents,
    print_kept_suggestions,
    print_suggestions,
)
from nodenova.cli.progress import Bars
from nodenova.display import plural
from nodenova.errors import SettingError
from nodenova.runs.run_dir import run_document

if TYPE_CHECKING:
    from nodenova.review.review_file import Review
    from nodenova.runs.apply import ReviewSession


DiscoveryPath = Annotated[
    Path,
    typer.Argument(
        metavar="RUN", help="A folder that `nodenova discover` or `nodenova demo` wrote."
    ),
]


@app.command(rich_help_panel=OWN)
def classes(
    run_path: DiscoveryPath,
    json_path: Annotated[Path | None, typer.Option("--json", help="Write the same as JSON.")] = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """What is in each class: size, confidence, characteristic features, representatives."""
    from dataclasses import asdict

    from nodenova.files import to_json, write_atomically

    run_document(run_path)
    with loading(quiet):
        from nodenova.runs.folder import DiscoveryFolder
    run = DiscoveryFolder(run_path).run()
    found = run.classes
    if json_path is not None:
        write_atomically(json_path, to_json({"classes": [asdict(info) for info in found]}))
    if not quiet:
        print_classes(found, run.model.stages)
        print_contents(found, run.model.stages)
        print_suggestions(run, None)


@app.command("apply-review", rich_help_panel=OWN)
def apply_review(
    run_path: DiscoveryPath,
    review_path: Annotated[
        Path, typer.Argument(metavar="REVIEW", help="The review.json that the page saved.")
    ],
    quiet: Quiet = False,
) -> None:
    """Make the decisions of a review part of the model: classes named, merged, split or rejected."""
    run_document(run_path)
    try:
        document = json.loads(review_path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingError(f"{review_path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise SettingError(f"{review_path}: not readable as JSON ({error})") from error
    with loading(quiet):
        from nodenova.runs.folder import DiscoveryFolder
    run = DiscoveryFolder(run_path)
    with Bars(not quiet) as bars:
        try:
            model = run.apply(document, bars)
        except SettingError as error:
            raise SettingError(f"{review_path}: {error}") from error
    if not quiet:
        out.print(
            f"{plural(len(document['decisions']), 'decision is', 'decisions are')} part of the "
            f"model now; it has {plural(len(model.classes), 'class', 'classes')}."
        )
        out.print(f"Report: {escape(str(run.path / 'report.html'))}", soft_wrap=True)


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
    """Look at the classes in the browser and name, merge, split or reject them.

    Decisions are saved into the run. The page is served to this machine only, and only to the
    browser that opens the link, once. Ctrl-C ends it.
    """
    import webbrowser

    from nodenova.review.review_file import cached_page
    from nodenova.runs.server import ReviewServer

    run_document(run_path)
    desk = Desk(run_path, cached_page(run_path), quiet)
    desk.page()
    with ReviewServer(desk.page, desk.save, port, desk.undo) as server:
        out.print(f"Review: {server.url}", soft_wrap=True, highlight=False)
        if not quiet:
            print_kept_suggestions(run_path)
            out.print(
                "The link works once. Ctrl-C ends the review; what was saved is in the run.",
                highlight=False,
            )
        if open_browser:
            webbrowser.open(server.url)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    desk.close()


@app.command(rich_help_panel=OWN)
def undo(
    run_path: DiscoveryPath,
    last: Annotated[int, typer.Option(min=1, help="How many decisions, the last ones.")] = 1,
    quiet: Quiet = False,
) -> None:
    """Take back decisions that were saved into a run: the last one, or the last few."""
    from nodenova.review.review_file import History, sentence

    run_document(run_path)
    taken = History.read(run_path)
    taken.without_last(last)
    with loading(quiet):
        from nodenova.runs.folder import DiscoveryFolder
    with Bars(not quiet) as bars:
        now = DiscoveryFolder(run_path).undo(last, bars)
    if not quiet:
        for decision in taken.decisions[-last:]:
            out.print(f"Taken back: {escape(sentence(decision))}", highlight=False, soft_wrap=True)
        left = plural(len(now.decisions), "decision is", "decisions are")
        out.print(f"{left} part of the model.")


class Desk:
    """The page of a run and the place for reviews of it; PyTorch is loaded when it is needed.

    Args:
        run_path: Of the run.
        kept: The page that the run keeps, if that is of the model as it is.
        quiet: Whether nothing is said.
    """

    def __init__(self, run_path: Path, kept: str | None, quiet: bool) -> None:
        self._path = run_path
        self._kept = kept
        self._quiet = quiet
        self._session: ReviewSession | None = None

    def page(self) -> str:
        """The page as it is now."""
        return self._opened().page() if self._kept is None else self._kept

    def save(self, review: Review) -> None:
        """Make a review part of the run."""
        self._opened().save(review)
        self._kept = None

    def undo(self, seen: Review) -> None:
        """Take back the last decision."""
        self._opened().undo(seen)
        self._kept = None

    def close(self) -> None:
        """Write what a review has changed: the page and the tables."""
        from nodenova.runs.folder import write_findings

        if self._session is not None and self._session.saved:
            with Bars(not self._quiet) as bars:
                write_findings(self._path, self._session.run, bars)

    def _opened(self) -> ReviewSession:
        if self._session is None:
            with loading(self._quiet):
                from nodenova.runs.folder import DiscoveryFolder
            with Bars(not self._quiet) as bars:
                self._session = DiscoveryFolder(self._path).desk(bars)
                if self._kept is None:
                    self._session.page()
        return self._session
