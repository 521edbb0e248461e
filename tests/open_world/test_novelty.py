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
    bonferroni_test,
    cell_novelty,
    odds_of_new,
    probability_of_new,
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
