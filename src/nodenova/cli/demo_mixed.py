"""nodenova demo --mixed: the demo as a user's own graph is: what is new and how much, nobody says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from nodenova.cli.app import err, fail, loading, out
from nodenova.cli.progress import Bars
from nodenova.cli.written import print_verdict, write

if TYPE_CHECKING:
    from nodenova.data.labels import LabelledGraph as Labelled

# Labelled words of a known kind.
PER_CLASS = 50


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
            f"{num_old} kinds of nouns are known ({known}), {PER_CLASS} examples each.\n"
            f"The {total - PER_CLASS * num_old:,} others have no label: they are of these kinds or "
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
        y[rng.permutation(np.flatnonzero(labelled.y == c))[:PER_CLASS]] = c
    title = "WordNet: known kinds of nouns and others, and nobody says which"
    told = LabelledGraph(labelled.graph, y, labelled.class_names[:num_old], name=title)
    try:
        with Bars(err, show=not quiet) as bars:
            found = NodeDiscoverer(random_state=seed, watch=bars.watcher).fit(told)
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
    shown = {"Old": "old", "New": "new", "All": "all", "H": "h"}
    graded = "  ".join(f"{name} {scores[key]:.1f}" for name, key in shown.items())
    share = (labelled.y[asked] >= num_old).mean()
    out.print(
        f"\nGraded on the {asked.sum():,} unlabelled nouns (block matching, seed {seed}): "
        f"{graded} percent.\n"
        f"In truth {sizes[0][1]} kinds are new, {', '.join(labelled.class_names[num_old:])}: "
        f"{share:.0%} of these nouns.\n\n"
        f"Try next: nodenova review {escape(str(folder))}",
        highlight=False,
        soft_wrap=True,
    )
