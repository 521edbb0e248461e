"""Relations between inputs that are the same graph: the share of predictions that change.

Some relations must change nothing: the same again, edges in another order or given twice, float64,
dense features, two threads, a table whose rows, columns or labels come in another order, and the
same table through CSV files, data frames, NetworkX and the command line. Others are another input
(an isolated node more, classes or ids with other names, another seed); they are measured, to
compare with.
"""

from __future__ import annotations

import contextlib
import csv
import io
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
import torch
from scipy.optimize import linear_sum_assignment

import nodenova as nova

from .corpus import command

Classes: TypeAlias = dict[str, str]  # id of a node -> its class


@dataclass(frozen=True, eq=False)
class World:
    """A graph with texts, some labels, and how it is discovered.

    Attributes:
        name: Name of the graph.
        ids: (N,) ids of the nodes.
        texts: (N,) words of the nodes.
        labels: (N,) labels, "" for none.
        edges: (2, E) numbers of linked nodes, each pair once.
        num_new: Number of new classes, None if it is estimated.
        mixed: Whether unlabelled nodes may be of known classes.
        quick: Whether discovery leaves out its repetitions.
        seed: Seed of the discovery.
    """

    name: str
    ids: np.ndarray
    texts: np.ndarray
    labels: np.ndarray
    edges: np.ndarray
    num_new: int | None
    mixed: bool
    quick: bool = False
    seed: int = 0

    @classmethod
    def of(cls, labelled: nova.LabelledGraph, num_old: int, mixed: bool, name: str) -> World:
        """Hide the classes from `num_old` on; if mixed, two thirds of the other labels too."""
        graph, y = labelled.graph, labelled.y
        x = sp.csr_array(graph.x)
        words = graph.feature_names or [f"w{i}" for i in range(graph.num_features)]
        named = np.array([w.replace(" ", "").replace("-", "") for w in words], dtype=object)
        texts = [" ".join(named[x.indices[x.indptr[i] : x.indptr[i + 1]]]) for i in range(len(y))]
        shown = (y >= 0) & (y < num_old)
        if mixed:
            shown &= np.arange(len(y)) % 3 == 0
        names = np.array([*labelled.class_names, ""])
        ends = graph.edge_index
        edges = np.unique(np.sort(ends[:, ends[0] != ends[1]], axis=0), axis=1)
        ids = np.array([f"n{i * 7919 % 100_003:06}" for i in range(len(y))])
        num_new = None if mixed else labelled.num_classes - num_old
        labels = np.where(shown, names[y], "")
        return cls(name, ids, np.array(texts, dtype=object), labels, edges, num_new, mixed)

    @cached_property
    def discoverer(self) -> nova.NodeDiscoverer:
        """The estimator, not fitted."""
        method = nova.Prism(n_resamples=0, restarts=2) if self.quick else nova.Prism()
        # Labelled nodes are predicted too, so that the shares are of all nodes.
        return nova.NodeDiscoverer(
            self.num_new,
            method=method,
            mixed=self.mixed,
            random_state=self.seed,
            keep_labels=False,
        )

    @cached_property
    def known(self) -> set[str]:
        """Names of the known classes."""
        return set(self.labels.tolist()) - {""}

    @cached_property
    def x(self) -> sp.csr_array:
        """(N, d) bags of words, for graphs without a table."""
        from sklearn.feature_extraction.text import CountVectorizer

        counts = CountVectorizer(token_pattern=r"\S+", binary=True).fit_transform(self.texts)
        return sp.csr_array(counts.astype(np.float32))

    def take(self, order: np.ndarray) -> World:
        """The same with the nodes in another order."""
        number = np.argsort(order)
        return replace(
            self,
            ids=self.ids[order],
            texts=self.texts[order],
            labels=self.labels[order],
            edges=number[self.edges],
        )

    def columns(self) -> dict[str, list[Any]]:
        """The table of nodes, by column."""
        lengths = [len(text.split()) for text in self.texts]
        return {
            "id": self.ids.tolist(),
            "label": [label or None for label in self.labels.tolist()],
            "text": self.texts.tolist(),
            "length": lengths,
            "third": [("a", "b", "c")[length % 3] for length in lengths],
        }

    def edge_columns(self) -> dict[str, list[Any]]:
        """The table of edges, by column."""
        return {
            "source": self.ids[self.edges[0]].tolist(),
            "target": self.ids[self.edges[1]].tolist(),
        }

    def fit(self, source: Any, y: Any = None) -> Classes:
        """Discover, and return the classes of the nodes in the order of this world."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = self.discoverer.fit(source, y)
        return dict(zip(self.ids.tolist(), map(str, found.labels_), strict=True))

    def fit_arrays(self, x: Any = None, edges: Any = None) -> Classes:
        """Discover on arrays."""
        x, edges = self.x if x is None else x, self.edges if edges is None else edges
        return self.fit((x, edges), [label or None for label in self.labels.tolist()])

    def fit_frames(self, columns: Sequence[str] | None = None) -> Classes:
        """Discover on data frames."""
        import pandas as pd

        nodes = pd.DataFrame(self.columns())
        edges = pd.DataFrame(self.edge_columns())
        source = (nodes[list(columns)] if columns else nodes, edges)
        return self.fit(nova.load_graph(source, text_columns=["text"]))


def changed(before: Mapping[str, str], after: Mapping[str, str], known: set[str]) -> float:
    """Share of the nodes that change class, discovered classes matched as well as possible."""
    both = [node for node in before if node in after]
    new = [sorted({c for c in classes.values() if c not in known}) for classes in (before, after)]
    agree = np.zeros((len(new[0]), len(new[1])))
    row, column = ({c: i for i, c in enumerate(names)} for names in new)
    same = 0
    for node in both:
        one, other = before[node], after[node]
        if one in row and other in column:
            agree[row[one], column[other]] += 1
        same += one == other and one in known
    matched = agree[linear_sum_assignment(-agree)].sum()
    return float(1 - (same + matched) / len(both))


# Relations: each returns the classes by the ids of the original world.


def _shuffle_edges(world: World, rng: np.random.Generator) -> Classes:
    edges = world.edges[:, rng.permutation(world.edges.shape[1])]
    swap = rng.random(edges.shape[1]) < 0.5
    return world.fit_arrays(edges=np.where(swap, edges[::-1], edges))


def _double_edges(world: World, rng: np.random.Generator) -> Classes:
    return world.fit_arrays(edges=np.concatenate([world.edges, world.edges[::-1]], axis=1))


def _two_threads(world: World, rng: np.random.Generator) -> Classes:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        return world.fit_arrays()
    finally:
        torch.set_num_threads(before)


def _shuffle_rows(world: World, rng: np.random.Generator) -> Classes:
    return world.take(rng.permutation(len(world.ids))).fit_frames()


def _shuffle_edge_rows(world: World, rng: np.random.Generator) -> Classes:
    edges = world.edges[:, rng.permutation(world.edges.shape[1])]
    swap = rng.random(edges.shape[1]) < 0.5
    return replace(world, edges=np.where(swap, edges[::-1], edges)).fit_frames()


def _shuffle_columns(world: World, rng: np.random.Generator) -> Classes:
    names = list(world.columns())
    return world.fit_frames([names[i] for i in rng.permutation(len(names))])


def _last_class_first(world: World, rng: np.random.Generator) -> Classes:
    """Rows sorted by label, from the last to the first, so that classes appear in that order."""
    order = np.argsort(world.labels, kind="stable")[::-1]
    return world.take(order).fit_frames()


def _through_csv(world: World, rng: np.random.Generator) -> Classes:
    order = rng.permutation(len(world.ids))
    shuffled = world.take(order)
    with tempfile.TemporaryDirectory() as folder:
        paths = _write_csv(shuffled, Path(folder))
        return shuffled.fit(nova.load_graph(**paths, text_columns=["text"]))  # type: ignore[arg-type]


def _write_csv(world: World, folder: Path) -> dict[str, Path]:
    paths = {}
    for name, columns in (("nodes", world.columns()), ("edges", world.edge_columns())):
        paths[name] = folder / f"{name}.csv"
        with paths[name].open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(columns)
            writer.writerows(zip(*columns.values(), strict=True))
    return paths


def _through_networkx(world: World, rng: np.random.Generator) -> Classes:
    import networkx as nx

    shuffled = world.take(rng.permutation(len(world.ids)))
    graph = nx.Graph()
    columns = shuffled.columns()
    for i, node in enumerate(columns["id"]):
        given = {name: values[i] for name, values in columns.items() if name != "id"}
        graph.add_node(node, **{name: value for name, value in given.items() if value is not None})
    graph.add_edges_from(zip(*shuffled.edge_columns().values(), strict=True))
    return shuffled.fit(nova.load_graph(graph, text_columns=["text"]))


def _through_command(world: World, rng: np.random.Generator) -> Classes:
    shuffled = world.take(rng.permutation(len(world.ids)))
    with tempfile.TemporaryDirectory() as folder:
        paths = _write_csv(shuffled, Path(folder))
        options: list[object] = ["--seed", world.seed, "--relabel", "--no-report", "-q"]
        options += [] if world.mixed else ["--all-new", "--num-new", world.num_new]
        if world.quick:
            options += ["--set", "n_resamples=0", "--set", "restarts=2"]
        out = Path(folder) / "run"
        files = ("--nodes", paths["nodes"], "--edges", paths["edges"], "--text-column", "text")
        with contextlib.redirect_stderr(io.StringIO()):
            command("discover", *files, *options, "--out", out)
        with (out / "predictions.csv").open(newline="", encoding="utf-8") as file:
            return {row["node"]: row["name"] for row in csv.DictReader(file)}


def _rename_classes(world: World, rng: np.random.Generator) -> Classes:
    """Give the classes names that sort in the opposite order, and take them back."""
    names = sorted(world.known)
    other = {name: f"{chr(ord('z') - i)} {name}" for i, name in enumerate(names)}
    labels = np.array([other.get(label, "") for label in world.labels.tolist()])
    back = {new: old for old, new in other.items()}
    found = replace(world, labels=labels).fit_frames()
    return {node: back.get(c, c) for node, c in found.items()}


def _rename_ids(world: World, rng: np.random.Generator) -> Classes:
    order = rng.permutation(len(world.ids))
    ids = np.array([f"m{i:06}" for i in order])
    found = replace(world, ids=ids).fit_frames()
    return dict(zip(world.ids.tolist(), found.values(), strict=True))


def _add_node(world: World, rng: np.random.Generator) -> Classes:
    grown = replace(
        world,
        ids=np.append(world.ids, "n999999"),
        texts=np.append(world.texts, world.texts[0]),
        labels=np.append(world.labels, ""),
    )
    return grown.fit_frames()


@dataclass(frozen=True)
class Relation:
    """A relation, the input that it is compared with, and whether it must change nothing."""

    relate: Callable[[World, np.random.Generator], Classes]
    of_table: bool
    exact: bool = True


RELATIONS: dict[str, Relation] = {
    "the same again": Relation(lambda world, rng: world.fit_arrays(), False),
    "edges shuffled, ends swapped": Relation(_shuffle_edges, False),
    "edges doubled": Relation(_double_edges, False),
    "float64": Relation(lambda w, rng: w.fit_arrays(w.x.astype(np.float64)), False),
    "dense": Relation(lambda w, rng: w.fit_arrays(w.x.toarray()), False),
    "two threads": Relation(_two_threads, False),
    "table: the same again": Relation(lambda world, rng: world.fit_frames(), True),
    "table: rows shuffled": Relation(_shuffle_rows, True),
    "table: rows of edges shuffled, ends swapped": Relation(_shuffle_edge_rows, True),
    "table: columns shuffled": Relation(_shuffle_columns, True),
    "table: classes in another order": Relation(_last_class_first, True),
    "table: shuffled, through CSV files": Relation(_through_csv, True),
    "table: shuffled, through NetworkX": Relation(_through_networkx, True),
    "table: shuffled, by nodenova discover": Relation(_through_command, True),
    "another input: an isolated node more": Relation(_add_node, True, exact=False),
    "another input: other names of classes": Relation(_rename_classes, True, exact=False),
    "another input: other ids": Relation(_rename_ids, True, exact=False),
    "another seed": Relation(lambda w, rng: replace(w, seed=1).fit_frames(), True, exact=False),
}


def uneven(nodes: int, classes: int, seed: int = 0) -> nova.LabelledGraph:
    """A synthetic graph whose classes differ in size: class c keeps 1/(c+1) of its nodes."""
    # So hard that order can decide: on an easy graph every order gives the same classes.
    full = nova.synthetic(nodes=nodes, classes=classes, words=40 * classes, homophily=0.5,
                          topic_share=0.2, words_per_node=10, seed=seed)  # fmt: skip
    rank = np.zeros(nodes, dtype=np.int64)
    for c in range(classes):
        members = np.flatnonzero(full.y == c)
        rank[members] = np.arange(len(members))
    kept = np.flatnonzero(rank * (full.y + 1) < np.bincount(full.y)[full.y])
    return replace(full, graph=full.graph.subgraph(kept), y=full.y[kept])


def worlds(scale: float) -> list[World]:
    """WordNet/8, an uneven synthetic graph and CiteSeer, each strict and mixed."""
    wordnet, citeseer = nova.load_dataset("wordnet"), nova.load_dataset("citeseer")
    eighth = np.arange(0, wordnet.graph.num_nodes, 8)
    small = replace(wordnet, graph=wordnet.graph.subgraph(eighth), y=wordnet.y[eighth],
                    train=None, val=None, test=None)  # fmt: skip
    graphs = [(small, 7, "WordNet/8"), (uneven(1500, 6), 4, "synthetic, uneven")]
    graphs += [(citeseer, 4, "CiteSeer")] if scale >= 0.5 else []
    return [World.of(g, old, mixed, name) for g, old, name in graphs for mixed in (False, True)]


def measure(world: World, seed: int) -> dict[str, float]:
    """Return the share of predictions that each relation changes."""
    base = {True: world.fit_frames(), False: world.fit_arrays()}
    shares = {}
    for number, (name, relation) in enumerate(RELATIONS.items()):
        after = relation.relate(world, np.random.default_rng([seed, number]))
        shares[name] = round(changed(base[relation.of_table], after, world.known), 5)
    return shares


def run(seed: int, scale: float, out: Path) -> dict[str, Any]:
    """Measure all relations on all graphs."""
    figures, failures = {}, []
    for world in worlds(scale):
        key = f"{world.name}, {'mixed' if world.mixed else 'strict'}"
        figures[key] = measure(world, seed)
        for name, share in figures[key].items():
            print(f"{key:26} {name:46} {100 * share:6.2f} %", flush=True)
            if share and RELATIONS[name].exact:
                failures.append(
                    {
                        "what": f"{key}: {name}",
                        "reproduce": f"python -m tools.attack metamorphic --seed {seed}",
                        "error": "predictions change",
                        "place": "",
                        "line": f"{100 * share:.2f} % of the nodes",
                    }
                )
    exact = [name for name, relation in RELATIONS.items() if relation.exact]
    return {"graphs": figures, "exact": exact, "failures": failures}
