"""Blocks of rows of a graph folder together give what the whole graph gives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.cluster.split import MAX_BLOCKS, MIN_BLOCKS, block_starts, open_block
from nodenova.encoders.prism.encoder import PrismEncoder, word_weights
from nodenova.graph import Graph
from nodenova.io.graph_folder.prepare import prepare_graph
from nodenova.io.load import load_graph
from nodenova.nn.distributed import GraphSplit, SplitColumns, centered_moments, gather_rows
from nodenova.nn.sparse import gcn_operator
from tests.cluster.here import HereSplit

CPU = torch.device("cpu")


def dense(graph: Graph) -> np.ndarray:
    return graph.x if isinstance(graph.x, np.ndarray) else graph.x.toarray()


def some_graph(kind: str) -> Graph:
    graph = nova.synthetic(nodes=150, classes=4, words=60, seed=1).graph
    x, edges = dense(graph), graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    edges = edges[:, edges.max(axis=0) < 149]  # the last node has no neighbor
    rng = np.random.default_rng(0)
    if kind == "dense":
        x = rng.normal(size=(150, 12)) + 3.0
    weight = rng.uniform(0.5, 4, size=edges.shape[1]) if kind == "weighted" else None
    return Graph.of(x, edges, dense=kind == "dense", edge_weight=weight)


@pytest.fixture(params=["words", "dense", "weighted"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    graph = some_graph(request.param)
    labelled = nova.LabelledGraph(graph, np.arange(150) % 3, ("a", "b", "c"), name="some")
    prepare_graph(tmp_path / "graph", labelled)
    return tmp_path / "graph"


@pytest.fixture
def split(folder: Path) -> tuple[Graph, HereSplit]:
    graph = load_graph(folder).graph
    return graph, HereSplit(folder, graph)


def test_rows_of_blocks_are_those_of_the_graph(split: tuple[Graph, HereSplit]) -> None:
    graph, here = split
    parts = [open_block(rows) for rows in here.blocks]
    assert len(parts) >= MIN_BLOCKS
    assert sum(part.adjacency.nnz for part in parts) == graph.num_edges
    np.testing.assert_array_equal(np.concatenate([dense(part) for part in parts]), dense(graph))


@pytest.mark.parametrize(("starts", "num_parts"), [([0, 70, 150], 2), (range(0, 151, 2), 1)])
def test_products_with_blocks_of_s_are_products_with_s(
    folder: Path, starts: list[int], num_parts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether rows have entries in every block, or are short and blocks many."""
    graph = load_graph(folder).graph
    monkeypatch.setattr("tests.cluster.here.block_starts", lambda graph: starts)
    here = HereSplit(folder, graph)
    assert {len(rows.parts) for rows in here.rows_of_s} == {num_parts}
    columns = torch.randn(150, 7, generator=torch.Generator().manual_seed(0))
    parts = [columns[place.start : place.end].numpy() for place in here.blocks]
    made = gather_rows(here.smooth(SplitColumns(here, tuple(parts))))
    torch.testing.assert_close(made, gcn_operator(graph, CPU) @ columns, rtol=1e-6, atol=1e-6)


def test_sums_over_blocks_are_sums_over_nodes(split: tuple[Graph, HereSplit]) -> None:
    _, here = split
    columns = torch.randn(150, 7, generator=torch.Generator().manual_seed(0)) + 100
    parts = [columns[place.start : place.end].numpy() for place in here.blocks]
    both = SplitColumns(here, tuple(parts))
    for found, here_alone in zip(centered_moments(both), centered_moments(columns), strict=True):
        torch.testing.assert_close(found, here_alone, rtol=1e-5, atol=1e-3)
    gram, mean = both.moments()
    torch.testing.assert_close(gram, columns.double().t() @ columns.double(), rtol=1e-5, atol=0)
    torch.testing.assert_close(mean, columns.mean(dim=0))


def test_weights_of_words_do_not_depend_on_the_split(split: tuple[Graph, HereSplit]) -> None:
    graph, here = split
    alone = word_weights(graph)
    graph.cache[GraphSplit] = here
    np.testing.assert_allclose(word_weights(graph), alone, rtol=1e-5)


def test_views_are_those_of_the_whole_graph(split: tuple[Graph, HereSplit]) -> None:
    graph, here = split
    ids = torch.tensor([3, 149, 0, 77])
    alone, z_alone = PrismEncoder.fit_rows(graph, ids, CPU)
    rows = alone.rows(graph, ids)
    everywhere = alone(graph)
    graph.cache[GraphSplit] = here
    found, z = PrismEncoder.fit_rows(graph, ids, CPU)
    largest = float(z_alone.abs().max())
    # A direction may come with the other sign, and directions that count alike may be mixed.
    for mine, theirs in zip(found.places(z), alone.places(z_alone), strict=True):
        torch.testing.assert_close(
            mine @ mine.t(), theirs @ theirs.t(), rtol=0, atol=1e-4 * largest**2
        )
    torch.testing.assert_close(alone.rows(graph, ids), rows, rtol=0, atol=1e-4 * largest)
    torch.testing.assert_close(alone(graph), everywhere, rtol=0, atol=1e-4 * largest)


def test_blocks_are_as_heavy_as_each_other_and_depend_on_the_graph_alone() -> None:
    graph = nova.synthetic(nodes=3000, classes=4, seed=0).graph
    starts = block_starts(graph)
    before = graph.adjacency.indptr + graph.x.indptr
    sizes = np.diff(before[starts])
    assert MIN_BLOCKS == len(sizes) <= MAX_BLOCKS
    assert sizes.max() < 1.05 * sizes.mean()


def test_a_graph_of_few_nodes_has_as_many_blocks() -> None:
    assert block_starts(Graph.of([[1.0], [2.0]], [[0], [1]])) == [0, 1, 2]
