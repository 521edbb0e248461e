"""Tables as JSON: the same graph as from CSV, one sentence for what is none, and never a hang."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest

import nodenova as nova
from nodenova.errors import GraphError, NodenovaError

NODES: list[dict[str, Any]] = [
    {"id": 1, "label": "red", "mass": 1.5, "open": True, "title": "graph theory one"},
    {"id": 2, "label": "red", "mass": 2.25, "open": False, "title": "graph theory two"},
    {"id": "ü3", "label": "blue", "mass": None, "open": True, "title": "cell biology one"},
    {"id": 4, "label": "blue", "mass": 0.5, "open": True, "title": "cell biology two"},
    {"id": 2**60 + 1, "mass": 8, "open": False, "title": "cell graph"},
]
EDGES: list[dict[str, Any]] = [
    {"source": 1, "target": 2, "w": 1},
    {"source": "ü3", "target": 4, "w": 0.5},
    {"target": 2**60 + 1, "w": 2, "source": 4},
]


def lines(records: list[Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def csv_of(records: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for record in records for name in record))
    cells = [["" if r.get(n) is None else str(r[n]) for n in names] for r in records]
    return "\n".join(",".join(row) for row in [names, *cells]) + "\n"


FORMS = {
    "jsonl": lambda records: lines(records).encode(),
    "ndjson": lambda records: lines(records).replace("\n", "\r\n\n").encode(),
    "jsonl.gz": lambda records: gzip.compress(lines(records).encode()),
    "json": lambda records: json.dumps(records, indent=1).encode(),
    "json.gz": lambda records: gzip.compress(json.dumps(records).encode()),
    "JSON": lambda records: b"\xef\xbb\xbf" + json.dumps(records, ensure_ascii=False).encode(),
}


def write(folder: Path, form: str, nodes: Any = NODES, edges: Any = EDGES) -> dict[str, Path]:
    paths = {name: folder / f"{name}.{form}" for name in ("nodes", "edges")}
    for path, content in zip(paths.values(), (nodes, edges), strict=True):
        path.write_bytes(content if isinstance(content, bytes) else FORMS[form](content))
    return paths


@pytest.mark.parametrize("form", FORMS)
def test_the_same_content_is_the_same_graph_as_from_csv(tmp_path: Path, form: str) -> None:
    plain = {name: tmp_path / f"{name}.csv" for name in ("nodes", "edges")}
    plain["nodes"].write_text(csv_of(NODES), encoding="utf-8")
    plain["edges"].write_text(csv_of(EDGES), encoding="utf-8")
    options: dict[str, Any] = {"weight_column": "w", "min_weight": 0.4}
    expected = nova.load_graph(**plain, **options)
    (tmp_path / "json").mkdir()
    paths = write(tmp_path / "json", form)
    for loaded in (
        nova.load_graph(**paths, **options),
        nova.load_graph(tmp_path / "json", **options),
    ):
        assert loaded.fingerprint() == expected.fingerprint()
        assert loaded.graph.node_ids.tolist() == ["1", "2", "ü3", "4", str(2**60 + 1)]
        assert loaded.graph.feature_names == expected.graph.feature_names
        assert loaded.class_names == ("blue", "red")
        assert loaded.recipe == expected.recipe


@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_a_file_of_edges_alone_is_a_graph(tmp_path: Path, form: str) -> None:
    loaded = nova.load_graph(write(tmp_path, form)["edges"])
    assert loaded.graph.num_nodes == 5
    assert any("structure only" in note for note in loaded.notes)


def test_a_key_that_comes_late_is_a_column(tmp_path: Path) -> None:
    late = [{"id": i, "mass": i + 0.5} for i in range(200)] + [{"id": 200, "size": 7.5}]
    for form in ("jsonl", "json"):
        graph = nova.load_graph(nodes=write(tmp_path, form, late)["nodes"]).graph
        assert {"mass is missing", "size is missing"} <= {*graph.feature_names}
        assert graph.x[:, [graph.feature_names.index("size is missing")]].sum() == 200


def test_json_lines_that_are_called_json_are_read_and_said(tmp_path: Path) -> None:
    path = write(tmp_path, "json", lines(NODES).encode())["nodes"]
    loaded = nova.load_graph(nodes=path)
    assert loaded.graph.num_nodes == 5
    assert loaded.notes.count("nodes.json: read as one record per line (JSON lines)") == 1


def test_progress_of_a_long_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "nodes.jsonl"
    path.write_text("".join(f'{{"id": {i}, "size": {i % 7 + 0.5}}}\n' for i in range(45_000)))
    shares: list[float] = []
    nova.load_graph(nodes=path, progress=lambda stage, share: shares.append(share))
    assert len(shares) >= 2
    assert all(0 <= share <= 1 for share in shares)


def refused(**options: Any) -> str:
    with pytest.raises(NodenovaError) as error:
        nova.load_graph(**options)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400
    return str(error.value)


# what is in a file of nodes, as JSON lines and as an array; what is said of each: {} is the place
WRONG: dict[str, tuple[list[Any], str]] = {
    "an id twice": ([*NODES, NODES[1]], "ids must be unique, '2' appears 2 times ({}s 2 and 6)"),
    "no id": ([*NODES, {"mass": 1}], "{} 6: no id in column 'id'"),
    "an id that is a list": ([*NODES, {"id": [1]}],
        "column 'id' has several values in a cell ({} 6 has a list)"),
    "a label that is a list": ([*NODES, {"id": 6, "label": ["a", "b"]}],
        "column 'label' has several values in a cell ({} 6 has a list)"),
    "a label that is a record": ([*NODES, {"id": 6, "label": {"a": 1}}],
        "column 'label' has several values in a cell ({} 6 has a dict)"),
    "infinity": ([*NODES, {"id": 6, "mass": float("inf")}],
        "column 'mass', {} 6: 'inf' is not a finite number"),
    "a list instead of a record": ([*NODES, [1, 2]],
        '{} 6: a record is an object, {{"id": "a", ...}}, this is an array'),
    "a number instead of a record": ([*NODES, 7],
        '{} 6: a record is an object, {{"id": "a", ...}}, this is a number'),
    "nothing instead of a record": ([*NODES, None],
        '{} 6: a record is an object, {{"id": "a", ...}}, this is nothing'),
    "records without keys": ([{}, {}], "a table without columns"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "json"])
def test_nodes_that_are_wrong_name_the_place(tmp_path: Path, form: str, kind: str) -> None:
    records, said = WRONG[kind]
    place = "record" if form == "json" else "line"
    expected = f"nodes.{form}: {said.format(place)}"
    assert expected in refused(nodes=write(tmp_path, form, records)["nodes"])


EDGES_WRONG: dict[str, tuple[list[Any], str]] = {
    "an unknown end": ([*EDGES, {"source": 1, "target": 99}],
        "1 edge names nodes that nodes.{1} does not have, first: '1' -> '99' ({0} 4); "
        "give drop_unknown_edges (--drop-unknown-edges) to drop them"),
    "one end": ([*EDGES, {"source": 1}], "{0} 4: an edge with only one end"),
    "an end that is a list": ([*EDGES, {"source": 1, "target": [2]}],
        "column 'target' has several values in a cell ({0} 4 has a list)"),
    "one key": ([{"source": 1}], "a table of edges needs two columns, it has one: 'source'"),
    "a list instead of a record": ([*EDGES, [1, 2]], "{0} 4: a record is an object"),
    "no records": ([], "empty, there is not even a record"),
}  # fmt: skip


@pytest.mark.parametrize("kind", EDGES_WRONG)
@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "json"])
def test_edges_that_are_wrong_name_the_place(tmp_path: Path, form: str, kind: str) -> None:
    records, said = EDGES_WRONG[kind]
    place = "record" if form == "json" else "line"
    expected = f"edges.{form}: {said.format(place, form)}"
    assert expected in refused(**write(tmp_path, form, edges=records))


# form, what is in the file, what is said
BROKEN: dict[str, tuple[str, bytes, str]] = {
    "cut off": ("jsonl", lines(NODES).encode()[:-20], "nodes.jsonl: line 5: not readable as JSON"),
    "array cut off": ("json", json.dumps(NODES).encode()[:-9],
        "nodes.json: not readable as JSON"),
    "no JSON": ("jsonl", b"id,label\n1,red\n", "nodes.jsonl: line 1: not readable as JSON"),
    "no JSON array": ("json", b"id,label\n1,red\n", "nodes.json: not readable as JSON"),
    "empty": ("jsonl", b"", "nodes.jsonl: empty, there is not even a record"),
    "empty array": ("json", b" [] ", "nodes.json: empty, there is not even a record"),
    "blank": ("json", b"\n \n", "nodes.json: empty, there is not even a record"),
    "blank lines": ("ndjson", b"\n \n", "nodes.ndjson: empty, there is not even a record"),
    "an array as lines": ("jsonl", json.dumps(NODES).encode(),
        "this is an array; name an array of records .json"),
    "one object": ("json", json.dumps({"n": NODES, "e": EDGES}).encode(),
        "nodes.json: one object with 2 keys (first: 'n'); a table is an array of records"),
    "one empty object": ("json", b"{}", "nodes.json: one object with 0 keys (none)"),
    "a number": ("json", b"7", "nodes.json: a number; a table is an array of records"),
    "a text": ("json", b'"a"', "nodes.json: a text; a table is an array of records"),
    "too deep": ("json", b"[" * 200_000, "nodes.json: not readable as JSON"),
    "too deep a line": ("jsonl", b"[" * 200_000, "nodes.jsonl: line 1: not readable as JSON"),
    "NUL bytes": ("jsonl", lines(NODES).encode() + b"\0", "nodes.jsonl: line 6 holds a NUL byte"),
    "gzip cut off": ("jsonl.gz", gzip.compress(lines(NODES).encode())[:60],
        "nodes.jsonl.gz: damaged or cut off"),
    "gz that is none": ("json.gz", b"[]",
        "nodes.json.gz: its name ends in .gz, but it is not a gzip file"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_that_is_broken_is_one_sentence(tmp_path: Path, kind: str) -> None:
    form, content, said = BROKEN[kind]
    assert said in refused(nodes=write(tmp_path, form, content)["nodes"])


@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_an_encoding_that_does_not_fit_is_one_sentence(tmp_path: Path, form: str) -> None:
    content = FORMS["JSON"](NODES)[3:] if form == "json" else json.dumps(NODES[0]).encode()
    content = content.replace("ü".encode(), b"\xfc").replace(b"red", b"\xfcred")
    path = write(tmp_path, form, content)["nodes"]
    assert "cannot be decoded as utf-8" in refused(nodes=path, encoding="utf-8")
    assert nova.load_graph(nodes=path).class_names[-1] == "üred"


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    paths = write(tmp_path, "jsonl")
    said = "nodes.jsonl: no column 'topic'; it has 'id', 'label', 'mass', 'open', 'title'"
    assert said in refused(**paths, label_column="topic")
    assert "edges.jsonl: no column 'from'" in refused(**paths, source_column="from")


def test_json_that_is_called_csv_is_told_from_a_table(tmp_path: Path) -> None:
    for content in (json.dumps(NODES), lines(NODES), json.dumps({"a": [1, 2]})):
        (tmp_path / "nodes.csv").write_text(content)
        said = "nodes.csv: this looks like JSON; name it .json, or .jsonl for JSON lines"
        assert refused(nodes=tmp_path / "nodes.csv") == said


@pytest.mark.parametrize(
    ("name", "role"), [("x.json", "nodes"), ("x.jsonl", "edges"), ("x.csv", "nodes")]
)
def test_a_large_file_of_one_line_is_refused_at_once(tmp_path: Path, name: str, role: str) -> None:
    path = tmp_path / name
    columns = ",".join(f"c{i}" for i in range(100_001))
    document = json.dumps({str(i): [1, 2, 3] for i in range(100_001)})
    path.write_text(columns if name == "x.csv" else document)
    start = time.process_time()  # what others compute on this machine does not count
    with pytest.raises(GraphError) as error:
        nova.load_graph(**{role: path})
    assert time.process_time() - start < 3
    expected = {
        "x.json": "one object with 100,001 keys",
        "x.jsonl": "a header of 100,001 columns, first: '0'; is this a table?",
        "x.csv": "a header of 100,001 columns, first: 'c0'; is this a table?",
    }
    assert f"{name}: {expected[name]}" in str(error.value)
