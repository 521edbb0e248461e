"""A graph folder made from tables is the graph that load_graph reads from them, bit for bit."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import nodenova as nova
from nodenova.errors import GraphError, NodenovaError, SettingError
from nodenova.io import frames
from nodenova.io.graph_folder import edges, store, tables
from nodenova.io.graph_folder.features import FeatureFile
from nodenova.io.graph_folder.prepare import prepare_graph

HEADER = ["id", "label", "abstract", "year", "price", "venue", "open", "score", "same", "row",
          "page", "who"]  # fmt: skip


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything comes in several pieces, and what is counted goes to disk."""
    monkeypatch.setattr(frames, "BATCH_ROWS", 37)
    monkeypatch.setattr(tables, "STAGED_ROWS", 41)
    monkeypatch.setattr(store, "MAX_HELD", 40)
    monkeypatch.setattr(store, "BATCH", 200)
    monkeypatch.setattr(edges, "BATCH", 200)


def write(path: Path, header: list[str], rows: list[list[object]]) -> None:
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(header)
        lines.writerows(rows)


def write_tables(folder: Path, seed: int, nodes: int = 120) -> list[list[object]]:
    """Tables with a column of every kind, and edges twice, both ways, to themselves."""
    rng = np.random.default_rng(seed)
    ids = [f"p{i}" if seed % 2 else str(i * 7) for i in range(nodes)]
    words = np.array([f"word{number}" for number in range(200)])
    rows: list[list[object]] = []
    for i, node in enumerate(ids):
        text = " ".join(words[(rng.pareto(0.8, size=8) * 5).astype(int) % 200])
        label = ["a", "b", "c", ""][rng.integers(4)]
        year = 1980 + int(rng.integers(40)) if i % 11 else ""
        venue, is_open = ["KDD", "VLDB", "ICML", "nan"][rng.integers(4)], ["yes", "no", ""][i % 3]
        address = f"http://x.org/{'a' * 120 if i % 2 else ''}{i}"
        rows.append([
            node if i % 17 else f" {node} ", label, text, year, f"{rng.integers(10**6):,}", venue,
            is_open, round(float(rng.normal()), 3), "same", i, address, f"name {i}",
        ])  # fmt: skip
    write(folder / "nodes.csv", HEADER, rows)
    ends: list[list[object]] = [
        [ids[a], ids[b]] for a, b in rng.integers(nodes, size=(5 * nodes, 2))
    ]
    ends += [*ends[:20], *([b, a] for a, b in ends[20:50]), [ids[3], ids[3]]]
    if not seed % 2:
        ends += [[f"{ids[5]}.0", ids[6]], [ids[7], f"{ids[8]}.0"]]
    write(folder / "edges.csv", ["source", "target"], ends)
    return ends


def assert_same(mine: nova.UserGraph, expected: nova.UserGraph) -> None:
    a, b = mine.graph, expected.graph
    for beside in ("edge_weight", "vectors"):
        ours, theirs = getattr(a, beside), getattr(b, beside)
        assert (ours is None) == (theirs is None)
        assert ours is None or np.array_equal(ours, theirs)
    assert a.is_mapped
    assert a.node_ids.dtype == b.node_ids.dtype
    assert np.array_equal(a.node_ids, b.node_ids)
    assert np.array_equal(a.edge_index, b.edge_index)
    assert (a.num_edges, a.feature_names) == (b.num_edges, b.feature_names)
    assert sp.issparse(a.x) == sp.issparse(b.x)
    parts = ("data", "indices", "indptr") if sp.issparse(b.x) else ("real",)
    for part in parts:
        assert np.array_equal(getattr(a.x, part), getattr(b.x, part)), part
    assert a.x.dtype == b.x.dtype
    assert np.array_equal(mine.y, expected.y)
    assert np.array_equal(mine.new_ids, expected.new_ids)
    for name in ("class_names", "recipe", "new_named", "name", "notes"):
        assert getattr(mine, name) == getattr(expected, name), name


@pytest.mark.parametrize(
    ("seed", "options"),
    [
        (0, {}),
        (1, {"text_columns": ["abstract"], "max_words": 30}),
        (0, {"features": ["year", "score", "price"]}),
        (1, {"features": ["who", "page", "venue"]}),
        (0, {"features": ["same"]}),
        (1, {"id_column": "who", "drop_unknown_edges": True}),
        (0, {"new_column": "open", "label_column": "venue"}),
    ],
)
def test_tables_give_the_graph_that_load_graph_reads(
    tmp_path: Path, seed: int, options: dict[str, object]
) -> None:
    write_tables(tmp_path, seed)
    files = {"nodes": tmp_path / "nodes.csv", "edges": tmp_path / "edges.csv"}
    made = prepare_graph(tmp_path / "graph", **files, **options)
    assert_same(made, nova.load_graph(**files, **options))
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("columns", [None, ["vec"], ["flag", "kind", "year"], ["score"]])
def test_parquet_files_with_types_do_too(tmp_path: Path, columns: list[str] | None) -> None:
    write_tables(tmp_path, seed=1)
    table = pd.read_csv(tmp_path / "nodes.csv", dtype={"id": str})
    table["vec"] = [list(np.arange(3) * i / 7) for i in range(len(table))]
    table["tags"] = [["red oak", "elm"][: i % 3] for i in range(len(table))]
    table["flag"], table["kind"] = table["row"] % 2 == 0, pd.Categorical(table["venue"])
    table["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(table["row"] % 9, unit="D")
    table.to_parquet(tmp_path / "nodes.parquet")
    pd.read_csv(tmp_path / "edges.csv", dtype=str).to_parquet(tmp_path / "edges.parquet")
    files = {"nodes": tmp_path / "nodes.parquet", "edges": tmp_path / "edges.parquet"}
    texts = ["tags"] if columns == ["score"] else []
    made = prepare_graph(tmp_path / "graph", **files, features=columns, text_columns=texts)
    held = [note for note in made.notes if "held in memory" in note]
    assert len(held) == (columns is None or columns == ["vec"])
    rest = tuple(note for note in made.notes if note not in held)
    expected = nova.load_graph(**files, features=columns, text_columns=texts)
    assert_same(replace(made, notes=rest), expected)


def test_the_shop_of_the_walk_through_is_the_same_graph(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "own-graph.md").read_text(encoding="utf-8")
    script = re.search(r'```python title="shop.py"\n(.*?)```', page, re.DOTALL)
    assert script is not None
    command = [sys.executable, "-c", script[1], "spring", "360"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    made = prepare_graph(tmp_path / "graph", tmp_path / "spring")
    assert_same(made, nova.load_graph(tmp_path / "spring"))


@pytest.mark.parametrize("both_ways", [False, True])
def test_weights_of_edges_are_the_same_bit_for_bit(tmp_path: Path, both_ways: bool) -> None:
    """Whether those of the same edge are added, or a symmetric matrix is given."""
    rng = np.random.default_rng(5)
    ends = write_tables(tmp_path, seed=0)
    weighted = [[*pair, float(w)] for pair, w in zip(ends, rng.gamma(1.0, size=999), strict=False)]
    if both_ways:
        once = {frozenset((a, b)): (a, b, w) for a, b, w in weighted if "." not in f"{a}{b}"}
        weighted = [[*pair, w] for a, b, w in once.values() for pair in ((a, b), (b, a)) if a != b]
    write(tmp_path / "edges.csv", ["source", "target", "w"], weighted)
    files = {"nodes": tmp_path / "nodes.csv", "edges": tmp_path / "edges.csv"}
    expected = nova.load_graph(**files, weight_column="w")
    made = prepare_graph(tmp_path / "graph", **files, weight_column="w")
    assert_same(made, expected)
    assert json.loads((tmp_path / "graph" / "graph.json").read_text())["version"] == 2
    assert made.graph.edge_weight is not None
    given = sum(float(line[2]) for line in weighted if line[0] != line[1])
    total = float(made.graph.edge_weight.sum(dtype=np.float64))
    assert total == pytest.approx(given if both_ways else 2 * given)
    first = made.graph.subgraph(np.arange(50)).edge_weight
    assert np.array_equal(first, expected.graph.subgraph(np.arange(50)).edge_weight)


def test_two_directions_with_other_weights_are_added(tmp_path: Path) -> None:
    """Only a symmetric matrix, the same weight both ways, has every edge twice."""
    write(tmp_path / "nodes.csv", ["id", "x"], [["a", 1], ["b", 2]])
    write(tmp_path / "edges.csv", ["source", "target", "w"], [["a", "b", 1.0], ["b", "a", 3.0]])
    files = {"nodes": tmp_path / "nodes.csv", "edges": tmp_path / "edges.csv"}
    made = prepare_graph(tmp_path / "graph", **files, weight_column="w")
    assert_same(made, nova.load_graph(**files, weight_column="w"))
    assert made.graph.edge_weight is not None
    assert made.graph.edge_weight.tolist() == [4.0, 4.0]


def test_edges_with_types_and_texts_with_vectors_are_read_into_memory_and_it_is_said(
    tmp_path: Path,
) -> None:
    ends = write_tables(tmp_path, seed=0)
    typed = [[*pair, "cites" if place % 3 else "writes"] for place, pair in enumerate(ends)]
    write(tmp_path / "edges.csv", ["source", "target", "kind"], typed)
    np.save(tmp_path / "v.npy", np.random.default_rng(0).random((120, 4)))
    files = {"nodes": tmp_path / "nodes.csv", "edges": tmp_path / "edges.csv"}
    for options, why in (
        ({"edge_type_column": "kind"}, "its edges have types"),
        ({"text_vectors": tmp_path / "v.npy"}, "it has text vectors"),
    ):
        made = prepare_graph(tmp_path / "graph", **files, **options, overwrite=True)
        assert made.notes[-1] == f"nodes.csv: read into memory, as {why}"
        assert_same(replace(made, notes=made.notes[:-1]), nova.load_graph(**files, **options))


def test_an_edge_list_alone_is_the_same_graph(tmp_path: Path) -> None:
    write_tables(tmp_path, seed=0)
    made = prepare_graph(tmp_path / "graph", tmp_path / "edges.csv")
    assert_same(made, nova.load_graph(tmp_path / "edges.csv"))


def answer(work: Callable[[], object]) -> str:
    with pytest.raises(NodenovaError) as caught:
        work()
    return str(caught.value)


@pytest.mark.parametrize(
    "options",
    [{}, {"drop_unknown_edges": True},
     {"drop_unknown_edges": True, "weight_column": "w", "min_weight": 2},
     {"drop_unknown_edges": True, "weight_column": "w", "weights": "filter"}],
)  # fmt: skip
def test_unknown_ids_are_refused_or_dropped_with_the_same_sentence(
    tmp_path: Path, options: dict[str, object]
) -> None:
    ends = write_tables(tmp_path, seed=0)
    ends += [["zz", "0"], ["yy", "xx"], ["0.0", "none"]]
    weighted = [[*pair, place % 5] for place, pair in enumerate(ends)]
    write(tmp_path / "edges.csv", ["source", "target", "w"], weighted)
    files = {"nodes": tmp_path / "nodes.csv", "edges": tmp_path / "edges.csv"}
    if options:
        expected = nova.load_graph(**files, **options)
        assert_same(prepare_graph(tmp_path / "graph", **files, **options), expected)
        return
    said = answer(lambda: prepare_graph(tmp_path / "graph", **files))
    assert said == answer(lambda: nova.load_graph(**files))
    assert "3 edges name nodes" in said
    assert not (tmp_path / "graph").exists()


@pytest.mark.parametrize(
    ("table", "content"),
    [
        ("nodes", "id,size\na,1\nb,2\na,3\n"),
        ("nodes", "id,size\na,1\n,2\n"),
        ("nodes", "id,size\na,1\nb,inf\n"),
        ("nodes", "id,size\n"),
        ("nodes", 'id,size\na,"1\n'),
        ("edges", "source,target\na,\n"),
        ("edges", "source\na\n"),
        ("edges", "source,target\nb,a\nmm,a\n"),
    ],
)
def test_broken_tables_get_the_sentence_that_load_graph_has(
    tmp_path: Path, table: str, content: str
) -> None:
    (tmp_path / "nodes.csv").write_text("id,size\na,1\nb,2\n")
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    (tmp_path / f"{table}.csv").write_text(content)
    files = {"nodes": tmp_path / "nodes.csv", "edges": tmp_path / "edges.csv"}
    said = answer(lambda: prepare_graph(tmp_path / "graph", **files))
    assert said == answer(lambda: nova.load_graph(**files))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "nodes.csv"]


def test_other_graphs_are_converted_and_that_is_said(tmp_path: Path) -> None:
    rows = [{"id": "a", "size": 1, "label": "x"}, {"id": "b", "size": 2, "label": ""}]
    (tmp_path / "nodes.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "edges.csv").write_text("source,target\na,b\n")
    files = {"nodes": tmp_path / "nodes.jsonl", "edges": tmp_path / "edges.csv"}
    made = prepare_graph(tmp_path / "graph", **files)
    assert made.notes[-1].startswith("nodes.jsonl: read into memory")
    assert any("unlabelled node for new classes" in note for note in made.notes)
    assert_same(replace(made, notes=made.notes[:-1]), nova.load_graph(**files))


def test_names_of_new_nodes_are_kept_in_the_folder(tmp_path: Path) -> None:
    write_tables(tmp_path, seed=1)
    files = {"nodes": tmp_path / "nodes.csv", "edges": tmp_path / "edges.csv"}
    made = prepare_graph(tmp_path / "graph", **files, new_nodes=["p3", "p5"])
    assert_same(made, nova.load_graph(**files, new_nodes=["p3", "p5"]))
    with pytest.raises(SettingError, match="new nodes are marked already"):
        nova.load_graph(tmp_path / "graph", new_nodes=["p4"])


def test_without_duckdb_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tables(tmp_path, seed=1)
    monkeypatch.setitem(sys.modules, "duckdb", None)
    files = {"nodes": tmp_path / "nodes.csv", "edges": tmp_path / "edges.csv"}
    with pytest.raises(SettingError, match=r"needs duckdb; pip install 'nodenova\[scale\]'"):
        prepare_graph(tmp_path / "graph", **files)
    assert not (tmp_path / "graph").exists()
    convertible = nova.Graph.of([[1.0], [2.0]], [[0], [1]])
    assert prepare_graph(tmp_path / "graph", convertible).graph.num_nodes == 2


def test_a_memory_that_is_no_size_is_refused(tmp_path: Path) -> None:
    write_tables(tmp_path, seed=1)
    files = {"nodes": tmp_path / "nodes.csv", "edges": tmp_path / "edges.csv"}
    with pytest.raises(SettingError, match="memory is a size like 500MB"):
        prepare_graph(tmp_path / "graph", **files, memory="much")


def test_numbers_that_are_too_large_for_features_are_named(tmp_path: Path) -> None:
    file = FeatureFile(tmp_path, 2, dense=False, source="nodes.csv")
    file.add(sp.csr_array(np.eye(2)))
    file.add(sp.csr_array([[1.0, np.inf], [np.inf, 0.0]]))
    said = "nodes.csv: x has 2 entries that are not finite numbers, first: node 2, feature 1 is inf"
    with pytest.raises(GraphError, match=said):
        file.close()


def test_features_beyond_the_bounds_are_refused_as_in_memory(tmp_path: Path) -> None:
    file = FeatureFile(tmp_path, 2, dense=True, source="nodes.csv")
    file.add(np.eye(2))
    file.add(np.array([[1.0, 0.0], [-1e20, 1e20]]))
    with pytest.raises(
        GraphError, match=r"x has 2 entries beyond 1e\+15, first: node 3, feature 0"
    ):
        file.close()
    file = FeatureFile(tmp_path, 2, dense=True, source="nodes.csv")
    file.add(np.eye(2) * 1e-20)
    with pytest.raises(GraphError, match="all entries of x are below 1e-15"):
        file.close()


def test_an_infinite_cell_is_refused_by_its_line(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("id,size\na,1\nb,-inf\n")
    with pytest.raises(GraphError, match="column 'size', line 3: '-inf' is not a finite number"):
        prepare_graph(tmp_path / "graph", nodes=tmp_path / "nodes.csv")
