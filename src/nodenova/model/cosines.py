"""How near nodes are to the means of classes, as the head of a model reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.nn.heads import Head, LinearHead, UnitLinearHead

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
