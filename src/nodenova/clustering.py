"""Grouping unlabelled nodes."""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from torch import Tensor


def cluster(rows: Tensor, k: int, restarts: int = 20) -> Tensor:
    """(n,) group 0..k-1 of each row: k-means on the first k principal components, best of several starts.

    The components beyond the k-th hold what tells nodes apart within a class. Seeded by PyTorch's generator.
    """
    if k == 1:
        return torch.zeros(len(rows), dtype=torch.long, device=rows.device)
    found = KMeans(k, n_init=restarts, random_state=_seed()).fit_predict(_components(rows, k))
    return torch.from_numpy(found).long().to(rows.device)


def regroup(rows: Tensor, groups: Tensor, k: int, times: int, restarts: int = 4) -> list[Tensor]:
    """Other groupings of the rows, numbered as `groups` is: the centres are found on two thirds of the rows, drawn anew.

    One that leaves a group empty is dropped, so there may be fewer than `times`; one group is always the same.
    """
    if k == 1:
        return []
    components, reference = _components(rows, k), groups.cpu().numpy()
    part, found = max(k, -(-2 * len(rows) // 3)), []
    for _ in range(times):
        some = components[torch.randperm(len(rows))[:part].numpy()]
        if len(np.unique(some, axis=0)) < k:
            continue
        other = KMeans(k, n_init=restarts, random_state=_seed()).fit(some).predict(components)
        if len(np.unique(other)) == k:
            shared = np.zeros((k, k))
            np.add.at(shared, (other, reference), 1)
            found.append(torch.from_numpy(linear_sum_assignment(shared, maximize=True)[1][other]).to(groups.device))
    return found


def _components(rows: Tensor, k: int) -> np.ndarray:
    """(n, k) the first principal components, from the smaller of the two square matrices."""
    centred = (rows - rows.mean(0)).double()
    size = min(k, *centred.shape)
    if centred.shape[0] <= centred.shape[1]:
        value, vector = torch.linalg.eigh(centred @ centred.t())
        return (vector[:, -size:] * value[-size:].clamp_min(0).sqrt()).cpu().numpy()
    return (centred @ torch.linalg.eigh(centred.t() @ centred)[1][:, -size:]).cpu().numpy()


def _seed() -> int:
    return int(torch.randint(2**31, (1,)))
