"""The same graph through every entrance, and what becomes of columns, new nodes and grown files."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

import nodenova as nova
from nodenova.errors import GraphError, SettingError
from nodenova.io import columns
from nodenova.io.recipe import TableEncoder

IDS = ["x1", "x 2", "ü3", "004", "5"]
LABELS = ["red", "red", "blue", "blue", ""]
WEIGHTS = [1.5, 2.25, 4.0, 0.5, 8.0]
PAIRS = [("x1", "x 2"), ("ü3", "004"), ("004", "5")]


def rows() -> tuple[list[list[str]], list[list[str]]]:
    nodes = [["id", "label", "mass"]]
    nodes += [[a, b, str(c)] for a, b, c in zip(IDS, LABELS, WEIGHTS, strict=True)]
    return nodes, [["source", "target"], *map(list, PAIRS)]


def text(table: list[list[str]], delimiter: str = ",") -> str:
    return "\n".join(delimiter.join(row) for row in table) + "\n"


def networkx_graph() -> nx.Graph:
    graph = nx.Graph()
    for node, label, mass in zip(IDS, LABELS, WEIGHTS, strict=True):
        graph.add_node(node, label=label, mass=mass)
    graph.add_edges_from(PAIRS)
    return graph


def csv_folder(folder: Path) -> Any:
    for name, table in zip(("nodes", "edges"), rows(), strict=True):
        (folder / f"{name}.csv").write_text(text(table))
    return nova.load_graph(folder)


def tsv_gz(folder: Path) -> Any:
    for name, table in zip(("nodes", "edges"), rows(), strict=True):
        (folder / f"{name}.tsv.gz").write_bytes(gzip.compress(text(table, "\t").encode()))
    return nova.load_graph(nodes=folder / "nodes.tsv.gz", edges=str(folder / "edges.tsv.gz"))


def frames() -> tuple[Any, Any]:
    pandas = pytest.importorskip("pandas")
    nodes = pandas.DataFrame(
        {"id": IDS, "label": [label or None for label in LABELS], "mass": WEIGHTS}
    )
    return nodes, pandas.DataFrame(PAIRS, columns=["source", "target"])


def parquet(folder: Path) -> Any:
    pytest.importorskip("pyarrow")
    for name, frame in zip(("nodes", "edges"), frames(), strict=True):
        frame.to_parquet(folder / f"{name}.parquet")
    return nova.load_graph(folder)


def graphml(folder: Path) -> Any:
    nx.write_graphml(networkx_graph(), folder / "g.graphml")
    return nova.load_graph(folder / "g.graphml")


def gml(folder: Path) -> Any:
    graph = networkx_graph()
    for node in graph:
        # In GML, label is the name of a node.
        graph.nodes[node]["colour"] = graph.nodes[node].pop("label")
    nx.write_gml(graph, folder / "g.gml")
    return nova.load_graph(folder / "g.gml", label_column="colour")


ENTRANCES = {
    "csv": csv_folder,
    "tsv.gz": tsv_gz,
    "parquet": parquet,
    "graphml": graphml,
    "gml": gml,
    "networkx": lambda folder: nova.load_graph(networkx_graph()),
    "pandas": lambda folder: nova.load_graph(frames()),
    "pandas by name": lambda folder: nova.load_graph(nodes=frames()[0], edges=frames()[1]),
}


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_the_same_graph_through_every_entrance(tmp_path: Path, entrance: str) -> None:
    (tmp_path / "plain").mkdir()
    loaded, plain = ENTRANCES[entrance](tmp_path), csv_folder(tmp_path / "plain")
    assert loaded.graph.node_ids.tolist() == IDS
    assert loaded.class_names == ("blue", "red")
    assert loaded.y.tolist() == [1, 1, 0, 0, -1]
    assert loaded.new_ids.tolist() == [4]
    assert loaded.graph.feature_names == ("mass",)
    standardised = (np.array(WEIGHTS) - np.mean(WEIGHTS)) / np.std(WEIGHTS)
    assert np.allclose(loaded.graph.x[:, 0], standardised)
    assert (loaded.graph.edge_index == np.array([[0, 1, 2, 3, 3, 4], [1, 0, 3, 2, 4, 3]])).all()
    assert loaded.fingerprint() == plain.fingerprint()


def test_npz_pyg_and_matrices_are_ready_as_they_are(tmp_path: Path) -> None:
    x = np.eye(5, dtype=np.float32)
    edges = np.array([[0, 1, 2], [1, 2, 3]])
    y = np.array([0, 0, 1, 1, -1])
    np.savez(tmp_path / "g.npz", x=x, edge_index=edges, y=y)
    adjacency = sp.coo_array((np.ones(3), edges), shape=(5, 5))
    from_npz = nova.load_graph(tmp_path / "g.npz")
    from_pyg = nova.load_graph(
        Data(x=torch.tensor(x), edge_index=torch.tensor(edges), y=torch.tensor(y))
    )
    from_scipy = nova.load_graph((sp.csr_array(x), adjacency), name="mine")
    assert from_npz.fingerprint() == from_pyg.fingerprint()
    assert from_npz.new_ids.tolist() == from_pyg.new_ids.tolist() == [4]
    assert (from_scipy.graph.edge_index == from_npz.graph.edge_index).all()
    assert from_scipy.name == "mine"
    assert from_scipy.num_classes == 0
    assert from_npz.recipe is None
    old, _, _ = nova.split(nova.synthetic(nodes=60, classes=3), [0, 1])
    assert nova.split(nova.load_graph(tmp_path / "g.npz"), [0])[0].class_names == ("0",)
    assert old.class_names == ("class-0", "class-1")


@pytest.mark.parametrize(("name", "content"), [
    ("g.edgelist", "# a comment\na b {'weight': 3}\nb c\n"),
    ("g.txt", "a b\nb c\n"),
    ("g.csv", "source,target\na,b\nb,c\n"),
    ("g.tsv", "from\tto\na\tb\nb\tc\n"),
])  # fmt: skip
def test_an_edge_list_is_structure_only(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    loaded = nova.load_graph(tmp_path / name)
    assert loaded.graph.node_ids.tolist() == ["a", "b", "c"]
    assert loaded.graph.feature_names == ("next to a", "next to b", "next to c")
    dense = loaded.graph.x if isinstance(loaded.graph.x, np.ndarray) else loaded.graph.x.toarray()
    assert dense.tolist() == [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
    assert any("structure only" in note for note in loaded.notes)


def test_a_missing_library_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graphml(tmp_path)
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(
        GraphError, match=r"graphml files need NetworkX; pip install 'nodenova\[networkx\]'"
    ):
        nova.load_graph(tmp_path / "g.graphml")
    (tmp_path / "nodes.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        GraphError, match=r"Parquet files need pyarrow; pip install 'nodenova\[parquet\]'"
    ):
        nova.load_graph(nodes=tmp_path / "nodes.parquet")


TABLE = (
    "id,label,title,venue,year,open,cites\n"
    "a,1,Deep graph models,KDD,1990,yes,0\n"
    "b,1,Deep graph nets,KDD,1995,no,0\n"
    "c,2,Cell biology now,Nature,2000,yes,0\n"
    "d,2,Cell biology then,Nature,,no,0\n"
    "e,,Deep cell venue,,2010,yes,5\n"
)


def test_columns_become_features_with_names_one_can_read(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(TABLE)
    loaded = nova.load_graph(nodes=tmp_path / "nodes.csv")
    dense = loaded.graph.x if isinstance(loaded.graph.x, np.ndarray) else loaded.graph.x.toarray()
    named = dict(zip(loaded.graph.feature_names, dense.T.tolist(), strict=True))
    assert named["venue=KDD"] == [1, 1, 0, 0, 0]
    assert named["venue is missing"] == [0, 0, 0, 0, 1]
    assert named["year>=1995"] == [0, 1, 1, 0, 1]
    assert named["year>=2010"] == [0, 0, 0, 0, 1]
    assert named["year is missing"] == [0, 0, 0, 1, 0]
    assert named["open"] == [1, 0, 1, 0, 1]
    assert named["cites"] == [0, 0, 0, 0, 5]
    assert named["graph"] == [1, 1, 0, 0, 0]
    assert named["biology"] == [0, 0, 1, 1, 0]
    assert "deep" not in named  # in three of five nodes
    assert "nets" not in named  # in one


def test_a_word_that_is_also_a_column_gets_a_prefix(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(TABLE.replace("graph", "cites"))
    names = nova.load_graph(nodes=tmp_path / "nodes.csv").graph.feature_names
    assert "cites" in names
    assert "text:cites" in names
    assert len(set(names)) == len(names)


def test_chosen_columns_are_the_only_ones(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(TABLE)
    loaded = nova.load_graph(nodes=tmp_path / "nodes.csv", features=["venue"])
    assert loaded.graph.feature_names == ("venue=KDD", "venue=Nature", "venue is missing")
    texts = nova.load_graph(
        nodes=tmp_path / "nodes.csv", features=[], text_columns=["venue", "title"]
    )
    assert set(texts.graph.feature_names) == {"biology", "graph", "kdd", "nature"}


def test_many_values_share_one_feature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "MAX_VALUES", 2)
    (tmp_path / "nodes.csv").write_text(
        "id,kind\n" + "".join(f"n{i},{'aabbcd'[i % 6]}\n" for i in range(12))
    )
    loaded = nova.load_graph(nodes=tmp_path / "nodes.csv")
    assert loaded.graph.feature_names == ("kind=a", "kind=b", "kind=other")
    assert any("the 2 most frequent of 4 values" in note for note in loaded.notes)


def test_a_grown_file_gives_old_nodes_the_very_same_features(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(TABLE)
    first = nova.load_graph(nodes=tmp_path / "nodes.csv")
    grown = TABLE + "f,,Quantum biology graph,Science,1800,no,7\n" * 1
    (tmp_path / "nodes.csv").write_text(grown)
    recipe = TableEncoder.from_json(json.loads(json.dumps(first.recipe.as_json())))
    assert recipe == first.recipe
    later = nova.load_graph(nodes=tmp_path / "nodes.csv", recipe=recipe)
    assert later.graph.feature_names == first.graph.feature_names
    assert type(later.graph.x) is type(first.graph.x)
    assert (later.graph.x[:5] != first.graph.x).sum() == 0
    assert any("column 'venue': 1 cell has an unknown value" in note for note in later.notes)
    assert any(
        "different words are too rare, too common or unknown; ignored" in note
        for note in later.notes
    )
    (tmp_path / "nodes.csv").write_text("id,title\nz,biology graph\n")
    lacking = nova.load_graph(nodes=tmp_path / "nodes.csv", recipe=recipe)
    assert any("4 columns are missing (cites, open, venue, year)" in note for note in lacking.notes)
    assert lacking.graph.x.sum() == 2
    with pytest.raises(
        GraphError, match="the recipe for features: damaged, text_columns is missing"
    ):
        TableEncoder.from_json({"columns": []})


def test_features_of_another_graph_are_matched_by_name(make_graph: Any) -> None:
    for sparse in (True, False):
        graph = make_graph(features=3, sparse=sparse)
        named = nova.Graph.of(
            graph.x, graph.edge_index, feature_names=["a", "b", "c"], dense=not sparse
        )
        moved, ignored, missing = named.aligned(["c", "new", "a", "other"])
        assert (ignored, missing) == (1, 2)
        assert sp.issparse(moved.x) == sparse
        wide, dense = (x.toarray() if sp.issparse(x) else x for x in (moved.x, named.x))
        assert (wide[:, [0, 2]] == dense[:, [2, 0]]).all()
        assert (wide[:, [1, 3]] == 0).all()
        with pytest.raises(GraphError, match="have no names"):
            graph.aligned(["a"])


def test_which_nodes_are_new(tmp_path: Path) -> None:
    csv_folder(tmp_path)
    (tmp_path / "ids.txt").write_text("004\r\nü3\n")
    by_file = nova.load_graph(tmp_path, new_nodes=tmp_path / "ids.txt")
    by_list = nova.load_graph(tmp_path, new_nodes=["ü3", "004"])
    assert by_file.new_ids.tolist() == by_list.new_ids.tolist() == [2, 3]
    # blue is an answer key now, and stands behind the known class
    assert by_file.class_names == ("red", "blue")
    assert by_file.y.tolist() == [0, 0, 1, 1, -1]
    assert by_file.num_old == 1
    marks = ["fresh", "no", "", "Yes", "1", "0"]
    marked = text([[*row, mark] for row, mark in zip(rows()[0], marks, strict=True)])
    (tmp_path / "nodes.csv").write_text(marked)
    assert nova.load_graph(tmp_path, new_column="fresh").new_ids.tolist() == [2, 3]
    with pytest.raises(SettingError, match="either one source"):
        nova.load_graph(tmp_path, nodes=tmp_path / "nodes.csv")


def test_progress_is_told_and_never_goes_back_within_a_stage(tmp_path: Path) -> None:
    lines = [f"n{i},some words of node {i % 7}\n" for i in range(45_000)]
    (tmp_path / "nodes.csv").write_text("id,text\n" + "".join(lines))
    seen: dict[str, list[float]] = {}
    nova.load_graph(
        nodes=tmp_path / "nodes.csv",
        progress=lambda stage, share: seen.setdefault(stage, []).append(share),
    )
    assert "reading nodes.csv" in seen
    for shares in seen.values():
        assert shares == sorted(shares)
        assert 0 <= min(shares) <= max(shares) <= 1


def test_a_checksum_that_reads_like_an_endless_number_is_a_text_among_texts(tmp_path: Path) -> None:
    sums = [f"{7 * i:04x}cafe" for i in range(1, 25)]
    cells = [*sums[:20], "4222129e13535836"]
    lines = [f"n{i},{cell},{i % 3}" for i, cell in enumerate(cells)]
    (tmp_path / "nodes.csv").write_text("id,md5,size\n" + "\n".join(lines) + "\n")
    loaded = nova.load_graph(nodes=tmp_path / "nodes.csv")
    (said,) = [note for note in loaded.notes if "'md5'" in note]
    assert said.endswith("not used, unless given as text or feature")
    sizes = [f"n{i},{i}" for i in range(20)]
    (tmp_path / "nodes.csv").write_text("id,size\n" + "\n".join([*sizes, "n20,4e999"]) + "\n")
    with pytest.raises(GraphError, match="'4e999' is not a finite number"):
        nova.load_graph(nodes=tmp_path / "nodes.csv")
