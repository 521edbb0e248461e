"""Grouping unlabelled nodes."""

from __future__ import annotations

import torch
from sklearn.cluster import KMeans
from torch import Tensor


def cluster(rows: Tensor, k: int, restarts: int = 20) -> Tensor:
    """(n,) group 0..k-1 of each row: k-means on the first k principal components, best of several starts.

    The components beyond the k-th hold what tells nodes apart within a class. Seeded by PyTorch's generator.
    """
    if k == 1:
        return torch.zeros(len(rows), dtype=torch.long, device=rows.device)
    centred = (rows - rows.mean(0)).double()
    size = min(k, *centred.shape)
    # From the smaller of the two square matrices.
    if centred.shape[0] <= centred.shape[1]:
        value, vector = torch.linalg.eigh(centred @ centred.t())
        components = vector[:, -size:] * value[-size:].clamp_min(0).sqrt()
    else:
        components = centred @ torch.linalg.eigh(centred.t() @ centred)[1][:, -size:]
    seed = int(torch.randint(2**31, (1,)))
    found = KMeans(k, n_init=restarts, random_state=seed).fit_predict(components.cpu().numpy())
    return torch.from_numpy(found).long().to(rows.device)
