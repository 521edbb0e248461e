"""Which classes should be merged, and which split; how near nodes are to the means of classes.

Two logistic models, trained on discoveries whose answer is known (tools/learn_likeness.py): the
probability that two nodes, one of either class, belong to one class; and that the two halves of a
class mostly belong to different ones. No label is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from scipy.special import expit
from torch import Tensor

from nodenova.encoders.prism.lda import scaled_features
from nodenova.nn.heads import Head, LinearHead, UnitLinearHead
from nodenova.nn.kmeans import cluster
from nodenova.nn.multirank import MultiRank
from nodenova.nn.seeding import repeatable
from nodenova.open_world.anchored_kmeans import group_sums, whitening
from nodenova.open_world.novelty import self_likeness

if TYPE_CHECKING:
    from nodenova.model.model import Model


NODES_AT_ONCE = 4096
# Learned by tools/learn_likeness.py on 156 discoveries in 13 graphs: a constant, then the weights
# of `Evidence.pairs` and of `Evidence.halves`.
PAIRS = (2.08, 1.719, 0.9971, -1.2)
HALVES = (2.599, -2.445, -1.119, -0.6325)


def direction(head: Head, z: Tensor) -> Tensor:
    """(n, D) z as the head reads it, without its length."""
    return F.normalize(z, dim=1) if isinstance(head, LinearHead) else head.features(z)


def remembered_means(model: Model) -> Tensor:
    """(C, D) remembered mean of each class, on the columns that the head reads."""
    head = model.head()
    center = model.memory.classes.center.cpu()
    if isinstance(head, UnitLinearHead):
        center = center[:, model.frozen_encoder().spec.multirank.columns_of(head.multirank)]
    of = torch.tensor(model.column_class_ids)
    return torch.stack([center[of == c.id].mean(dim=0) for c in model.classes])


def cosines_to_means(
    model: Model, z: Tensor, groups: np.ndarray, means: Tensor
) -> tuple[Tensor, np.ndarray]:
    """Means (C, D) of the groups, as remembered for empty ones, and (N, 2) cosines.

    The cosines are those of a node to the mean of its group, and the highest to another mean.
    """
    head, y = model.head().cpu(), torch.from_numpy(groups)

    def parts() -> Iterator[tuple[Tensor, Tensor]]:
        # What the head reads is wide: some nodes at a time.
        nodes = (torch.split(each, NODES_AT_ONCE) for each in (z, y))
        yield from ((direction(head, some), c) for some, c in zip(*nodes, strict=True))

    total = torch.zeros(means.shape, dtype=torch.double)
    for u, c in parts():
        total += F.one_hot(c, len(means)).to(u.dtype).t() @ u
    size = torch.bincount(y, minlength=len(means))[:, None]
    means = torch.where(size > 0, (total / size.clamp_min(1)).float(), means)
    unit, cosine = F.normalize(means, dim=1), []
    for u, c in parts():
        s = u @ unit.t() / u.norm(dim=1, keepdim=True).clamp_min(1e-12)  # (n, C)
        own = s.gather(1, c[:, None])
        other = s.scatter(1, c[:, None], -torch.inf).max(dim=1, keepdim=True).values
        cosine.append(torch.cat([own, other], dim=1))
    return means, torch.cat(cosine).double().numpy()


MIN_NODES = 5  # nodes of a class, or of half a class, to compare it
MIN_HALVED = 20  # nodes of a class to look for halves
MAX_COMPARED = 600  # nodes of a class that are used
RESTARTS = 8  # of k-means
MIN_SELF = 1e-3  # least self-similarity of a class; whitened: of the mean of known classes
MIN_SPAN = 0.02  # least distance between the similarities of one class and of two
MIN_CONFUSED = 1e-4  # added to the probability of the other class before its log


@dataclass(frozen=True, eq=False)
class MergeSplit:
    """How likely classes are one, or two, in the order of `model.classes`."""

    # (C, C) probability that a node of one class and a node of the other belong together; NaN for
    # two known classes, for a class with itself and for a class with hardly any node
    together: np.ndarray
    # (C,) probability that a class is two: most of one half belongs to another class than most of
    # the other half. NaN for a class with too few nodes.
    two: np.ndarray
    # (C,) correlation of the means of the two halves, without sampling noise; NaN likewise
    halves_alike: np.ndarray


def estimate_merge_split(model: Model, z: np.ndarray, p: np.ndarray) -> MergeSplit | None:
    """Estimate from nodes z (N, hidden) and p (N, C), as `model.embed_and_predict` returns them.

    None for trained encoders: the weights were learned on `prism` only.
    """
    if model.frozen_encoder().spec.trainable:
        return None
    found = evidence(model, z, p)
    together, two = _probability(found.pairs, PAIRS), _probability(found.halves, HALVES)
    return MergeSplit(together, two, found.halves_alike)


def _probability(features: np.ndarray, weights: tuple[float, ...]) -> np.ndarray:
    return np.asarray(expit(features @ np.array(weights[1:]) + weights[0]))


@dataclass(frozen=True, eq=False)
class Evidence:
    """Features of the two logistic models; NaN where there is no evidence."""

    # (C, C, 3) correlation of the whitened means of two classes, without sampling noise (1: the
    # same); log of the probability that the model gives to the other one; 1 if one is known
    pairs: np.ndarray
    # (C, 3) similarity of the two halves of a class (1: as one class, 0: as two known classes on
    # average); 1 if the class is known; log of its size
    halves: np.ndarray
    halves_alike: np.ndarray  # (C,) as in `MergeSplit`
    half: np.ndarray  # (N,) half of its class that a node is in, 0 or 1; -1 for nodes left out


@torch.no_grad()
def evidence(model: Model, z: np.ndarray, p: np.ndarray) -> Evidence:
    """The evidence in nodes z (N, hidden) with class probabilities p (N, C)."""
    groups = p.argmax(axis=1)
    size = np.bincount(groups, minlength=p.shape[1])
    known = np.array([not c.is_new for c in model.classes])
    space = _Space.of(model)
    mean, own = space.remembered(model)
    typical = own[known].mean()
    halves, half = np.full((len(known), 3), np.nan), np.full(len(z), -1)
    halves_alike = np.full(len(known), np.nan)
    apart = space.between_known(model)
    for c in np.flatnonzero(size >= MIN_NODES):
        some = _some(groups == c, MAX_COMPARED)
        u = space.u(z[some])
        if not known[c]:  # for a known class the remembered labelled nodes are better evidence
            x = u @ space.white
            mean[c], own[c] = x.mean(axis=0), _self_similarity(x)
        part = _halve(model, z[some], model.classes[c].id) if size[c] >= MIN_HALVED else None
        if part is not None:
            between, halves_alike[c] = _half_similarity(u[part == 0], u[part == 1], apart)
            halves[c] = between, known[c], np.log(size[c])
            half[some] = part
    root = np.sqrt(np.maximum(own, MIN_SELF * typical))
    correlation = np.clip(mean @ mean.T / np.outer(root, root), -2, 2)
    either, both = known[:, None] | known, known[:, None] & known
    pairs = np.stack([correlation, np.log(_confusion(p, groups, size) + MIN_CONFUSED), either], 2)
    small = size < MIN_NODES
    pairs[both | small[:, None] | small | np.eye(len(known), dtype=bool)] = np.nan
    return Evidence(pairs, halves, halves_alike, half)


def _some(mine: np.ndarray, most: int) -> np.ndarray:
    """Indices of the nodes of a class, evenly spaced where they are more than `most`."""
    ids = np.flatnonzero(mine)
    return ids[:: -(-len(ids) // most)]


def _halve(model: Model, z: np.ndarray, class_id: int) -> np.ndarray | None:
    """(n,) 0 or 1: two parts of a class, as a split finds them; None for a tiny part."""
    multirank, known = model.frozen_encoder().spec.multirank, model.memory.classes
    rows = torch.from_numpy(z).to(model.device)
    u = scaled_features(multirank, rows, model.num_columns + 2, known.view_scale, model.lda)
    if len(torch.unique(u, dim=0)) < 2:
        return None
    with repeatable(0, f"halves-{class_id}"):
        part = cluster(u, 2, RESTARTS).cpu().numpy()
    return part if np.bincount(part, minlength=2).min() >= MIN_NODES else None


def _half_similarity(one: np.ndarray, other: np.ndarray, apart: float) -> tuple[float, float]:
    """Similarity of two groups of rows, 0 (`apart`) to 1 (as within each), and their correlation.

    On u without whitening: a scatter that the class is part of would hide that it is two.
    """
    root = np.sqrt(np.prod([max(_self_similarity(rows), MIN_SELF) for rows in (one, other)]))
    alike = one.mean(axis=0) @ other.mean(axis=0)
    between = np.clip((alike - apart) / max(root - apart, MIN_SPAN), 0, 1)
    return float(between), float(np.clip(alike / root, -1, 1))


def _self_similarity(x: np.ndarray) -> float:
    """Mean inner product of two different rows."""
    total, n = x.sum(axis=0), len(x)
    return float((total @ total - (x**2).sum()) / (n * (n - 1)))


def _confusion(p: np.ndarray, groups: np.ndarray, size: np.ndarray) -> np.ndarray:
    """(C, C) mean probability of one class over nodes of the other, both ways."""
    mean = group_sums(p.astype(np.float64), groups, len(size)) / np.maximum(size, 1)[:, None]
    return np.asarray((mean + mean.T) / 2)


@dataclass(frozen=True, eq=False)
class _Space:
    """The space where classes are round: u at the ranks in use, whitened within classes."""

    used: MultiRank
    scale: Tensor
    columns: Tensor
    white: np.ndarray

    @classmethod
    def of(cls, model: Model) -> _Space:
        multirank, known = model.frozen_encoder().spec.multirank, model.memory.classes
        used = model.lda.ranks_for(multirank, model.num_columns)
        scale = used.per_column(known.view_scale)
        columns = multirank.columns_of(used).to(scale.device)
        white = whitening(known.covariance(columns, model.lda.prior, scale))
        return cls(used, scale, columns, white.cpu().numpy())

    def u(self, z: np.ndarray) -> np.ndarray:
        """(n, D) nodes z, before whitening."""
        u = self.used(torch.from_numpy(z).to(self.scale)) * self.scale
        return u.double().cpu().numpy()

    def _centers(self, model: Model) -> np.ndarray:
        """(columns of the head, D) remembered means, before whitening."""
        center = model.memory.classes.center[:, self.columns] * self.scale
        return center.double().cpu().numpy()

    def between_known(self, model: Model) -> float:
        """Mean inner product of nodes of two known classes; 0 if there is only one."""
        of = {c.id for c in model.classes if not c.is_new}
        known = np.array([c in of for c in model.column_class_ids])
        center = self._centers(model)[known]
        upper = np.triu_indices(len(center), 1)
        return float((center @ center.T)[upper].mean()) if len(center) > 1 else 0.0

    def remembered(self, model: Model) -> tuple[np.ndarray, np.ndarray]:
        """(C, D) remembered means of the classes, and (C,) their self-similarity."""
        known, mean = model.memory.classes, self._centers(model) @ self.white
        white = torch.from_numpy(self.white).to(self.scale.device)
        own = self_likeness(known, self.columns, self.scale, white, mean)
        count = known.nodes.double().cpu().numpy()
        of = np.array(model.column_class_ids)
        whole, alike = [], []
        for c in model.classes:  # columns of a merged class count by their nodes
            rows = np.flatnonzero(of == c.id)
            share = count[rows] if count[rows].any() else np.ones(len(rows))  # a class may be empty
            share = share / share.sum()
            whole.append(share @ mean[rows])
            noise = share**2 @ ((mean[rows] ** 2).sum(axis=1) - own[rows])
            alike.append(whole[-1] @ whole[-1] - noise)
        return np.stack(whole), np.array(alike)
