"""Edges of a graph folder, written batch by batch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nodenova.io.graph_folder.edges import WeightFile
from nodenova.io.graph_folder.prepare import prepare_graph


@pytest.mark.parametrize("cuts", [[], [1], [2, 3], [3, 4, 6], [1, 2, 3, 4, 5, 6]])
@pytest.mark.parametrize("both_ways", [True, False])
def test_weights_do_not_depend_on_the_batches_they_come_in(
    tmp_path: Path, cuts: list[int], both_ways: bool
) -> None:
    # Directions 0, 1 and 4: rows of the table (even keys) and the same turned around (odd).
    keys = np.array([0, 0, 1, 1, 2, 3, 8, 9] if both_ways else [0, 0, 0, 1, 3, 3, 8, 9])
    weight = np.array([1.0, 2.0, 1.0, 2.0, 5.0, 5.0, 7.0, 7.0])
    file = WeightFile(tmp_path)
    for some, of_some in zip(np.split(keys, cuts), np.split(weight, cuts), strict=True):
        file.add(some, of_some)
    file.close()
    total = [weight[keys // 2 == direction].sum() for direction in (0, 1, 4)]
    expected = [half / 2 for half in total] if both_ways else total
    assert np.load(tmp_path / "edge_weight.npy").tolist() == expected


def test_unequal_weights_of_two_directions_are_added_and_not_halved(tmp_path: Path) -> None:
    file = WeightFile(tmp_path)
    file.add(np.array([0, 1, 2, 3]), np.array([1.0, 3.0, 2.0, 2.0]))
    file.close()
    assert np.load(tmp_path / "edge_weight.npy").tolist() == [4.0, 4.0]


def test_progress_of_sorting_reaches_the_end(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,label\na,x\nb,x\nc,y\n")
    (tmp_path / "edges.csv").write_text("source,target\na,b\nb,c\nc,c\n")
    shares: list[float] = []
    prepare_graph(
        tmp_path / "g",
        nodes=tmp_path / "nodes.csv",
        edges=tmp_path / "edges.csv",
        progress=lambda text, share: shares.append(share) if text == "sorting edges" else None,
    )
    assert shares[0] == 0.0
    assert shares[-1] == 1.0
