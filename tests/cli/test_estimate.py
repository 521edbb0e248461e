"""How long a discovery takes and how much memory: near what was measured, and said in time."""

from __future__ import annotations

import time

import numpy as np
import pytest

import nodenova as nova
from nodenova.cli.graph_options import cost_text, estimate_cost, graph_cost

# nodes, edges, entries, known classes, seconds of one core, GiB: rows of benchmarks/estimate.py.
MEASURED = [
    (500, 2_836, 4_963, 7, 5.6, 0.58),
    (2_000, 11_818, 19_898, 7, 8.5, 0.60),
    (8_000, 158_406, 235_818, 7, 14.2, 0.76),
    (20_000, 119_864, 589_585, 7, 17.4, 1.27),
    (20_000, 198_382, 196_801, 28, 40.1, 1.65),
    (40_000, 798_680, 397_836, 7, 19.8, 1.33),
    (64_000, 1_274_274, 1_826_944, 28, 41.2, 2.08),
    (100_000, 999_622, 994_474, 7, 23.1, 1.48),
]


@pytest.mark.parametrize(("nodes", "edges", "entries", "classes", "seconds", "gib"), MEASURED)
def test_it_is_near_what_was_measured(
    nodes: int, edges: int, entries: int, classes: int, seconds: float, gib: float
) -> None:
    found, gb = estimate_cost(nodes, edges, entries, classes)
    assert seconds / 1.5 < found < 1.5 * seconds
    assert gib / 1.5 < gb / 1.074 < 1.5 * gib


def test_a_larger_graph_takes_longer_and_more() -> None:
    small = estimate_cost(1_000, 6_000, 20_000, 5)
    for more in ((2_000, 6_000, 20_000, 5), (1_000, 9_000, 20_000, 5), (1_000, 6_000, 20_000, 9)):
        larger = estimate_cost(*more)
        assert larger > small
        assert larger[1] > small[1]


def test_entries_of_dense_features_all_count() -> None:
    graph = nova.Graph.of([[0.0, 1.0], [2.0, 3.0]], [[0], [1]], dense=True)
    loaded = nova.UserGraph(graph, np.array([0, -1]), ("a",), new_ids=np.array([1]))
    assert graph_cost(loaded) == estimate_cost(2, 2, 4, 1)
    assert "on one core" in cost_text(loaded)


def test_reading_the_files_counts() -> None:
    graph = nova.Graph.of(np.eye(3), [[0], [1]])
    loaded = nova.UserGraph(graph, np.array([0, 1, -1]), ("a", "b"), new_ids=np.array([2]))
    alone, gb = graph_cost(loaded)
    assert graph_cost(loaded, reading=60.0) == (alone + 60.0, gb)


@pytest.mark.slow
def test_a_discovery_takes_about_what_is_said() -> None:
    data = nova.synthetic(nodes=8_000, classes=10, words=2_000, words_per_node=10)
    y = [c if c < 7 and i % 5 == 0 else -1 for i, c in enumerate(data.y.tolist())]
    began = time.process_time()
    nova.NodeDiscoverer().fit(data.graph, y).class_info()
    took = time.process_time() - began
    found = estimate_cost(8_000, data.graph.num_edges, 79_570, 7)[0]
    assert found / 8 < took < 8 * found  # machines differ; an order of magnitude does not
