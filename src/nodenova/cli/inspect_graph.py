"""nodenova inspect and nodenova count: what a graph holds, and how many unknown classes."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from nodenova.cli.app import OWN, Quiet, Threads, app, loading, out, print_notes
from nodenova.cli.graph_options import (
    AllNew,
    GraphFiles,
    cost_text,
    graph_cost,
    mixed_setting,
    takes_graph,
)
from nodenova.display import percent

if TYPE_CHECKING:
    from nodenova.open_world.count import ClassCountEstimate

JsonPath = Annotated[
    Path | None, typer.Option("--json", help="Also write the result to this JSON file.")
]


@app.command(rich_help_panel=OWN)
@takes_graph()
def inspect(files: GraphFiles, json_path: JsonPath = None, quiet: Quiet = False) -> None:
    """Show how a graph of your own is read: nodes, edges, features, classes and likely problems."""
    loaded = files.load(show=not quiet).canonical()
    from nodenova.io.describe import describe, lines_of

    description = describe(loaded)
    reading = time.process_time()  # nearly all of it; `discover` reads the same files
    if json_path is not None:
        from nodenova.files.atomic import write_atomically
        from nodenova.files.content import to_json

        seconds, gb = graph_cost(loaded)  # without the reading: the same bytes every time
        cost = {"seconds_of_one_core": round(seconds), "gb_of_memory": round(gb, 2)}
        write_atomically(json_path, to_json({**asdict(description), "discover_takes": cost}))
    if not quiet:
        for line in (
            *lines_of(description),
            f"nodenova discover takes {cost_text(loaded, reading)}",
        ):
            out.print(line, markup=False, highlight=False, soft_wrap=True)


@app.command(rich_help_panel=OWN)
@takes_graph()
def count(
    files: GraphFiles,
    all_new: AllNew = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same result.")] = 0,
    json_path: JsonPath = None,
    threads: Threads = "auto",
    quiet: Quiet = False,
) -> None:
    """Estimate the number of unknown classes in a graph of your own, without writing a model.

    Takes the input of `nodenova discover` and prints what --num-new auto would use there: the most
    likely number, with the probability of the numbers around it. 0 means no unknown class.
    """
    mixed = mixed_setting(all_new, files.options)
    loaded = files.load(show=not quiet).canonical()
    if not quiet:
        print_notes(loaded.notes)
    with loading(quiet):
        from nodenova.cli.progress import Bars
        from nodenova.data.tasks import tasks_from_labels
        from nodenova.discovery import count_new
        from nodenova.files.atomic import write_atomically
        from nodenova.files.content import to_json
        from nodenova.fitting import fit
        from nodenova.nn.encode_cache import shared_passes
    old, new, _ = tasks_from_labels(loaded, mixed=mixed, seed=seed)
    with shared_passes(), Bars(not quiet) as bars:
        model = fit(old, seed=seed, progress=bars)
        estimate = count_new(model, new, seed=seed)
    if json_path is not None:
        extra = {"low": estimate.low, "high": estimate.high, "sentence": estimate.sentence()}
        document = {**asdict(estimate), **extra, "mixed": new.mixed, "seed": seed}
        write_atomically(json_path, to_json(document))
    if not quiet:
        out.print(estimate.sentence(), markup=False, highlight=False, soft_wrap=True)
        _print_probabilities(estimate)


def _print_probabilities(estimate: ClassCountEstimate) -> None:
    """Print the probability of each number, from one below to one above the likely ones."""
    table = Table("unknown classes", "probability", box=None, pad_edge=False)
    last = min(estimate.high + 1, len(estimate.probabilities) - 1)
    for number in range(max(estimate.low - 1, 0), last + 1):
        table.add_row(str(number), percent(estimate.probabilities[number]))
    out.print(table)
