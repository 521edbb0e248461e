"""Prism and common alternatives on the included graphs: time, memory, accuracy.

All get what Prism gets: labelled nodes of old classes, unlabelled nodes of new classes and the
number of these classes. Methods that only embed nodes are completed in the usual way: k-means on
the unlabelled nodes, then a logistic regression on labels and clusters. The last one also gets the
labels of new classes. All and H by `block` matching, public split, old classes first.
Leiden and scikit-learn alone are the rivals of `nodenova bench`: they do not use that every
unlabelled node is new.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import torch
from rows import Case, timed
from sklearn.cluster import KMeans
from sklearn.decomposition import TruncatedSVD
from sklearn.linear_model import LogisticRegression

import nodenova as nova
from nodenova.bench.baselines import GCDKMeans
from nodenova.bench.rivals import Leiden, ScikitLearn
from nodenova.evaluation import metrics
from nodenova.nn.seeding import fixed_threads

OLD = {"citeseer": 4, "wordnet": 7}
RANK = 128
WAYS = {
    "Prism": ("prism", 3),
    "GCD's k-means on Prism's features": ("gcd", 3),
    "scikit-learn alone": ("scikit_learn", 3),
    "Leiden, majority label": ("leiden", 3),
    "smoothed features, TruncatedSVD, k-means": ("dense_svd", 3),
    "Deep Graph Infomax, k-means": ("infomax", 1),
    "SWORD on GCN": ("sword", 3),
    "GCN given all labels": ("all_labels", 3),
}
CASES = [
    Case("rivals", f"{way}, {graph}", work, {"graph": graph, "seeds": seeds}, f"Prism, {graph}")
    for graph in OLD
    for way, (work, seeds) in WAYS.items()
]


class Task:
    """An included graph, divided; `classify` completes an embedding."""

    def __init__(self, graph: str) -> None:
        self.labelled = nova.load_dataset(graph)
        self.classes = range(OLD[graph])
        self.old, self.new, self.exam = nova.split(self.labelled, self.classes)

    def classify(self, z: np.ndarray, seed: int) -> np.ndarray:
        """(N,) classes of all nodes: old ones by number, then clusters."""
        clusters = KMeans(self.new.number, n_init=10, random_state=seed).fit(z[self.new.ids])
        ids = np.concatenate([self.old.train_ids, self.new.ids])
        y = np.concatenate([self.old.train_y, len(self.classes) + clusters.labels_])
        return LogisticRegression(max_iter=1000).fit(z[ids], y).predict(z)

    def graded(self, said: np.ndarray) -> dict[str, float]:
        sizes = self.exam.sizes
        width = max(sum(sizes), int(said.max()) + 1)  # Leiden may find further communities
        counts = metrics.confusion_matrix(self.exam.y, said[self.exam.ids], sum(sizes), width)
        found = (len(self.classes), width - len(self.classes))
        return nova.Grade(counts, None, sizes, found).scores("block")


def measured(
    task: Task, seeds: int, way: Callable[[int], dict[str, float]], threads: int = 1
) -> dict[str, float]:
    """Time of one seed, mean scores of all."""
    scores: list[dict[str, float]] = []

    def one() -> None:
        for graph in (task.old.graph, task.new.graph, task.exam.graph):
            graph.cache.clear()  # operators of an earlier seed are not reused
        scores.append(way(len(scores)))

    with fixed_threads(threads):
        found = timed(one, seeds)
    for name in ("all", "h"):
        found[f"{name}_percent"] = float(np.mean([score[name] for score in scores]))
    return found


def dense(task: Task) -> np.ndarray:
    assert not isinstance(task.labelled.graph.x, np.ndarray)
    return task.labelled.graph.x.toarray()


def prism(graph: str, seeds: int) -> dict[str, float]:
    task = Task(graph)

    def way(seed: int) -> dict[str, float]:
        model = nova.discover(nova.fit(task.old, seed=seed), task.new, seed=seed)
        return nova.grade(model, task.exam).scores("block")

    return measured(task, seeds, way)


def sword(graph: str, seeds: int) -> dict[str, float]:
    task = Task(graph)

    def way(seed: int) -> dict[str, float]:
        fitted = nova.fit(task.old, "gcn", seed=seed)
        model = nova.discover(fitted, task.new, nova.Sword(), seed=seed)
        return nova.grade(model, task.exam).scores("block")

    return measured(task, seeds, way)


def gcd(graph: str, seeds: int) -> dict[str, float]:
    task = Task(graph)

    def way(seed: int) -> dict[str, float]:
        model = nova.fit(task.old, seed=seed)
        torch.manual_seed(seed)
        return task.graded(GCDKMeans().assign(model, task.old, task.new))

    return measured(task, seeds, way)


def without_model(graph: str, seeds: int, rival: Leiden | ScikitLearn) -> dict[str, float]:
    """A rival of `nodenova bench` that uses no model."""
    task = Task(graph)
    unused = nova.fit(task.old, "gcn", epochs=1)

    def way(seed: int) -> dict[str, float]:
        torch.manual_seed(seed)
        return task.graded(rival.assign(unused, task.old, task.new))

    return measured(task, seeds, way)


def leiden(graph: str, seeds: int) -> dict[str, float]:
    return without_model(graph, seeds, Leiden())


def scikit_learn(graph: str, seeds: int) -> dict[str, float]:
    return without_model(graph, seeds, ScikitLearn())


def all_labels(graph: str, seeds: int) -> dict[str, float]:
    task = Task(graph)
    given = nova.labelled_new_task(task.labelled, task.classes)
    fitted = nova.fit(task.old, "gcn", epochs=1)  # of which nothing is used

    def way(seed: int) -> dict[str, float]:
        model = nova.discover_supervised(fitted, given, nova.LABELLED["oracle"](), seed=seed)
        return nova.grade(model, task.exam).scores("block")

    return measured(task, seeds, way)


def dense_svd(graph: str, seeds: int) -> dict[str, float]:
    task = Task(graph)

    def way(seed: int) -> dict[str, float]:
        a = task.labelled.graph.adjacency + sp.eye_array(task.labelled.graph.num_nodes)
        half = sp.diags_array(1 / np.sqrt(a.sum(axis=1)))
        x = dense(task)
        for _ in range(2):
            x = (half @ a @ half) @ x
        z = TruncatedSVD(RANK, random_state=seed).fit_transform(x)
        return task.graded(task.classify(z, seed))

    return measured(task, seeds, way)


def infomax(graph: str, seeds: int, epochs: int = 100) -> dict[str, float]:
    """PyTorch Geometric's deep graph infomax, with the encoder of its example: a GCN layer and
    PReLU.
    """
    from torch_geometric.nn import DeepGraphInfomax, GCNConv

    task = Task(graph)
    x = torch.from_numpy(dense(task))
    edges = torch.from_numpy(task.labelled.graph.edge_index)

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(x.shape[1], RANK)
            self.prelu = torch.nn.PReLU(RANK)

        def forward(self, x: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
            return self.prelu(self.conv(x, edges))

    def way(seed: int) -> dict[str, float]:
        torch.manual_seed(seed)
        model = DeepGraphInfomax(
            hidden_channels=RANK,
            encoder=Encoder(),
            summary=lambda z, *_: z.mean(dim=0).sigmoid(),
            corruption=lambda x, edges: (x[torch.randperm(len(x))], edges),
        )
        adam = torch.optim.Adam(model.parameters(), lr=0.001)
        for _ in range(epochs):
            adam.zero_grad()
            model.loss(*model(x, edges)).backward()
            adam.step()
        with torch.no_grad():
            z = model.eval()(x, edges)[0].numpy()
        return task.graded(task.classify(z, seed))

    return measured(task, seeds, way)
