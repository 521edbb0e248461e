"""One linear classifier for known and new classes: shrinkage LDA, consensus, ridge refit.

`fit_joint_classifier` takes a `Grouping` of unlabelled nodes: `strict_grouping`, where all of them
are new, or `nodenova.open_world.mixed.mixed_grouping`, where some are of known classes. Phase 1
uses the same `lda_head`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import minimize_scalar
from torch import Tensor

from nodenova.graph import Graph
from nodenova.nn.class_memory import Memory
from nodenova.nn.heads import UnitLinearHead
from nodenova.nn.kmeans import spherical_kmeans, subsampled_kmeans
from nodenova.nn.multirank import MultiRank
from nodenova.nn.numerics import solve
from nodenova.nn.seeding import fixed_sample, sample
from nodenova.nn.statistics import ClassStatistics, means
from nodenova.settings import check_settings, setting

NOISE = 1.0  # share of the noise of known means that is taken off
SAME_CLASS = 0.5  # Jaccard index from which on two groups are the same class
RIDGE = 3.0  # weight of the ridge penalty, in nodes
RESAMPLES = 12  # resampled groupings that are averaged
MAX_SLOPE = 100.0  # upper bound of tau
MAX_SLOPE_NODES = 5000  # nodes that tau is fitted on
MAX_RESAMPLED = 5000  # unlabelled nodes in resampled groupings
MAX_REFIT = 50_000  # visible nodes that the classifier is refitted on
CHUNK = 16_384  # nodes whose multi-rank features are in memory at a time


@dataclass(frozen=True)
class LDASettings:
    """Settings of the comparison of classes, the same in both phases.

    The temperature of phase 1 is calibrated for them.

    Attributes:
        rank_low: Lower rank, in multiples of the number of classes.
        rank_high: Higher rank, in multiples of the number of classes.
        prior: Weight of the identity in the covariance, in nodes.

    Raises:
        SettingError: If one of them is not positive.
    """

    rank_low: float = setting(1.0, above=0)
    rank_high: float = setting(8.0, above=0)
    prior: float = setting(500.0, above=0)

    def __post_init__(self) -> None:
        check_settings(self)

    @classmethod
    def of_stages(cls, stages: Iterable[Mapping[str, object]]) -> LDASettings:
        """Return the latest value of each setting over the settings of some stages."""
        latest: dict[str, Any] = {}
        for settings in stages:
            latest |= {f.name: settings[f.name] for f in fields(cls) if f.name in settings}
        return cls(**latest)

    def ranks_for(self, multirank: MultiRank, num_classes: int) -> MultiRank:
        """Return the two ranks at which `num_classes` classes are compared.

        Examples:
            >>> LDASettings().ranks_for(MultiRank(1, 64, (8, 16, 32, 64)), num_classes=7).ranks
            (8, 64)
        """
        return multirank.nearest([self.rank_low * num_classes, self.rank_high * num_classes])


class JointFit(NamedTuple):
    """Result of `fit_joint_classifier`."""

    memory: Memory  # statistics of all classes, the new ones last
    head: UnitLinearHead  # classifier for all classes
    # for each new class, in how many resampled groupings it recurs, and of how many
    times_found: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Grouping:
    """Unlabelled nodes in groups, each a new class, and how to group them again."""

    used: MultiRank  # ranks in use
    known: ClassStatistics  # of the known classes at these ranks
    z: Tensor  # (n, hidden) the nodes
    groups: Tensor  # (n,) 0..num_new-1, or -1 for a node of a known class
    num_new: int
    # (rows (m,), times) -> at most `times` resampled groupings (m,) of these rows
    regroup: Callable[[Tensor, int], Iterator[Tensor]]
    # Whether the head of `groups` is built before resampling. Building a head draws from the
    # generator that resampling draws from, so the order is part of the result.
    head_first: bool = False


def scaled_features(
    multirank: MultiRank, z: Tensor, num_classes: int, view_scale: Tensor, lda: LDASettings
) -> Tensor:
    """(n, D) u: multi-rank features of z (n, hidden), each view times its scale."""
    used = lda.ranks_for(multirank, num_classes)
    return used(z) * used.per_column(view_scale)


def lda_head(
    multirank: MultiRank,
    classes: ClassStatistics,
    scatter: ClassStatistics,
    temperature: float,
    lda: LDASettings,
    used: MultiRank | None = None,
) -> UnitLinearHead:
    """Return the linear discriminants of `classes`, the scale of the views folded in.

    logit_c = (u . Sigma^-1 mu_c - mu_c . Sigma^-1 mu_c / 2) / temperature, Sigma the shrunk
    covariance of `scatter`; at the ranks `used`, by default those for this number of classes.
    """
    n, device = len(classes.center), classes.center.device
    used = lda.ranks_for(multirank, n) if used is None else used
    columns = multirank.columns_of(used).to(device)
    head = UnitLinearHead(used, n, temperature).to(device)
    scale = used.per_column(classes.view_scale)
    center = classes.center[:, columns] * scale
    covariance = scatter.covariance(columns, lda.prior, scale)
    right = center.t().double()
    weight = solve(covariance.double(), right, "the covariance within classes").t()  # (C, D)
    with torch.no_grad():
        head.linear.weight.copy_(weight * scale)
        head.linear.bias.copy_(-0.5 * (weight * center).sum(dim=1))
    return head


def strict_grouping(
    multirank: MultiRank,
    known: ClassStatistics,
    z: Tensor,
    num_new: int,
    lda: LDASettings,
    group: Callable[[Tensor, int], Tensor] = spherical_kmeans,
) -> Grouping:
    """Group nodes z (n, hidden), all of them new, by `group`: (u (n, D), k) -> (n,) groups."""
    used = lda.ranks_for(multirank, len(known.center) + num_new)
    small = known.at(multirank.columns_of(used).to(z.device))
    u = used(z) * used.per_column(known.view_scale)
    groups = group(u, num_new)

    def regroup(rows: Tensor, times: int) -> Iterator[Tensor]:
        return iter(subsampled_kmeans(u[rows], groups[rows], num_new, times))

    return Grouping(used, small, z, groups, num_new, regroup, head_first=True)


def fit_joint_classifier(
    multirank: MultiRank,
    old: Memory,
    grouping: Grouping,
    z: Tensor,
    lda: LDASettings,
    *,
    pool: bool = True,
    resamples: int = RESAMPLES,
    ridge: float | None = RIDGE,
) -> JointFit:
    """Fit one classifier for known classes and the groups of a grouping.

    Groups -> statistics -> resampled groupings -> consensus of their heads on the visible nodes z
    (N, hidden) -> ridge refit. `pool` adds the scatter of the groups to that of the known classes.
    With `ridge` None, the head of the one grouping is returned.
    """
    # Remembered at all ranks, for later stages; heads are on the ranks in use.
    new = Memory.of(*_members(grouping.z, grouping.groups), grouping.num_new, multirank)
    head, times = fit_head(grouping, z, lda, pool=pool, resamples=resamples, ridge=ridge)
    return JointFit(old.append(new), head, times)


def fit_head(
    grouping: Grouping,
    z: Tensor,
    lda: LDASettings,
    *,
    pool: bool = True,
    resamples: int = RESAMPLES,
    ridge: float | None = RIDGE,
    share_scatter: bool = False,
) -> tuple[UnitLinearHead, tuple[tuple[int, int], ...]]:
    """The head of `fit_joint_classifier`, and how often each group was found again.

    With `share_scatter` resampled groupings have means of their own, and the scatter of the first
    grouping: most of the time of a head is that of its scatter.
    """
    used, known, groups, num_new = grouping.used, grouping.known, grouping.groups, grouping.num_new

    def head_of(
        unit: Tensor, groups: Tensor, first: ClassStatistics | None = None
    ) -> UnitLinearHead:
        rows, of = _members(unit, groups)
        if first is None:
            new = ClassStatistics.estimate(rows, of, num_new, used.views)
        else:
            new = replace(first, center=means(rows, of, num_new))
        both = known.append(new)
        head = lda_head(used, both, both if pool else known, float(known.temperature), lda, used)
        with torch.no_grad():
            head.linear.bias[: len(correction)] += correction
        return head

    correction = _noise_of_means(used, known, lda)
    unit = used(grouping.z)
    head = head_of(unit, groups) if grouping.head_first or ridge is None else None
    if ridge is None:
        assert head is not None
        return head, ((0, 0),) * num_new
    rows = sample(len(unit), MAX_RESAMPLED, unit.device)
    part, first = unit[rows], None
    if share_scatter:
        first = ClassStatistics.estimate(*_members(part, groups[rows]), num_new, used.views)
    others, heads = [], []
    for other in grouping.regroup(rows, resamples):
        others.append(other.cpu().numpy())
        heads.append(head_of(part, other, first))
    heads = heads or [head or head_of(unit, groups)]
    times = count_times_found(groups[rows].cpu().numpy(), others, num_new)
    return refit_on_all_nodes(heads, z, known.view_scale, ridge), times


def _noise_of_means(used: MultiRank, known: ClassStatistics, lda: LDASettings) -> Tensor:
    """(o,) how far noise of the means lowers the logits of known classes: tr(Sigma^-1 S) / 2n_c.

    The mean of n_c labelled nodes is longer than the true one, the more the fewer they are, so that
    unlabelled nodes of the class would be taken for new ones. Groups of new classes need no
    correction: their nodes are those that the mean is of.
    """
    scale = used.per_column(known.view_scale)
    every = torch.ones(len(scale), dtype=torch.bool, device=scale.device)
    within = known.covariance(every, 0.0, scale)
    covariance = known.covariance(every, lda.prior, scale)
    noise = solve(covariance, within, "the covariance within classes").trace()
    # The mean of a class that has no nodes any more is not one of these nodes.
    each = torch.where(known.nodes >= 1, noise / (2 * known.nodes.clamp_min(1)), 0.0)
    return NOISE * each.to(known.center)


def _members(rows: Tensor, groups: Tensor) -> tuple[Tensor, Tensor]:
    """Rows that are in a group, and their groups."""
    inside = groups >= 0
    return (rows, groups) if bool(inside.all()) else (rows[inside], groups[inside])


def count_times_found(
    groups: np.ndarray, others: Sequence[np.ndarray], num_new: int
) -> tuple[tuple[int, int], ...]:
    """For each group, in how many other groupings (n,) it recurs, and of how many.

    It recurs where the Jaccard index of its nodes in both groupings is at least SAME_CLASS.
    """
    times = np.zeros(num_new, dtype=np.int64)
    for other in others:
        for number in range(num_new):
            one, two = groups == number, other == number
            times[number] += (one & two).sum() >= SAME_CLASS * max((one | two).sum(), 1)
    return tuple((int(count), len(others)) for count in times)


def refit_rows(graph: Graph) -> Tensor | slice:
    """Nodes on which a classifier is refitted: all, or MAX_REFIT of them."""
    return fixed_sample(graph.num_nodes, MAX_REFIT)


@torch.no_grad()
def refit_on_all_nodes(
    heads: Sequence[UnitLinearHead], z: Tensor, view_scale: Tensor, ridge: float = RIDGE
) -> UnitLinearHead:
    """Ridge refit: regress the mean probabilities of `heads` on the visible nodes z (N, hidden).

        W    = argmin sum_i |p_i - p' - W u_i|^2 + ridge t |W|^2,
               p the mean softmax, p' its mean, t = mean |u|^2
        h(z) = tau (W u + p'),  tau >= 0 such that softmax(h) is nearest to p

    A self-distillation: the mean of a few nodes lies partly in directions in which hardly any node
    of the graph lies, and those get no weight here.
    """
    head = heads[0]

    def read(z: Tensor) -> tuple[Tensor, Tensor]:
        """Unscaled u of nodes, and the mean probabilities of the heads."""
        unit = head.multirank(z)
        p = torch.zeros(len(z), head.num_classes, device=z.device)
        for h in heads:
            p += (h.linear(unit) / h.temperature).softmax(dim=1) / len(heads)
        return unit, p

    scale = head.multirank.per_column(view_scale)
    gram = torch.zeros(len(scale), len(scale), dtype=torch.float64, device=z.device)
    product = gram.new_zeros(len(scale), head.num_classes)  # of u and p
    sum_u, sum_p = product.sum(dim=1), product.sum(dim=0)
    for part in torch.split(z, CHUNK):
        unit, p = read(part)
        u = unit * scale
        gram += u.t() @ u
        product += u.t() @ p
        sum_u += u.sum(dim=0)
        sum_p += p.sum(dim=0)
    mean = sum_p / len(z)
    penalty = ridge * max(float(gram.trace()) / len(z), 1e-12)
    penalized = gram + penalty * torch.eye(len(scale)).to(gram)
    right = product - torch.outer(sum_u, mean)
    weight = solve(penalized, right, "the scatter of the visible nodes")
    refitted = copy.deepcopy(head)
    refitted.linear.weight.copy_(weight.t() * scale)
    refitted.linear.bias.copy_(mean)
    unit, p = read(z[fixed_sample(len(z), MAX_SLOPE_NODES)])
    h = refitted.linear(unit)

    def loss(tau: float) -> float:
        return float(F.cross_entropy(tau * h, p))

    tau = minimize_scalar(loss, bounds=(0.0, MAX_SLOPE), method="bounded").x
    refitted.linear.weight.mul_(tau * head.temperature)
    refitted.linear.bias.mul_(tau * head.temperature)
    return refitted
