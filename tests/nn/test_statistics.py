"""Class statistics against plain formulas."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.nn.functional import normalize

from nodenova.nn.multirank import MultiRank
from nodenova.nn.statistics import ClassStatistics, largest_eigenvectors, low_rank


def test_low_rank_keeps_the_diagonal_and_is_exact_when_there_are_few_rows() -> None:
    for n, d in [(4, 9), (60, 9), (20, 50)]:
        rows = torch.randn(n, d, generator=torch.Generator().manual_seed(n))
        factor, rest = low_rank(rows, factors=6)
        scatter = rows.t() @ rows
        again = factor.t() @ factor + rest.diag()
        assert len(factor) == min(n, 6)
        assert torch.allclose(again.diagonal(), scatter.diagonal(), rtol=1e-4)
        if n <= 6:
            assert torch.allclose(again, scatter, atol=1e-4)
        best = torch.linalg.svdvals(rows)[:6].square().sum()
        assert torch.allclose(
            factor.square().sum(), best if n > 6 else rows.square().sum(), rtol=1e-4
        )


@pytest.mark.parametrize("shape", [(900, 400), (400, 900)])
def test_factors_of_large_matrices_are_those_of_all_eigenvectors(
    shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(1)
    rows = torch.randn(*shape) * 0.97 ** torch.arange(shape[1])
    factor, rest = low_rank(rows)
    again, _ = low_rank(rows)
    assert torch.equal(factor, again)
    monkeypatch.setattr("nodenova.nn.statistics.MAX_SMALL", 1000)
    plain, plain_rest = low_rank(rows)
    # Eigenvectors have no sign.
    scale = (plain.t() @ plain).norm()
    assert (factor.t() @ factor - plain.t() @ plain).norm() < 1e-5 * scale
    assert torch.allclose(rest, plain_rest, atol=1e-5 * float(rows.square().sum(0).max()))
    assert not torch.equal(factor, plain)  # they were found in another way


def test_covariance_is_the_pooled_within_class_covariance_shrunk_to_a_sphere() -> None:
    z, y = torch.randn(40, 4), torch.arange(40) % 2
    u = normalize(z, dim=1)
    residual = u - torch.stack([u[y == c].mean(0) for c in range(2)])[y]
    within = residual.t() @ residual / 38
    found = ClassStatistics.estimate(u, y, 2, views=1).covariance(
        torch.ones(4, dtype=torch.bool), 38.0, torch.ones(4)
    )
    assert torch.allclose(
        found.float(), 0.5 * within + 0.5 * within.diagonal().mean() * torch.eye(4), atol=1e-5
    )


def test_a_later_stage_speaks_for_its_classes_and_no_more() -> None:
    y = torch.arange(40) % 4
    first = ClassStatistics.estimate(torch.randn(40, 3), y, 4, views=1)
    many = ClassStatistics.estimate(
        torch.randn(4000, 3), torch.zeros(4000, dtype=torch.long), 1, views=1
    )
    both = first.append(many)
    assert float(both.dof) == pytest.approx(36 + 36 / 4)
    assert both.center.shape == (5, 3)


def test_eigenvectors_found_by_iterating_are_those_of_the_whole_matrix() -> None:
    torch.manual_seed(0)
    rows = torch.randn(300, 60, dtype=torch.float64) * torch.linspace(4, 0.1, 60)
    matrix = rows.T @ rows
    some, all_of_them = (largest_eigenvectors(matrix, 4, rank) for rank in (300, 4))
    assert torch.allclose((some * all_of_them).sum(0).abs(), torch.ones(4, dtype=torch.float64))
    assert largest_eigenvectors(torch.zeros(60, 60, dtype=torch.float64), 1, 0).shape == (60, 1)


def seven_and_five() -> ClassStatistics:
    """Two classes, of seven nodes and of five."""
    return ClassStatistics.estimate(torch.randn(12, 3), torch.tensor([0] * 7 + [1] * 5), 2, views=1)


def test_nodes_of_a_class_are_counted_and_kept_in_step() -> None:
    known = seven_and_five()
    assert known.count.tolist() == [7.0, 5.0]
    assert known.append(known).count.tolist() == [7.0, 5.0, 7.0, 5.0]
    assert known.select([1]).count.tolist() == [5.0]
    assert known.with_parts(known.select([1])).count.tolist() == [7.0, 5.0, 5.0]


def test_where_nodes_were_not_counted_they_are_as_many_in_each_class() -> None:
    known = seven_and_five()
    older = replace(known, count=known.count[:0])
    assert older.nodes.tolist() == [6.0, 6.0]
    assert older.append(known).count.tolist() == [6.0, 6.0, 7.0, 5.0]
    assert older.with_parts(known.select([1])).count.tolist() == []
    assert older.select([1]).count.tolist() == []


def test_statistics_at_some_ranks_are_those_columns() -> None:
    multirank = MultiRank(1, 6, (2, 6))
    u = multirank(torch.randn(30, 6))
    both = ClassStatistics.estimate(u, torch.arange(30) % 3, 3, views=1)
    columns = multirank.columns_of(multirank.nearest([2]))
    some = both.at(columns)
    assert torch.equal(some.center, both.center[:, :2])
    every = torch.ones(2, dtype=torch.bool)
    assert torch.allclose(
        some.covariance(every, 5.0, torch.ones(2)), both.covariance(columns, 5.0, torch.ones(2))
    )


def test_statistics_of_many_nodes_are_those_of_all_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    multirank = MultiRank(2, 6, (2, 6))
    torch.manual_seed(0)
    z, y = torch.randn(400, 12) + 1, torch.arange(400) % 3
    whole = ClassStatistics.estimate(multirank(z), y, 4, views=2)
    monkeypatch.setattr("nodenova.nn.statistics.MAX_SCATTER", 200)
    monkeypatch.setattr("nodenova.nn.statistics.SUMMED_ROWS", 64)
    parts = ClassStatistics.of_nodes(z, y, 4, multirank)
    assert torch.allclose(parts.center, whole.center, atol=1e-5)  # the last class has no nodes
    assert torch.equal(parts.count, whole.count)
    assert float(parts.dof) == float(whole.dof)
    every, one = torch.ones(16, dtype=torch.bool), torch.ones(16)
    scatters = [each.covariance(every, 0.0, one).trace() for each in (parts, whole)]
    assert float(scatters[0] / scatters[1]) == pytest.approx(1, abs=0.1)  # of every second node
