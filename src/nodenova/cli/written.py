"""What a discovery found, said on the terminal and written to its folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from nodenova.cli.app import err, out, print_notes
from nodenova.cli.progress import mapping
from nodenova.cli.suggestions import print_suggestions

if TYPE_CHECKING:
    from nodenova.model.info import ClassInfo
    from nodenova.review.run import DiscoveryRun


def print_verdict(run: DiscoveryRun, notes: Sequence[str]) -> None:
    """How many new classes there seem to be, and what speaks against them."""
    print_notes(notes)
    if run.verdict is not None:
        out.print(f"{escape(run.verdict.sure)}\n", highlight=False, soft_wrap=True)
    if run.warning:
        warning = f"[bold yellow]warning:[/] [bold]{escape(run.warning)}[/]"
        err.print(warning, highlight=False, soft_wrap=True)


def write(
    folder: Path,
    run: DiscoveryRun,
    keep_graph: bool,
    overwrite: bool,
    quiet: bool,
    reading: Mapping[str, object] | None = None,
) -> None:
    """Write a run and say what was found and where it is.

    Args:
        folder: Where to.
        run: What was found.
        keep_graph: Whether the graph is kept.
        overwrite: Whether an earlier run may be there.
        quiet: Whether nothing is said.
        reading: Options by which its files were read: those that say something are kept.
    """
    from nodenova.review.folder import DiscoveryFolder

    with mapping(not quiet) as steps:
        DiscoveryFolder.write(
            folder,
            run,
            keep_graph=keep_graph,
            overwrite=overwrite,
            reading={name: value for name, value in (reading or {}).items() if value},
            steps=steps,
        )
    if not quiet:
        print_classes(run.classes)
        print_suggestions(run)
        out.print(f"\nReport: {escape(str(folder / 'report.html'))}", soft_wrap=True)


def print_classes(found: Sequence[ClassInfo]) -> None:
    """The classes as a table, discovered ones first."""
    heads = ("", "class", "name", "nodes", "confidence", "what is in it", "for example")
    table = Table(*heads, box=None, pad_edge=False)
    for info in sorted(found, key=lambda info: (info.kind == "old", info.id)):
        confidence = "" if info.confidence is None else f"{info.confidence:.0%}"
        words = ", ".join(f.name for f in info.features[:5] if f.weight > 0)
        examples = ", ".join(str(node) for node in info.representatives[:3])
        size = "" if info.size is None else f"{info.size:,}"
        named = (info.kind, str(info.id), escape(info.name))
        table.add_row(*named, size, confidence, escape(words), escape(examples))
    out.print(table)
