"""Choose how Prism groups a mixture, on classes that no published number uses.

    python tools/choose_mixed.py run|show ROWS [--ways further --shares 0.5 0.95]

run   appends one JSON line to ROWS for each graph, draw of classes, share of known nodes and
      variant of the grouping: All and H (block matching) on held-out nodes. Existing lines are not
      computed again.
show  prints the means; --log docs/experiments/open-world.md writes them into the page.

For graphs that tools/measure_mixed.py measures (--measured), only the classes that are known in its
split are used: half of them are hidden. For other graphs (--others, tools/make_further.py) all
classes are used.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any
from unittest.mock import patch

import into_page
import numpy as np
import torch
from learn_counting import load
from measure_mixed import MIN_CLASS, divide, predict_strict, score, unlabelled
from measure_mixed import classes_of as measured_classes
from torch import Tensor

import nodenova as nova
from nodenova.data.labels import LabelledGraph
from nodenova.nn.encode_cache import shared_passes
from nodenova.open_world import mixed, novelty
from nodenova.open_world.anchored_kmeans import whitening
from nodenova.open_world.mixed import WhitenedSpace

SHARES = (0.3, 0.5, 0.7, 0.95)
MAX_CLASSES = 16

Change = Callable[[], AbstractContextManager[Any]]


def of_all_nodes() -> AbstractContextManager[Any]:
    """Principal components of all unlabelled nodes, without weights."""
    balanced = WhitenedSpace.of.__func__  # type: ignore[attr-defined]

    def plain(cls: Any, *arguments: Any) -> WhitenedSpace:
        space: WhitenedSpace = balanced(cls, *arguments[:5])
        return space

    return patch.object(WhitenedSpace, "of", classmethod(plain))


def node_likeness(value: float) -> Change:
    return lambda: patch.object(novelty, "NODE_LIKENESS", value)


def squared_odds() -> AbstractContextManager[Any]:
    both = ExitStack()
    both.enter_context(patch.object(novelty, "MAX_ODDS", novelty.MAX_ODDS**2))
    plain = novelty.odds_of_new
    both.enter_context(patch.object(novelty, "odds_of_new", lambda cells: plain(cells) ** 2))
    return both


WAYS: dict[str, Change] = {
    "as shipped": ExitStack,
    "all nodes alike": lambda: patch.object(novelty, "odds_of_new", _even),
    "directions of all nodes": of_all_nodes,
    "odds squared": squared_odds,
    "a node's own likeness 0": node_likeness(0.0),
    "a node's own likeness 1.5": node_likeness(1.5),
}


def root_of_odds() -> AbstractContextManager[Any]:
    plain = novelty.odds_of_new
    return patch("nodenova.methods.prism.odds_of_new", lambda cells: np.sqrt(plain(cells)))


def half_whitened() -> AbstractContextManager[Any]:
    """Whitening by the mean of the covariance and a round one of the same mean variance."""

    def half(covariance: Tensor) -> Tensor:
        round_one = covariance.diagonal().mean() * torch.eye(len(covariance)).to(covariance)
        return whitening((covariance + round_one) / 2)

    return patch.object(mixed, "whitening", half)


def both() -> AbstractContextManager[Any]:
    stack = ExitStack()
    stack.enter_context(root_of_odds())
    stack.enter_context(half_whitened())
    return stack


# For graphs whose new classes lie next to known ones, such as CiteSeer's.
FURTHER: dict[str, Change] = {
    "as shipped": ExitStack,
    "root of the odds": root_of_odds,
    "half whitened": half_whitened,
    "root of the odds, half whitened": both,
}


def _even(cells: list[novelty.CellNovelty]) -> np.ndarray:
    return np.ones(len(cells[0].cell))


def hidden(measured: bool) -> Callable[[LabelledGraph, int], tuple[np.ndarray, np.ndarray]]:
    """Return the function that draws known and hidden classes."""

    def draw(labelled: LabelledGraph, split: int) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng([split, 77])
        size = np.bincount(labelled.y[labelled.y >= 0], minlength=labelled.num_classes)
        large = np.flatnonzero(size >= MIN_CLASS)
        mine = rng.permutation(measured_classes(labelled, split)[0] if measured else large)
        mine = mine[:MAX_CLASSES]
        return mine[: (len(mine) + 1) // 2], mine[(len(mine) + 1) // 2 :]

    return draw


def lines(
    labelled: LabelledGraph,
    name: str,
    split: int,
    measured: bool,
    ways: dict[str, Change],
    shares: list[float],
) -> Iterator[Any]:
    with patch("measure_mixed.classes_of", hidden(measured)):
        first, pool, held, y = divide(labelled, split)
    o = len(first.class_names)
    k = int(y.max()) + 1 - o
    with shared_passes():
        model = nova.fit(first, seed=split)
        for share in shares:
            ids = unlabelled(pool, y[pool] < o, share, 3 * k)
            task = nova.NewTask(labelled.graph, ids, k, mixed=True)
            strict = nova.NewTask(labelled.graph, ids[y[ids] >= o], k)
            classes = {"told": predict_strict(model, strict)}
            for way, change in ways.items():
                with change():
                    classes[way] = nova.discover(model, task).predict(labelled.graph)
            for way, predicted in classes.items():
                what = {"graph": name, "split": split, "share": share, "way": way}
                yield what | score(predicted, y, held, o, k, k)


def run(
    rows: Path,
    graphs: list[tuple[str, bool]],
    splits: range,
    ways: dict[str, Change],
    shares: list[float],
) -> None:
    existing = rows.read_text().splitlines() if rows.exists() else []
    done = {(row["graph"], row["split"]) for row in map(json.loads, existing)}
    for split in splits:
        for path, measured in graphs:
            name = Path(path).stem
            if (name, split) not in done:
                found = lines(load(path), name, split, measured, ways, shares)
                new = [json.dumps(line) for line in found]
                with rows.open("a") as file:
                    file.write("\n".join(new) + "\n")


def table(rows: Path, by_graph: bool) -> str:
    """All/H by way and share; with `by_graph` also those of each graph, all shares together."""
    made = [json.loads(line) for line in rows.read_text().splitlines()]
    graphs, splits = ({row[key] for row in made} for key in ("graph", "split"))
    shares = sorted({row["share"] for row in made})
    ways = [*(way for way in dict.fromkeys(row["way"] for row in made) if way != "told"), "told"]
    names = sorted(graphs) if by_graph else []
    head = [f"{100 * share:.0f}%" for share in shares]
    rows_of_table = [
        f"| {len(graphs)} graphs, draws of classes: {len(splits)} | "
        + " | ".join([*head, "mean", *names])
        + " |",
        "|---" * (len(head) + len(names) + 2) + "|",
    ]
    for way in ways:
        found = np.array(
            [[mean_of(made, way, s, graph) for s in shares] for graph in sorted(graphs)]
        )
        means = [*found.mean(axis=0), found.mean(axis=(0, 1))]
        means += list(found.mean(axis=1)) if by_graph else []
        cells = [f"{both[0]:.1f}/{both[1]:.1f}" for both in means]
        rows_of_table.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join(rows_of_table)


def mean_of(made: list[Any], way: str, share: float, graph: str) -> np.ndarray:
    """Mean All and H."""
    mine = [r for r in made if (r["way"], r["share"], r["graph"]) == (way, share, graph)]
    return np.mean([[r["all"], r["h"]] for r in mine], axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["run", "show"])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--measured", nargs="*", default=["cora", "citeseer", "wordnet"])
    parser.add_argument("--others", nargs="*", default=[])
    parser.add_argument("--splits", type=int, nargs=2, default=(0, 2), metavar=("FIRST", "END"))
    parser.add_argument("--ways", choices=["first", "further"], default="first")
    parser.add_argument("--shares", nargs="*", type=float, default=SHARES)
    parser.add_argument("--log", type=Path, help="page into which the table is written")
    arguments = parser.parse_args()
    if arguments.what == "run":
        graphs = [(g, True) for g in arguments.measured] + [(g, False) for g in arguments.others]
        ways = FURTHER if arguments.ways == "further" else WAYS
        run(arguments.rows, graphs, range(*arguments.splits), ways, list(arguments.shares))
    else:
        text = table(arguments.rows, arguments.ways == "further")
        print(text)
        if arguments.log is not None:
            into_page.put(arguments.log, "chosen", text)


if __name__ == "__main__":
    main()
