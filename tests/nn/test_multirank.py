"""Features at several ranks against the plain formula."""

from __future__ import annotations

import torch

from nodenova.nn.multirank import MultiRank


def test_each_view_is_cut_to_each_rank_and_brought_to_unit_length() -> None:
    z, read = torch.randn(5, 6), MultiRank(2, 3, (1, 3))
    u = read(z)
    expected = [
        view[:, :r] / view[:, :r].norm(dim=1, keepdim=True)
        for view in (z[:, :3], z[:, 3:])
        for r in (1, 3)
    ]
    assert torch.allclose(u, torch.cat(expected, dim=1))
    assert u.shape[1] == read.size == 8
    assert read(torch.zeros(1, 6)).isfinite().all()


def test_some_ranks_are_some_columns() -> None:
    z, read = torch.randn(5, 6), MultiRank(2, 3, (1, 3))
    high = read.nearest([3])
    assert torch.equal(read(z)[:, read.columns_of(high)], high(z))
    assert high.per_column(torch.tensor([2.0, 5.0])).tolist() == [2.0] * 3 + [5.0] * 3


def test_ranks_are_near_as_ratios() -> None:
    read = MultiRank(7, 128, (6, 8, 12, 16, 24, 32, 48, 64, 96, 128))
    assert read.nearest([7, 56]).ranks == (8, 64)
    assert read.nearest([1, 1000]).ranks == (6, 128)
    assert read.nearest([6, 6]).ranks == (6,)


def test_one_view_at_its_full_rank_is_z_at_unit_length() -> None:
    z = torch.randn(4, 3)
    assert torch.equal(MultiRank.whole(3)(z), torch.nn.functional.normalize(z, dim=1))
    assert MultiRank.whole(3).is_whole
    assert not MultiRank(1, 3, (2,)).is_whole
    assert not MultiRank(2, 3, (3,)).is_whole
