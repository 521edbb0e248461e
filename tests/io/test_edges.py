"""Edge weights and edge types, from every kind of file into the graph and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import nodenova as nova
from nodenova.errors import GraphError, SettingError
from nodenova.io.describe import describe, lines_of
from nodenova.io.edges import EdgeType, combine_types, first_ids, named_nodes
from nodenova.io.graph_folder.prepare import convert
from nodenova.io.nodes import LONGEST_ID
from nodenova.io.npz import graph_npz
from nodenova.io.table_options import TableOptions, parse_edge_types
from nodenova.nn.sparse import weighted_links

NODES = "id,label,size\na,red,1\nb,red,2\nc,blue,3\nd,,4\n"
EDGES = "source,target,w\na,b,2\nb,c,0.5\nc,d,3\n"


def load(folder: Path, edges: str = EDGES, **options: Any) -> nova.UserGraph:
    (folder / "nodes.csv").write_text(NODES)
    (folder / "edges.csv").write_text(edges)
    return nova.load_graph(folder, **{"weight_column": "w", **options})


def weights(graph: nova.Graph) -> dict[str, float]:
    """By the two ends, the earlier first."""
    assert graph.edge_weight is not None
    names = graph.node_ids
    return {
        f"{names[a]}{names[b]}": float(w)
        for a, b, w in zip(*graph.edge_index, graph.edge_weight, strict=True)
        if a < b
    }


def test_weights_of_a_table_count_and_it_is_said(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    assert weights(loaded.graph) == {"ab": 2, "bc": 0.5, "cd": 3}
    assert "edges.csv: edges are weighted; heavier edges have more influence" in loaded.notes
    assert "weights    0.5 to 3; heavier edges have more influence" in lines_of(describe(loaded))


def test_they_only_filter_where_that_is_asked(tmp_path: Path) -> None:
    loaded = load(tmp_path, weights="filter", min_weight=1)
    assert loaded.graph.edge_weight is None
    assert loaded.graph.num_edges == 4
    assert any("only decide which edges are dropped" in note for note in loaded.notes)
    assert not any(line.startswith("weights ") for line in lines_of(describe(loaded)))


def test_light_edges_are_dropped_and_the_others_count(tmp_path: Path) -> None:
    edges = EDGES + "a,d,-4\na,c,0\n"
    loaded = load(tmp_path, edges, min_weight=1)
    assert weights(loaded.graph) == {"ab": 2, "cd": 3}


def test_an_edge_that_weighs_nothing_is_none(tmp_path: Path) -> None:
    assert weights(load(tmp_path, EDGES + "a,c,0\n").graph) == {"ab": 2, "bc": 0.5, "cd": 3}


def test_weights_of_the_same_edge_are_added(tmp_path: Path) -> None:
    loaded = load(tmp_path, EDGES + "a,b,4\nb,a,8\nb,b,100\n")
    assert weights(loaded.graph) == {"ab": 14, "bc": 0.5, "cd": 3}
    assert "edges.csv: 1 edge repeats an earlier one; their weights are added" in loaded.notes


def test_a_symmetric_list_gives_every_edge_once(tmp_path: Path) -> None:
    loaded = load(tmp_path, EDGES + "b,a,2\nc,b,0.5\nd,c,3\n")
    assert weights(loaded.graph) == {"ab": 2, "bc": 0.5, "cd": 3}


def test_without_a_column_there_are_no_weights(tmp_path: Path) -> None:
    assert load(tmp_path, weight_column=None).graph.edge_weight is None


@pytest.mark.parametrize("edges", [EDGES, EDGES + "b,a,2\nc,b,0.5\nd,c,3\na,a,1\n"])
def test_what_is_written_is_read_again_bit_for_bit(tmp_path: Path, edges: str) -> None:
    graph = load(tmp_path, edges.replace("0.5", "0.1")).graph
    (tmp_path / "g.npz").write_bytes(graph_npz(graph))
    loaded = nova.load_graph(tmp_path / "g.npz")
    convert(loaded, tmp_path / "folder")
    for again in (loaded.graph, nova.load_graph(tmp_path / "folder").graph):
        assert np.array_equal(again.edge_index, graph.edge_index)
        assert np.array_equal(again.edge_weight, graph.edge_weight)


def test_a_networkx_graph_brings_weights_by_the_name_of_their_attribute() -> None:
    graph = nx.Graph()
    graph.add_nodes_from((node, {"size": i}) for i, node in enumerate("abcd"))
    graph.add_edge("a", "b", w=2)
    graph.add_edge("b", "c", w=0.5)
    assert weights(nova.load_graph(graph, weight_column="w").graph) == {"ab": 2, "bc": 0.5}
    assert nova.load_graph(graph).graph.edge_weight is None


def test_a_data_object_brings_edge_weight() -> None:
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    weight = torch.tensor([2.0, 2.0, 0.3, 0.3])
    data = Data(x=torch.eye(3), edge_index=edges, edge_weight=weight)
    graph = nova.load_graph(data).graph
    assert graph.edge_weight is not None
    assert np.array_equal(graph.edge_weight, weight.numpy())
    data.edge_weight = torch.tensor([2.0, 2.0, -1.0, 0.3])
    with pytest.raises(GraphError, match=r"that of edge 2 \(1 -> 2\) is -1"):
        nova.load_graph(data)


@pytest.mark.parametrize(
    ("weight", "said"),
    [([1.0], "edge_weight has shape \\(1,\\), but there are 2 edges"),
     ([1.0, 0.0], "edge 1 \\(1 -> 2\\) is 0"), ([np.nan, 1.0], "edge 0 \\(0 -> 1\\) is nan"),
     (["x", "y"], "not a list of numbers")],
)  # fmt: skip
def test_wrong_weights_get_one_sentence(weight: list[Any], said: str) -> None:
    with pytest.raises(GraphError, match=f"mine: .*{said}"):
        nova.Graph.of(np.eye(3), [[0, 1], [1, 2]], edge_weight=weight, source="mine")


def test_the_fingerprint_knows_weights(tmp_path: Path) -> None:
    one, other = load(tmp_path), load(tmp_path, EDGES.replace("0.5", "0.6"))
    plain = load(tmp_path, weight_column=None)
    assert len({one.fingerprint(), other.fingerprint(), plain.fingerprint()}) == 3


def test_a_subgraph_keeps_its_weights(tmp_path: Path) -> None:
    graph = load(tmp_path).graph
    assert weights(graph.subgraph(np.array([1, 2, 3]))) == {"bc": 0.5, "cd": 3}
    assert weights(graph.with_features(np.ones((4, 2)), None)) == weights(graph)
    assert weights(graph.aligned(["size", "more"])[0]) == weights(graph)


TYPED_NODES = "id,label,size\na,red,1\nb,red,2\nc,blue,3\nd,,4\ne,,4\n"
TYPED_EDGES = (
    "source,target,kind,w\na,b,cites,1\na,c,cites,2\na,d,cites,3\na,e,cites,4\n"
    "a,b,same author,9\nd,e,same author,9\n"
)


def load_typed(folder: Path, edges: str = TYPED_EDGES, **options: Any) -> nova.UserGraph:
    (folder / "nodes.csv").write_text(TYPED_NODES)
    (folder / "edges.csv").write_text(edges)
    return nova.load_graph(folder, **{"edge_type_column": "kind", **options})


def test_edges_of_all_types_are_those_of_one_graph_and_it_is_said(tmp_path: Path) -> None:
    loaded = load_typed(tmp_path)
    assert loaded.graph.num_edges == 10
    assert loaded.graph.edge_weight is not None
    assert any(
        "edges.csv: edge types are cites 4, same author 2; at each node" in note
        for note in loaded.notes
    )
    assert not any("repeat" in note for note in loaded.notes)


def test_one_type_is_as_no_type_bit_for_bit(tmp_path: Path) -> None:
    chosen = load_typed(tmp_path, edge_types="cites")
    plain = load_typed(
        tmp_path, "\n".join(TYPED_EDGES.splitlines()[:5]) + "\n", edge_type_column=None
    )
    assert chosen.fingerprint() == plain.fingerprint()
    assert chosen.graph.edge_weight is None
    assert any("edge types not used: same author" in note for note in chosen.notes)


def test_one_type_with_weights_is_as_weights_alone(tmp_path: Path) -> None:
    typed = load_typed(tmp_path, edge_types="cites", weight_column="w").graph.edge_weight
    lines = "\n".join(TYPED_EDGES.splitlines()[:5]) + "\n"
    plain = load_typed(tmp_path, lines, edge_type_column=None, weight_column="w").graph.edge_weight
    assert typed is not None
    assert plain is not None
    assert np.allclose(typed / typed[0], plain / plain[0])


def test_types_count_alike_where_all_nodes_have_as_many_of_each() -> None:
    """Ten edges of one type weigh at a node what two of another do."""
    ring = np.arange(60)
    far = [np.stack([ring, (ring + step) % 60]) for step in range(3, 8)]
    types = [
        EdgeType("many", np.concatenate(far, axis=1)),
        EdgeType("few", np.stack([ring, (ring + 1) % 60])),
    ]
    for shares, times in ((None, 1.0), ({"many": 1.0, "few": 3.0}, 3.0)):
        ends, weight = combine_types(types, 60, shares, "edges", [])
        links = weighted_links(nova.Graph.of(np.ones((60, 2)), ends, edge_weight=weight)).toarray()
        few = np.isin((ring[:, None] - ring) % 60, [1, 59])
        ratio = links[few].sum() / links[~few].sum()
        assert ratio == pytest.approx(times, rel=1e-5)


def test_weights_count_within_their_type_whatever_their_scale(tmp_path: Path) -> None:
    one = load_typed(tmp_path, weight_column="w").graph.edge_weight
    heavy = TYPED_EDGES.replace(",9", ",9000")
    assert np.allclose(load_typed(tmp_path, heavy, weight_column="w").graph.edge_weight, one)
    other = TYPED_EDGES.replace("a,b,cites,1", "a,b,cites,4")
    assert not np.allclose(load_typed(tmp_path, other, weight_column="w").graph.edge_weight, one)


@pytest.mark.parametrize(
    ("given", "shares"),
    [
        (None, None),
        ("cites", {"cites": 1.0}),
        (" cites , same author=0.5", {"cites": 1.0, "same author": 0.5}),
        (["a=b=2"], {"a=b": 2.0}),
        ({"cites": 2}, {"cites": 2.0}),
    ],
)
def test_types_are_chosen_in_several_ways(given: Any, shares: Any) -> None:
    assert parse_edge_types(given) == shares


@pytest.mark.parametrize("given", ["", "cites=none", {"cites": -1}, {"cites": float("inf")}])
def test_a_choice_that_says_nothing_is_refused(given: Any) -> None:
    with pytest.raises(SettingError, match="edge_types"):
        parse_edge_types(given)


def test_a_graph_that_is_ready_has_no_types() -> None:
    with pytest.raises(SettingError, match="edge_types is for tables"):
        nova.load_graph(nova.synthetic(nodes=50, classes=2).graph, edge_types="cites")


def types_of(seed: int) -> tuple[np.ndarray, np.ndarray, list[EdgeType]]:
    """Words that say little, few edges within classes, many that lead anywhere."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 6, 500)
    groups = [np.flatnonzero(y == c) for c in range(6)]
    a = rng.integers(0, 500, 750)
    anywhere = rng.random(750) < 0.2
    b = np.where(anywhere, rng.integers(0, 500, 750), [rng.choice(groups[c]) for c in y[a]])
    x = (rng.random((500, 180)) < 0.02).astype(np.float32)
    own = 30 * y[:, None] + rng.integers(0, 30, (500, 1))
    np.put_along_axis(x, own, 1.0, axis=1)
    return (
        y,
        x,
        [EdgeType("good", np.stack([a, b])), EdgeType("noise", rng.integers(0, 500, (2, 4000)))],
    )


def test_many_edges_that_say_nothing_do_not_drown_few_that_do() -> None:
    y, x, types = types_of(0)

    def score(ends: np.ndarray, weight: np.ndarray | None) -> float:
        labelled = nova.LabelledGraph(
            nova.Graph.of(x, ends, edge_weight=weight), y, tuple("abcdef")
        )
        old, new, exam = nova.split(labelled, [0, 1, 2])
        model = nova.discover(nova.fit(old), new, nova.Prism(n_resamples=0))
        return nova.grade(model, exam).scores("block")["all"]

    untyped = score(np.concatenate([kind.ends for kind in types], axis=1), None)
    typed = score(*combine_types(types, 500, None, "edges", []))
    chosen = score(*combine_types(types, 500, {"good": 1.0}, "edges", []))
    assert typed > untyped + 5
    assert chosen > typed + 3


def test_nodes_that_edges_name_are_numbered_from_one() -> None:
    notes: list[str] = []
    nodes = named_nodes("edges.csv", ["x", "y"], notes)
    assert list(nodes.table.lines) == [1, 2]
    assert (nodes.ids, nodes.y.tolist(), nodes.class_names) == (["x", "y"], [-1, -1], ())
    assert notes == ["edges.csv: no table of nodes; the 2 nodes that edges name have no labels"]
    with pytest.raises(GraphError, match=r"edges\.csv: a header and no edges"):
        named_nodes("edges.csv", [], notes)


def test_an_edge_of_the_least_weight_is_kept(tmp_path: Path) -> None:
    loaded = load(tmp_path, min_weight=2)
    assert weights(loaded.graph) == {"ab": 2, "cd": 3}
    assert any(
        "1 edge without a positive weight, or with one below 2, was" in n for n in loaded.notes
    )


def test_a_first_line_with_one_known_id_is_a_header(tmp_path: Path) -> None:
    for header in ("a,zzz", "zzz,a"):
        loaded = load(tmp_path, f"{header}\na,b\nb,c\n", weight_column=None)
        assert loaded.graph.num_edges == 4
        assert not any("there is no header" in note for note in loaded.notes)
    loaded = load(tmp_path, "a,d\na,b\nb,c\n", weight_column=None)
    assert loaded.graph.num_edges == 6
    assert "edges.csv: there is no header, the first line is an edge" in loaded.notes


def test_another_column_that_has_the_ids_is_named(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,key,label\n1,a,x\n2,b,x\n3,c,y\n")
    for ends, hint in (
        ("a,b", "column 'key' has these ids: give it as id_column"),
        ("a,zzz", "give drop_unknown_edges"),
    ):
        (tmp_path / "edges.csv").write_text(f"source,target\n1,2\n{ends}\n")
        with pytest.raises(GraphError) as caught:
            nova.load_graph(tmp_path)
        assert hint in str(caught.value)
        assert "1 edge names nodes that nodes.csv does not have, first: " in str(caught.value)
        assert "(line 3)" in str(caught.value)


def test_the_first_unknown_edge_is_the_one_that_is_named(tmp_path: Path) -> None:
    edges = "source,target\na,b\na,x\ny,b\n"
    with pytest.raises(GraphError, match=r"2 edges name .* first: 'a' -> 'x' \(line 3\)"):
        load(tmp_path, edges, weight_column=None)
    loaded = load(tmp_path, edges, weight_column=None, drop_unknown_edges=True)
    assert loaded.graph.num_edges == 2
    assert any("; dropped, first: 'a' -> 'x'" in note for note in loaded.notes)


def test_repeated_edges_are_counted_by_kind(tmp_path: Path) -> None:
    edges = "source,target\na,b\na,b\na,b\nb,a\nc,c\nd,d\nc,d\n"
    notes = load(tmp_path, edges, weight_column=None).notes
    assert "edges.csv: 2 self-loops were dropped" in notes
    assert "edges.csv: 2 edges repeat an earlier one; each is kept once" in notes
    assert "edges.csv: 1 edge occurs in both directions; edges have no direction here" in notes


def test_ids_that_a_spreadsheet_made_numbers_are_found_and_counted(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,label\n1,x\n2,x\n3.0,y\n")
    (tmp_path / "edges.csv").write_text("source,target\n1.0,2\n2,3\n")
    loaded = nova.load_graph(tmp_path)
    assert loaded.graph.num_edges == 4
    assert "edges.csv: 2 ids like '12.0' read as '12'" in loaded.notes


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("a,,1", "line 3: an edge with only one end"),
        (",b,1", "line 3: an edge with only one end"),
        ("a,b,x", "line 3: the weight of an edge must be a number, it is 'x'"),
        ("a,b,inf", "line 3: the weight of an edge must be a number, it is 'inf'"),
        ("a,b,", "line 3: the weight of an edge must be a number, it is ''"),
        ("a,b,-1", "line 3: the weight of an edge cannot be below zero, it is '-1'"),
    ],
)
def test_a_wrong_edge_is_named_by_its_line(tmp_path: Path, line: str, error: str) -> None:
    with pytest.raises(GraphError) as caught:
        load(tmp_path, f"source,target,w\na,b,1\n{line}\n")
    assert error in str(caught.value)


def test_an_id_that_is_a_paragraph_is_no_id(tmp_path: Path) -> None:
    for length in (LONGEST_ID, LONGEST_ID + 1):
        (tmp_path / "edges.csv").write_text(f"source,target\na,{'b' * length}\n")
        if length == LONGEST_ID:
            assert nova.load_graph(edges=tmp_path / "edges.csv").graph.num_nodes == 2
        else:
            with pytest.raises(GraphError, match=r"line 2: an id of .* characters; is this"):
                nova.load_graph(edges=tmp_path / "edges.csv")


def test_columns_that_are_left_for_the_ends_must_be_enough(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match=r"no columns are left for .* of an edge beside 'w';"):
        load(tmp_path, "a1,w\na,1\n")


def test_one_type_alone_shares_no_weight_with_others(tmp_path: Path) -> None:
    one = load(tmp_path, "source,target,t\na,b,x\n", weight_column=None, edge_type_column="t")
    assert "edges.csv: edge types are x 1" in one.notes
    edges = "source,target,t\na,b,x\nb,c,y\n"
    two = load(tmp_path, edges, weight_column=None, edge_type_column="t")
    assert (
        "edges.csv: edge types are x 1, y 1; at each node, all edge types carry equal total weight"
        in two.notes
    )


def test_weights_of_both_directions_are_noted(tmp_path: Path) -> None:
    notes = load(tmp_path, EDGES + "b,a,7\n").notes
    assert (
        "edges.csv: 1 edge occurs in both directions; edges have no direction here, weights are "
        "added unless all edges weigh the same both ways" in notes
    )


def test_the_first_ids_are_ends_of_edges_and_no_weights(tmp_path: Path) -> None:
    path = tmp_path / "edges.csv"
    path.write_text("source,target,weight\na,b,7\nb,c,8\n")
    assert first_ids(path, TableOptions(weight_column="weight"), {}) == ["a", "b", "b", "c"]
