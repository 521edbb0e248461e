"""Classifying and discovering with class statistics alone: what Prism does, for whoever builds on it."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import minimize, minimize_scalar
from torch import Tensor

from nodenova.nn.heads import LadderHead
from nodenova.nn.kmeans import cluster_directions, regroup
from nodenova.nn.seeding import sample
from nodenova.nn.statistics import Prototypes, ladder, rung_columns

RANKS = (1.0, 8.0)  # ranks to work at, in multiples of the number of classes
PRIOR = 500.0  # the identity counts as this many nodes in the covariance
RIDGE = 3.0  # what holds a relearnt classifier back counts as this many nodes
GROUPINGS = 12  # of new nodes, over which it is averaged what they say of all
FOLDS = 4
TEMPERATURES = torch.logspace(math.log10(3), 2, 36).tolist()  # tried for calibration
TEMPERATURE = 24.0  # when there are too few nodes to try any
EVENNESS = 0.16  # how strongly weights of views are drawn to what is expected, over the square of the number of classes
MOST_HELD_OUT = 5000  # nodes among which the temperature is found
MOST_COMPARED = 1000  # nodes that are compared pair by pair
STEEPEST = 100.0  # tau of a relearnt classifier at the most
MOST_REGROUPED = 5000  # new nodes that are grouped again
AT_ONCE = 65536  # nodes whose ladder is held in memory


class Spec(Protocol):
    """What must be known of an encoder: z is `views` blocks of `view_size` columns, remembered at the ranks `rungs`."""

    @property
    def views(self) -> int: ...
    @property
    def view_size(self) -> int: ...
    @property
    def rungs(self) -> tuple[int, ...]: ...


def nearest_rungs(known: Sequence[int], wanted: Sequence[float]) -> tuple[int, ...]:
    """The remembered ranks nearest, as ratios, to the wanted ones."""
    return tuple(sorted({min(known, key=lambda rung: abs(math.log(rung / rank))) for rank in wanted}))


def gaussian_head(
    spec: Spec,
    classes: Prototypes,
    scatter: Prototypes,
    temperature: float,
    ranks: Sequence[float] = RANKS,
    prior: float = PRIOR,
) -> LadderHead:
    """The linear classifier of `classes`, on their scale, with the covariance within those that `scatter` is of."""
    n, device = len(classes.centre), classes.centre.device
    rungs = nearest_rungs(spec.rungs, [multiple * n for multiple in ranks])
    columns = rung_columns(spec.views, spec.rungs, rungs).to(device)
    head = LadderHead(spec.views, spec.view_size, rungs, n, temperature).to(device)
    scale = classes.column_scale(rungs)
    return head.set_gaussian(classes.centre[:, columns] * scale, scatter.covariance(columns, prior, scale), scale)


def found(
    spec: Spec,
    old: Prototypes,
    z: Tensor,
    ids: Tensor,
    num_new: int,
    *,
    group: Callable[[Tensor, int], Tensor] = cluster_directions,
    ranks: Sequence[float] = RANKS,
    prior: float = PRIOR,
    pool: bool = True,
    groupings: int = GROUPINGS,
    ridge: float | None = RIDGE,
) -> tuple[Prototypes, LadderHead]:
    """What is known of the old classes and of those found among the nodes `ids` of z, and one classifier for all of them.

    pool: the scatter of the new nodes counts too. groupings: how often they are grouped again, for `relearnt`; a ridge of
    None leaves the classifier as the one grouping makes it.
    """
    n = len(old.centre) + num_new

    def joined(z_u: Tensor, groups: Tensor) -> tuple[Prototypes, LadderHead]:
        both = old.followed_by(Prototypes.of(z_u, groups, num_new, spec.view_size, spec.rungs))
        return both, gaussian_head(spec, both, both if pool else old, float(old.temperature), ranks, prior)

    z_u = z[ids]
    u = ladder_at(spec, z_u, n, old.view_scale, ranks)
    groups = group(u, num_new)
    both, head = joined(z_u, groups)
    if ridge is None:
        return both, head
    some = sample(len(u), MOST_REGROUPED, u.device)
    heads = [joined(z_u[some], other)[1] for other in regroup(u[some], groups[some], num_new, groupings)]
    return both, relearnt(heads or [head], z, old.view_scale, ridge)


@torch.no_grad()
def relearnt(heads: Sequence[LadderHead], z: Tensor, view_scale: Tensor, ridge: float = RIDGE) -> LadderHead:
    """The linear classifier nearest to what `heads` say of all nodes z, held back where the nodes do not bear it out.

        W    = argmin sum_i |p_i - p' - W u_i|^2 + ridge t |W|^2    p: mean softmax of heads, p' its mean, t = mean |u|^2
        h(z) = tau (W u + p')                                       tau >= 0: softmax(h) as near to p as it can be

    The mean of a few nodes lies partly in directions in which hardly any node of the graph does; those get no weight here.
    """
    head = heads[0]

    def read(z: Tensor) -> tuple[Tensor, Tensor]:
        """The ladder of nodes, and what the heads say of them."""
        unit = ladder(z, head.view_size, head.rungs)
        p = torch.zeros(len(z), head.num_classes, device=z.device)
        for h in heads:
            p += (h.linear(unit) / h.temperature).softmax(dim=1) / len(heads)
        return unit, p

    scale = view_scale.repeat_interleave(sum(head.rungs))
    gram = torch.zeros(len(scale), len(scale), dtype=torch.float64, device=z.device)
    product = torch.zeros(len(scale), head.num_classes, dtype=torch.float64, device=z.device)  # of u and p
    sum_u, sum_p = product.sum(dim=1), product.sum(dim=0)
    for part in torch.split(z, AT_ONCE):
        unit, p = read(part)
        u = unit * scale
        gram += u.t() @ u
        product += u.t() @ p
        sum_u += u.sum(dim=0)
        sum_p += p.sum(dim=0)
    mean = sum_p / len(z)
    hold = ridge * max(float(gram.trace()) / len(z), 1e-12)
    weight = torch.linalg.solve(gram + hold * torch.eye(len(scale)).to(gram), product - torch.outer(sum_u, mean))
    student = copy.deepcopy(head)
    student.linear.weight.copy_(weight.t() * scale)
    student.linear.bias.copy_(mean)
    unit, p = read(z[:: -(-len(z) // MOST_HELD_OUT)])
    h = student.linear(unit)
    tau = minimize_scalar(lambda tau: float(F.cross_entropy(tau * h, p)), bounds=(0.0, STEEPEST), method="bounded").x
    student.linear.weight.mul_(tau * head.temperature)
    student.linear.bias.mul_(tau * head.temperature)
    return student


def learnt_view_scale(spec: Spec, z: Tensor, y: Tensor, num_classes: int, worth: Sequence[float]) -> Tensor:
    """(views,) how far each view tells whether two nodes are of one class: the root of its weight, the mean weight being 1.

        P(same class) = sigmoid(sum_v w_v s_v + b),  w_v >= 0,  s_v the cosine of the two nodes in view v, over its ranks

    Fitted to all pairs among (z, y), pairs within and between classes counting alike. What matters for comparing nodes of
    old classes matters for comparing nodes of new ones, if it is as little as a number a view; and the fewer classes there
    are, the less they tell of others: weights are then drawn more strongly to what views are `worth` before that.
    """
    expected = np.asarray(worth)
    some = torch.argsort(y, stable=True)[:: -(-len(y) // MOST_COMPARED)]  # of every class its share
    pair = np.triu_indices(len(some), 1)
    same = (y[some][:, None] == y[some]).cpu().numpy()[pair]
    if spec.views == 1 or same.all() or not same.any():
        return torch.from_numpy((expected / expected.mean()) ** 0.5).to(z)
    rungs = nearest_rungs(spec.rungs, [multiple * num_classes for multiple in RANKS])
    views = ladder(z[some], spec.view_size, rungs).double().chunk(spec.views, dim=1)
    likeness = np.stack([(view @ view.t() / len(rungs)).cpu().numpy()[pair] for view in views]) * expected[:, None]
    sign, share = np.where(same, 1.0, -1.0), np.where(same, 0.5 / same.sum(), 0.5 / (~same).sum())

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        weight, bias = parameters[:-1], parameters[-1]  # in multiples of what is expected
        margin, uneven = sign * (weight @ likeness + bias), weight - weight.mean()
        slope = -sign * share * np.exp(-np.logaddexp(0, margin))
        pull = EVENNESS / num_classes**2
        value = share @ np.logaddexp(0, -margin) + pull * uneven @ uneven
        return float(value), np.append(likeness @ slope + 2 * pull * uneven, slope.sum())

    bounds = [(0, None)] * spec.views + [(None, None)]
    weight = minimize(loss, np.append(np.ones(spec.views), 0.0), jac=True, method="L-BFGS-B", bounds=bounds).x[:-1]
    weight = weight * expected if weight.any() else expected
    return torch.from_numpy((weight / weight.mean()) ** 0.5).to(z)


def calibrated_temperature(spec: Spec, z: Tensor, y: Tensor, num_classes: int, view_scale: Tensor) -> float:
    """The temperature at which held-out nodes among (z, y) are given their own classes with the highest likelihood.

    Each of four parts is classified by the statistics of the others. Needs four nodes of every class; of many nodes, the
    first of every class are taken.
    """
    if num_classes < 2 or int(torch.bincount(y, minlength=num_classes).min()) < FOLDS:
        return TEMPERATURE
    most = max(MOST_HELD_OUT // num_classes, FOLDS)
    some = torch.cat([torch.nonzero(y == c).flatten()[:most] for c in range(num_classes)]).sort().values
    z, y = z[some], y[some]
    # Dealt out class by class, so that every part has nodes of every class.
    fold = torch.empty_like(y)
    fold[torch.argsort(y, stable=True)] = torch.arange(len(y), device=y.device) % FOLDS
    logits = torch.empty(len(y), num_classes, dtype=z.dtype, device=z.device)
    for part in range(FOLDS):
        rest = Prototypes.of(z[fold != part], y[fold != part], num_classes, spec.view_size, spec.rungs)
        rest = rest.with_view_scale(view_scale)
        logits[fold == part] = gaussian_head(spec, rest, rest, temperature=1.0)(z[fold == part]).detach()
    return min(TEMPERATURES, key=lambda t: float(F.cross_entropy(logits / t, y)))


def ladder_at(spec: Spec, z: Tensor, num_classes: int, view_scale: Tensor, ranks: Sequence[float] = RANKS) -> Tensor:
    """z as distances are taken on it when there are so many classes."""
    rungs = nearest_rungs(spec.rungs, [multiple * num_classes for multiple in ranks])
    return ladder(z, spec.view_size, rungs) * view_scale.repeat_interleave(sum(rungs))
