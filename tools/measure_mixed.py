"""Measure discovery in a mixture.

    python tools/measure_mixed.py run|show|time ROWS

run   for each graph, class split and share of known nodes among the unlabelled ones, appends one
      JSON line to ROWS: All, H and the accuracy of old against new (block matching) of Prism on the
      mixture, of Prism with the new nodes given, and of GCD's semi-supervised k-means, with the
      number of new classes given; and of Prism with the number estimated. Existing lines are not
      computed again.
show  prints the table; --page docs/open-world.md and --log docs/experiments/open-world.md write its
      means and the whole table into these pages.
time  measures seconds on a planted graph.

Half of the classes are known, with 20 labelled nodes each. Half of the other nodes are held out of
discovery and graded; of the rest, as many as the share allows are unlabelled ("as is": all), at
most 3,000. Nothing is tuned here.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import into_page
import numpy as np
import torch
from learn_counting import load

import nodenova as nova
from nodenova.bench.baselines import GCDKMeans
from nodenova.data.labels import LabelledGraph, OldTask
from nodenova.encoders.prism.lda import fit_joint_classifier, strict_grouping
from nodenova.evaluation import metrics
from nodenova.methods import Method, get_method
from nodenova.model.model import Model
from nodenova.nn.class_memory import Memory
from nodenova.nn.encode_cache import encode, shared_passes
from nodenova.nn.seeding import repeatable

SHARES = (None, 0.3, 0.5, 0.7, 0.95)
MIN_CLASS, MAX_CLASSES = 15, 16
PER_CLASS = 20
MAX_UNLABELLED = 3_000
HOW = ("mixed", "told", "gcd", "counted")


def classes_of(labelled: LabelledGraph, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Known and new classes."""
    size = np.bincount(labelled.y[labelled.y >= 0], minlength=labelled.num_classes)
    rng = np.random.default_rng([split, 5])
    order = rng.permutation(np.flatnonzero(size >= MIN_CLASS))[:MAX_CLASSES]
    return order[: (len(order) + 1) // 2], order[(len(order) + 1) // 2 :]


def divide(
    labelled: LabelledGraph, split: int
) -> tuple[OldTask, np.ndarray, np.ndarray, np.ndarray]:
    """Phase 1, nodes for discovery, held-out nodes, (N,) classes in the order of the model."""
    old, new = classes_of(labelled, split)
    rng = np.random.default_rng([split, 6])
    number = np.full(labelled.num_classes + 1, -1)
    number[np.concatenate([old, new])] = np.arange(len(old) + len(new))
    y = number[labelled.y]
    train = np.zeros(len(y), dtype=bool)
    for c in range(len(old)):
        mine = rng.permutation(np.flatnonzero(y == c))
        train[mine[: min(PER_CLASS, len(mine) // 2)]] = True
    rest = rng.permutation(np.flatnonzero((y >= 0) & ~train))
    ids, none = np.flatnonzero(train), np.zeros(0, dtype=np.int64)
    names = tuple(labelled.class_names[c] for c in old)
    first = OldTask(labelled.graph, ids, y[ids], none, none, names)
    return first, rest[: len(rest) // 2], rest[len(rest) // 2 :], y


def unlabelled(pool: np.ndarray, is_old: np.ndarray, share: float | None, least: int) -> np.ndarray:
    """Nodes with a share of known ones, ascending."""
    if share is None:
        return np.sort(pool[:MAX_UNLABELLED])
    known, new = pool[is_old], pool[~is_old]
    total = min(MAX_UNLABELLED, len(known) / share, len(new) / (1 - share))
    return np.sort(
        np.concatenate([known[: int(total * share)], new[: max(int(total * (1 - share)), least)]])
    )


def predict_strict(model: Model, task: nova.NewTask) -> np.ndarray:
    """(N,) predictions of Prism where the new nodes are given.

    Statistics are at the ranks in use only, as there is no later stage.
    """
    g, old, lda = model.frozen_encoder(), model.memory, model.lda
    multirank = g.spec.multirank
    used = lda.ranks_for(multirank, model.num_columns + task.number)
    small = Memory(old.replay, old.classes.at(multirank.columns_of(used)))
    z = encode(g, task.graph)
    with repeatable(0, "told"), torch.no_grad():
        z_new = z[torch.from_numpy(task.ids)]
        grouping = strict_grouping(used, small.classes, z_new, task.number, lda)
        head = fit_joint_classifier(used, small, grouping, z, lda).head
        classes: np.ndarray = head(z).argmax(dim=1).numpy()
    return classes


def score(
    classes: np.ndarray, y: np.ndarray, held: np.ndarray, o: int, k: int, found_new: int
) -> dict[str, float]:
    confusion = metrics.confusion_matrix(y[held], classes[held], o + k, o + found_new)
    matched = metrics.match_block(confusion, (o, k), (o, found_new))
    scores = metrics.accuracies(confusion, o, matched)
    old_new = metrics.old_new_accuracy(confusion, o, o)
    return {"all": scores["all"], "h": scores["h"], "old_new_accuracy": old_new}


def lines(
    labelled: LabelledGraph,
    name: str,
    split: int,
    shares: list[float | None],
    done: set[Any],
    method: Method | None,
) -> Any:
    first, pool, held, y = divide(labelled, split)
    o = len(first.class_names)
    k = int(y.max()) + 1 - o
    missing = [share for share in shares if (name, split, share) not in done]
    if not missing:
        return
    with shared_passes():
        model = nova.fit(first, seed=split)
        for share in missing:
            ids = unlabelled(pool, y[pool] < o, share, 3 * k)
            task = nova.NewTask(labelled.graph, ids, k, mixed=True)
            strict = nova.NewTask(labelled.graph, ids[y[ids] >= o], k)
            line: dict[str, Any] = {
                "graph": name,
                "split": split,
                "share": share,
                "n": len(ids),
                "o": o,
                "k": k,
            }
            begin = time.perf_counter()
            mixed = nova.discover(model, task, method).predict(labelled.graph)
            line["seconds"] = time.perf_counter() - begin
            with repeatable(0, "gcd"):
                gcd = GCDKMeans().assign(model, first, task)
            number = nova.count_new(model, replace(task, num_new=None)).number
            counted = mixed
            if number != k:
                open_task = replace(task, num_new=number) if number else None
                found = nova.discover(model, open_task, method) if open_task else model
                counted = found.predict(labelled.graph)
            line["number"] = number
            each = (mixed, predict_strict(model, strict), gcd, counted)
            for how, classes in zip(HOW, each, strict=True):
                line[how] = score(classes, y, held, o, k, number if how == "counted" else k)
            yield line


def run(
    rows: Path,
    graphs: list[str],
    splits: range,
    shares: list[float | None],
    method: Method | None = None,
) -> None:
    done = set()
    if rows.exists():
        done = {
            (r["graph"], r["split"], r["share"])
            for r in map(json.loads, rows.read_text().splitlines())
        }
    for split in splits:
        for path in graphs:
            name = Path(path).stem
            with rows.open("a") as file:
                for line in lines(load(path), name, split, shares, done, method):
                    file.write(json.dumps(line) + "\n")
                    file.flush()


def table(rows: Path, graphs: bool) -> str:
    """Means over class splits and over graphs, with or without one line per graph."""
    results = [json.loads(line) for line in rows.read_text().splitlines()]
    lines = [
        "| known | graph | tasks | mixed | told | difference | GCD | counted |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for share in SHARES:
        mine = [r for r in results if r["share"] == share]
        means = []
        for graph in sorted({r["graph"] for r in mine}):
            these = [r for r in mine if r["graph"] == graph]
            mean = {
                (how, s): float(np.mean([r[how][s] for r in these]))
                for how in HOW
                for s in ("all", "h")
            }
            means.append(mean)
            if graphs:
                lines.append(row(share, graph, len(these), mean))
        if means:
            mean = {key: float(np.mean([m[key] for m in means])) for key in means[0]}
            lines.append(row(share, f"**mean of {len(means)}**", len(mine), mean))
    return "\n".join(lines)


def seconds(nodes: int) -> str:
    """Processor time of a mixed and a strict discovery, and peak memory before the strict one."""
    data = nova.synthetic(nodes=nodes + 200, classes=8, words=2000)
    first, _, _ = nova.split(data, range(4), per_class=50)
    model = nova.fit(first)
    ids = np.setdiff1d(np.arange(nodes + 200), first.train_ids)[:nodes]
    mixed = nova.NewTask(data.graph, ids, 4, mixed=True)
    steps: list[Callable[[], object]] = [
        lambda: nova.discover(model, mixed),
        lambda: nova.count_new(model, replace(mixed, num_new=None)),
        lambda: nova.discover(model, replace(mixed, mixed=False)),
    ]
    took, peak = [], []
    for step in steps:
        begin = time.process_time()
        step()
        took.append(time.process_time() - begin)
        peak.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)
    return (
        f"{len(ids):,} unlabelled nodes, processor time on one core: {took[0]:.0f} s mixed and "
        f"{took[1]:.0f} s counting ({peak[1]:.1f} GiB with phase 1 before it), "
        f"{took[2]:.0f} s strict."
    )


def row(share: float | None, graph: str, count: int, mean: dict[tuple[str, str], float]) -> str:
    both = {how: f"{mean[how, 'all']:.1f}/{mean[how, 'h']:.1f}" for how in HOW}
    gap = "/".join(f"{mean['mixed', s] - mean['told', s]:+.1f}" for s in ("all", "h"))
    known = "as is" if share is None else f"{100 * share:.0f}%"
    cells = [known, graph, str(count), both["mixed"], both["told"], gap, both["gcd"]]
    return f"| {' | '.join([*cells, both['counted']])} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["run", "show", "time"])
    parser.add_argument("rows", type=Path)
    parser.add_argument("--graphs", nargs="+", default=["cora", "citeseer", "pubmed", "wordnet"])
    parser.add_argument("--splits", type=int, nargs=2, default=(0, 10), metavar=("FIRST", "END"))
    parser.add_argument("--shares", nargs="+", default=["as_is", "0.3", "0.5", "0.7", "0.95"])
    parser.add_argument("--setting", nargs="*", default=[], help="settings of Prism, as name=value")
    parser.add_argument("--nodes", type=int, default=100_000, help="number of nodes for `time`")
    parser.add_argument("--page", type=Path, help="page into which the means are written")
    parser.add_argument("--log", type=Path, help="page into which the whole table is written")
    arguments = parser.parse_args()
    if arguments.what == "run":
        settings = dict(pair.split("=", 1) for pair in arguments.setting)
        method = get_method("prism", settings)
        shares = [None if share == "as_is" else float(share) for share in arguments.shares]
        run(arguments.rows, arguments.graphs, range(*arguments.splits), shares, method)
    elif arguments.what == "time":
        took = seconds(arguments.nodes)
        print(took)
        if arguments.page is not None:
            into_page.put(arguments.page, "time", took)
    else:
        whole = table(arguments.rows, graphs=True)
        print(whole)
        if arguments.page is not None:
            into_page.put(arguments.page, "mixed", table(arguments.rows, graphs=False))
        if arguments.log is not None:
            into_page.put(arguments.log, "mixed", whole)


if __name__ == "__main__":
    main()
