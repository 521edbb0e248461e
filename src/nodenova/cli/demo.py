"""nodenova demo: the whole way on data that ships with the package, in words people can read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from nodenova.cli.app import Quiet, app, err, fail, loading, out, program
from nodenova.cli.demo_mixed import demo_mixed, in_words
from nodenova.cli.progress import Bars
from nodenova.cli.written import write
from nodenova.errors import StorageError
from nodenova.review.place import check_place

# Words of a category that are in training: labelled if it is known, else unlabelled.
PER_CLASS = 50


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--out", help="Where the run and its report go.")] = Path("nodenova-demo"),
    seed: Annotated[int, typer.Option(help="Draws other words.")] = 0,
    mixed: Annotated[bool, typer.Option("--mixed", help="As on a graph of your own: nobody says which nouns are of unknown kinds, or of how many.")] = False,
    overwriting: Annotated[bool | None, typer.Option("--overwrite/--no-overwrite", help="Replace the demo that --out holds (default: unless it was reviewed).")] = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Discover three kinds of words that nobody labelled, in a graph that ships with the package.

    The graph has 9,997 words.
    """
    replace, overwrite = overwriting is True, overwriting is not False
    check_place(folder, overwrite)
    reviewed = [name for name in ("decisions.json", "review.json") if (folder / name).is_file()]
    if reviewed and not replace:
        raise StorageError(
            f"{folder} holds a demo that was reviewed ({reviewed[0]}); choose another --out, or "
            "give --overwrite to replace it"
        )
    with loading(quiet, "loading WordNet"):
        from nodenova.io.datasets import DATASETS, load_dataset

        labelled = load_dataset("wordnet")
    count = labelled.graph.num_nodes
    num_old = DATASETS["wordnet"].num_old
    if mixed:
        demo_mixed(labelled, num_old, folder, seed, overwrite, quiet)
        return
    num_new = labelled.num_classes - num_old
    known = ", ".join(labelled.class_names[:num_old])
    if not quiet:
        out.print(
            f"WordNet: {count:,} nouns, linked by meaning, each with the words that explain it.\n"
            f"{num_old} kinds of nouns are known ({known}), {PER_CLASS} examples each.\n"
            f"{num_new} other kinds are there as well. "
            f"All that is told of them: {PER_CLASS * num_new} nouns belong to them.\n",
            highlight=False,
        )
    with loading(quiet):
        import numpy as np

        from nodenova.bench.plan import Plan
        from nodenova.bench.run import run_one
        from nodenova.nn.passes import shared_passes
        from nodenova.prism.method import Prism
        from nodenova.review.run import DiscoveryRun
    plan = Plan("wordnet", Prism(), "prism", tuple(range(num_old)), num_new, per_class=PER_CLASS)
    try:
        with shared_passes(), Bars(err, show=not quiet) as bars:
            outcome = run_one(labelled, plan, seed, bars.watcher)
            y = np.full(labelled.graph.num_nodes, -1)
            y[outcome.exam.ids] = outcome.exam.y
            run = DiscoveryRun(
                title="WordNet: three kinds of nouns that nobody labelled",
                model=outcome.model,
                graph=labelled.graph,
                facts={
                    "Data": f"WordNet 3.0, {count:,} noun synsets of ten kinds; "
                    "its licence comes with the package",
                    "Known": f"{PER_CLASS} labelled nouns of each of {known}",
                    "Unlabelled": f"{PER_CLASS * num_new} nouns of {num_new} other kinds",
                    "Seed": seed,
                },
                answers=(y, outcome.exam.class_names),
                rows=[outcome.row],
            )
            run.outputs  # noqa: B018  the pass that grading has made
        write(folder, run, keep_graph=True, overwrite=overwrite, quiet=quiet)
    except KeyboardInterrupt:
        fail("stopped; nothing was written", 130)
    if quiet:
        return
    scores = outcome.row.scores("block")
    out.print(
        f"\n{in_words(scores, len(outcome.exam.ids), seed)}\n"
        f"In truth the discovered kinds are {', '.join(labelled.class_names[num_old:])}.\n\n"
        f"Try next: {escape(program())} review {escape(str(folder))}",
        highlight=False,
        soft_wrap=True,
    )
