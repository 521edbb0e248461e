"""Data frames and Parquet files give the graph of the same CSV file; errors name the place."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st

import nodenova as nova
from nodenova.errors import GraphError
from nodenova.files import arrays
from nodenova.io import frames
from nodenova.io.describe import describe
from tests.refusals import one_sentence

BIG = 2**53  # BIG + 1 is no float
WORDS = ["graph", "cell", "paper", "theory", "biology", "model", "query", "plan", "protein", "join"]


def content(nodes: int = 40) -> dict[str, list[Any]]:
    """Columns of every kind, some with gaps."""
    rng = np.random.default_rng(0)
    gaps = rng.random((nodes, 3)) < 0.2

    def with_gaps(values: list[Any], which: int) -> list[Any]:
        return [None if gap else value for value, gap in zip(values, gaps[:, which], strict=True)]

    drawn = rng.integers(len(WORDS), size=(nodes, 4))
    return {
        "id": [BIG + 1 + i for i in rng.permutation(nodes).tolist()],
        "label": with_gaps([("red", "blue", "green")[i] for i in rng.integers(3, size=nodes)], 0),
        "mass": rng.normal(size=nodes).tolist(),
        "cites": with_gaps(rng.integers(2000, size=nodes).tolist(), 1),
        "large": [BIG + 1 + i for i in rng.integers(10**6, size=nodes).tolist()],
        "open": with_gaps((rng.random(nodes) < 0.5).tolist(), 2),
        "venue": with_gaps([("KDD", "Nature", "VLDB")[i] for i in rng.integers(3, size=nodes)], 2),
        "day": [datetime.date(2020, 1, 1 + i) for i in rng.integers(5, size=nodes).tolist()],
        "price": [Decimal(i) / 100 for i in rng.integers(999, size=nodes).tolist()],
        "flag": rng.integers(2, size=nodes).tolist(),
        "same": [7] * nodes,
        "row": list(range(nodes)),
        "title": with_gaps([" ".join(WORDS[i] for i in row) for row in drawn], 0),
    }


def links(nodes: int = 40) -> dict[str, list[Any]]:
    ids, rng = content(nodes)["id"], np.random.default_rng(1)
    ends = rng.integers(nodes, size=(2, 3 * nodes))
    weights = rng.normal(size=3 * nodes).tolist()
    return {"source": [ids[i] for i in ends[0]], "target": [ids[i] for i in ends[1]], "w": weights}


def write_csv(columns: dict[str, list[Any]], path: Path) -> Path:
    texts = [["" if cell is None else str(cell) for cell in cells] for cells in columns.values()]
    rows = [list(row) for row in zip(*texts, strict=True)]
    path.write_text("\n".join(",".join(row) for row in [list(columns), *rows]) + "\n")
    return path


def write_parquet(columns: dict[str, list[Any]], path: Path) -> Path:
    pq.write_table(pa.table(columns), path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def nullable(columns: dict[str, list[Any]], path: Path) -> pd.DataFrame:
    series = {name: pd.Series(cells).convert_dtypes() for name, cells in columns.items()}
    return pd.DataFrame(series)


def arrow_typed(columns: dict[str, list[Any]], path: Path) -> pd.DataFrame:
    return pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype)


def categories(columns: dict[str, list[Any]], path: Path) -> pl.DataFrame:
    made = pl.DataFrame(columns)
    return made.with_columns(pl.col("venue").cast(pl.Categorical)) if "venue" in columns else made


ENTRANCES: dict[str, Callable[[dict[str, list[Any]], Path], Any]] = {
    "parquet": write_parquet,
    "pandas": lambda columns, path: pd.DataFrame(columns),
    "pandas, nullable types": nullable,
    "pandas, Arrow types": arrow_typed,
    "polars": lambda columns, path: pl.DataFrame(columns),
    "polars, categories": categories,
    "arrow": lambda columns, path: pa.table(columns),
}


def without_source(loaded: nova.UserGraph) -> list[str]:
    """Notes, with a table called the same whether it is a file or not."""
    endings = (".csv", ".parquet")
    notes = list(loaded.notes)
    for table in ("nodes", "edges"):
        for ending in endings:
            notes = [note.replace(f"{table}{ending}: ", f"{table}: ") for note in notes]
    return notes


def entries(graph: nova.Graph) -> np.ndarray:
    return graph.x.toarray() if sp.issparse(graph.x) else graph.x


@pytest.mark.parametrize("has_text", [True, False], ids=["with words", "numbers"])
@pytest.mark.parametrize("entrance", ENTRANCES)
def test_the_same_content_is_the_same_graph(tmp_path: Path, entrance: str, has_text: bool) -> None:
    columns = content()
    if not has_text:
        for name in ("open", "venue", "day", "flag", "same", "row", "title"):
            del columns[name]
    tables = {"nodes": columns, "edges": links()}
    options: dict[str, Any] = {"weight_column": "w", "min_weight": 0.1}
    files = {name: write_csv(table, tmp_path / f"{name}.csv") for name, table in tables.items()}
    typed = {name: ENTRANCES[entrance](table, files[name]) for name, table in tables.items()}
    plain, loaded = nova.load_graph(**files, **options), nova.load_graph(**typed, **options)
    assert loaded.fingerprint() == plain.fingerprint()
    assert loaded.graph.feature_names == plain.graph.feature_names
    assert sp.issparse(loaded.graph.x) == sp.issparse(plain.graph.x) == has_text
    assert entries(loaded.graph).tobytes() == entries(plain.graph).tobytes()
    assert loaded.graph.node_ids.tolist() == [str(node) for node in columns["id"]]
    assert (loaded.graph.edge_index == plain.graph.edge_index).all()
    assert loaded.class_names == plain.class_names == ("blue", "green", "red")
    assert loaded.y.tolist() == plain.y.tolist()
    # pandas has no whole numbers with gaps; that these are floats changes no feature
    assert without_source(loaded) == without_source(plain)
    if has_text:
        assert dict(describe(loaded).features).keys() == {"number", "category", "yes/no", "words"}


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_a_recipe_is_the_same_from_text_and_types(tmp_path: Path, entrance: str) -> None:
    columns = content()
    csv = write_csv(columns, tmp_path / "nodes.csv")
    typed = ENTRANCES[entrance](columns, csv)
    plain, first = nova.load_graph(nodes=csv), nova.load_graph(nodes=typed)
    assert first.recipe == plain.recipe
    for later in (
        nova.load_graph(nodes=typed, recipe=plain.recipe),
        nova.load_graph(nodes=csv, recipe=first.recipe),
    ):
        assert entries(later.graph).tobytes() == entries(plain.graph).tobytes()


def test_numbers_never_pass_through_text(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    plain = frames._series_texts
    monkeypatch.setattr(
        frames,
        "_series_texts",
        lambda series, source, name, *rest: read.append(name) or plain(series, source, name, *rest),
    )
    loaded = nova.load_graph(nodes=pl.DataFrame(content()), text_columns=["title"])
    assert set(read) == {"id", "label", "venue", "day", "title"}
    assert {"open", "cites is missing"} <= set(loaded.graph.feature_names)


def test_only_the_columns_of_ends_are_read_of_edges(tmp_path: Path) -> None:
    edges = {"source": ["a", "b"], "target": ["b", "c"], "path": [[1, 2], [3]]}
    for table in (
        pl.DataFrame(edges),
        pa.table(edges),
        pd.DataFrame(edges),
        write_parquet(edges, tmp_path / "e"),
    ):
        loaded = nova.load_graph(edges=table)
        assert loaded.graph.num_edges == 4
        assert any("columns of edges are not used: path" in note for note in loaded.notes)


def test_what_a_type_calls_a_category_is_one_whatever_its_values_look_like(tmp_path: Path) -> None:
    codes = [10115, 10117, 20095, 20097, 10115, 20095]
    ids = list("abcdef")
    columns: dict[str, Any] = {"id": ids, "zip": pd.Categorical(codes)}
    dictionary = pa.array([str(code) for code in codes]).dictionary_encode()
    pq.write_table(pa.table({"id": ids, "zip": dictionary}), tmp_path / "nodes.parquet")
    tables = [
        pd.DataFrame(columns),
        pa.table({"id": ids, "zip": dictionary}),
        pl.DataFrame(
            {"id": ids, "zip": [str(code) for code in codes]},
            schema_overrides={"zip": pl.Categorical},
        ),
        tmp_path / "nodes.parquet",
    ]
    for table in tables:
        graph = nova.load_graph(nodes=table).graph
        assert graph.feature_names == ("zip=10115", "zip=10117", "zip=20095", "zip=20097")
    endless = pd.DataFrame({"id": ids, "end": pd.Categorical(["1", "inf", "2"] * 2)})
    assert nova.load_graph(nodes=endless).graph.feature_names == ("end=1", "end=2", "end=inf")
    numbers = nova.load_graph(nodes=pd.DataFrame({"id": ids, "zip": codes})).graph
    assert numbers.feature_names == ("zip",)


NOTHING = [None, float("nan"), pd.NA, pd.NaT, np.float32("nan"), Decimal("NaN")]


@pytest.mark.parametrize("nothing", NOTHING, ids=repr)
def test_an_empty_cell_is_no_word_no_category_and_no_label(nothing: Any) -> None:
    table = pd.DataFrame(
        {"id": list("abcd"), "label": ["x", "x", "y", nothing], "kind": ["p", "q", "p", nothing]},
        dtype=object,
    )
    loaded = nova.load_graph(nodes=table)
    assert loaded.class_names == ("x", "y")
    assert loaded.y.tolist() == [0, 0, 1, -1]
    assert loaded.graph.feature_names == ("kind=p", "kind=q", "kind is missing")
    assert entries(loaded.graph)[3].tolist() == [0, 0, 1]


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_nan_and_null_are_both_missing_among_numbers(library: Callable[..., Any]) -> None:
    columns = {"id": list("abcd"), "x": [1.5, None, float("nan"), 2.5], "y": [3.0, 1.0, 4.0, 1.5]}
    graph = nova.load_graph(nodes=library(columns)).graph
    missing = graph.feature_names.index("x is missing")
    assert entries(graph)[:, missing].tolist() == [0, 1, 1, 0]


def test_a_column_of_mixed_values_is_read_value_by_value() -> None:
    mixed = [1, "2", 2.5, True, None, "x"]
    table = pd.DataFrame({"id": [1, "b", 2.5, "d", "e", "f"], "mixed": mixed})
    loaded = nova.load_graph(nodes=table, features=["mixed"])
    assert loaded.graph.node_ids.tolist() == ["1", "b", "2.5", "d", "e", "f"]
    assert loaded.graph.feature_names == (
        *(f"mixed={v}" for v in ("1", "2", "2.5", "True", "x")),
        "mixed is missing",
    )


def test_ids_beyond_floats_stay_apart() -> None:
    ids = [BIG, BIG + 1, 2**63 + 1]
    columns = {"id": pa.array(ids, type=pa.uint64()), "size": [1.5, 2.5, 4.0]}
    edges = {
        "source": pa.array(ids[:2], type=pa.uint64()),
        "target": pa.array(ids[1:], type=pa.uint64()),
    }
    table, ends = pa.table(columns), pa.table(edges)
    for nodes, links_ in (
        (table, ends),
        (pl.DataFrame(table), pl.DataFrame(ends)),
        (table.to_pandas(), ends.to_pandas()),
    ):
        loaded = nova.load_graph((nodes, links_))
        assert loaded.graph.node_ids.tolist() == [str(node) for node in ids]
        assert loaded.graph.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_columns_that_pandas_numbers_are_no_edge() -> None:
    pairs = pd.DataFrame([(2, 0), (2, 3)])
    assert nova.load_graph(edges=pairs).graph.num_edges == 4
    nodes = pd.DataFrame({"id": [0, 1, 2, 3], "size": [0.5, 1.5, 1.0, 3.0]})
    assert nova.load_graph((nodes, pairs)).graph.num_edges == 4
    read_as_header = pairs[1:].set_axis(["2", "0"], axis=1)
    assert nova.load_graph((nodes, read_as_header)).graph.num_edges == 4


def test_pieces_of_a_table_do_not_show(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edges = links()
    tables = [
        pd.DataFrame(edges),
        pl.DataFrame(edges),
        pa.table(edges),
        write_parquet(edges, tmp_path / "e"),
    ]
    whole = [nova.load_graph(edges=table).fingerprint() for table in tables]
    monkeypatch.setattr(frames, "BATCH_ROWS", 7)
    for table, expected in zip(tables, whole, strict=True):
        shares: list[float] = []
        watch = lambda stage, share, to=shares: to.append(share)  # noqa: E731
        loaded = nova.load_graph(edges=table, progress=watch)
        assert loaded.fingerprint() == expected == whole[0]
        assert len(shares) == -(-len(edges["w"]) // 7)
        assert shares == sorted(shares)
        assert shares[-1] == 1
    from_file = nova.load_graph(nodes=write_parquet(content(), tmp_path / "nodes"))
    in_memory = nova.load_graph(nodes=pl.DataFrame(content()))
    assert from_file.fingerprint() == in_memory.fingerprint()


def frame(**columns: list[Any]) -> dict[str, list[Any]]:
    return {"id": list("abc"), "size": [1.0, 2.5, 4.0], **columns}


TWICE = pd.DataFrame([["a", 1, 2]], columns=["id", "x", "x"])
# what is handed over as nodes, options, what the error says
REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "a column twice, pandas": (TWICE, {}, "nodes: the header names column 'x' 2 times"),
    "a column twice, Arrow": (
        pa.table([["a"], [1], [2]], names=["id", "x", "x"]),
        {},
        "nodes: the header names column 'x' 2 times",
    ),
    "a column twice but for spaces": (
        pl.DataFrame({"id": ["a"], "x": [1], "x ": [2]}),
        {},
        "nodes: the header names column 'x' 2 times",
    ),
    "no columns, pandas": (pd.DataFrame(), {}, "nodes: a table without columns"),
    "no columns, polars": (pl.DataFrame(), {}, "nodes: a table without columns"),
    "no columns, Arrow": (pa.table({}), {}, "nodes: a table without columns"),
    "no rows": (pl.DataFrame({"id": [], "x": []}), {}, "nodes: a header and no rows"),
    "no such column": (
        pl.DataFrame(frame()),
        {"label_column": "topic"},
        "nodes: no column 'topic'; it has 'id', 'size'",
    ),
    "no such feature": (
        pa.table(frame()),
        {"features": ["age"]},
        "nodes: no column 'age'; it has id, size",
    ),
    "an id that is null": (
        pl.DataFrame({"id": ["a", None]}),
        {},
        "nodes: row 2: no id in column 'id'",
    ),
    "an id that is NaN": (
        pd.DataFrame({"id": [1.0, float("nan")]}),
        {},
        "nodes: row 2: no id in column 'id'",
    ),
    "an id twice": (
        pa.table({"id": [3, 4, 3]}),
        {},
        "nodes: ids must be unique, '3' appears 2 times (rows 1 and 3)",
    ),
    "infinity": (
        pl.DataFrame({"id": [1, 2, 3], "x": [1.5, float("inf"), 2.0]}),
        {},
        "nodes: column 'x', row 2: 'inf' is not a finite number",
    ),
    "infinity as text": (
        pl.DataFrame({"id": [1, 2, 3], "x": ["1.5", "2", "inf"]}),
        {},
        "nodes: column 'x', row 3: 'inf' is not a finite number",
    ),
    "new column of something else": (
        pl.DataFrame({"id": [1, 2], "is_new": [0, 3]}),
        {},
        "nodes: row 2: column 'is_new' marks new nodes with yes or no, not '3'",
    ),
    "lists of lists as a feature": (
        pa.table(frame(v=[[[1]], [[2]], [[3]]])),
        {"features": ["v"]},
        "nodes: column 'v' has several values in a cell (its type is List(List(Int64)))",
    ),
    "records as a feature": (
        pa.table(frame(v=[{"p": 1}] * 3)),
        {"features": ["v"]},
        "nodes: column 'v' has several values in a cell",
    ),
    "vectors as text": (
        pl.DataFrame(frame(v=np.eye(3))),
        {"text_columns": ["v"]},
        "nodes: column 'v' has several values in a cell",
    ),
    "lists as labels, polars": (
        pl.DataFrame(frame(label=[["a"], ["b"], ["a"]])),
        {},
        "nodes: column 'label' has several values in a cell (its type is List(String))",
    ),
    "lists as labels, pandas": (
        pd.DataFrame(frame(label=[None, ["a"], "x"])),
        {},
        "nodes: column 'label' has several values in a cell (row 2 has a list)",
    ),
    "lists as ids": (
        pl.DataFrame({"v": [[1], [2]]}),
        {},
        "nodes: column 'v' has several values in a cell",
    ),
    "a plan of polars": (
        pl.LazyFrame(frame()),
        {},
        "a data frame (pandas, polars, Arrow), not LazyFrame; collect it first",
    ),
    "no table": (
        {"id": [1]},
        {},
        "a table is a path or a data frame (pandas, polars, Arrow), not dict",
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_one_sentence_that_names_the_place(kind: str) -> None:
    table, options, expected = REFUSED[kind]
    with pytest.raises(GraphError) as refused:
        nova.load_graph(nodes=table, **options)
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)


# what is handed over as edges, options, what the error says
EDGES_REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no columns": (pd.DataFrame(), {}, "edges: a table without columns"),
    "one column": (
        pl.DataFrame({"source": [1]}),
        {},
        "edges: a table of edges needs two columns, it has one: 'source'",
    ),
    "no such column": (
        pl.DataFrame({"a": [1], "b": [2]}),
        {"source_column": "from"},
        "edges: no column 'from'; it has 'a', 'b'",
    ),
    "an end that is null": (
        pl.DataFrame({"source": ["a", "b"], "target": ["b", None]}),
        {},
        "edges: row 2: an edge with only one end",
    ),
    "an unknown end": (
        pa.table({"source": ["a"], "target": ["zz"]}),
        {},
        "edges: 1 edge names nodes that nodes does not have, first: 'a' -> 'zz' (row 1)",
    ),
    "a weight that is null": (
        pl.DataFrame({"source": ["a"], "target": ["b"], "w": [None]}),
        {"weight_column": "w"},
        "edges: row 1: the weight of an edge must be a number, it is ''",
    ),
    "lists as ends": (
        pa.table({"source": [["a"]], "target": ["b"]}),
        {},
        "edges: column 'source' has several values in a cell",
    ),
}


@pytest.mark.parametrize("kind", EDGES_REFUSED)
def test_one_sentence_that_names_the_edge(kind: str) -> None:
    table, options, expected = EDGES_REFUSED[kind]
    with pytest.raises(GraphError) as refused:
        nova.load_graph((pl.DataFrame(frame()), table), **options)
    assert expected in str(refused.value)


def test_a_list_that_is_not_asked_for_does_no_harm() -> None:
    table = pl.DataFrame(frame(v=[[1.0], [2.0], [3.0]]))
    assert nova.load_graph(nodes=table, features=["size"]).graph.feature_names == ("size",)


def test_a_parquet_file_with_a_column_twice_or_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "nodes.parquet"
    pq.write_table(pa.table([["a"], [1], [2]], names=["id", "x", "x"]), path)
    with pytest.raises(GraphError, match=r"nodes\.parquet: the header names column 'x' 2 times"):
        nova.load_graph(nodes=path)
    pq.write_table(pa.table({"id": pa.array([], pa.string())}), path)
    with pytest.raises(GraphError, match=r"nodes\.parquet: a header and no rows"):
        nova.load_graph(nodes=path)


NOT_UTF8 = pa.Array.from_buffers(pa.string(), 3, pa.array([b"\xff", b"a", b"b"]).buffers())
ODD_COLUMNS: dict[str, tuple[pa.Array, str]] = {
    "texts that are not UTF-8": (NOT_UTF8, "n.parquet: damaged after row 0"),
    "dates beyond the calendar": (pa.array([2**30] * 3, pa.date32()), "column 'c' has values"),
    "times beyond the calendar": (pa.array([2**62] * 3, pa.timestamp("us")), "column 'c' has"),
    "durations": (pa.array([1, 2**60, 3], pa.duration("s")), "column 'c' has values"),
    "infinity": (pa.array([1.0, np.inf, 2.0]), "column 'c', row 2: 'inf' is not a finite"),
    "a huge number": (pa.array([1.0, 1e300, 2.0]), "column 'c', row 2: '1e+300' is too large"),
}


def write_column(path: Path, c: pa.Array) -> Path:
    pq.write_table(pa.table({"id": ["a", "b", "c"], "c": c}), path)
    return path


@pytest.mark.parametrize("kind", ODD_COLUMNS)
def test_columns_of_parquet_that_cannot_be_read(tmp_path: Path, kind: str) -> None:
    column, expected = ODD_COLUMNS[kind]
    with pytest.raises(GraphError) as caught:
        nova.load_graph(nodes=write_column(tmp_path / "n.parquet", column))
    assert expected in one_sentence(caught.value)


READ_ANYWAY: list[pa.Array] = [
    pa.array([b"\xff", b"a", None]),
    pa.array([Decimal("1.5"), None, Decimal("2.5")]),
    pa.array([1, 2, 3], pa.timestamp("ns", tz="UTC")),
    pa.array([[("k", 1)]] * 3, pa.map_(pa.string(), pa.int64())),
    pa.array([{"a": 1}] * 3),
    pa.array([[[1]]] * 3),
    pa.array(["x", None, "y"]).dictionary_encode(),
    pa.array([7, None, 9]).dictionary_encode(),
    pa.nulls(3),
    pa.array([1, 2, 3], pa.time64("us")),
    pa.array([2**64 - 1, 1, 2], pa.uint64()),
    pa.array([[1.0, 2.0], [1.0, 2.0], None], pa.list_(pa.float64(), 2)),
]


@pytest.mark.parametrize("column", READ_ANYWAY, ids=lambda column: str(column.type)[:20])
def test_odd_types_of_parquet_are_read_or_left_out(tmp_path: Path, column: pa.Array) -> None:
    found = nova.load_graph(nodes=write_column(tmp_path / "n.parquet", column))
    assert found.graph.num_nodes == 3


def test_texts_of_arrow_that_are_not_utf8_name_the_column() -> None:
    with pytest.raises(GraphError, match="nodes: column 'c' has values that cannot be read"):
        nova.load_graph(nodes=pa.table({"id": ["a", "b", "c"], "c": NOT_UTF8}))


def test_a_column_of_complex_numbers_is_named() -> None:
    frame = pd.DataFrame({"id": ["a", "b"], "c": [1j, 2j]})
    with pytest.raises(GraphError, match="nodes: column 'c' has complex numbers"):
        nova.load_graph(nodes=frame)


def test_parquet_names_that_are_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "n.parquet"
    pq.write_table(pa.table({"id": ["a", "b"], "zzzz": [1, 2]}), path)
    path.write_bytes(path.read_bytes().replace(b"zzzz", b"z\xff\xfez"))
    with pytest.raises(GraphError, match=r"n\.parquet: not a readable Parquet file"):
        nova.load_graph(nodes=path)


def test_parquet_whose_equal_cells_would_take_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "n.parquet"
    pq.write_table(pa.table({"id": ["a"] * 1_000_000}), path)
    monkeypatch.setattr(frames, "MAX_CELLS", 1000)
    with pytest.raises(GraphError, match="far more memory than the file"):
        nova.load_graph(nodes=path)
    monkeypatch.undo()
    monkeypatch.setattr(arrays, "SPARE", 1000)
    with pytest.raises(GraphError, match="unpacks to more than 100 times its size"):
        nova.load_graph(nodes=path)


@hypothesis.settings(max_examples=100, derandomize=True, deadline=None)
@hypothesis.given(
    changes=st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 255)), min_size=1, max_size=5)
)
def test_changed_bytes_of_parquet(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]]
) -> None:
    path = tmp_path_factory.getbasetemp() / "changed.parquet"
    table = {"id": ["a", "b", "c"], "label": ["x", None, "y"], "n": [1.5, 2.0, None]}
    pq.write_table(pa.table(table), path, store_schema=False)
    content = bytearray(path.read_bytes())
    for place, value in changes:
        content[place % len(content)] = value
    path.write_bytes(bytes(content))
    try:
        nova.load_graph(nodes=path)
    except GraphError as error:
        one_sentence(error)
