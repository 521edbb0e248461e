"""What a discovery found, looked at and decided on: classes, review, apply-review."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from nodenova.cli.app import OWN, Quiet, app, loading, out
from nodenova.cli.progress import mapping
from nodenova.cli.suggestions import print_suggestions
from nodenova.cli.written import print_classes
from nodenova.errors import SettingError
from nodenova.review.place import run_document

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
        from nodenova.review.folder import DiscoveryFolder
    run = DiscoveryFolder(run_path).run()
    found = run.classes
    if json_path is not None:
        write_atomically(json_path, to_json({"classes": [asdict(info) for info in found]}))
    if not quiet:
        print_classes(found)
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
        from nodenova.review.folder import DiscoveryFolder
    run = DiscoveryFolder(run_path)
    with mapping(not quiet) as steps:
        try:
            model = run.apply(document, steps)
        except SettingError as error:
            raise SettingError(f"{review_path}: {error}") from error
    if not quiet:
        count = len(document["decisions"])
        out.print(
            f"{count} decision{'s are' if count != 1 else ' is'} part of the model now; "
            f"it has {len(model.classes)} classes."
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

    run_document(run_path)
    with loading(quiet):
        from nodenova.review.folder import DiscoveryFolder
        from nodenova.review.server import ReviewServer
    run = DiscoveryFolder(run_path)
    with mapping(not quiet) as steps:
        desk = run.desk(steps)
        desk.page()
    with ReviewServer(desk.page, desk.save, port) as server:
        out.print(f"Review: {server.url}", soft_wrap=True, highlight=False)
        if not quiet:
            print_suggestions(desk.run)
            out.print(
                "The link works once. Ctrl-C ends the review; what was saved is in the run.",
                highlight=False,
            )
        if open_browser:
            webbrowser.open(server.url)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    if desk.saved:
        with mapping(not quiet) as steps:
            run.report(steps)
