"""Graph and NewTask: what is checked, and that neither has a field for a label."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from nodenova.errors import GraphError, NodenovaError, SettingError
from nodenova.graph import Graph, NewTask, canonical_order, invert

X = np.arange(12, dtype=float).reshape(4, 3)


def test_edges_are_stored_in_both_directions_once_each_sorted_and_without_self_loops() -> None:
    graph = Graph.of(X, [[2, 0, 0, 1, 3, 3], [1, 1, 1, 0, 3, 0]])
    assert graph.edge_index.tolist() == [[0, 0, 1, 1, 2, 3], [1, 3, 0, 2, 1, 0]]
    assert graph.num_edges == 6
    assert graph.edge_index.dtype == np.int64
    assert (graph.adjacency.toarray() == graph.adjacency.toarray().T).all()
    assert graph.adjacency.toarray().sum() == 6


def test_narrow_edge_types_do_not_overflow() -> None:
    n = 300
    graph = Graph.of(np.ones((n, 1)), np.array([[250, 299], [299, 251]], dtype=np.int16))
    assert graph.edge_index.tolist() == [[250, 251, 299, 299], [299, 299, 250, 251]]


def test_a_graph_without_edges() -> None:
    graph = Graph.of(X, np.empty((2, 0)))
    assert graph.num_edges == 0
    assert graph.adjacency.shape == (4, 4)


def test_features_are_float32_sparse_when_few_and_dense_when_many() -> None:
    dense = Graph.of(X, [[0], [1]])
    assert isinstance(dense.x, np.ndarray)
    assert dense.x.dtype == np.float32
    few = np.zeros((4, 10))
    few[1, 2] = 5
    for x in (few, sp.coo_array(few), sp.csc_matrix(few)):
        sparse = Graph.of(x, [[0], [1]])
        assert isinstance(sparse.x, sp.csr_array)
        assert sparse.x.dtype == np.float32
        assert (sparse.x.toarray() == few).all()
    assert isinstance(Graph.of(sp.csr_array(X), [[0], [1]]).x, np.ndarray)


def test_stored_zeros_and_duplicates_of_a_sparse_x_do_not_matter() -> None:
    x = sp.csr_array(
        (np.array([1.0, 2.0, 0.0]), np.array([3, 3, 1]), np.array([0, 3, 3])), shape=(2, 10)
    )
    graph = Graph.of(x, [[0], [1]])
    assert graph.x.nnz == 1
    assert graph.x.toarray()[0, 3] == 3.0


def test_the_users_sparse_x_is_left_as_it_was() -> None:
    data, indices = np.array([1, 2, 0, 4], dtype=np.float32), np.array([7, 7, 1, 0], dtype=np.int32)
    x = sp.csr_array((data, indices, np.array([0, 3, 4], dtype=np.int32)), shape=(2, 10))
    before = (x.data.copy(), x.indices.copy(), x.indptr.copy())
    Graph.of(x, [[0], [1]])
    for part, kept in zip((x.data, x.indices, x.indptr), before, strict=True):
        assert np.array_equal(part, kept)


def test_node_ids_and_feature_names() -> None:
    graph = Graph.of(X, [[0], [1]], node_ids=["a", "b", "c", "d"], feature_names=["u", "v", "w"])
    assert graph.node_ids.tolist() == ["a", "b", "c", "d"]
    assert graph.feature_names == ("u", "v", "w")
    assert Graph.of(X, [[0], [1]]).node_ids.tolist() == [0, 1, 2, 3]


def test_subgraph() -> None:
    graph = Graph.of(
        X,
        [[0, 1, 2, 3], [1, 2, 3, 0]],
        node_ids=["a", "b", "c", "d"],
        feature_names=["u", "v", "w"],
    )
    part = graph.subgraph(np.array([0, 1, 3]))
    assert part.edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]
    assert part.node_ids.tolist() == ["a", "b", "d"]
    assert (part.x == X[[0, 1, 3]]).all()
    assert part.feature_names == graph.feature_names


def test_subgraph_of_sparse_features() -> None:
    x = np.zeros((4, 20))
    x[:, 0] = range(1, 5)
    part = Graph.of(x, [[0, 1, 2], [1, 2, 3]]).subgraph(np.array([1, 3]))
    assert part.x.toarray()[:, 0].tolist() == [2, 4]
    assert part.num_edges == 0


PATH = [[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]]  # 0 - 1 - 2 - 3 - 4 - 5, and 6 alone


@pytest.mark.parametrize(
    ("ids", "hops", "nodes"),
    [
        ([2], 0, [2]),
        ([2], 1, [1, 2, 3]),
        ([2, 5], 1, [1, 2, 3, 4, 5]),
        ([0], 99, [0, 1, 2, 3, 4, 5]),
        ([6], 3, [6]),
    ],
)
def test_around(ids: list[int], hops: int, nodes: list[int]) -> None:
    graph = Graph.of(np.arange(14.0).reshape(7, 2) + 1, PATH, node_ids=list("abcdefg"))
    part, where = graph.k_hop_subgraph(np.array(ids), hops)
    assert part.node_ids.tolist() == [graph.node_ids[node] for node in nodes]
    assert part.node_ids[where].tolist() == graph.node_ids[ids].tolist()
    assert part.edge_index.tolist() == graph.subgraph(np.array(nodes)).edge_index.tolist()


def test_around_is_the_graph_itself_when_everything_is_reached() -> None:
    graph = Graph.of(np.ones((7, 2)), PATH)
    ids = np.array([3, 6])
    part, where = graph.k_hop_subgraph(ids, 3)
    assert part is graph  # with all the operators that were built for it
    assert where.tolist() == ids.tolist()


def test_around_of_nodes_in_any_order_and_twice() -> None:
    part, where = Graph.of(np.ones((7, 2)), PATH).k_hop_subgraph(np.array([5, 2, 5]), 0)
    assert part.node_ids[where].tolist() == [5, 2, 5]


def test_a_graph_has_no_field_for_a_label() -> None:
    assert [field.name for field in dataclasses.fields(Graph)] == [
        "x",
        "edge_index",
        "node_ids",
        "feature_names",
        "edge_weight",
        "vectors",
        "recipe",
        "given_order",
    ]
    assert not {"y", "labels", "train", "test", "classes"} & set(dir(Graph))


IDS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=4), unique=True)
NUMBERS = st.lists(st.integers(0, 10**20).map(str), unique=True)


@given(ids=st.one_of(IDS, NUMBERS, st.permutations(["1", "01", "10", "9", "a", "B", "9a", "²"])))
def test_the_canonical_order_has_numbers_by_value_then_texts_by_code_point(ids: list[str]) -> None:
    ids = sorted({str(np.array([text])[0]) for text in ids} - {""})  # as NumPy holds them

    def key(text: str) -> tuple[bool, int, str]:
        is_number = text.isascii() and text.isdecimal()
        return not is_number, int(text) if is_number else 0, text

    if ids:
        assert [ids[i] for i in canonical_order(ids)] == sorted(ids, key=key)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_canonical_graph_is_the_same_graph_and_leads_back(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    ids = rng.permutation([f"n{i}" for i in range(12)])
    ends, weight = rng.integers(0, 12, (2, 30)), rng.random(30) + 0.5 if weighted else None
    x = rng.random((12, 3)) * (rng.random((12, 3)) < 0.3)
    graph = Graph.of(x, ends, node_ids=ids, edge_weight=weight, vectors=x, dense=False)
    other = graph.canonical()
    place = graph.numbers_of(other.node_ids)
    assert other.node_ids.tolist() == sorted(ids)
    expected = Graph.of(
        graph.x[place],
        invert(place)[graph.edge_index],
        edge_weight=graph.edge_weight,
        dense=False,
    )
    assert np.array_equal(other.edge_index, expected.edge_index)
    assert (other.x != expected.x).nnz == 0
    if weighted:
        assert np.array_equal(other.edge_weight, expected.edge_weight)
    back = other.as_given()
    for name in ("edge_index", "node_ids", "edge_weight", "vectors", "given_order"):
        assert np.array_equal(getattr(back, name), getattr(graph, name)), name
    assert (back.x != graph.x).nnz == 0
    assert np.array_equal(other.in_given_order(other.node_ids), graph.node_ids)
    assert np.array_equal(other.from_given_order(graph.node_ids), other.node_ids)
    assert other.canonical() is other


def test_a_graph_in_canonical_order_stays_as_it_is() -> None:
    graph = Graph.of(X, [[0], [1]], node_ids=[f"{i}" for i in range(len(X))])
    assert graph.canonical() is graph


def test_a_graph_is_frozen() -> None:
    graph = Graph.of(X, [[0], [1]])
    with pytest.raises(dataclasses.FrozenInstanceError):
        graph.x = X  # type: ignore[misc]


def test_repr() -> None:
    assert repr(Graph.of(X, [[0], [1]])) == "Graph(4 nodes, 2 edges, 3 dense features)"


NAN = X.copy()
NAN[2, 1] = np.nan
SPARSE_INF = sp.csr_array(([np.inf], ([1], [2])), shape=(4, 30))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"x": NAN}, r"1 entries that are not finite numbers, first: node 2, feature 1 is nan"),
        ({"x": SPARSE_INF}, r"first: node 1, feature 2 is inf"),
        ({"x": np.zeros((0, 3))}, r"x is empty"),
        ({"x": np.zeros((4, 0))}, r"x is empty"),
        ({"x": np.zeros(4)}, r"two dimensions \(nodes, features\), it has 1"),
        ({"x": [["a", "b"]]}, r"not a table of numbers"),
        ({"edge_index": [[0, 1, 2]]}, r"shape \(2, edges\), it has \(1, 3\)"),
        ({"edge_index": [0, 1]}, r"shape \(2, edges\)"),
        ({"edge_index": [[0.5], [1]]}, r"whole numbers"),
        (
            {"edge_index": [[0, 1], [1, 4]]},
            r"1 edge names a node not in the graph \(nodes are 0..3\), first: 1 -> 4",
        ),
        ({"edge_index": [[0], [-1]]}, r"first: 0 -> -1"),
        ({"node_ids": ["a", "b", "c"]}, r"node_ids has shape \(3,\), but x has 4 nodes"),
        ({"node_ids": ["a", "b", "c", "b"]}, r"unique, 'b' appears 2 times"),
        ({"node_ids": [7, 8, 7, 9]}, r"unique, 7 appears 2 times"),
        ({"feature_names": ["u"]}, r"feature_names has 1 names for 3 features"),
    ],
)
def test_what_users_bring_is_checked_in_their_words(
    arguments: dict[str, object], sentence: str
) -> None:
    given = {"x": X, "edge_index": [[0], [1]], **arguments}
    with pytest.raises(GraphError, match=f"mine.npz: .*{sentence}"):
        Graph.of(given.pop("x"), given.pop("edge_index"), source="mine.npz", **given)  # type: ignore[arg-type]


def test_a_number_too_large_for_float32_is_an_error_not_a_warning() -> None:
    with pytest.raises(GraphError, match="not finite"):
        Graph.of(np.full((2, 2), 1e300), [[0], [1]])


@pytest.mark.parametrize("store", [np.asarray, sp.csr_array])
def test_features_are_neither_too_large_nor_all_too_small(store) -> None:
    fine = np.array([[1e15, 1e-30], [-1e15, 0.0], [0.0, 1e-15]])
    assert Graph.of(store(fine), [[0], [1]]).num_nodes == 3
    large = fine.copy()
    large[1, 0], large[2, 1] = -2e15, 1e30
    sentence = (
        "mine: x has 2 entries beyond 1e+15, first: node 1, feature 0 (size) is -2e+15; "
        "divide this feature by its maximum"
    )
    with pytest.raises(GraphError) as caught:
        Graph.of(store(large), [[0], [1]], source="mine", feature_names=["size", "age"])
    assert str(caught.value) == sentence
    with pytest.raises(GraphError, match="all entries of x are below 1e-15, the largest is 1e-20"):
        Graph.of(store(fine * 1e-35), [[0], [1]])
    assert Graph.of(store(np.zeros((3, 2))), [[0], [1]]).num_nodes == 3


@pytest.mark.parametrize(("value", "problem"), [(np.nan, "is not finite"), (1e16, "is too large")])
def test_vectors_are_finite_and_not_too_large(value: float, problem: str) -> None:
    vectors = np.ones((4, 2))
    assert Graph.of(X, [[0], [1]], vectors=1e15 * vectors).vectors is not None
    vectors[2, 1] = value
    with pytest.raises(GraphError, match=f"the vector of node 2 has a number that {problem}"):
        Graph.of(X, [[0], [1]], vectors=vectors)


@pytest.mark.parametrize("weight", [1e-30, 1e30])
def test_extreme_weights_that_are_accepted_are_accepted_again(weight: float) -> None:
    graph = Graph.of(X, [[0, 1], [1, 2]], edge_weight=[weight, 1.0])
    again = Graph.of(graph.x, graph.edge_index, edge_weight=graph.edge_weight)
    assert again.edge_weight is not None
    assert again.edge_weight.tolist() == graph.edge_weight.tolist()  # type: ignore[union-attr]


def test_weights_that_add_up_to_too_much_are_refused() -> None:
    with pytest.raises(GraphError, match=r"weights of the edge 0 -> 1 add up to 2e\+30, at most"):
        Graph.of(X, [[0, 0], [1, 1]], edge_weight=[1e30, 1e30])
    with pytest.raises(GraphError, match=r"from 1e-30 to 1e\+30, that of edge 0 \(0 -> 1\) is 2e"):
        Graph.of(X, [[0], [1]], edge_weight=[2e30])


GRAPH = Graph.of(np.ones((6, 2)), [[0, 1], [1, 2]])


def test_phase_2_is_given_a_graph_ids_a_number_and_whether_ids_are_mixed_and_nothing_else() -> None:
    names = [field.name for field in dataclasses.fields(NewTask)]
    assert names == ["graph", "ids", "num_new", "mixed"]


def test_nobody_need_say_how_many_but_a_method_is_told() -> None:
    assert NewTask(GRAPH, np.array([1, 3]), None).num_new is None
    assert NewTask(GRAPH, np.array([1, 3]), 2).number == 2
    with pytest.raises(SettingError, match="num_new must be a number here"):
        _ = NewTask(GRAPH, np.array([1, 3]), None).number


def test_ids_become_int64() -> None:
    assert NewTask(GRAPH, np.array([1, 3], dtype=np.int16), 2).ids.dtype == np.int64
    assert NewTask(GRAPH, [1, 3], 2).ids.tolist() == [1, 3]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ids", "num_new", "error", "sentence"),
    [
        ([1, 2], 0, SettingError, "num_new must be at least 1, it is 0"),
        (
            [1, 2],
            3,
            GraphError,
            "3 new classes need at least 3 unlabelled nodes, there are 2",
        ),
        ([], 1, GraphError, "there are 0"),
        ([[1, 2]], 1, GraphError, "unlabelled nodes"),
        ([2, 1], 1, GraphError, "strictly ascending"),
        ([1, 1], 1, GraphError, "strictly ascending"),
        ([1, 6], 1, GraphError, r"must lie in 0..5, they span 1..6"),
        ([-1, 2], 1, GraphError, r"must lie in 0..5"),
    ],
)
def test_bad_tasks(ids: list[int], num_new: int, error: type[NodenovaError], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        NewTask(GRAPH, np.array(ids), num_new)


@pytest.mark.parametrize(
    "x",
    [
        np.eye(3) * 1j,
        sp.csr_array(np.eye(3) * 1j),
        torch.eye(3, dtype=torch.complex64),
        pd.DataFrame(np.eye(3) * 1j),
    ],
    ids=["array", "sparse", "tensor", "frame"],
)
def test_complex_numbers_are_refused_and_not_cut(x: object) -> None:
    with pytest.raises(GraphError, match="graph: x has complex numbers; give real ones"):
        Graph.of(x, [[0], [1]])
    with pytest.raises(GraphError, match="vectors has complex numbers"):
        Graph.of(np.eye(3), [[0], [1]], vectors=x)
    with pytest.raises(GraphError, match="edge_weight has complex numbers"):
        Graph.of(np.eye(3), [[0], [1]], edge_weight=np.array([1j]))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"node_ids": ["a", "b", "\ud800"]}, "the node id .* cannot be written as UTF-8"),
        ({"feature_names": ["a", "b", "\udfff"]}, "the feature .* cannot be written as UTF-8"),
        ({"node_ids": [1.0, 2.0, float("inf")]}, "that of node 2 is not"),
        ({"node_ids": [1j, 2j, 3j]}, "node_ids must be texts or numbers"),
    ],
)
def test_names_that_cannot_be_written(names: dict[str, list[object]], expected: str) -> None:
    with pytest.raises(GraphError, match=expected) as caught:
        Graph.of(np.eye(3), [[0], [1]], **names)  # type: ignore[arg-type]
    str(caught.value).encode()
