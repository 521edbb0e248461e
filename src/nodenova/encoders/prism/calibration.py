"""What phase 1 learns from pairs of labelled nodes: the weights of views and a temperature."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import minimize
from torch import Tensor

from nodenova.encoders.prism.lda import LDASettings, lda_head
from nodenova.nn.multirank import MultiRank
from nodenova.nn.statistics import ClassStatistics

FOLDS = 4
TEMPERATURES = torch.logspace(math.log10(3), 2, 36).tolist()  # candidates
TEMPERATURE = 24.0  # where there are too few nodes to calibrate
# Penalty that draws view weights to their prior, divided by the squared number of classes.
VIEW_WEIGHT_L2 = 0.16
MAX_HELD_OUT = 5000  # nodes on which the temperature is calibrated
MAX_COMPARED = 1000  # nodes that are compared in pairs


def learn_view_scale(
    multirank: MultiRank,
    z: Tensor,
    y: Tensor,
    num_classes: int,
    prior_weight: Sequence[float],
    lda: LDASettings,
) -> Tensor:
    """(views,) roots of the view weights, by logistic regression on pairs of nodes z (n, hidden).

        P(same class) = sigmoid(sum_v w_v s_v + b),  w_v >= 0,
        s_v the cosine of the two nodes in view v

    Pairs within and between classes have the same total weight; the mean weight is 1. The
    fewer classes there are, the closer the weights stay to `prior_weight`.
    """
    expected = np.asarray(prior_weight)
    chosen = torch.argsort(y, stable=True)[:: -(-len(y) // MAX_COMPARED)]  # from every class
    pair = np.triu_indices(len(chosen), 1)
    same = (y[chosen][:, None] == y[chosen]).cpu().numpy()[pair]
    if multirank.views == 1 or same.all() or not same.any():
        return torch.from_numpy((expected / expected.mean()) ** 0.5).to(z)
    used = lda.ranks_for(multirank, num_classes)
    views = used(z[chosen]).double().chunk(multirank.views, dim=1)
    per_view = [(view @ view.t() / len(used.ranks)).cpu().numpy()[pair] for view in views]
    cosine = np.stack(per_view) * expected[:, None]
    sign = np.where(same, 1.0, -1.0)
    share = np.where(same, 0.5 / same.sum(), 0.5 / (~same).sum())

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        weight, bias = parameters[:-1], parameters[-1]  # in multiples of the prior
        margin, off = sign * (weight @ cosine + bias), weight - weight.mean()
        slope = -sign * share * np.exp(-np.logaddexp(0, margin))
        pull = VIEW_WEIGHT_L2 / num_classes**2
        value = share @ np.logaddexp(0, -margin) + pull * off @ off
        return float(value), np.append(cosine @ slope + 2 * pull * off, slope.sum())

    bounds = [(0, None)] * multirank.views + [(None, None)]
    start = np.append(np.ones(multirank.views), 0.0)
    weight = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x[:-1]
    weight = weight * expected if weight.any() else expected
    return torch.from_numpy((weight / weight.mean()) ** 0.5).to(z)


def calibrate_temperature(
    multirank: MultiRank,
    z: Tensor,
    y: Tensor,
    num_classes: int,
    view_scale: Tensor,
    lda: LDASettings,
) -> float:
    """The temperature with the highest likelihood of held-out nodes z (n, hidden), y, four-fold.

    It holds for these `lda` settings only; TEMPERATURE if a class has fewer than four nodes.
    """
    if num_classes < 2 or int(torch.bincount(y, minlength=num_classes).min()) < FOLDS:
        return TEMPERATURE
    most = max(MAX_HELD_OUT // num_classes, FOLDS)
    first = [torch.nonzero(y == c).flatten()[:most] for c in range(num_classes)]
    chosen = torch.cat(first).sort().values
    z, y = z[chosen], y[chosen]
    u = multirank(z)
    # Dealt class by class, so that every fold has nodes of every class.
    fold = torch.empty_like(y)
    fold[torch.argsort(y, stable=True)] = torch.arange(len(y), device=y.device) % FOLDS
    logits = torch.empty(len(y), num_classes, dtype=z.dtype, device=z.device)
    for part in range(FOLDS):
        others = fold != part
        rest = ClassStatistics.estimate(u[others], y[others], num_classes, multirank.views)
        rest = rest.with_view_scale(view_scale)
        head = lda_head(multirank, rest, rest, 1.0, lda)
        logits[~others] = head(z[~others]).detach()
    return min(TEMPERATURES, key=lambda t: float(F.cross_entropy(logits / t, y)))
