"""Tables with types that cannot be read: one sentence each, which names the place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nodenova as nova
from nodenova.errors import GraphError


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
        "nodes: row 2: column 'is_new' says whether a node is new: yes or no, not '3'",
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
        "edges: 1 edges name nodes that nodes does not have, first: 'a' -> 'zz' (row 1)",
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
