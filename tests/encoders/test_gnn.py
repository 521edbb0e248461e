"""Our fast layers against PyTorch Geometric's own forward, values and gradients."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
import torch.nn.functional as F
from torch import Tensor
from torch_geometric.nn import GATConv, GATv2Conv

from nodenova.encoders.gnn import GNN, LAYERS, GNNSpec
from nodenova.errors import SettingError
from nodenova.graph import Graph
from nodenova.nn.sparse import SparseMatrix, features

ACTIVATION = {"gcn": F.relu, "sage": F.relu, "gat": F.elu}
every_kind = pytest.mark.parametrize("name", [*LAYERS, "gatv2"])


def dense(graph: Graph) -> np.ndarray:
    return graph.x.toarray() if sp.issparse(graph.x) else graph.x


def as_pyg_runs_it(encoder: GNN, graph: Graph) -> Tensor:
    """The same parameters through each layer's own forward."""
    x = torch.from_numpy(dense(graph))
    if encoder.spec.row_normalize:
        x = x / x.sum(dim=1, keepdim=True).where(x.sum(dim=1, keepdim=True) != 0, torch.ones(1))
    edges = torch.from_numpy(graph.edge_index)
    for depth, conv in enumerate(encoder.convs):
        if depth:
            x = ACTIVATION[encoder.spec.name](x)
        x = conv(x, edges)
    return x


def make(name: str, graph: Graph, **settings: object) -> GNN:
    torch.manual_seed(0)
    if name == "gatv2":
        name, settings = "gat", {"attention": "v2", **settings}
    return GNN(GNNSpec(name, graph.num_features, **{"hidden": 8, "heads": 4, **settings})).eval()  # type: ignore[arg-type]


def assert_close(
    ours: Tensor, theirs: Tensor, tolerance: float = 1e-5, scale: float | None = None
) -> None:
    ours, theirs = ours.detach(), theirs.detach()
    scale = float(theirs.abs().max()) if scale is None else scale
    assert scale > 0
    assert float((ours - theirs).abs().max()) <= tolerance * scale


@pytest.mark.parametrize("layers", [1, 2, 3])
@every_kind
def test_z_of_some_nodes_needs_only_the_graph_around_them(
    make_graph, name: str, layers: int
) -> None:
    graph = make_graph(nodes=200, edges=220)
    encoder = make(name, graph, layers=layers)
    ids = np.array([3, 50, 120, 199])  # 199 is isolated
    field, where = graph.k_hop_subgraph(ids, layers + 1)
    assert field.num_nodes < graph.num_nodes
    with torch.no_grad():
        assert torch.allclose(encoder(field)[where], encoder(graph)[ids], atol=1e-6)
        alone, zero = graph.k_hop_subgraph(ids[-1:], layers + 1)
        assert alone.num_nodes == 1
        assert torch.allclose(encoder(alone)[zero], encoder(graph)[ids[-1:]], atol=1e-6)


@pytest.mark.parametrize("row_normalize", [True, False])
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("layers", [1, 2, 8])
@every_kind
def test_value_and_gradient_are_pygs(
    make_graph, name: str, layers: int, sparse: bool, row_normalize: bool
) -> None:
    graph = make_graph(sparse=sparse)
    encoder = make(name, graph, layers=layers, row_normalize=row_normalize)
    with torch.no_grad():
        # PyG starts biases at zero, where a wrong one would not show.
        for parameter in encoder.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    upstream = torch.randn(graph.num_nodes, 8)
    ours, theirs = encoder(graph), as_pyg_runs_it(encoder, graph)
    assert ours.shape == (graph.num_nodes, 8)
    tolerance = 1e-5 if layers < 8 else 1e-4
    assert_close(ours, theirs, tolerance)
    # Layer by layer: in a deep encoder gradients differ by orders of magnitude from one layer to
    # the next, and within one those of GAT's target attention nearly cancel.
    for conv in encoder.convs:
        parameters = list(conv.parameters())
        gradients = torch.autograd.grad(ours, parameters, upstream, retain_graph=True)
        expected = torch.autograd.grad(theirs, parameters, upstream, retain_graph=True)
        scale = max(float(other.abs().max()) for other in expected)
        for gradient, other in zip(gradients, expected, strict=True):
            assert_close(gradient, other, 10 * tolerance, scale)


@pytest.mark.parametrize("sparse", [True, False])
@every_kind
def test_64_layers_value_and_gradient_are_pygs(make_graph, name: str, sparse: bool) -> None:
    graph = make_graph(sparse=sparse)
    encoder = make(name, graph, layers=64)
    with torch.no_grad():
        for parameter in encoder.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    ours, theirs = encoder(graph), as_pyg_runs_it(encoder, graph)
    assert_close(ours, theirs, 1e-3)
    for conv in (encoder.convs[0], encoder.convs[32], encoder.convs[63]):
        parameters = list(conv.parameters())
        gradients = torch.autograd.grad(ours.square().sum(), parameters, retain_graph=True)
        expected = torch.autograd.grad(theirs.square().sum(), parameters, retain_graph=True)
        scale = max(float(other.abs().max()) for other in expected)
        for gradient, other in zip(gradients, expected, strict=True):
            assert_close(gradient, other, 1e-2, scale)


@every_kind
def test_the_isolated_node_is_pygs_too(make_graph, name: str) -> None:
    graph = make_graph()
    assert not graph.adjacency[[graph.num_nodes - 1]].nnz
    encoder = make(name, graph)
    assert_close(encoder(graph)[-1], as_pyg_runs_it(encoder, graph)[-1])


@every_kind
def test_a_graph_without_edges(name: str) -> None:
    graph = Graph.of(np.random.default_rng(0).random((5, 3)), np.empty((2, 0), dtype=int))
    encoder = make(name, graph)
    assert_close(encoder(graph), as_pyg_runs_it(encoder, graph))


@every_kind
def test_dropout_is_on_in_training_and_off_in_eval(make_graph, name: str) -> None:
    graph = make_graph()
    encoder = make(name, graph, dropout=0.5)
    assert torch.equal(encoder(graph), encoder(graph))
    encoder.train()
    assert not torch.equal(encoder(graph), encoder(graph))


@pytest.mark.parametrize("sparse", [True, False])
@every_kind
def test_dropout_of_the_features_is_on_in_training_and_off_in_eval(
    make_graph, name: str, sparse: bool
) -> None:
    graph = make_graph(sparse=sparse)
    encoder = make(name, graph, layers=1, input_dropout=0.5)
    assert torch.equal(encoder(graph), make(name, graph, layers=1)(graph))
    encoder.train()
    assert not torch.equal(encoder(graph), encoder(graph))
    assert encoder.spec.is_random
    assert not make(name, graph, layers=1).spec.is_random


@pytest.mark.parametrize("sparse", [True, False])
def test_dropout_of_the_features_is_right_on_average(make_graph, sparse: bool) -> None:
    """A layer of GCN is linear in its features, so the mean of z is the z without dropout."""
    graph = make_graph(sparse=sparse)
    encoder = make("gcn", graph, layers=1, input_dropout=0.5).train()
    with torch.no_grad():
        z = torch.stack([encoder(graph) for _ in range(3000)])
        assert_close(z.mean(0), encoder.eval()(graph), 0.06)
    # And single passes are far from it.
    assert float(z.std(0).max()) > 0.1 * float(z.mean(0).abs().max())


@pytest.mark.parametrize("sparse", [True, False])
@every_kind
def test_with_dropout_of_the_features_value_and_gradient_are_pygs(
    make_graph, name: str, sparse: bool
) -> None:
    """PyG is shown the features that were left, so that only the dropout is random."""
    graph = make_graph(sparse=sparse)
    encoder = make(name, graph, dropout=0.0, input_dropout=0.5, row_normalize=False).train()
    torch.manual_seed(1)
    ours = encoder(graph)
    torch.manual_seed(1)
    x = features(graph, torch.device("cpu"), False)
    left = x.dropout(0.5).csr.to_dense() if isinstance(x, SparseMatrix) else F.dropout(x, 0.5)
    assert 0 < int((left != 0).sum()) < int((torch.from_numpy(dense(graph)) != 0).sum())
    theirs = as_pyg_runs_it(encoder, Graph.of(left.numpy(), graph.edge_index))
    assert_close(ours, theirs)
    parameters, upstream = list(encoder.parameters()), torch.randn_like(theirs)
    gradients, expected = (torch.autograd.grad(z, parameters, upstream) for z in (ours, theirs))
    scale = max(float(other.abs().max()) for other in expected)
    for gradient, other in zip(gradients, expected, strict=True):
        assert_close(gradient, other, 1e-4, scale)


def test_there_is_no_dropout_in_a_single_layer(make_graph) -> None:
    graph = make_graph()
    encoder = make("gcn", graph, layers=1, dropout=0.9).train()
    assert torch.equal(encoder(graph), encoder(graph))


def test_no_activation_after_the_last_layer(make_graph) -> None:
    graph = make_graph()
    assert float(make("gcn", graph)(graph).detach().min()) < 0


def test_row_normalize_makes_the_scale_of_a_node_irrelevant(make_graph) -> None:
    graph = make_graph(sparse=False)
    louder = Graph.of(graph.x * np.arange(1, graph.num_nodes + 1)[:, None], graph.edge_index)
    encoder = make("gcn", graph, row_normalize=True)
    assert_close(encoder(louder), encoder(graph))
    plain = make("gcn", graph, row_normalize=False)
    assert not torch.allclose(plain(louder), plain(graph))


@pytest.mark.parametrize(("name", "layer"), [("gat", GATConv), ("gatv2", GATv2Conv)])
def test_gat_has_its_heads_inside_and_one_at_the_end(make_graph, name: str, layer: type) -> None:
    encoder = make(name, make_graph(), layers=3)
    assert {type(conv) for conv in encoder.convs} == {layer}
    assert [conv.heads for conv in encoder.convs] == [4, 4, 1]
    assert [conv.in_channels for conv in encoder.convs] == [12, 32, 32]
    assert [conv.out_channels for conv in encoder.convs] == [8, 8, 8]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"name": "gnc"}, "unknown encoder 'gnc'; known: gat, gcn, sage"),
        ({"layers": 0}, r"layers must lie in 1..64, it is 0"),
        ({"layers": 65}, "layers must lie"),
        ({"hidden": 0}, "hidden must lie"),
        ({"heads": 0, "name": "gat"}, "heads must lie"),
        ({"dropout": 1.0}, "dropout must be at least 0 and below 1, it is 1.0"),
        ({"dropout": -0.1}, "dropout"),
        ({"input_dropout": 1.0}, "input_dropout must be at least 0 and below 1, it is 1.0"),
        ({"input_dropout": -0.1}, "input_dropout must be at least 0"),
        ({"attention": "v2"}, "attention is a setting of gat, the encoder is gcn"),
        ({"attention": "v2", "name": "sage"}, "attention is a setting of gat, the encoder is sage"),
        ({"attention": "v3", "name": "gat"}, "unknown attention 'v3'; known: v1, v2"),
    ],
)
def test_impossible_settings(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        GNNSpec(**settings)  # type: ignore[arg-type]


@every_kind
def test_hidden_need_not_be_a_multiple_of_heads(make_graph, name: str) -> None:
    graph = make_graph()
    encoder = make(name, graph, hidden=7, heads=3)
    assert encoder(graph).shape == (graph.num_nodes, 7)
    assert_close(encoder(graph), as_pyg_runs_it(encoder, graph))


def test_settings_name_heads_and_attention_only_where_they_matter() -> None:
    assert {"heads", "attention"} <= set(GNNSpec("gat").as_settings())
    assert not {"heads", "attention"} & set(GNNSpec("gcn").as_settings())
    assert "num_features" not in GNNSpec("gcn").as_settings()
    assert GNNSpec("sage").as_settings()["input_dropout"] == 0.0


def test_a_spec_saved_before_a_field_existed_is_one_without_it() -> None:
    saved = {
        "name": "gat",
        "num_features": 5,
        "hidden": 4,
        "layers": 2,
        "dropout": 0.5,
        "heads": 2,
        "row_normalize": True,
    }
    spec = GNNSpec(**saved)
    assert (spec.input_dropout, spec.attention) == (0.0, "v1")
    assert all(isinstance(conv, GATConv) for conv in GNN(spec).convs)
