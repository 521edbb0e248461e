"""Measure discovery where new classes have unequal sizes, and where known ones have few labels.

    python tools/uneven.py run|show ROWS

run   appends one JSON line to ROWS for each graph, draw of classes, task and way: All, H and New
      (block matching), and the share of known nodes that are called new. Existing lines are not
      computed again.
show  prints paired differences from k-means alone, with graphs as units;
      --log docs/experiments/uneven-classes.md writes them into the page.

--graphs takes names, or paths of .npz files (tools/make_further.py). The number of new classes is
given. Tasks of a draw, each strict (all unlabelled nodes are new) and mixed (half of them are):

planted  sizes of new classes fall geometrically from 30 to 1
natural  sizes as in the graph
even     equal sizes

with 30 labelled nodes in each known class and about 900 new nodes; and, on graphs with six classes
or more,

few      known classes have 5 to 15 labelled nodes, new ones 12 to 50 nodes (mixed)
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

import nodenova as nova
from nodenova.data.labels import LabelledGraph, OldTask
from nodenova.encoders.prism import lda
from nodenova.encoders.prism.encoder import PrismEncoder
from nodenova.evaluation import metrics
from nodenova.nn import kmeans
from nodenova.nn.encode_cache import shared_passes

RATIO = 30.0  # of the largest to the smallest class
NODES = 900  # new nodes of a task, and known ones
LABELS = 30
MIN_CLASS = 60  # least nodes of a class
MAX_OLD, MAX_NEW = 8, 8
MANY = 6  # classes from which on there is a task with few labels
RESAMPLES, MAX_REFIT = 5, 4000  # fewer than the defaults, for time
BEFORE, AFTER = "k-means alone", "as shipped"
MEASURES = ("all", "h", "known called new")


def kmeans_alone() -> AbstractContextManager[Any]:
    """Change to k-means without a mixture after it, and means as they are."""
    both = ExitStack()
    both.enter_context(patch.object(kmeans, "MIXTURE_STEPS", 0))
    both.enter_context(patch.object(lda, "NOISE", 0.0))
    return both


WAYS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    BEFORE: kmeans_alone,
    AFTER: ExitStack,
}


def sizes_of(kind: str, available: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Nodes of each new class, of those available (descending)."""
    k = len(available)
    if kind == "few":
        return np.minimum(rng.integers(12, 50, size=k), available)
    share = available / available.sum()
    if kind == "planted":
        share = RATIO ** -(np.arange(k) / (k - 1))
    elif kind == "even":
        share = np.ones(k)
    total = min(NODES / share.sum(), (available / share).min())
    return np.maximum((total * share).astype(int), 8)


class Draw:
    """Known and new classes of a graph, and their nodes in random order."""

    def __init__(self, labelled: LabelledGraph, seed: int, few: bool) -> None:
        self.labelled, self.rng = labelled, np.random.default_rng([seed, 30 + few])
        size = np.bincount(labelled.y[labelled.y >= 0], minlength=labelled.num_classes)
        large = self.rng.permutation(np.flatnonzero(size >= MIN_CLASS))
        o = min(len(large) // 2, MAX_OLD)
        old, new = large[:o], large[o : o + MAX_NEW]
        order = [*old, *new[np.argsort(-size[new], kind="stable")]]
        self.o, self.k = o, len(new)
        self.members = [self.rng.permutation(np.flatnonzero(labelled.y == c)) for c in order]
        self.labels = self.rng.integers(5, 16, size=o) if few else np.full(o, LABELS)
        self.y = np.full(len(labelled.y), -1)
        for number, nodes in enumerate(self.members):
            self.y[nodes] = number
        names = [labelled.class_names[c] for c in old]
        ids = np.sort(np.concatenate([m[:n] for m, n in self.of_old()]))
        none = np.zeros(0, dtype=np.int64)
        self.first = OldTask(labelled.graph, ids, self.y[ids], none, none, tuple(names))

    def of_old(self) -> Iterator[tuple[np.ndarray, int]]:
        """Nodes of each known class, and how many of them are labelled."""
        return zip(self.members[: self.o], self.labels.tolist(), strict=True)

    def nodes(self, kind: str) -> tuple[np.ndarray, np.ndarray]:
        """Known and new unlabelled nodes of a task."""
        if kind == "few":
            known = np.concatenate([m[n : 7 * n] for m, n in self.of_old()])
        else:
            known = np.concatenate([m[n:] for m, n in self.of_old()])
            known = np.random.default_rng(0).permutation(known)[:NODES]
        fresh = self.members[self.o :]
        sizes = sizes_of(kind, np.array([len(nodes) for nodes in fresh]), self.rng)
        return known, np.concatenate([m[:n] for m, n in zip(fresh, sizes, strict=True)])


def score(classes: np.ndarray, y: np.ndarray, o: int, k: int) -> dict[str, float]:
    confusion = metrics.confusion_matrix(y, classes, o + k, o + k)
    scores = metrics.accuracies(confusion, o, metrics.match_block(confusion, (o, k), (o, k)))
    lost = metrics.percentage(confusion[:o, o:].sum(), confusion[:o].sum())
    return {key: scores[key] for key in ("all", "h", "new")} | {"known called new": lost}


_ENCODERS: dict[str, PrismEncoder] = {}  # per graph, before whitening


def lines(labelled: LabelledGraph, name: str, seed: int) -> Iterator[dict[str, Any]]:
    if name not in _ENCODERS:
        _ENCODERS[name] = PrismEncoder.fit(labelled.graph, torch.device("cpu"))
    size = np.bincount(labelled.y[labelled.y >= 0])
    kinds: dict[bool, tuple[str, ...]] = {False: ("planted", "natural", "even")}
    if (size >= MIN_CLASS).sum() >= MANY:
        kinds[True] = ("few",)
    method = nova.Prism(n_resamples=RESAMPLES)
    for few, of_draw in kinds.items():
        draw = Draw(labelled, seed, few)
        with (
            shared_passes(),
            patch.object(PrismEncoder, "fit", lambda *_: _ENCODERS[name]),
            patch.object(lda, "MAX_REFIT", MAX_REFIT),
        ):
            model = nova.fit(draw.first, seed=seed)
            for kind in of_draw:
                known, new = draw.nodes(kind)
                both = np.sort(np.concatenate([known, new]))
                for mixed in (True,) if few else (False, True):
                    ids = both if mixed else np.sort(new)
                    task = nova.NewTask(labelled.graph, ids, draw.k, mixed=mixed)
                    what = {"graph": name, "seed": seed, "kind": kind, "mixed": mixed}
                    for way, change in WAYS.items():
                        with change():
                            found = nova.discover(model, task, method)
                        classes = found.predict(labelled.graph)[both]
                        yield what | {"way": way} | score(classes, draw.y[both], draw.o, draw.k)


def run(rows: Path, graphs: list[str], seeds: range) -> None:
    existing = rows.read_text().splitlines() if rows.exists() else []
    done = {(row["graph"], row["seed"]) for row in map(json.loads, existing)}
    for seed in seeds:
        for path in graphs:
            name = Path(path).stem
            if (name, seed) not in done:
                new = [json.dumps(line) for line in lines(load(path), name, seed)]
                with rows.open("a") as file:
                    file.write("\n".join(new) + "\n")
                print(seed, name, flush=True)


def table(rows: Path) -> str:
    """Means over draws, then over graphs; differences with their standard error over graphs."""
    made = [json.loads(line) for line in rows.read_text().splitlines()]
    seeds = len({row["seed"] for row in made})
    titles = " | ".join(measure.capitalize() for measure in MEASURES)
    text = [f"| draws of classes: {seeds} | way | graphs | {titles} |", "|---" * 6 + "|"]
    for kind, mixed in dict.fromkeys((row["kind"], row["mixed"]) for row in made):
        mine = [row for row in made if (row["kind"], row["mixed"]) == (kind, mixed)]
        for way in WAYS:
            cells = [cell(mine, way, measure) for measure in MEASURES]
            graphs = len({row["graph"] for row in mine})
            name = f"{kind}, {'mixed' if mixed else 'strict'}"
            text.append(f"| {name} | {way} | {graphs} | {' | '.join(cells)} |")
    return "\n".join(text)


def cell(rows: list[Any], way: str, measure: str) -> str:
    means = {one: graph_means(rows, one, measure) for one in (BEFORE, way)}
    after, off = np.array(means[way]), np.array(means[way]) - np.array(means[BEFORE])
    if way == BEFORE:
        return f"{after.mean():.1f}"
    error = off.std(ddof=1) / len(off) ** 0.5
    return f"{after.mean():.1f} ({off.mean():+.1f} ± {error:.1f})"


def graph_means(rows: list[Any], way: str, measure: str) -> list[float]:
    graphs = sorted({row["graph"] for row in rows})
    mine = {g: [r[measure] for r in rows if (r["graph"], r["way"]) == (g, way)] for g in graphs}
    return [float(np.mean(mine[graph])) for graph in graphs]


def by_graph(rows: Path) -> str:
    """H of each graph, before and after."""
    made = [json.loads(line) for line in rows.read_text().splitlines()]
    tasks = list(dict.fromkeys((row["kind"], row["mixed"]) for row in made))
    titles = " | ".join(f"{kind}, {'mixed' if mixed else 'strict'}" for kind, mixed in tasks)
    text = [f"| H, {BEFORE} → {AFTER} | {titles} |", "|---" * (len(tasks) + 1) + "|"]
    for graph in sorted({row["graph"] for row in made}):
        cells = []
        for task in tasks:
            mine = [r for r in made if (r["graph"], r["kind"], r["mixed"]) == (graph, *task)]
            ends = [graph_means(mine, way, "h") for way in (BEFORE, AFTER)] if mine else []
            cells.append(" → ".join(f"{end[0]:.1f}" for end in ends))
        text.append(f"| {graph} | {' | '.join(cells)} |")
    return "\n".join(text)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["run", "show"])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--graphs", nargs="+", default=["cora", "citeseer", "pubmed", "wordnet"])
    parser.add_argument("--seeds", type=int, nargs=2, default=(0, 3), metavar=("FIRST", "END"))
    parser.add_argument("--log", type=Path, help="page into which the tables are written")
    arguments = parser.parse_args()
    if arguments.what == "run":
        run(arguments.rows, arguments.graphs, range(*arguments.seeds))
    else:
        text = f"{table(arguments.rows)}\n\n{by_graph(arguments.rows)}"
        print(text)
        if arguments.log is not None:
            into_page.put(arguments.log, "uneven", text)


if __name__ == "__main__":
    main()
