"""nodenova demo: the whole way on data that ships with the package, in words people can read.

nodenova demo --mixed: as a user's own graph is: which nouns are unknown, nobody says.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from nodenova.cli.app import Quiet, app, fail, loading, out, program
from nodenova.cli.output import print_verdict, write
from nodenova.cli.progress import Bars
from nodenova.errors import StorageError
from nodenova.runs.run_dir import check_place

if TYPE_CHECKING:
    from nodenova.data.labels import LabelledGraph as Labelled


# Labelled words of a known kind.
PER_CLASS_MIXED = 50


def demo_mixed(
    labelled: Labelled, num_old: int, folder: Path, seed: int, overwrite: bool, quiet: bool
) -> None:
    """Some nouns of the known kinds are labelled; all others are of these kinds or of others.

    Args:
        labelled: WordNet.
        num_old: Of its kinds, the first, which are known.
        folder: Where the run goes.
        seed: Draws other labelled nouns.
        overwrite: Whether an earlier run may be there.
        quiet: Whether nothing is said.
    """
    total, known = labelled.graph.num_nodes, ", ".join(labelled.class_names[:num_old])
    if not quiet:
        out.print(
            f"WordNet: {total:,} nouns, linked by meaning, each with the words that explain it.\n"
            f"{num_old} kinds of nouns are known ({known}), {PER_CLASS_MIXED} examples each.\n"
            f"The {total - PER_CLASS_MIXED * num_old:,} others have no label: they are of these kinds or "
            "of others, and nobody says of how many.\n",
            highlight=False,
        )
    with loading(quiet):
        import numpy as np

        from nodenova.data.labels import LabelledGraph
        from nodenova.estimator import NodeDiscoverer
        from nodenova.evaluation import metrics

    rng = np.random.default_rng([seed, 31415])
    y = np.full(total, -1)
    for c in range(num_old):
        y[rng.permutation(np.flatnonzero(labelled.y == c))[:PER_CLASS_MIXED]] = c
    title = "WordNet: known kinds of nouns and others, and nobody says which"
    told = LabelledGraph(labelled.graph, y, labelled.class_names[:num_old], name=title)
    try:
        with Bars(not quiet) as bars:
            found = NodeDiscoverer(random_state=seed, progress=bars).fit(told)
        if not quiet:
            print_verdict(found.run_, ())
        write(folder, found.run_, keep_graph=True, overwrite=overwrite, quiet=quiet)
    except KeyboardInterrupt:
        fail("stopped; nothing was written", 130)
    if quiet:
        return
    asked = y < 0
    new = len(found.classes_) - num_old
    sizes = (num_old, labelled.num_classes - num_old), (num_old, new)
    row = found.run_.probabilities.argmax(axis=1)
    true, said = labelled.y[asked], row[asked]
    counts = metrics.confusion_matrix(true, said, sum(sizes[0]), sum(sizes[1]))
    scores = metrics.accuracies(counts, num_old, metrics.match_block(counts, *sizes))
    share = (labelled.y[asked] >= num_old).mean()
    out.print(
        f"\n{in_words(scores, int(asked.sum()), seed)}\n"
        f"In truth {sizes[0][1]} kinds are unknown, {', '.join(labelled.class_names[num_old:])}: "
        f"{share:.0%} of these nouns.\n\n"
        f"Try next: {escape(program())} review {escape(str(folder))}",
        highlight=False,
        soft_wrap=True,
    )


def in_words(scores: Mapping[str, float], nodes: int, seed: int) -> str:
    """How many nouns are right, as one would say it.

    Args:
        scores: In percent, by block matching.
        nodes: How many were asked.
        seed: Of the draw.

    Examples:
        >>> print(in_words({"old": 91.2, "new": 94.6, "all": 92.4}, 9497, 0))
        More than 9 of 10 nouns are right: 91 % of those of known kinds, 95 % of others
        (9,497 nouns, seed 0; each discovered kind is matched to one true kind).
    """
    return (
        f"{of_ten(scores['all'])} nouns are right: {scores['old']:.0f} % of those of known kinds, "
        f"{scores['new']:.0f} % of others\n({nodes:,} nouns, seed {seed}; each discovered kind is "
        "matched to one true kind)."
    )


def of_ten(percent: float) -> str:
    """A percentage as so many of ten.

    Examples:
        >>> [of_ten(p) for p in (90.2, 92.4, 87.5, 99.8, 100, 3)]
        ['9 of 10', 'More than 9 of 10', 'Nearly 9 of 10', 'Nearly 10 of 10', '10 of 10', \
'Fewer than 1 of 10']
    """
    tenths = round(percent / 10)
    if not tenths:
        return "Fewer than 1 of 10"
    off = percent - 10 * tenths
    is_about = abs(off) < 0.5 and (tenths < 10 or off >= 0)
    return f"{'' if is_about else 'More than ' if off > 0 else 'Nearly '}{tenths} of 10"


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
        from nodenova.io.dataset_table import DATASETS
        from nodenova.io.datasets import load_dataset

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
            f"{num_old} kinds of nouns are known ({known}), {PER_CLASS_MIXED} examples each.\n"
            f"{num_new} other kinds are there as well. "
            f"All that is told of them: {PER_CLASS * num_new} nouns belong to them.\n",
            highlight=False,
        )
    with loading(quiet):
        import numpy as np

        from nodenova.bench.plan import Plan
        from nodenova.bench.run import run_one
        from nodenova.methods.prism import Prism
        from nodenova.nn.encode_cache import shared_passes
        from nodenova.runs.run import DiscoveryRun
    plan = Plan("wordnet", Prism(), "prism", tuple(range(num_old)), num_new, per_class=PER_CLASS)
    try:
        with shared_passes(), Bars(not quiet) as bars:
            outcome = run_one(labelled, plan, seed, bars)
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
