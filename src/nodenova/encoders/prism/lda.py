"""Shrinkage LDA over old and discovered classes, consensus over resampled groupings, ridge refit.

What Prism does in phase 2, for whoever builds on it. Phase 1 uses the same `lda_head`, and what it
is to be calibrated with is in `calibration`.

How steadily new classes are found: in how many groupings each is met again.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
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
from nodenova.nn.seeding import fixed_sample, sample
from nodenova.nn.statistics import ClassStatistics
from nodenova.settings import check_settings, setting

SAME = 0.5  # the Jaccard index from which on two groups are the same class


class JointFit(NamedTuple):
    """What is found among unlabelled nodes.

    Attributes:
        memory: What is known of all classes, those found behind the others.
        head: One classifier for all of them.
        times_found: For each class that was found, in how many groupings it was met again, and how
            many there were.
    """

    memory: Memory
    head: UnitLinearHead
    times_found: tuple[tuple[int, int], ...]


def times_found(
    groups: np.ndarray, others: Sequence[np.ndarray], num_new: int
) -> tuple[tuple[int, int], ...]:
    """For each group, in how many other groupings it is met again, and how many there are.

    It is met where at least half of the nodes that are in it in either grouping are in it in both.

    Args:
        groups: (n,) numbers of groups; other numbers are of no group.
        others: (n,) each, numbered alike.
        num_new: How many groups.

    Examples:
        >>> times_found(np.array([0, 0, 1, 1]), [np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1])], 2)
        ((2, 2), (2, 2))
        >>> times_found(np.array([0, 0, 0, 1]), [np.array([0, 1, 1, 1])], 2)
        ((0, 1), (0, 1))
    """
    met = np.zeros(num_new, dtype=np.int64)
    for other in others:
        for number in range(num_new):
            one, two = groups == number, other == number
            met[number] += (one & two).sum() >= SAME * max((one | two).sum(), 1)
    return tuple((int(times), len(others)) for times in met)


RIDGE = 3.0  # what holds the refitted classifier back counts as this many nodes
RESAMPLES = 12  # of the new nodes, over whose groupings it is averaged what they say of all
MAX_SLOPE = 100.0  # tau of a refitted classifier
MAX_SLOPE_NODES = 5000  # nodes by which tau is found
MAX_RESAMPLED = 5000  # new nodes that are grouped again
MAX_REFIT = 50_000  # visible nodes on which the classifier is fitted anew
CHUNK = 16_384  # nodes whose multi-rank features are held in memory


@dataclass(frozen=True)
class LDASettings:
    """How classes are compared, in both phases alike.

    The temperature of phase 1 holds for these only.

    Attributes:
        rank_low: The lower rank, in multiples of the number of classes.
        rank_high: The higher rank, in multiples of the number of classes.
        prior: The identity counts as this many nodes in the covariance.

    Raises:
        SettingError: One of them is not positive.
    """

    rank_low: float = setting(1.0, above=0)
    rank_high: float = setting(8.0, above=0)
    prior: float = setting(500.0, above=0)

    def __post_init__(self) -> None:
        check_settings(self)

    @classmethod
    def of_stages(cls, stages: Iterable[Mapping[str, object]]) -> LDASettings:
        """What the latest of some stages' settings says; what none of them says is by default."""
        said: dict[str, Any] = {}
        for settings in stages:
            said |= {f.name: settings[f.name] for f in fields(cls) if f.name in settings}
        return cls(**said)

    def ranks_for(self, multirank: MultiRank, num_classes: int) -> MultiRank:
        """At which ranks so many classes are told apart.

        Examples:
            >>> LDASettings().ranks_for(MultiRank(1, 64, (8, 16, 32, 64)), num_classes=7).ranks
            (8, 64)
        """
        return multirank.nearest([self.rank_low * num_classes, self.rank_high * num_classes])


def scaled_features(
    multirank: MultiRank, z: Tensor, num_classes: int, view_scale: Tensor, lda: LDASettings
) -> Tensor:
    """u: z as distances are taken on it when there are so many classes.

    Args:
        multirank: How z is read.
        z: (n, hidden).
        num_classes: Old and new ones.
        view_scale: (views,) what each view is multiplied by.
        lda: At which ranks.

    Returns:
        (n, D).
    """
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
    """Shrinkage LDA: the linear discriminants of `classes`.

        logit_c = (u . Sigma^-1 mu_c - mu_c . Sigma^-1 mu_c / 2) / temperature

    The scale of the views is folded into the weights.

    Args:
        multirank: How z is read.
        classes: mu_c of each class, and the scale of the views.
        scatter: Sigma is the covariance within the classes that these statistics are of.
        temperature: Of the head.
        lda: At which ranks, and how far Sigma is shrunk.
        used: The ranks, where they are known already.

    Returns:
        A head on the ranks in use.
    """
    n, device = len(classes.center), classes.center.device
    used = lda.ranks_for(multirank, n) if used is None else used
    columns = multirank.columns_of(used).to(device)
    head = UnitLinearHead(used, n, temperature).to(device)
    scale = used.per_column(classes.view_scale)
    center = classes.center[:, columns] * scale
    covariance = scatter.covariance(columns, lda.prior, scale)
    weight = torch.linalg.solve(covariance.double(), center.t().double()).t()  # (C, D)
    with torch.no_grad():
        head.linear.weight.copy_(weight * scale)
        head.linear.bias.copy_(-0.5 * (weight * center).sum(dim=1))
    return head


def fit_joint_classifier(
    multirank: MultiRank,
    old: Memory,
    z: Tensor,
    z_new: Tensor,
    num_new: int,
    *,
    group: Callable[[Tensor, int], Tensor] = spherical_kmeans,
    lda: LDASettings | None = None,
    pool: bool = True,
    resamples: int = RESAMPLES,
    ridge: float | None = RIDGE,
) -> JointFit:
    """Find new classes among the nodes z_new, and one classifier for old and new ones.

    Groupings are compared at the ranks in use; what is remembered for later stages, at all.

    Args:
        multirank: How z is read.
        old: What is remembered of the old classes.
        z: (N, hidden) of visible nodes.
        z_new: (n, hidden) of the new ones.
        num_new: How many classes they are of.
        group: (u (n, D), k) -> (n,) how they are grouped.
        lda: As phase 1 was calibrated; the defaults unless given.
        pool: Whether the scatter of the new nodes counts too.
        resamples: How often parts of them are grouped again, for the consensus of
            `refit_on_all_nodes`.
        ridge: See there; None leaves the classifier as the one grouping makes it.

    Returns:
        What is known of all classes, the classifier, and how steadily classes are found.
    """
    lda = lda or LDASettings()
    n = len(old) + num_new

    used = lda.ranks_for(multirank, n)
    known = old.classes.at(multirank.columns_of(used).to(z.device))

    def head_of(unit: Tensor, groups: Tensor) -> UnitLinearHead:
        new = ClassStatistics.estimate(unit, groups, num_new, used.views)
        both = known.append(new)
        return lda_head(used, both, both if pool else known, float(known.temperature), lda, used)

    unit = used(z_new)
    scale = used.per_column(known.view_scale)
    groups = group(unit * scale, num_new)
    both = old.append(Memory.of(z_new, groups, num_new, multirank))
    # Before nodes are drawn anew: a fresh head draws from the same generator, and other draws are
    # other groupings.
    head = head_of(unit, groups)
    if ridge is None:
        return JointFit(both, head, ((0, 0),) * num_new)
    some = sample(len(unit), MAX_RESAMPLED, unit.device)
    part = unit[some]
    others = subsampled_kmeans(part * scale, groups[some], num_new, resamples)
    heads = [head_of(part, other) for other in others] or [head]
    found = times_found(*_arrays(groups[some], others), num_new)
    return JointFit(both, refit_on_all_nodes(heads, z, known.view_scale, ridge), found)


def _arrays(groups: Tensor, others: Sequence[Tensor]) -> tuple[np.ndarray, list[np.ndarray]]:
    return groups.cpu().numpy(), [other.cpu().numpy() for other in others]


def refit_rows(graph: Graph) -> Tensor | slice:
    """The nodes on which a classifier is fitted anew: all, or MAX_REFIT of them.

    Examples:
        >>> import nodenova as nova
        >>> refit_rows(nova.synthetic(nodes=60, classes=3).graph)
        slice(None, None, None)
    """
    return fixed_sample(graph.num_nodes, MAX_REFIT)


@torch.no_grad()
def refit_on_all_nodes(
    heads: Sequence[UnitLinearHead], z: Tensor, view_scale: Tensor, ridge: float = RIDGE
) -> UnitLinearHead:
    """Ridge refit: the regression of what `heads` say, on the mean, of all nodes z.

        W    = argmin sum_i |p_i - p' - W u_i|^2 + ridge t |W|^2,
               p the mean softmax, p' its mean, t = mean |u|^2
        h(z) = tau (W u + p'),  tau >= 0: softmax(h) as near to p as can be

    A self-distillation. The mean of a few nodes lies partly in directions in which hardly any node
    of the graph does; those get no weight here.

    Args:
        heads: One or more, on the same ranks.
        z: (N, hidden) of all visible nodes.
        view_scale: (views,) what each view is multiplied by.
        ridge: What holds W back counts as this many nodes.

    Returns:
        One head like the first of them.
    """
    head = heads[0]

    def read(z: Tensor) -> tuple[Tensor, Tensor]:
        """u of nodes without its scale, and what the heads say of them."""
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
    hold = ridge * max(float(gram.trace()) / len(z), 1e-12)
    held = gram + hold * torch.eye(len(scale)).to(gram)
    weight = torch.linalg.solve(held, product - torch.outer(sum_u, mean))
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
