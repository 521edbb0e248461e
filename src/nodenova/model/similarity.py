"""Which classes look like one, and which like two.

Two logits, learnt on discoveries whose answer is known (tools/learn_likeness.py): how likely two
nodes, one of either class, are of one class in truth; and how likely the two halves of a class are
mostly of different ones. No label is asked.

How near nodes are to the means of classes, as the head of a model reads them.
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
from nodenova.model.likeness_weights import HALVES, PAIRS
from nodenova.nn.heads import Head, LinearHead, UnitLinearHead
from nodenova.nn.kmeans import cluster
from nodenova.nn.multirank import MultiRank
from nodenova.nn.seeding import repeatable
from nodenova.open_world.anchored_kmeans import group_sums, whitening
from nodenova.open_world.novelty import self_likeness

if TYPE_CHECKING:
    from nodenova.model.model import Model


NODES_AT_ONCE = 4096


def direction(head: Head, z: Tensor) -> Tensor:
    """(n, D) z as the head reads it, without its length."""
    return F.normalize(z, dim=1) if isinstance(head, LinearHead) else head.features(z)


def remembered_means(model: Model) -> Tensor:
    """(C, D) the mean of each class as the model remembers it, on the columns its head reads."""
    head = model.head()
    center = model.memory.classes.center.cpu()
    if isinstance(head, UnitLinearHead):
        center = center[:, model.frozen_encoder().spec.multirank.columns_of(head.multirank)]
    of = torch.tensor(model.column_class_ids)
    return torch.stack([center[of == c.id].mean(dim=0) for c in model.classes])


def cosines_to_means(
    model: Model, z: Tensor, groups: np.ndarray, means: Tensor
) -> tuple[Tensor, np.ndarray]:
    """The means of the groups, as remembered where a group has no nodes, and cosines to them.

    The latter are (N, 2): to the mean of the node's group, and the highest to another's.
    """
    head, y = model.head().cpu(), torch.from_numpy(groups)

    def parts() -> Iterator[tuple[Tensor, Tensor]]:
        # What the head reads is wide: never of all nodes at once.
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


MIN_NODES = 5  # of a class, or of half a class, that is compared
MIN_HALVED = 20  # nodes of a class that is looked at for halves
MAX_COMPARED = 600  # nodes of a class that are looked at
RESTARTS = 8  # of k-means
MIN_SELF = 1e-3  # self-likeness that a class has at least; whitened, of the mean of known ones
MIN_SPAN = 0.02  # between the likeness of one class and that of two
MIN_CONFUSED = 1e-4  # probability of the other class, below which it says no more


@dataclass(frozen=True, eq=False)
class MergeSplit:
    """How likely classes are one, or two, in the order of `model.classes`.

    Attributes:
        together: (C, C) the probability that a node of one class and a node of the other belong
            together; NaN for two known classes, for a class with itself and for one with hardly
            any node in the graph.
        two: (C,) the probability that a class is two: that most of one half of it is of another
            class than most of the other half. NaN where it has too few nodes.

    Examples:
        >>> import nodenova as nova
        >>> data = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> old, new, exam = nova.split(data, [0, 1])
        >>> model = nova.discover(nova.fit(old), new)
        >>> found = estimate_merge_split(model, *model.embed_and_predict(data.graph))
        >>> found.together.shape, bool(np.isnan(found.together[0, 1])), found.two.shape
        ((4, 4), True, (4,))
    """

    together: np.ndarray
    two: np.ndarray


def estimate_merge_split(model: Model, z: np.ndarray, p: np.ndarray) -> MergeSplit | None:
    """How alike the classes of a model are on the nodes of a graph.

    Args:
        model: Which.
        z: (N, hidden) and
        p: (N, C) what `model.embed_and_predict` gave.

    Returns:
        None for encoders that are trained: the weights were learnt on `prism` only.
    """
    if model.frozen_encoder().spec.trainable:
        return None
    found = evidence(model, z, p)
    return MergeSplit(_probability(found.pairs, PAIRS), _probability(found.halves, HALVES))


def _probability(features: np.ndarray, weights: tuple[float, ...]) -> np.ndarray:
    return np.asarray(expit(features @ np.array(weights[1:]) + weights[0]))


@dataclass(frozen=True, eq=False)
class Evidence:
    """What the probabilities are made of; NaN where nothing can be said.

    Attributes:
        pairs: (C, C, 3) the correlation of the means of two classes, whitened and freed of sampling
            noise (1: the same); the log of the probability that the model gives to the other one;
            1 if one of them is known.
        halves: (C, 3) how alike the two halves of a class are (1: as one class, 0: as two known
            classes on the mean); 1 if the class is known; the log of its size.
        half: (N,) which half of its class a node was put in, 0 or 1; -1 for nodes left out.
    """

    pairs: np.ndarray
    halves: np.ndarray
    half: np.ndarray


@torch.no_grad()
def evidence(model: Model, z: np.ndarray, p: np.ndarray) -> Evidence:
    """The evidence in nodes z (N, hidden), whose classes have the probabilities p (N, C)."""
    groups = p.argmax(axis=1)
    size = np.bincount(groups, minlength=p.shape[1])
    known = np.array([not c.is_new for c in model.classes])
    space = _Space.of(model)
    mean, own = space.remembered(model)
    typical = own[known].mean()
    halves, half = np.full((len(known), 3), np.nan), np.full(len(z), -1)
    apart = space.between_known(model)
    for c in np.flatnonzero(size >= MIN_NODES):
        some = _some(groups == c, MAX_COMPARED)
        u = space.u(z[some])
        if not known[c]:  # labelled nodes tell more of a known class than those put in it
            x = u @ space.white
            mean[c], own[c] = x.mean(axis=0), _self_likeness(x)
        part = _halved(model, z[some], model.classes[c].id) if size[c] >= MIN_HALVED else None
        if part is not None:
            between = _halves_alike(u[part == 0], u[part == 1], apart)
            halves[c] = between, known[c], np.log(size[c])
            half[some] = part
    root = np.sqrt(np.maximum(own, MIN_SELF * typical))
    correlation = np.clip(mean @ mean.T / np.outer(root, root), -2, 2)
    either, both = known[:, None] | known, known[:, None] & known
    pairs = np.stack([correlation, np.log(_confused(p, groups, size) + MIN_CONFUSED), either], 2)
    small = size < MIN_NODES
    pairs[both | small[:, None] | small | np.eye(len(known), dtype=bool)] = np.nan
    return Evidence(pairs, halves, half)


def _some(mine: np.ndarray, most: int) -> np.ndarray:
    """Numbers of nodes of a class, evenly spaced where they are too many."""
    ids = np.flatnonzero(mine)
    return ids[:: -(-len(ids) // most)]


def _halved(model: Model, z: np.ndarray, class_id: int) -> np.ndarray | None:
    """(n,) 0 or 1: nodes of a class in two parts, as a split finds them; None for a tiny part."""
    multirank, known = model.frozen_encoder().spec.multirank, model.memory.classes
    rows = torch.from_numpy(z).to(model.device)
    u = scaled_features(multirank, rows, model.num_columns + 2, known.view_scale, model.lda)
    if len(torch.unique(u, dim=0)) < 2:
        return None
    with repeatable(0, f"halves-{class_id}"):
        part = cluster(u, 2, RESTARTS).cpu().numpy()
    return part if np.bincount(part, minlength=2).min() >= MIN_NODES else None


def _halves_alike(one: np.ndarray, other: np.ndarray, apart: float) -> float:
    """How alike two groups of rows are, 0 to 1: 1 if as each is in itself, 0 if `apart`.

    In u as it is: whitening by a scatter that the class is part of would hide that it is two.
    """
    root = np.sqrt(np.prod([max(_self_likeness(rows), MIN_SELF) for rows in (one, other)]))
    alike = one.mean(axis=0) @ other.mean(axis=0)
    return float(np.clip((alike - apart) / max(root - apart, MIN_SPAN), 0, 1))


def _self_likeness(x: np.ndarray) -> float:
    """The mean inner product of two different rows."""
    total, n = x.sum(axis=0), len(x)
    return float((total @ total - (x**2).sum()) / (n * (n - 1)))


def _confused(p: np.ndarray, groups: np.ndarray, size: np.ndarray) -> np.ndarray:
    """(C, C) the mean probability of one class over nodes of the other, both ways."""
    mean = group_sums(p.astype(np.float64), groups, len(size)) / np.maximum(size, 1)[:, None]
    return np.asarray((mean + mean.T) / 2)


@dataclass(frozen=True, eq=False)
class _Space:
    """Where classes are round: u at the ranks in use, whitened by the covariance within classes."""

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
        """(columns of the head, D) means as the model remembers them, before whitening."""
        center = model.memory.classes.center[:, self.columns] * self.scale
        return center.double().cpu().numpy()

    def between_known(self, model: Model) -> float:
        """The mean inner product of nodes of two known classes; 0 where there is but one."""
        of = {c.id for c in model.classes if not c.is_new}
        known = np.array([c in of for c in model.column_class_ids])
        center = self._centers(model)[known]
        upper = np.triu_indices(len(center), 1)
        return float((center @ center.T)[upper].mean()) if len(center) > 1 else 0.0

    def remembered(self, model: Model) -> tuple[np.ndarray, np.ndarray]:
        """(C, D) means of the classes as the model remembers them, and their self-likeness."""
        known, mean = model.memory.classes, self._centers(model) @ self.white
        white = torch.from_numpy(self.white).to(self.scale.device)
        own = self_likeness(known, self.columns, self.scale, white, mean)
        count = known.nodes.double().cpu().numpy()
        of = np.array(model.column_class_ids)
        whole, alike = [], []
        for c in model.classes:  # a merged class has several columns: they count by their nodes
            rows = np.flatnonzero(of == c.id)
            share = count[rows] / count[rows].sum()
            whole.append(share @ mean[rows])
            noise = share**2 @ ((mean[rows] ** 2).sum(axis=1) - own[rows])
            alike.append(whole[-1] @ whole[-1] - noise)
        return np.stack(whole), np.array(alike)
