"""Cells: what phase 1 stores, and how likely unlabelled nodes are new."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import poisson

import nodenova as nova
from nodenova.nn.encode_cache import encode
from nodenova.open_world.novelty import (
    FEW,
    CellNovelty,
    Partition,
    _measure,
    _rates,
    bonferroni_test,
    cell_novelty,
    odds_of_new,
    probability_of_new,
    self_likeness,
    simes_test,
)


@pytest.fixture(scope="module")
def world():
    """A model of three of six planted classes, z of all nodes, and their classes."""
    data = nova.synthetic(nodes=900, classes=6, words=300, seed=1)
    old, _, _ = nova.split(data, old=[0, 1, 2])
    model = nova.fit(old)
    return model, encode(model.frozen_encoder(), data.graph), data.y, old


def test_every_labelled_node_is_in_one_cell_of_each_celling(world) -> None:
    model, z, _, old = world
    cells, multirank = model.cells, model.frozen_encoder().spec.multirank
    at = cells.locate(multirank, model.memory.classes, z[torch.from_numpy(old.train_ids)])
    for t, mine in enumerate(at):
        count = np.zeros(cells.table.shape[1:])
        np.add.at(count, (mine, old.train_y), 1)
        count[(count > 0) & (count < 3)] = FEW
        assert np.array_equal(cells.table[t].numpy(), count)


def test_no_table_holds_a_single_node(world) -> None:
    table = world[0].cells.table
    assert not ((table == 1) | (table == 2)).any()
    assert world[0].memory.classes.count.tolist() == [20.0, 20.0, 20.0]


def test_a_model_keeps_nothing_with_a_row_a_node(world) -> None:
    model, z, _, old = world
    sizes = {size for tensor in vars(model.cells).values() for size in tensor.shape}
    assert not {len(z), len(old.train_ids)} & sizes


def covered(model: nova.Model, z: torch.Tensor, ids: np.ndarray) -> list[CellNovelty]:
    """What the cells of a model say of some nodes."""
    multirank, known = model.frozen_encoder().spec.multirank, model.memory.classes
    assert model.cells is not None
    return cell_novelty(multirank, known, model.cells, model.lda, z[torch.from_numpy(ids)])


def test_nodes_of_planted_new_classes_have_the_higher_chance(world) -> None:
    model, z, y, old = world
    rest = np.setdiff1d(np.arange(len(y)), old.train_ids)
    found = covered(model, z, rest)
    chance = probability_of_new(found)
    is_new = y[rest] >= 3
    assert np.median(chance[is_new]) > 0.6 > 0.4 > np.median(chance[~is_new])
    assert bonferroni_test(found) < 0.05
    assert simes_test(found) <= bonferroni_test(found)


def test_where_all_nodes_are_known_the_test_finds_nothing(world) -> None:
    model, z, y, old = world
    known = np.setdiff1d(np.flatnonzero(y < 3), old.train_ids)
    found = covered(model, z, known)
    assert bonferroni_test(found) > 0.05


def test_the_p_value_of_a_cell_is_poissons() -> None:
    labelled = np.array([[4.0, 0.0], [0.0, 5.0], [0.0, 0.0]])
    one = CellNovelty(
        np.zeros(1, dtype=int),
        np.array([40.0, 50.0, 60.0]),
        labelled,
        np.array([10.0, 10.0]),
        np.zeros((3, 2)),
        np.zeros(1),
    )
    assert one.p_values().tolist() == pytest.approx(poisson.cdf([4, 5, 0], [4, 5, 6]).tolist())
    assert one.p_values().argmin() == 2
    assert bonferroni_test([one]) == pytest.approx(min(1, 2 * 3 * np.exp(-6)))


def one_cell(node_likeness: list[float]) -> CellNovelty:
    """Nodes of one cell with as many labelled nodes as it should have."""
    n = len(node_likeness)
    labelled, rate = np.array([[n / 10.0]]), np.array([10.0])
    cell, size = np.zeros(n, dtype=int), np.array([float(n)])
    return CellNovelty(cell, size, labelled, rate, np.array([[0.5]]), np.array(node_likeness))


def test_odds_are_held_within_bounds_and_fall_with_how_like_a_node_is() -> None:
    odds = odds_of_new([one_cell([-1.0, 0.0, 0.1, 0.2, 0.9])])
    assert (np.diff(odds) < 0).all()
    extreme = odds_of_new([one_cell([-1.0, *[0.0] * 200, 1.0])])
    assert extreme.max() == 3.0
    assert extreme.min() == 0.02


def test_where_all_nodes_are_as_like_their_odds_are_those_of_the_cell() -> None:
    cell = one_cell([0.3] * 8)
    p = cell.probability()[0]
    assert odds_of_new([cell]).tolist() == pytest.approx([p / (1 - p)] * 8)


def test_cells_of_some_classes_and_of_further_ones(world) -> None:
    model, z, y, _ = world
    cells: Partition = model.cells
    assert torch.equal(cells.select([2, 0]).table, cells.table[:, :, [2, 0]])
    new = torch.from_numpy(np.flatnonzero(y == 3))
    label = torch.zeros(len(new), dtype=torch.long)
    multirank = model.frozen_encoder().spec.multirank
    more = cells.append(multirank, model.memory.classes, z[new], label, 1)
    assert torch.equal(more.table[:, :, :3], cells.table)
    assert more.table[:, :, 3].sum() > 0.9 * 3 * len(new)


def test_the_number_of_cells_follows_classes_and_nodes(world) -> None:
    model, z, _, old = world
    multirank, known, lda = model.frozen_encoder().spec.multirank, model.memory.classes, model.lda
    some, y = z[torch.from_numpy(old.train_ids)], torch.from_numpy(old.train_y)
    for nodes, cells in ((900, 24), (80, 10), (7, 1)):  # 8 per class; 8 nodes per cell
        found = Partition.of(multirank, known, z[:nodes], some, y, lda)
        assert found.center.shape[:2] == (3, cells)
        assert found.table.shape == (3, cells, 3)
        assert found.basis.shape[1] == min(9, nodes)


def test_features_of_a_cell_by_hand() -> None:
    one = CellNovelty(
        np.zeros(1, dtype=int),
        np.array([20.0, 4.0, 1000.0]),
        np.array([[1.0, 1.5], [3.0, 0.0], [0.0, 0.0]]),
        np.array([10.0, 4.0]),
        np.array([[0.2, 0.6], [0.9, 0.1], [0.3, -0.5]]),
        np.zeros(1),
    )
    log = np.log
    assert one.features().tolist() == [
        # 5 labelled nodes are expected by the rate of the nearest class, 2 by the higher rate.
        pytest.approx([1, 0.6, log(3.0 / 5.5), 0.9 * 2 + 2.5 * log(0.1), 0.9 * 5 + 2.5 * log(0.1)]),
        pytest.approx([1, 0.9, log(3.5 / 0.9), -5, -5]),
        pytest.approx([1, 0.3, log(0.5 / 100.5), 5, 5]),
    ]
    # Of two occupied cells in three, three quarters is one: the least like known classes.
    expected, few = one.size / 10, one.labelled.sum(axis=1)
    assert one.pooled_p_value() == pytest.approx(
        min(poisson.cdf(0, expected[2]), poisson.cdf(2, expected[2] + expected[0]))
    )
    assert few.tolist() == [2.5, 3.0, 0.0]


def test_empty_cells_have_no_p_value() -> None:
    one = CellNovelty(
        np.zeros(1, dtype=int),
        np.array([0.0, 20.0, 30.0]),
        np.array([[5.0], [1.5], [2.0]]),
        np.array([10.0]),
        np.array([[-1.0], [0.5], [0.7]]),
        np.zeros(1),
    )
    assert one.p_values().tolist() == pytest.approx(poisson.cdf([1, 2], [2, 3]).tolist())
    assert one.pooled_p_value() == pytest.approx(poisson.cdf(1, 2))  # of two cells, one is pooled
    p = sorted(poisson.cdf([1, 2], [2, 3]))
    assert simes_test([one]) == pytest.approx(min(1, 2 * min(2 * p[0], p[1])))
    assert bonferroni_test([one]) == 1.0


def test_the_likeness_of_a_cell_is_the_loops() -> None:
    rng = np.random.default_rng(0)
    x, mean, own = rng.standard_normal((12, 3)), rng.standard_normal((2, 3)), np.array([2.0, 3.0])
    cell, labelled = np.array([0] * 5 + [1] * 6 + [3]), np.ones((4, 2))
    found = _measure(x, mean, own, cell, labelled, np.zeros(12))
    assert found.size.tolist() == [5, 6, 0, 1]
    for c in (0, 1):
        rows = x[cell == c]
        alike = (rows @ rows.T)[~np.eye(len(rows), dtype=bool)].mean()
        root = np.sqrt(max(alike, 2.5e-3) * own)
        expected = (rows.mean(axis=0) @ mean.T / root).clip(-2, 2)
        assert found.likeness[c].tolist() == pytest.approx(expected.tolist())
    assert found.likeness[2].tolist() == [0, 0]  # nothing is in this cell


def test_rates_share_the_unlabelled_nodes_out_over_the_labelled_ones() -> None:
    labelled = np.array([[4.0, 0.0], [2.0, 3.0], [0.0, 5.0]])
    size = labelled @ np.array([10.0, 2.0])
    assert _rates(size, labelled).tolist() == pytest.approx([10.0, 2.0], rel=1e-3)
    crowded = _rates(np.append(size, 500.0), np.vstack([labelled, [0.0, 0.0]]))
    assert crowded.tolist() == pytest.approx([10.0, 2.0], rel=1e-3)  # a cell without labels is new
    # A cell claims at most half more than its share: one labelled node is no reason for 500.
    outlier = _rates(np.append(size, 500.0), np.vstack([labelled, [0.0, 1.0]]))
    assert outlier[1] < 4.0
    assert _rates(np.zeros(2), np.ones((2, 1))).tolist() == pytest.approx([1e-6])


def test_self_likeness_leaves_out_the_noise_of_a_mean(world) -> None:
    model = world[0]
    multirank, known = model.frozen_encoder().spec.multirank, model.memory.classes
    scale = multirank.per_column(known.view_scale)
    every = torch.ones(len(scale), dtype=torch.bool)
    white = torch.eye(len(scale), dtype=torch.float64)
    mean = (known.center * scale).double().numpy()
    found = self_likeness(known, every, scale, white, mean)
    noise = float(known.covariance(every, 0.0, scale).trace()) / known.nodes.numpy()
    assert found.tolist() == pytest.approx(((mean**2).sum(axis=1) - noise).tolist(), rel=1e-5)
    none = self_likeness(known, every, scale, 1e3 * white, np.ones_like(mean))
    assert none.tolist() == pytest.approx([1e-3 * len(scale)] * 3)


def test_classes_that_are_not_counted_in_cells_have_no_labelled_nodes(world) -> None:
    model, z, _, _ = world
    multirank, known = model.frozen_encoder().spec.multirank, model.memory.classes
    cells = model.cells.select([0, 1])
    for one in cell_novelty(multirank, known, cells, model.lda, z):
        assert one.labelled.shape == (24, 3)
        assert (one.labelled[:, 2] == 0).all()
        assert one.labelled[:, :2].sum() > 30
        assert (np.abs(one.node_likeness) <= 1 + 1e-9).all()
        assert one.node_likeness.max() > 0.5
