"""Drawn neighborhoods, batches and blocks: against naive twins, and on graphs that are odd."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import torch_geometric.typing

import nodenova as nova
from nodenova.encoders.gnn import GNN, GNNSpec
from nodenova.errors import SettingError
from nodenova.graph import Graph, SampledGraph
from nodenova.io.graph_folder.prepare import prepare_graph
from nodenova.nn.sampling import Batches, blocks_of_nodes, draw_neighbors, neighborhood
from nodenova.nn.seeding import repeatable

ENCODERS = [("gcn", {}), ("sage", {}), ("gat", {}), ("gat", {"attention": "v2"})]
SETTINGS = [{}, {"layers": 3}, {"layers": 1}]


def random_graph(nodes: int = 60, edges: int = 150, **parts: Any) -> Graph:
    """A graph with isolated nodes, a hub, and features of small numbers."""
    draw = np.random.default_rng(0)
    ends = draw.integers(5, nodes, (2, edges))  # the first five have no edges but the hub's
    hub = np.stack([np.full(nodes // 2, 5), np.arange(nodes // 2) + nodes // 2])
    x = draw.normal(size=(nodes, 6)).astype(np.float32)
    both = np.concatenate([ends, hub], axis=1)
    if "edge_weight" in parts:
        parts["edge_weight"] = draw.uniform(0.5, 2.0, both.shape[1])
    return Graph.of(x, both, **parts)


def star(leaves: int) -> Graph:
    x = np.ones((leaves + 1, 1), dtype=np.float32)
    return Graph.of(x, np.stack([np.zeros(leaves, dtype=int), np.arange(1, leaves + 1)]))


def neighbors_of(graph: Graph, node: int) -> set[int]:
    a, b = graph.edge_index
    return set(b[a == node].tolist())


def encoder(name: str, graph: Graph, **settings: Any) -> GNN:
    torch.manual_seed(0)
    spec = GNNSpec(name, graph.num_features, hidden=4, row_normalize=False, **settings)
    return GNN(spec)


def naive_reach(part: SampledGraph, ids: np.ndarray, hops: int) -> set[int]:
    """Nodes that the drawn edges lead to from `ids`, hop by hop, and the nodes on the way."""
    a, b = part.nodes[part.edge_index]
    reached, level = set(ids.tolist()), set(ids.tolist())
    for _ in range(hops):
        level = {int(to) for at, to in zip(a, b, strict=True) if int(at) in level}
        reached |= level
    return reached


@pytest.mark.parametrize("most", [1, 3, 100])
@pytest.mark.parametrize("hops", [0, 1, 2, 3])
def test_drawn_edges_are_edges_and_none_is_missing_below_the_limit(hops: int, most: int) -> None:
    graph, ids = random_graph(), np.array([0, 5, 17, 40])
    with repeatable(1, "test"):
        part = neighborhood(graph, ids, hops, most)
    assert (np.diff(part.nodes) > 0).all()
    assert set(ids) <= set(part.nodes)
    assert set(part.nodes.tolist()) == naive_reach(part, ids, hops)
    a, b = part.nodes[part.edge_index]
    inner = naive_reach(part, ids, hops - 1) if hops else set()
    for node in part.nodes.tolist():
        drawn = b[a == node].tolist()
        true = neighbors_of(graph, node)
        assert len(set(drawn)) == len(drawn)
        assert set(drawn) <= true
        assert len(drawn) == (min(len(true), most) if node in inner else 0)
    np.testing.assert_array_equal(part.x, graph.x[part.nodes])


def test_every_subset_of_neighbors_is_equally_likely() -> None:
    graph, counts = star(5), np.zeros((6, 6))
    with repeatable(0, "test"):
        for _ in range(3_000):
            place = draw_neighbors(graph, np.array([0]), 2)
            low, high = sorted(graph.adjacency.indices[place])
            counts[low, high] += 1
    pairs = counts[np.triu_indices(6, 1)][5:]  # of the leaves 1..5
    assert pairs.sum() == 3_000
    assert len(pairs) == 10
    # Standard deviation of each count: sqrt(3000 * 0.1 * 0.9) = 16.4.
    assert np.abs(pairs - 300).max() < 5 * 16.4


@pytest.mark.parametrize(("name", "settings"), ENCODERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_with_all_neighbors_a_batch_has_z_and_gradient_of_the_whole_graph(
    name: str, settings: dict[str, Any], weighted: bool
) -> None:
    graph = random_graph(**({"edge_weight": True} if weighted else {}))
    pool = torch.tensor([0, 5, 17, 40])
    for more in SETTINGS:
        g = encoder(name, graph, batch=4, neighbors=1_000, **settings, **more).eval()
        part, (drawn,) = Batches(g, graph, pool).draw()
        assert isinstance(part, SampledGraph)
        whole, some = g(graph)[pool], g(part)[drawn.rows]
        torch.testing.assert_close(some, whole, rtol=1e-4, atol=1e-5)
        slope = torch.randn(whole.shape, generator=torch.Generator().manual_seed(1))
        expected = torch.autograd.grad((whole * slope).sum(), list(g.parameters()))
        found = torch.autograd.grad((some * slope).sum(), list(g.parameters()))
        for a, b in zip(found, expected, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", ["gcn", "sage"])
def test_drawn_sums_have_the_expectation_of_the_whole_sum(name: str) -> None:
    # With one layer z is linear in the drawn sum.
    graph = random_graph()
    g = encoder(name, graph, layers=1, batch=1, neighbors=3).eval()
    pool = torch.tensor([5])
    with torch.no_grad(), repeatable(0, "test"):
        drawn = []
        for _ in range(2_000):
            part, (node,) = Batches(g, graph, pool).draw()
            drawn.append(g(part)[node.rows])
        z = torch.cat(drawn)
        error = (z.mean(dim=0) - g(graph)[5]).abs()
    assert (error < 5 * z.std(dim=0) / 2_000**0.5 + 1e-5).all()


@pytest.mark.parametrize(("name", "settings"), ENCODERS)
@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_blocks_have_z_of_the_whole_graph(name: str, settings: dict[str, Any], size: int) -> None:
    graph = random_graph()
    whole = encoder(name, graph, **settings).eval()
    blocks = encoder(name, graph, batch=size, neighbors=2, **settings).eval()
    with torch.no_grad():
        torch.testing.assert_close(blocks(graph), whole(graph), rtol=1e-4, atol=1e-5)


def test_blocks_have_at_most_a_number_of_nodes_and_edges_or_one_node() -> None:
    graph = star(300)
    seen = []
    for ids, part in blocks_of_nodes(graph, 10, 3):
        seen += ids.tolist()
        assert len(ids) == 1 or (len(ids) <= 10 and part.num_edges <= 30)
    assert seen == list(range(301))


def test_a_hub_of_100_000_edges_costs_as_many_draws_as_any_node() -> None:
    graph = star(100_000)
    with repeatable(0, "test"):
        part = neighborhood(graph, np.array([0]), 2, 10)
    # The hub's ten leaves; their one neighbor is the hub, which is drawn from once.
    assert part.num_nodes == 11
    assert part.num_edges == 20
    assert part.edge_weight is not None
    hub = part.edge_weight[part.edge_index[0] == 0]
    np.testing.assert_allclose(hub, 10_000)
    g = encoder("gcn", graph).eval()
    assert bool(torch.isfinite(g(part)).all())


@pytest.mark.parametrize("name", ["gcn", "sage", "gat"])
def test_isolated_nodes_and_a_graph_without_edges(name: str) -> None:
    graph = Graph.of(np.eye(3, dtype=np.float32), np.zeros((2, 0), dtype=np.int64))
    g = encoder(name, graph, batch=2, neighbors=2).eval()
    part, (drawn,) = Batches(g, graph, torch.tensor([0, 2])).draw()
    assert part.num_nodes == 2
    with torch.no_grad():
        z = encoder(name, graph).eval()(graph)
        torch.testing.assert_close(g(part)[drawn.rows], z[[0, 2]])
        torch.testing.assert_close(g(graph), z)


def test_a_batch_is_bounded_whatever_the_size_of_the_graph() -> None:
    for nodes in (500, 5_000):
        graph = nova.synthetic(nodes=nodes, classes=4, degree=20, seed=0).graph
        g = encoder("gcn", graph, batch=5, neighbors=3)
        with repeatable(0, "test"):
            part, parts = Batches(g, graph, torch.arange(100), slice(None)).draw()
        targets = 2 * 5
        assert part.num_nodes <= targets * (1 + 3 + 9)
        assert part.num_edges <= targets * (3 + 9)
        assert [len(each.rows) for each in parts] == [5, 5]


def test_places_numbers_and_rows_name_the_same_nodes() -> None:
    graph = random_graph()
    g = encoder("gcn", graph, batch=6, neighbors=2)
    pool = torch.arange(20, 50)
    with repeatable(3, "test"):
        part, (some, every) = Batches(g, graph, pool, slice(None)).draw()
    assert isinstance(part, SampledGraph)
    for each, numbers in ((some, pool), (every, torch.arange(60))):
        assert torch.equal(numbers[each.at], each.ids)
        assert part.nodes[each.rows].tolist() == each.ids.tolist()
        assert len(set(each.ids.tolist())) == 6


@pytest.mark.parametrize("size", [0, 60, 1_000])
def test_without_a_batch_size_or_if_all_nodes_fit_in_nothing_is_drawn(size: int) -> None:
    graph, pool = random_graph(), torch.arange(20, 50)
    batches = Batches(encoder("gcn", graph, batch=size), graph, pool, slice(None))
    before = torch.get_rng_state()
    same, (some, every) = batches.draw()
    assert torch.equal(torch.get_rng_state(), before)
    assert same is graph
    assert some.ids is pool
    assert some.rows is pool
    assert every.rows == slice(None)


def sword(encoder: str, **settings: Any) -> tuple[nova.Model, np.ndarray]:
    """A model of both phases, and its probabilities."""
    data = nova.synthetic(nodes=120, classes=4, words=40, seed=1)
    old, new, _ = nova.split(data, [0, 1])
    model = nova.fit(old, encoder, hidden=6, heads=2, epochs=5, **settings)
    model = nova.discover(model, new, nova.Sword(epochs=4), seed=2)
    return model, model.predict_proba(data.graph)


@pytest.mark.parametrize("name", ["gcn", "sage", "gat"])
def test_a_batch_that_all_nodes_fit_in_gives_the_bits_of_the_whole_graph(name: str) -> None:
    whole, same = sword(name)[1], sword(name, batch=120, neighbors=2)[1]
    assert same.tobytes() == whole.tobytes()


@pytest.mark.parametrize("name", ["gcn", "sage", "gat"])
def test_batches_have_the_same_bits_for_the_same_seed(name: str) -> None:
    (model, first), (again, second) = (sword(name, batch=16, neighbors=2) for _ in range(2))
    assert model.stages[-1].history == again.stages[-1].history
    assert first.tobytes() == second.tobytes()
    assert first.tobytes() != sword(name)[1].tobytes()


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["gcn", "sage", "gat"])
def test_lower_precision_changes_numbers_by_its_rounding(name: str, precision: str) -> None:
    graph = random_graph()
    exact = encoder(name, graph).eval()
    rough = encoder(name, graph, precision=precision).eval()
    z, close = exact(graph), rough(graph)
    assert close.dtype == torch.float32
    assert not torch.equal(close, z)
    torch.testing.assert_close(close, z, rtol=0.05, atol=0.05)
    model, probabilities = sword(name, precision=precision, batch=16)
    assert np.isfinite(probabilities).all()
    assert model.stages[0].settings["precision"] == precision


def test_settings_of_batches_are_checked_before_anything_is_computed() -> None:
    old, _, _ = nova.split(nova.synthetic(nodes=120, classes=4, words=40), [0, 1])
    for encoder, settings, words in [
        ("prism", {"batch": 8}, "batch: only for encoders that are trained"),
        ("gcn", {"batch": -1}, "batch must lie in 0"),
        ("gcn", {"batch": "many"}, "batch must be int"),
        ("gcn", {"batch": 8, "neighbors": 0}, "neighbors must lie in 1"),
        ("gcn", {"neighbors": 5}, "neighbors are drawn for batches of nodes only"),
        ("gcn", {"precision": "float8"}, "precision"),
        (OwnNet, {"batch": 8}, "batch is for gcn, gat and sage: how far OwnNet looks"),
    ]:
        with pytest.raises(SettingError, match=words):
            nova.fit(old, encoder, epochs=1, **settings)


class OwnNet(torch.nn.Linear):
    """An encoder of one's own."""

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return super().forward(x)


def naive_pyg(
    starts: torch.Tensor, neighbors: torch.Tensor, seed: torch.Tensor, most: list[int], *_: Any
) -> tuple[torch.Tensor, ...]:
    """What pyg_lib's operator returns: rows, columns, nodes and edges, numbered as they are met."""
    nodes, edges, frontier = seed.tolist(), [], seed.tolist()
    pairs = []
    for count in most:
        met = []
        for node in frontier:
            places = torch.arange(int(starts[node]), int(starts[node + 1]))
            for place in places[torch.randperm(len(places))[:count]].tolist():
                other = int(neighbors[place])
                if other not in nodes:
                    nodes.append(other)
                    met.append(other)
                edges.append(place)
                pairs.append((nodes.index(other), nodes.index(node)))
        frontier = met
    row, column = torch.tensor(pairs).t()
    return row, column, torch.tensor(nodes), torch.tensor(edges)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """A stand-in for pyg_lib; the list fills with the numbers of neighbors of its calls."""
    calls: list[list[int]] = []

    def neighbor_sample(*given: Any) -> tuple[torch.Tensor, ...]:
        calls.append(given[3])
        return naive_pyg(*given)

    monkeypatch.setattr(torch_geometric.typing, "WITH_PYG_LIB", True)
    monkeypatch.setattr(torch.ops, "pyg", SimpleNamespace(neighbor_sample=neighbor_sample))
    return calls


@pytest.mark.parametrize("most", [1, 3, 100])
@pytest.mark.parametrize("hops", [0, 1, 2, 3])
def test_the_compiled_sampler_is_used_where_it_is_installed(
    hops: int, most: int, compiled: list[list[int]]
) -> None:
    test_drawn_edges_are_edges_and_none_is_missing_below_the_limit(hops, most)
    assert compiled == [[most] * hops] * bool(hops)


@pytest.mark.parametrize("name", ["gcn", "sage", "gat"])
def test_with_all_neighbors_the_compiled_sampler_gives_the_same(
    name: str, compiled: list[list[int]]
) -> None:
    test_with_all_neighbors_a_batch_has_z_and_gradient_of_the_whole_graph(name, {}, True)
    assert compiled


def test_text_vectors_are_drawn_with_their_nodes() -> None:
    labelled = nova.synthetic(nodes=200, classes=4, seed=0)
    vectors = np.random.default_rng(0).normal(size=(200, 3))
    graph = labelled.graph.with_vectors(vectors)
    part = neighborhood(graph, np.array([3, 9]), 2, 4)
    np.testing.assert_array_equal(part.vectors, graph.vectors[part.nodes])  # type: ignore[index]
    assert part.feature_names == graph.feature_names


def test_a_graph_on_disk_gives_the_batches_of_the_one_in_memory(
    tmp_path: Path, compiled: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    labelled = nova.synthetic(nodes=200, classes=4, seed=0)
    on_disk = prepare_graph(tmp_path / "graph", labelled).graph.canonical()
    assert on_disk.is_mapped
    with repeatable(1, "test"):
        mapped = neighborhood(on_disk, np.array([3, 9]), 2, 4)
    assert not compiled  # PyTorch Geometric's sampler would copy the edges into memory
    monkeypatch.setattr(torch_geometric.typing, "WITH_PYG_LIB", False)
    with repeatable(1, "test"):
        part = neighborhood(labelled.graph.canonical(), np.array([3, 9]), 2, 4)
    np.testing.assert_array_equal(mapped.node_ids, part.node_ids)
    np.testing.assert_array_equal(mapped.edge_index, part.edge_index)
    np.testing.assert_array_equal(mapped.x.toarray(), part.x.toarray())
