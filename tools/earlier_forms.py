"""Three earlier ways of discovering without training.

To be compared with Prism on the same tasks (tools/prism_results.py):

simple   S^2 X with idf weights, rank 32, whitened by the old classes, k-means, nearest mean
single   personalized PageRank, root of idf, rank by the number of old classes, rows centered and of
         unit length
many     S^0, S^1, S^2, S^4, each at three ranks, whitened and of unit length, side by side; a
         pooled covariance, a weak prior and two steps of smoothing of the probabilities

As far as their descriptions say it: none of their numbers was chosen here.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import LinearOperator, svds
from scipy.special import softmax
from sklearn.cluster import KMeans

import nodenova as nova
from nodenova.evaluation.grade import Grade
from nodenova.evaluation.metrics import confusion_matrix

MOST = 64  # the highest rank in `many`


class Task:
    """What both phases were given, in one place; the labels are those of the old nodes only."""

    def __init__(self, first: nova.OldTask, new: nova.NewTask) -> None:
        self.graph, self.ids, self.k = new.graph, new.ids, new.number
        self.old_ids, self.y = first.train_ids, first.train_y
        self.n_old = len(first.class_names)


def simple(task: Task) -> np.ndarray:
    z = view(task.graph, "idf", "steps 2", 32)
    z = z @ whitening(task, z, mixed=0.5, ridge=1.0)
    return nearest_mean(task, z, grouped(task, z[task.ids]))


def single(task: Task) -> np.ndarray:
    z = unit(view(task.graph, "root", "walk 0.2", 48)[:, : int(np.clip(4 * task.n_old, 16, 48))])
    z = unit(z - z.mean(axis=0))
    z = z @ whitening(task, z, mixed=0.5, ridge=1.0)
    return nearest_mean(task, z, grouped(task, z[task.ids]))


def many(task: Task) -> np.ndarray:
    n = task.n_old + task.k
    pieces = []
    for depth in (0, 1, 2, 4):
        whole = view(task.graph, "root", f"steps {depth}", MOST)
        for rank in sorted({int(np.clip(multiple * n, 8, MOST)) for multiple in (2, 4, 8)}):
            z = whole[:, :rank] @ whitening(task, whole[:, :rank], mixed=0.25, ridge=1.0)
            pieces.append(unit(z - 0.5 * z.mean(axis=0)))
    z = np.hstack(pieces) / np.sqrt(len(pieces))
    z_u = z[task.ids]
    own = components(z_u, task.k)
    if task.k > 1:
        spectral = multi_scale(z_u, task.k)
        own = np.hstack([own, 0.5 * spectral * np.sqrt((own**2).sum() / (spectral**2).sum())])
    groups = grouped(task, own)
    old, new = z[task.old_ids], z_u
    means = np.vstack([class_means(old, task.y, task.n_old), class_means(new, groups, task.k)])
    spread_old, spread_new = old - means[task.y], new - means[task.n_old + groups]
    dof, dof_new = max(len(old) - task.n_old, 1), max(len(new) - task.k, 1)
    share = min(1.0, dof * task.k / task.n_old / dof_new)
    pooled = spread_old.T @ spread_old + share * spread_new.T @ spread_new
    pooled /= dof + share * dof_new
    covariance = 0.1 * pooled + 0.9 * np.trace(pooled) / len(pooled) * np.eye(len(pooled))
    weight = np.linalg.solve(covariance, means.T)
    logits = z @ weight - 0.5 * (means.T * weight).sum(axis=0)
    p = softmax(logits, axis=1)
    for _ in range(5):
        p = softmax(logits + 0.3 * np.log(p.mean(axis=0) + 1e-6), axis=1)
    smooth = smoothing(task.graph)
    for _ in range(2):
        p = 0.5 * p + 0.5 * (smooth @ p)
    return p.argmax(axis=1)


FORMS = {"simple": simple, "single": single, "many": many}


def scores(first: nova.OldTask, new: nova.NewTask, exam: nova.Exam) -> dict[str, dict[str, float]]:
    """What each form scores, matched like everything else."""
    task, n = Task(first, new), sum(exam.sizes)
    return {
        name: Grade(
            confusion_matrix(exam.y, form(task)[exam.ids], n, n),
            confusion_new=None,
            sizes=exam.sizes,
            predicted=exam.sizes,
        ).scores("block")
        for name, form in FORMS.items()
    }


@lru_cache(maxsize=1)
def smoothing(graph: nova.Graph) -> sp.csr_array:
    a = sp.csr_array(graph.adjacency + sp.eye_array(graph.num_nodes))
    half = sp.diags_array(1 / np.sqrt(a.sum(axis=1)))
    return sp.csr_array(half @ a @ half)


@lru_cache(maxsize=8)
def view(graph: nova.Graph, weights: str, smoother: str, rank: int) -> np.ndarray:
    """(N, rank) left singular vectors times singular values of smoothed and weighted features."""
    x = sp.csr_array((graph.x != 0).astype(np.float64))
    having = np.maximum(np.bincount(x.indices, minlength=x.shape[1]), 1)
    idf = np.maximum(np.log(x.shape[0] / having), 0)
    x = sp.csr_array(x * (idf if weights == "idf" else np.sqrt(idf)))
    kind, amount = smoother.split()
    s = smoothing(graph)

    def smoothed(start: np.ndarray) -> np.ndarray:
        now = start
        for _ in range(10 if kind == "walk" else int(amount)):
            now = s @ now
            if kind == "walk":
                now = (1 - float(amount)) * now + float(amount) * start
        return now

    operator = LinearOperator(
        x.shape,
        matvec=lambda v: smoothed(x @ v),
        rmatvec=lambda v: x.T @ smoothed(v),
        matmat=lambda v: smoothed(x @ v),
        rmatmat=lambda v: x.T @ smoothed(v),
        dtype=np.float64,
    )
    left, value, _ = svds(
        operator, min(rank, min(x.shape) - 1), v0=np.ones(min(x.shape)), random_state=0
    )
    return (left * value)[:, ::-1]


def whitening(task: Task, z: np.ndarray, mixed: float, ridge: float) -> np.ndarray:
    """C^-1/2 of the covariance within old classes, partly its diagonal, plus a ridge."""
    old = z[task.old_ids]
    spread = old - class_means(old, task.y, task.n_old)[task.y]
    within = spread.T @ spread / max(len(old) - task.n_old, 1)
    within = (1 - mixed) * within + mixed * np.diag(np.diag(within))
    within += ridge * np.trace(within) / len(within) * np.eye(len(within))
    value, vector = np.linalg.eigh(within)
    return (vector / np.sqrt(value)) @ vector.T


def grouped(task: Task, rows: np.ndarray) -> np.ndarray:
    return KMeans(task.k, n_init=20, random_state=0).fit_predict(rows)


def nearest_mean(task: Task, z: np.ndarray, groups: np.ndarray) -> np.ndarray:
    old = class_means(z[task.old_ids], task.y, task.n_old)
    means = np.vstack([old, class_means(z[task.ids], groups, task.k)])
    return (z @ means.T - 0.5 * (means**2).sum(axis=1)).argmax(axis=1)


def class_means(rows: np.ndarray, y: np.ndarray, n: int) -> np.ndarray:
    return np.stack([rows[y == c].mean(axis=0) for c in range(n)])


def components(rows: np.ndarray, k: int) -> np.ndarray:
    left, value, _ = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    return (left * value)[:, :k]


def multi_scale(rows: np.ndarray, k: int) -> np.ndarray:
    """Spectral embedding of the affinity summed over three neighborhood sizes."""
    square = (rows**2).sum(axis=1)
    distance = np.maximum(square[:, None] + square - 2 * rows @ rows.T, 0)
    affinity = np.zeros_like(distance)
    for neighbors in (5, 10, 20):
        reach = np.sort(distance, axis=1)[:, min(neighbors, len(rows) - 1)]
        affinity += np.exp(-distance / np.sqrt(np.outer(reach, reach) + 1e-12))
    np.fill_diagonal(affinity, 0)
    root = 1 / np.sqrt(affinity.sum(axis=1))
    found = unit(np.linalg.eigh(affinity * np.outer(root, root))[1][:, -k:])
    return found - found.mean(axis=0)


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
