"""Classifying and discovering with class statistics alone: what Prism does, for whoever builds on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.heads import LadderHead
from nodenova.prototypes import Prototypes, ladder, rung_columns

RANKS = (1.0, 8.0)  # ranks to work at, in multiples of the number of classes
PRIOR = 500.0  # the identity counts as this many nodes in the covariance
FOLDS = 4
TEMPERATURES = torch.logspace(math.log10(3), 2, 36).tolist()  # tried for calibration
TEMPERATURE = 24.0  # when there are too few nodes to try any


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
    """The linear classifier of `classes`, with the covariance within those that `scatter` is of."""
    n, device = len(classes.centre), classes.centre.device
    rungs = nearest_rungs(spec.rungs, [multiple * n for multiple in ranks])
    columns = rung_columns(spec.views, spec.rungs, rungs).to(device)
    head = LadderHead(spec.views, spec.view_size, rungs, n, temperature).to(device)
    return head.set_gaussian(classes.centre[:, columns], scatter.covariance(columns, prior))


def calibrated_temperature(spec: Spec, z: Tensor, y: Tensor, num_classes: int) -> float:
    """The temperature at which held-out nodes among (z, y) are given their own classes with the highest likelihood.

    Each of four parts is classified by the statistics of the others. Needs four nodes of every class.
    """
    if num_classes < 2 or int(torch.bincount(y, minlength=num_classes).min()) < FOLDS:
        return TEMPERATURE
    # Dealt out class by class, so that every part has nodes of every class.
    fold = torch.empty_like(y)
    fold[torch.argsort(y, stable=True)] = torch.arange(len(y), device=y.device) % FOLDS
    logits = torch.empty(len(y), num_classes, dtype=z.dtype, device=z.device)
    for part in range(FOLDS):
        rest = Prototypes.of(z[fold != part], y[fold != part], num_classes, spec.view_size, spec.rungs)
        logits[fold == part] = gaussian_head(spec, rest, rest, temperature=1.0)(z[fold == part]).detach()
    return min(TEMPERATURES, key=lambda t: float(F.cross_entropy(logits / t, y)))


def ladder_at(spec: Spec, z: Tensor, num_classes: int, ranks: Sequence[float] = RANKS) -> Tensor:
    """z as distances are taken on it when there are so many classes."""
    return ladder(z, spec.view_size, nearest_rungs(spec.rungs, [multiple * num_classes for multiple in ranks]))
