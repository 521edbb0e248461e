from __future__ import annotations

import torch
from sklearn.metrics import adjusted_rand_score

from nodenova.nn.kmeans import cluster, spherical_kmeans


def test_planted_groups_are_found() -> None:
    y = torch.arange(90) % 3
    rows = 5 * torch.eye(3).repeat(1, 10)[y] + torch.randn(
        90, 30, generator=torch.Generator().manual_seed(0)
    )
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


def test_many_short_rows_and_few_long_ones_have_the_same_components() -> None:
    """The two ways of finding principal components agree: columns of zeros change nothing."""
    rows = torch.randn(50, 20, generator=torch.Generator().manual_seed(1))
    longer = torch.cat([rows, torch.zeros(50, 40)], dim=1)
    found = []
    for table in (rows, longer):
        torch.manual_seed(0)
        found.append(cluster(table, 4))
    assert adjusted_rand_score(*found) == 1.0


def test_directions_hold_together_what_lengths_would_part() -> None:
    """Three classes, one of them wide along its own direction.

    k-means by distance halves it, by direction it does not.
    """
    generator = torch.Generator().manual_seed(0)
    y = torch.arange(120) % 3
    rows = torch.eye(3).repeat(1, 10)[y] + 0.05 * torch.randn(120, 30, generator=generator)
    rows[y == 0] *= torch.linspace(1, 9, 40)[:, None]
    rows -= rows.mean(0)  # directions are taken from the mean of all
    torch.manual_seed(0)
    assert adjusted_rand_score(y, cluster(rows, 3)) < 0.8
    assert adjusted_rand_score(y, spherical_kmeans(rows, 3)) > 0.8


def test_directions_of_few_kinds_do_not_do() -> None:
    """On a line there are two directions; three groups are told apart by length."""
    rows = torch.tensor([[0.0], [0.1], [5.0], [5.1], [9.0], [9.1]])
    assert adjusted_rand_score([0, 0, 1, 1, 2, 2], spherical_kmeans(rows, 3)) == 1.0
    assert spherical_kmeans(rows, 1).tolist() == [0] * 6


def test_equal_rows_are_one_group_without_a_warning() -> None:
    for group in (cluster, spherical_kmeans):
        assert group(torch.ones(9, 4), 3).unique().tolist() == [0]
        two = group(torch.eye(2).repeat_interleave(5, dim=0), 3)
        assert len(two.unique()) == 2
        assert len(two[:5].unique()) == len(two[5:].unique()) == 1
