"""Files as they come: each gives one sentence that names the place, or a repair with its note."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import nodenova as nova
from nodenova.errors import NodenovaError
from nodenova.io.describe import describe

NODES = (
    "id,label,text,year\n"
    "a,red,graph theory paper one,1999\n"
    "b,red,graph theory paper two,2001\n"
    "c,blue,cell biology paper one,2003\n"
    "d,blue,cell biology paper two,1998\n"
    "e,,cell biology graph,2000\n"
)
EDGES = "source,target\na,b\nc,d\nd,e\n"


def write(folder: Path, nodes: str | bytes = NODES, edges: str | bytes = EDGES) -> Path:
    for name, content in (("nodes.csv", nodes), ("edges.csv", edges)):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def with_row(row: str) -> str:
    return NODES + row + "\n"


# what is in nodes.csv, what is in edges.csv, options, what the error says
REFUSED: dict[str, tuple[str | bytes, str | bytes, dict[str, Any], str]] = {
    "wrong delimiter given": (NODES, EDGES, {"delimiter": ";", "id_column": "id"},
        "nodes.csv: no column 'id'; it has 'id,label,text,year'; is the delimiter another"),
    "delimiter of two characters": (NODES, EDGES, {"delimiter": "::"},
        "nodes.csv: a delimiter is one character"),
    "missing id column": (NODES, EDGES, {"id_column": "key"},
        "nodes.csv: no column 'key'; it has 'id', 'label', 'text', 'year'"),
    "missing label column": (NODES, EDGES, {"label_column": "topic"},
        "nodes.csv: no column 'topic'"),
    "missing text column": (NODES, EDGES, {"text_columns": ["abstract"]},
        "nodes.csv: no column 'abstract'; it has id, label, text, year"),
    "missing feature": (NODES, EDGES, {"features": ["age"]}, "nodes.csv: no column 'age'"),
    "missing source column": (NODES, EDGES, {"source_column": "from"},
        "edges.csv: no column 'from'; it has 'source', 'target'"),
    "duplicate ids": (with_row("b,red,again,1"), EDGES, {},
        "nodes.csv: ids must be unique, 'b' appears 2 times (lines 3 and 7)"),
    "empty id": (with_row(",red,text,1"), EDGES, {}, "nodes.csv: line 7: no id in column 'id'"),
    "edge to nowhere": (NODES, EDGES + "a,zz\nzz,b\n", {},
        "edges.csv: 2 edges name nodes that nodes.csv does not have, first: 'a' -> 'zz' (line 5)"),
    "edge with one end": (NODES, EDGES + "a,\n", {},
        "edges.csv: line 5: an edge with only one end"),
    "empty nodes": ("", EDGES, {}, "nodes.csv: empty, there is not even a header"),
    "blank lines only": ("\n\n  \n", EDGES, {}, "nodes.csv: empty"),
    "empty edges": (NODES, "", {}, "edges.csv: empty"),
    "header only": ("id,label\n", EDGES, {}, "nodes.csv: a header and no rows"),
    "infinity": (with_row("f,red,x,Infinity"), EDGES, {},
        "nodes.csv: column 'year', line 7: 'Infinity' is not a finite number"),
    "ragged row, too long": (with_row("f,red,x,1,2"), EDGES, {},
        "nodes.csv: line 7 has 5 cells, the header has 4"),
    "quote never closed": (with_row('f,red,"x,1'), EDGES, {},
        "nodes.csv: line 7: a quote is opened and never closed"),
    "text after a quote": (with_row('f,red,"x"y,1'), EDGES, {}, "nodes.csv: line 7:"),
    "NUL bytes": (NODES.encode() + b"f,red,\0,1\n", EDGES, {},
        "nodes.csv: line 7 holds a NUL byte"),
    "gzip cut off": (gzip.compress(NODES.encode() * 50)[:60], EDGES, {},
        "nodes.csv: damaged or cut off"),
    "edges with one column": (NODES, "source\na\nb\n", {},
        "edges.csv: a table of edges needs two columns, it has one: 'source'"),
    "both ends in one column": (NODES, EDGES,
        {"source_column": "source", "target_column": "source"},
        "edges.csv: column 'source' cannot be both ends"),
    "label column is id column": (NODES, EDGES, {"label_column": "id"},
        "nodes.csv: column 'id' cannot be both the id and the label"),
    "label as a feature": (NODES, EDGES, {"features": ["label"]},
        "nodes.csv: column 'label' holds the class of a node and cannot be a feature"),
    "header names a column twice": ("id,label,label\na,1,2\n", EDGES, {},
        "nodes.csv: the header names column 'label' 2 times"),
    "unknown encoding": (NODES, EDGES, {"encoding": "utf-77"},
        "nodes.csv: unknown encoding 'utf-77'"),
    "not in the encoding given": (NODES.encode() + b"\xe9,red,x,1\n", EDGES, {"encoding": "utf-8"},
        "nodes.csv: "),
    "text as id": (NODES.replace("\na,", "\n" + "a" * 1001 + ","), EDGES, {},
        "nodes.csv: line 2: an id of 1,001 characters"),
    "text as label": (NODES.replace(",blue,", "," + "b" * 5000 + ",", 1), EDGES, {},
        "nodes.csv: line 4: a label of 5,000 characters"),
    "new nodes that are not there": (NODES, EDGES, {"new_nodes": ["e", "y"]},
        "new_nodes: 1 of 2 ids are not in nodes.csv, first: 'y'"),
    "no new nodes named": (NODES, EDGES, {"new_nodes": []}, "new_nodes: no ids in it"),
    "new column of something else": (NODES, EDGES, {"new_column": "year"},
        "nodes.csv: line 2: column 'year' marks new nodes with yes or no, not '1999'"),
    "new column and new nodes": (NODES.replace("year", "is_new").replace("1999", "1")
        .replace("2001", "0").replace("2003", "0").replace("1998", "0").replace("2000", "0"),
        EDGES, {"new_nodes": ["e"]},
        "give either new_nodes or new_column"),
    "weight that is no number": (NODES, "source,target,w\na,b,1\nb,c,heavy\n",
        {"weight_column": "w"},
        "edges.csv: line 3: the weight of an edge must be a number, it is 'heavy'"),
    "weight that is infinite": (NODES, "source,target,w\na,b,inf\n", {"weight_column": "w"},
        "edges.csv: line 2: the weight of an edge must be a number, it is 'inf'"),
    "weight below zero": (NODES, "source,target,w\na,b,1\nb,c,-2\n", {"weight_column": "w"},
        "edges.csv: line 3: the weight of an edge cannot be below zero, it is '-2'; "
        "min_weight (--min-weight) drops such edges"),
    "weights that do something else": (NODES, EDGES, {"weights": "multiply"},
        "unknown weights (--weights) 'multiply'; known: count, filter"),
    "edge without a type": (NODES, "source,target,kind\na,b,cites\nb,c,\n",
        {"edge_type_column": "kind"},
        "edges.csv: line 3: an edge without a type in column 'kind'"),
    "type of edges that is not there": (NODES, "source,target,kind\na,b,cites\n",
        {"edge_type_column": "kind", "edge_types": "cites,writes"},
        "edges.csv: no edge is of type 'writes'; types: cites"),
    "types of edges without a column": (NODES, EDGES, {"edge_types": "cites"},
        "give edge_type_column (--edge-type-column) too"),
    "type of edges that weighs nothing": (NODES, EDGES, {"edge_types": "cites=0"},
        "the weight of 'cites' must be a positive number, it is '0'"),
    "no column of types": (NODES, EDGES, {"edge_type_column": "kind"},
        "edges.csv: no column 'kind'"),
    "ids as types of edges": (NODES, "source,target,kind\n" + "".join(
        f"a,b,{number}\n" for number in range(101)), {"edge_type_column": "kind"},
        "edges.csv: column 'kind' has more than 100 different values"),
    "features as one text": (NODES, EDGES, {"features": "year"},
        "features and text_columns are lists of names"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REFUSED)
def test_one_sentence_that_names_the_place(tmp_path: Path, kind: str) -> None:
    nodes, edges, options, expected = REFUSED[kind]
    with pytest.raises(NodenovaError) as refused:
        nova.load_graph(write(tmp_path, nodes, edges), **options)
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400


# what is in nodes.csv, what is in edges.csv, options, the note
REPAIRED: dict[str, tuple[str | bytes, str | bytes, dict[str, Any], str]] = {
    "semicolons": (NODES.replace(",", ";"), EDGES, {},
        "nodes.csv: columns are separated by semicolons"),
    "tabs": (NODES.replace(",", "\t"), EDGES, {}, "nodes.csv: columns are separated by tabs"),
    "pipes": (NODES, EDGES.replace(",", "|"), {}, "edges.csv: columns are separated by pipes"),
    "byte order mark": (b"\xef\xbb\xbf" + NODES.encode(), EDGES, {},
        "nodes.csv: a byte order mark was removed"),
    "Latin-1": (NODES.replace("one", "café").encode("latin-1"), EDGES, {},
        "nodes.csv: not UTF-8; decoded as cp1252"),
    "UTF-16": (NODES.encode("utf-16"), EDGES, {}, "nodes.csv: decoded as UTF-16"),
    "gzip without the name": (gzip.compress(NODES.encode()), EDGES, {},
        "nodes.csv: gzipped despite its name"),
    "ragged row, too short": (with_row("f,red"), EDGES, {},
        "nodes.csv: 1 row is shorter than the header"),
    "labels that say NaN": (NODES.replace(",red,", ",NaN,", 1), EDGES, {},
        "nodes.csv: 1 label is 'NaN'; read as unlabelled"),
    "labels that say -1": (NODES.replace("red", "0").replace("blue", "-1"), EDGES, {},
        "nodes.csv: 2 labels are -1; read as unlabelled"),
    "labels with a point": (NODES.replace("red", "0.0").replace("blue", "1.0"), EDGES, {},
        "nodes.csv: labels like '1.0' are read as '1'"),
    "spaces around ids": (NODES.replace("\na,", "\n a ,"), EDGES, {},
        "nodes.csv: spaces around 1 id removed"),
    "constant column": (NODES.replace("\n", ",7\n").replace("year,7", "year,k"), EDGES, {},
        "nodes.csv: column 'k' is the same in every row; not used"),
    "empty column": (NODES.replace("\n", ",\n").replace("year,", "year,k"), EDGES, {},
        "nodes.csv: column 'k' is empty; not used"),
    "column without a name": (NODES.replace("\n", ",7\n").replace("year,7", "year,"), EDGES, {},
        "1 column without a name is called column-1, column-2"),
    "one cell is not a number": (NODES.replace("1999", "about 1999")
        + "".join(f"n{i},red,x y,{i * i}\n" for i in range(12)),
        EDGES, {},
        "nodes.csv: column 'year': 1 cell is not a number, treated as missing, "
        "first: 'about 1999'"),
    "decimal commas": (NODES.replace(",", ";").replace(";1999", ";19,5").replace(";2001", ";20,25"),
        EDGES, {},
        "nodes.csv: column 'year': numbers with decimal commas"),
    "thousands": (NODES.replace("1999", '"1,999"'), EDGES, {},
        "nodes.csv: column 'year': numbers with commas between thousands"),
    "self-loops only": (NODES, "source,target\na,a\nb,b\n", {},
        "edges.csv: 2 self-loops were dropped"),
    "duplicate edges": (NODES, EDGES + "a,b\na,b\n", {},
        "edges.csv: 2 edges repeat an earlier one"),
    "both directions": (NODES, EDGES + "b,a\n", {},
        "edges.csv: 1 edge occurs in both directions"),
    "edges to nowhere, dropped": (NODES, EDGES + "a,zz\n", {"drop_unknown_edges": True},
        "edges.csv: 1 edge names nodes that nodes.csv does not have; dropped"),
    "ids with a point in edges": (NODES.replace("\na,", "\n1,"), "source,target\n1.0,b\nc,d\n", {},
        "edges.csv: 1 id like '12.0' read as '12'"),
    "ids with a point in nodes": (NODES.replace("\na,", "\n1.0,"), "source,target\n1,b\nc,d\n", {},
        "edges.csv: 1 id like '12.0' read as '12'"),
    "negative and zero weights": (NODES, "source,target,w\na,b,1\nb,c,-2\nc,d,0\n",
        {"weight_column": "w", "weights": "filter"},
        "edges.csv: 2 edges without a positive weight were dropped"),
    "light edges": (NODES, "source,target,w\na,b,1\nb,c,0.1\n",
        {"weight_column": "w", "min_weight": 0.5},
        "edges.csv: 1 edge without a positive weight, or with one below 0.5, was dropped"),
    "more columns of edges": (NODES, "source,target,since\na,b,1\n", {},
        "edges.csv: columns of edges are not used: since"),
    "edges without a header": (NODES, "a,b\nc,d\n", {},
        "edges.csv: there is no header, the first line is an edge"),
    "new node of an old class": (NODES, EDGES, {"new_nodes": ["d", "e"]},
        "1 new node has a label: used for grading only"),
    "class of new nodes only": (NODES, EDGES, {"new_nodes": ["c", "d"]},
        "1 class occurs among new nodes only: blue"),
    "unlabelled node that is not new": (NODES, EDGES, {"new_nodes": ["c"]},
        "1 node is neither labelled nor new"),
    "no column to use": ("id,label\na,1\nb,1\nc,2\nd,2\ne,\n", EDGES, {},
        "nodes.csv: no column can be a feature; using structure only"),
    "a column of names": (NODES.replace("\n", ",x\n").replace("year,x", "year,name")
        + "".join(f"n{i},red,x y,{i * i},Jane {i}\n" for i in range(80)),
        EDGES, {},
        "nodes.csv: column 'name' looks like names"),
    "a column that numbers the rows": ("id,label,row\na,1,1\nb,1,2\nc,2,3\nd,2,4\ne,,5\n", EDGES,
        {},
        "nodes.csv: column 'row' only numbers the rows; not used"),
}  # fmt: skip


@pytest.mark.parametrize("kind", REPAIRED)
def test_a_repair_and_its_note(tmp_path: Path, kind: str) -> None:
    nodes, edges, options, expected = REPAIRED[kind]
    loaded = nova.load_graph(write(tmp_path, nodes, edges), **options)
    assert any(expected in note for note in loaded.notes), loaded.notes
    whole = nova.load_graph(write(tmp_path))
    assert not any(expected in note for note in whole.notes), (
        "the note must be about what was broken"
    )


# Nothing to repair and nothing to refuse, but something to say:
# what is in nodes.csv, what is in edges.csv, options, what inspect says
ODD: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "one class only": (NODES.replace("blue", "red"), EDGES, {},
        "All labelled nodes are of one class, 'red'"),
    "none labelled": (NODES.replace("blue", "").replace("red", ""), EDGES, {},
        "No labelled nodes found"),
    "all labelled": (NODES.replace("e,,", "e,red,"), EDGES, {},
        "Every node has a label"),
    "class of one node": (NODES.replace("a,red", "a,pink"), EDGES, {},
        "2 classes have a single labelled node, first: 'pink'"),
    "only isolated nodes": (NODES, "source,target\na,a\n", {},
        "There are no edges"),
    "mostly isolated nodes": (NODES + "f,red,x y,1\ng,red,x y,2\nh,red,x y,3\ni,red,x y,4\n", EDGES,
        {},
        "44% of the nodes have no edge"),
    "edges that ignore classes": (NODES, "source,target\na,c\nb,d\na,d\nb,c\n", {},
        "Edges hardly follow classes: 0% stay within one, 50% would by chance"),
    "labels like ids": ("id,label,year\n" + "".join(f"n{i},l{i},{i % 7}\n" for i in range(30)),
        "source,target\nn0,n1\n", {},
        "30 classes for 30 labelled nodes: the labels look like ids"),
    "unequal classes": (NODES + "".join(f"n{i},red,x y,{i * i}\n" for i in range(60)), EDGES, {},
        "Class sizes are very unequal: 'red' has 62 labelled nodes, 'blue' has 2"),
    "nodes without features": (NODES + "".join(f"n{i},red,,\n" for i in range(5)), EDGES,
        {"text_columns": ["text"], "features": []},
        "50% of the nodes have no feature"),
}  # fmt: skip


@pytest.mark.parametrize("kind", ODD)
def test_what_looks_wrong(tmp_path: Path, kind: str) -> None:
    nodes, edges, options, expected = ODD[kind]
    problems = describe(nova.load_graph(write(tmp_path, nodes, edges), **options)).problems
    assert any(expected in what for what, _ in problems), problems


# Unusual, and right as it is: nothing may be changed
FINE: dict[str, tuple[str, str, Callable[[nova.UserGraph], bool]]] = {
    "CRLF": (NODES.replace("\n", "\r\n"), EDGES, lambda g: g.class_names == ("blue", "red")),
    "no newline at the end": (NODES.rstrip(), EDGES, lambda g: g.graph.num_nodes == 5),
    "blank lines": (NODES.replace("\nc,", "\n\n\nc,"), EDGES, lambda g: g.graph.num_nodes == 5),
    "trailing delimiters": (NODES.replace("2000\n", "2000,,\n"), EDGES,
        lambda g: g.graph.num_nodes == 5),
    "quoted newline and delimiter": (
        NODES.replace("graph theory paper one", '"graph,\ntheory ""paper"" one"'),
        EDGES,
        lambda g: "theory" in g.graph.feature_names),
    "HTML in names": (
        NODES.replace("\na,", "\n<script>alert(1)</script>,").replace("red", "<b>red</b>"),
        EDGES.replace("a,b", "<script>alert(1)</script>,b"),
        lambda g: g.graph.node_ids[0] == "<script>alert(1)</script>"
        and g.class_names == ("<b>red</b>", "blue")),
    "ids with spaces inside": (NODES.replace("\na,", "\nthe first,"),
        EDGES.replace("a,b", "the first,b"),
        lambda g: g.graph.node_ids[0] == "the first"),
    "any alphabet": (NODES.replace("\na,", "\nπ节点,").replace("red", "красный"),
        EDGES.replace("a,b", "π节点,b"),
        lambda g: g.graph.node_ids[0] == "π节点" and "красный" in g.class_names),
    "leading zeros": (NODES.replace("\na,", "\n007,"), EDGES.replace("a,b", "007,b"),
        lambda g: g.graph.node_ids[0] == "007"),
    "a cell of a million characters": (NODES.replace("paper one,1999", "x" * 10**6 + ",1999"),
        EDGES,
        lambda g: max(map(len, g.graph.feature_names)) < 1000),
    "numbers as classes sort as numbers": (NODES.replace("red", "10").replace("blue", "9"), EDGES,
        lambda g: g.class_names == ("9", "10")),
    "NaN among texts": (NODES.replace("cell biology graph", "NaN"), EDGES,
        lambda g: "nan" not in g.graph.feature_names),
}  # fmt: skip


@pytest.mark.parametrize("kind", FINE)
def test_unusual_and_right(tmp_path: Path, kind: str) -> None:
    nodes, edges, holds = FINE[kind]
    loaded = nova.load_graph(write(tmp_path, nodes, edges))
    assert holds(loaded)
    assert not any(
        "not used" in note or "dropped" in note or "removed" in note for note in loaded.notes
    )


def refused(*arguments: Any, **options: Any) -> str:
    with pytest.raises(NodenovaError) as error:
        nova.load_graph(*arguments, **options)
    return str(error.value)


def test_places_that_are_not_files(tmp_path: Path) -> None:
    write(tmp_path)
    assert "gone.csv: no such file" in refused(
        nodes=tmp_path / "gone.csv", edges=tmp_path / "edges.csv"
    )
    assert "a folder, not a file" in refused(nodes=tmp_path, edges=tmp_path / "edges.csv")
    (tmp_path / "nodes.tsv").write_text("x")
    assert "2 files are called nodes.* (nodes.csv, nodes.tsv)" in refused(tmp_path)
    (tmp_path / "empty").mkdir()
    assert "no file nodes.*" in refused(tmp_path / "empty")
    (tmp_path / "graph.docx").write_text("x")
    assert "graph.docx: unknown kind of file" in refused(tmp_path / "graph.docx")


def test_no_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path)

    def forbidden(self: Path, *arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", forbidden)  # a mode would not stop a test that runs as root
    assert "nodes.csv: no permission to read it" in refused(tmp_path)


def test_a_gz_that_is_not_one_and_a_parquet_that_is_cut_off(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    write(tmp_path)
    edges = tmp_path / "edges.csv"
    (tmp_path / "nodes.csv.gz").write_text(NODES)
    assert "nodes.csv.gz: its name ends in .gz, but it is not a gzip file" in refused(
        nodes=tmp_path / "nodes.csv.gz", edges=edges
    )
    path = tmp_path / "nodes.parquet"
    pandas.DataFrame({"id": ["a", "b"]}).to_parquet(path)
    path.write_bytes(path.read_bytes()[: os.path.getsize(path) // 2])
    assert "nodes.parquet: not a readable Parquet file" in refused(nodes=path, edges=edges)


def test_a_broken_graphml_gml_and_edge_list(tmp_path: Path) -> None:
    for name in ("x.graphml", "x.gml"):
        (tmp_path / name).write_text("<graphml><node")
        assert f"{name}: not a readable {name[2:]} file" in refused(tmp_path / name)
    (tmp_path / "x.edgelist").write_text("a b\nc\n")
    assert "x.edgelist: line 2: an edge is two ids, here is one: 'c'" in refused(
        tmp_path / "x.edgelist"
    )
    (tmp_path / "x.edgelist").write_text("# nothing\n")
    assert "x.edgelist: a header and no edges" in refused(tmp_path / "x.edgelist")


def test_deeply_nested_graphml_is_refused_before_its_tree_is_built(tmp_path: Path) -> None:
    (tmp_path / "x.graphml").write_text("<graphml>" + "<a>" * 200)
    assert "x.graphml: not a readable graphml file (elements are nested more than 100 deep)" in (
        refused(tmp_path / "x.graphml")
    )


def test_a_number_of_a_networkx_graph_that_is_not_finite() -> None:
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: 1.5, 1: float("inf"), 2: 3.0}, "mass")
    assert "networkx graph: column 'mass', node 2: 'inf' is not a finite number" in refused(graph)


def test_a_file_of_new_ids_that_names_unknown_nodes(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "ids.txt").write_text("e\n\nzz\n")
    assert "ids.txt: 1 of 2 ids are not in nodes.csv, first: 'zz'" in refused(
        tmp_path, new_nodes=tmp_path / "ids.txt"
    )


def test_what_is_no_graph_at_all(tmp_path: Path) -> None:
    assert "give either one source or the tables" in refused()
    assert "not int" in refused(7)
    assert "an adjacency is a square matrix" in refused((np.eye(3), np.ones((3, 2))))
    assert "x has 2 nodes, the adjacency has 3" in refused((np.eye(2), np.eye(3)))
    np.savez(tmp_path / "g.npz", x=np.eye(3), edge_index=np.zeros((2, 0), dtype=int))
    assert "g.npz: features is for tables" in refused(tmp_path / "g.npz", features=["a"])
