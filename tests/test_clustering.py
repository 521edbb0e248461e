from __future__ import annotations

import torch
from sklearn.metrics import adjusted_rand_score

from nodenova.clustering import cluster


def test_planted_groups_are_found() -> None:
    y = torch.arange(90) % 3
    rows = 5 * torch.eye(3).repeat(1, 10)[y] + torch.randn(90, 30, generator=torch.Generator().manual_seed(0))
    assert adjusted_rand_score(y, cluster(rows, 3)) == 1.0


def test_one_group_and_as_many_groups_as_rows() -> None:
    rows = torch.randn(4, 10)
    assert cluster(rows, 1).tolist() == [0, 0, 0, 0]
    assert sorted(cluster(rows, 4).tolist()) == [0, 1, 2, 3]


def test_seeded_by_torchs_generator() -> None:
    rows = torch.randn(60, 5, generator=torch.Generator().manual_seed(3))
    found = []
    for _ in range(2):
        torch.manual_seed(7)
        found.append(cluster(rows, 6).tolist())
    assert found[0] == found[1]
