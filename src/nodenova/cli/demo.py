"""nodenova demo: discover kinds of nouns in WordNet, which ships with the package."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from nodenova.cli.app import Quiet, app, loading, out, program
from nodenova.cli.output import RunOutput
from nodenova.cli.progress import Bars
from nodenova.display import percent
from nodenova.errors import StorageError
from nodenova.runs.run_dir import check_place, reserve

if TYPE_CHECKING:
    from nodenova.data.labels import LabelledGraph
    from nodenova.runs.run import DiscoveryRun

PER_CLASS = 50  # training nouns of a kind: labelled if it is known, else unlabelled
DATA = "WordNet 3.0: nouns of ten kinds; its license comes with the package"


@app.command()
def demo(
    folder: Annotated[Path, typer.Option("--out", help="Folder for the run and its page.")] = Path("nodenova-demo"),
    seed: Annotated[int, typer.Option(help="Seed of the labelled nouns.")] = 0,
    mixed: Annotated[bool, typer.Option("--mixed", help="The realistic setting: known and unknown nouns are mixed, and the number of new kinds is estimated.")] = False,
    overwriting: Annotated[bool | None, typer.Option("--overwrite/--no-overwrite", help="Replace the demo in --out (default: unless it was reviewed).")] = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Discover three unlabelled kinds of nouns in a graph of 9,997 nouns, and write the page."""
    replace, overwrite = overwriting is True, overwriting is not False
    check_place(folder, overwrite)
    reviewed = [name for name in ("decisions.json", "review.json") if (folder / name).is_file()]
    if reviewed and not replace:
        raise StorageError(
            f"{folder} holds a demo that was reviewed ({reviewed[0]}); choose another --out, or "
            "replace it with --overwrite"
        )
    with loading(quiet, "loading WordNet"):
        from nodenova.io.dataset_table import DATASETS
        from nodenova.io.datasets import load_dataset

        labelled = load_dataset("wordnet")
    num_old = DATASETS["wordnet"].num_old
    if not quiet:
        _print_task(labelled, num_old, mixed)
    with reserve(folder, overwrite):
        discover = _discover_mixed if mixed else _discover_given
        run, scores, nodes = discover(labelled, num_old, seed, quiet)
        if mixed and not quiet:
            from nodenova.review.trust import number_sentence

            out.print(f"{number_sentence(run.model.stages, run.classes)}\n", highlight=False)
        RunOutput(folder, overwrite, quiet=quiet).write(run)
    if quiet:
        return
    out.print(
        f"\n{accuracy_sentence(scores, nodes, seed)}\n"
        f"The true new kinds are {', '.join(labelled.class_names[num_old:])}.\n\n"
        f"Try next: {escape(program())} review {escape(str(folder))}",
        highlight=False,
        soft_wrap=True,
    )


def _print_task(labelled: LabelledGraph, num_old: int, mixed: bool) -> None:
    """Print what is known and what has to be found."""
    total, known = labelled.graph.num_nodes, ", ".join(labelled.class_names[:num_old])
    num_new = labelled.num_classes - num_old
    out.print(
        f"WordNet: {total:,} nouns, linked by meaning, each with the words of its definition.\n"
        f"Known: {num_old} kinds of nouns ({known}), {PER_CLASS} labelled examples each.",
        highlight=False,
    )
    out.print(
        f"Unlabelled: the {total - PER_CLASS * num_old:,} other nouns, of known kinds and of an "
        "unknown number of new ones.\n"
        if mixed
        else f"Unlabelled: {PER_CLASS * num_new} nouns of {num_new} new kinds.\n",
        highlight=False,
    )


def _discover_given(
    labelled: LabelledGraph, num_old: int, seed: int, quiet: bool
) -> tuple[DiscoveryRun, Mapping[str, float], int]:
    """Discover among nouns that are all of new kinds, given their number."""
    with loading(quiet):
        import numpy as np

        from nodenova.bench.plan import Plan
        from nodenova.bench.run import run_one
        from nodenova.methods.prism import Prism
        from nodenova.nn.encode_cache import shared_passes
        from nodenova.runs.run import DiscoveryRun
    num_new = labelled.num_classes - num_old
    plan = Plan("wordnet", Prism(), "prism", tuple(range(num_old)), num_new, per_class=PER_CLASS)
    with shared_passes(), Bars(not quiet) as bars:
        outcome = run_one(labelled, plan, seed, bars)
        y = np.full(labelled.graph.num_nodes, -1)
        y[outcome.exam.ids] = outcome.exam.y
        run = DiscoveryRun(
            title="WordNet: three new kinds of nouns",
            model=outcome.model,
            graph=labelled.graph,
            facts={
                "Data": DATA,
                "Known": f"{PER_CLASS} labelled nouns of each of "
                f"{', '.join(labelled.class_names[:num_old])}",
                "Unlabelled": f"{PER_CLASS * num_new} nouns of {num_new} other kinds",
                "Seed": seed,
            },
            answers=(y, outcome.exam.class_names),
            rows=[outcome.row],
        )
        run.outputs  # noqa: B018  reuses the encoder pass of grading
    return run, outcome.row.scores("block"), len(outcome.exam.ids)


def _discover_mixed(
    labelled: LabelledGraph, num_old: int, seed: int, quiet: bool
) -> tuple[DiscoveryRun, Mapping[str, float], int]:
    """Discover among all unlabelled nouns, of known and new kinds, and estimate the number."""
    with loading(quiet):
        import numpy as np

        from nodenova.data.labels import LabelledGraph
        from nodenova.estimator import NodeDiscoverer
        from nodenova.evaluation import metrics
    rng = np.random.default_rng([seed, 31415])
    y = np.full(labelled.graph.num_nodes, -1)
    for c in range(num_old):
        y[rng.permutation(np.flatnonzero(labelled.y == c))[:PER_CLASS]] = c
    task = LabelledGraph(
        labelled.graph,
        y,
        labelled.class_names[:num_old],
        name="WordNet: known and new kinds of nouns, mixed",
    )
    with Bars(not quiet) as bars:
        discoverer = NodeDiscoverer(random_state=seed, progress=bars).fit(task)
    unlabelled = y < 0
    true_sizes = (num_old, labelled.num_classes - num_old)
    sizes = (num_old, len(discoverer.classes_) - num_old)
    predicted = discoverer.run_.probabilities.argmax(axis=1)
    counts = metrics.confusion_matrix(
        labelled.y[unlabelled], predicted[unlabelled], sum(true_sizes), sum(sizes)
    )
    matched = metrics.match_block(counts, true_sizes, sizes)
    scores = metrics.accuracies(counts, num_old, matched)
    return discoverer.run_, scores, int(unlabelled.sum())


def accuracy_sentence(scores: Mapping[str, float], nodes: int, seed: int) -> str:
    """The share of correct nouns, from scores in percent under block matching.

    Examples:
        >>> print(accuracy_sentence({"old": 91.2, "new": 94.6, "all": 92.4}, 9497, 0))
        92% of 9,497 nouns are correct: 91% of the known kinds, 95% of the new kinds
        (seed 0; each discovered kind is matched to one true kind).
    """
    every, old, new = (percent(scores[key] / 100) for key in ("all", "old", "new"))
    return (
        f"{every} of {nodes:,} nouns are correct: {old} of the known kinds, {new} of the new kinds"
        f"\n(seed {seed}; each discovered kind is matched to one true kind)."
    )
