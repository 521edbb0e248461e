"""What phase 1 learns of comparing nodes from the labelled ones: view weights and a temperature."""

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
TEMPERATURES = torch.logspace(math.log10(3), 2, 36).tolist()  # tried for calibration
TEMPERATURE = 24.0  # when there are too few nodes to try any
# Pull of view weights to their prior, over the square of the number of classes.
VIEW_WEIGHT_L2 = 0.16
MAX_HELD_OUT = 5000  # nodes among which the temperature is found
MAX_COMPARED = 1000  # nodes that are compared pair by pair


def learn_view_scale(
    multirank: MultiRank,
    z: Tensor,
    y: Tensor,
    num_classes: int,
    prior_weight: Sequence[float],
    lda: LDASettings,
) -> Tensor:
    """Logistic regression on pairs: how far each view tells whether two nodes are of one class.

        P(same class) = sigmoid(sum_v w_v s_v + b),  w_v >= 0,
        s_v the cosine of the two nodes in view v

    On all pairs among (z, y), pairs within and between classes counting alike. What matters for
    comparing nodes of old classes matters for comparing nodes of new ones, if it is as little as
    one number for each view; and the fewer classes there are, the less they tell of others: weights
    are then drawn more strongly to `prior_weight`.

    Args:
        multirank: How z is read.
        z: (n, hidden) labelled nodes.
        y: (n,) their classes.
        num_classes: How many.
        prior_weight: One number a view.
        lda: At which ranks nodes are compared.

    Returns:
        (views,) the root of each weight, the mean weight being 1.
    """
    expected = np.asarray(prior_weight)
    some = torch.argsort(y, stable=True)[:: -(-len(y) // MAX_COMPARED)]  # of every class its share
    pair = np.triu_indices(len(some), 1)
    same = (y[some][:, None] == y[some]).cpu().numpy()[pair]
    if multirank.views == 1 or same.all() or not same.any():
        return torch.from_numpy((expected / expected.mean()) ** 0.5).to(z)
    used = lda.ranks_for(multirank, num_classes)
    views = used(z[some]).double().chunk(multirank.views, dim=1)
    cosines = [(view @ view.t() / len(used.ranks)).cpu().numpy()[pair] for view in views]
    likeness = np.stack(cosines) * expected[:, None]
    sign = np.where(same, 1.0, -1.0)
    share = np.where(same, 0.5 / same.sum(), 0.5 / (~same).sum())

    def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        weight, bias = parameters[:-1], parameters[-1]  # in multiples of what is expected
        margin, uneven = sign * (weight @ likeness + bias), weight - weight.mean()
        slope = -sign * share * np.exp(-np.logaddexp(0, margin))
        pull = VIEW_WEIGHT_L2 / num_classes**2
        value = share @ np.logaddexp(0, -margin) + pull * uneven @ uneven
        return float(value), np.append(likeness @ slope + 2 * pull * uneven, slope.sum())

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
    """Temperature calibration: where held-out nodes have the highest likelihood of their own class.

    Four-fold: each part is classified by the statistics of the others. Of many nodes, the first of
    every class are taken.

    Args:
        multirank: How z is read.
        z: (n, hidden) labelled nodes.
        y: (n,) their classes.
        num_classes: How many.
        view_scale: (views,) what each view is multiplied by.
        lda: By which classes are compared; the temperature holds for these only.

    Returns:
        The best of TEMPERATURES, or TEMPERATURE with fewer than four nodes of some class.
    """
    if num_classes < 2 or int(torch.bincount(y, minlength=num_classes).min()) < FOLDS:
        return TEMPERATURE
    most = max(MAX_HELD_OUT // num_classes, FOLDS)
    first = [torch.nonzero(y == c).flatten()[:most] for c in range(num_classes)]
    some = torch.cat(first).sort().values
    z, y = z[some], y[some]
    u = multirank(z)
    # Dealt out class by class, so that every part has nodes of every class.
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
