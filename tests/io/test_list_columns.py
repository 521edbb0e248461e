"""Columns of vectors: the same features from every form, and one sentence for what is none."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import nodenova as nova
from nodenova.errors import GraphError
from nodenova.io import recipe
from nodenova.io.describe import describe, lines_of
from nodenova.io.recipe import TableEncoder

IDS = [f"n{i}" for i in range(8)]
RNG = np.random.default_rng(0)
VECTORS = [row.tolist() for row in RNG.normal(size=(8, 3)) * [1.0, 5.0, 0.1] + 2]
LABELS = ["red", "blue", "", "red", "blue", "", "red", "blue"]


def columns(vectors: list[Any] = VECTORS) -> dict[str, list[Any]]:
    return {"id": IDS[: len(vectors)], "label": LABELS[: len(vectors)], "v": vectors}


def as_text(vectors: list[Any]) -> list[str]:
    return ["" if v is None else v if isinstance(v, str) else json.dumps(v) for v in vectors]


def csv_file(table: dict[str, list[Any]], folder: Path) -> Any:
    with (folder / "nodes.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table)
        writer.writerows(zip(*{**table, "v": as_text(table["v"])}.values(), strict=True))
    return {"nodes": folder / "nodes.csv"}


def records(table: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]


def json_lines(table: dict[str, list[Any]], folder: Path) -> Any:
    path = folder / "nodes.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records(table)))
    return {"nodes": path}


def json_array(table: dict[str, list[Any]], folder: Path) -> Any:
    (folder / "nodes.json").write_text(json.dumps(records(table)))
    return {"nodes": folder / "nodes.json"}


def parquet(table: dict[str, list[Any]], folder: Path) -> Any:
    pq.write_table(pa.table(table), folder / "nodes.parquet")
    return {"nodes": folder / "nodes.parquet"}


def networkx(table: dict[str, list[Any]], folder: Path) -> Any:
    graph = nx.Graph()
    for record in records(table):
        node = record.pop("id")
        graph.add_node(node, **{k: v for k, v in record.items() if v is not None})
    return {"source": graph}


def arrays(vectors: list[Any]) -> list[Any]:
    return [np.array(v) if isinstance(v, list) else v for v in vectors]


FORMS: dict[str, Callable[[dict[str, list[Any]], Path], Any]] = {
    "csv": csv_file,
    "jsonl": json_lines,
    "json": json_array,
    "parquet": parquet,
    "arrow": lambda t, _: {"nodes": pa.table(t)},
    "polars lists": lambda t, _: {"nodes": pl.DataFrame(t)},
    "pandas lists": lambda t, _: {"nodes": pd.DataFrame(t)},
    "pandas arrays": lambda t, _: {"nodes": pd.DataFrame({**t, "v": arrays(t["v"])})},
    "pandas, Arrow types": lambda t, _: {
        "nodes": pa.table(t).to_pandas(types_mapper=pd.ArrowDtype)
    },
    "networkx": networkx,
    "networkx arrays": lambda t, folder: networkx({**t, "v": arrays(t["v"])}, folder),
}
FIXED: dict[str, Callable[[], Any]] = {
    "arrow, fixed size": lambda: pa.table(
        {**columns(), "v": pa.array(VECTORS, pa.list_(pa.float64(), 3))}
    ),
    "arrow, large lists": lambda: pa.table(
        {**columns(), "v": pa.array(VECTORS, pa.large_list(pa.float64()))}
    ),
    "polars arrays": lambda: pl.DataFrame({**columns(), "v": np.array(VECTORS)}),
    "pandas tuples": lambda: pd.DataFrame({**columns(), "v": [tuple(v) for v in VECTORS]}),
    "numpy's text": lambda: pd.DataFrame(
        {**columns(), "v": [f"[{' '.join(map(repr, v))}]" for v in VECTORS]}
    ),
}


def expected() -> np.ndarray:
    v = np.array(VECTORS)
    return ((v - v.mean(axis=0)) / np.sqrt(v.var(axis=0).mean())).astype(np.float32)


def entries(graph: nova.Graph) -> np.ndarray:
    return graph.x.toarray() if sp.issparse(graph.x) else graph.x


@pytest.mark.parametrize("form", FORMS)
def test_a_column_of_vectors_is_a_feature_for_each_of_its_numbers(
    tmp_path: Path, form: str
) -> None:
    loaded = nova.load_graph(**FORMS[form](columns(), tmp_path))
    assert loaded.graph.feature_names == ("v[0]", "v[1]", "v[2]")
    assert isinstance(loaded.graph.x, np.ndarray)
    assert loaded.graph.x.tobytes() == expected().tobytes()
    assert loaded.class_names == ("blue", "red")
    assert any(
        "column 'v' holds vectors of 3 numbers; used as v[0] to v[2]" in n for n in loaded.notes
    )
    assert describe(loaded).features == (("vector", 3),)
    assert any("features   3 (3 vector), kept as numbers" in s for s in lines_of(describe(loaded)))


@pytest.mark.parametrize("form", FIXED)
def test_vectors_of_other_types_are_the_same(form: str) -> None:
    loaded = nova.load_graph(nodes=FIXED[form]())
    assert loaded.graph.x.tobytes() == expected().tobytes()


@pytest.mark.parametrize("form", FORMS)
def test_a_node_without_a_vector_has_the_mean_and_says_so(tmp_path: Path, form: str) -> None:
    gap = [None, *VECTORS[1:]]
    graph = nova.load_graph(**FORMS[form](columns(gap), tmp_path)).graph
    assert graph.feature_names == ("v[0]", "v[1]", "v[2]", "v is missing")
    assert entries(graph)[0].tolist() == [0, 0, 0, 1]
    assert (entries(graph)[1:, 3] == 0).all()
    assert np.allclose(entries(graph)[1:, :3].mean(axis=0), 0, atol=1e-6)


# what the third node has instead of a vector, what the error says of it
WRONG: dict[str, tuple[Any, str]] = {
    "too short": ([1.0, 2.0], "vectors have one length; node 'n0' has 3 numbers, node 'n2' has 2"),
    "too long": (
        [1.0, 2.0, 3.0, 4.0],
        "vectors have one length; node 'n0' has 3 numbers, node 'n2' has 4",
    ),
    "a gap inside": ([1.0, float("nan"), 2.0], "v[1] of node 'n2' is nan, not a finite number"),
    "infinity": ([1.0, 2.0, float("inf")], "v[2] of node 'n2' is inf, not a finite number"),
}


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("form", FORMS)
def test_a_vector_that_is_wrong_names_the_column_and_the_node(
    tmp_path: Path, form: str, kind: str
) -> None:
    wrong, said = WRONG[kind]
    table = columns([*VECTORS[:2], wrong, *VECTORS[3:]])
    for options in ({}, {"features": ["v"]}):
        with pytest.raises(GraphError) as refused:
            nova.load_graph(**FORMS[form](table, tmp_path), **options)
        assert f"column 'v': {said}" in str(refused.value)
        assert "name the columns to use in features" in str(refused.value)
        assert "\n" not in str(refused.value)


MANY = [[float(i), i * 0.5] for i in range(12)]
# what a cell of twelve holds, what the error says of it: forms in which it can
ODD: dict[str, tuple[Any, str, tuple[str, ...]]] = {
    "a word": ("x", "node 'm3' has no vector of numbers, but 'x'",
        ("csv", "jsonl", "json", "pandas lists", "pandas arrays", "networkx")),
    "a list with a word": ([1.0, "x"], "node 'm3' has no vector of numbers, but",
        ("csv", "jsonl", "json", "pandas lists", "networkx")),
    "lists in a list": ([[1.0], [2.0]], "node 'm3' has no vector of numbers, but",
        ("csv", "jsonl", "json", "pandas lists", "networkx")),
    "a record": ({"a": 1}, "node 'm3' has no vector of numbers, but",
        ("jsonl", "json", "pandas lists", "networkx")),
}  # fmt: skip


@pytest.mark.parametrize(
    ("form", "kind"), [(form, kind) for kind, (*_, forms) in ODD.items() for form in forms]
)
def test_a_cell_that_is_no_vector_among_vectors(tmp_path: Path, form: str, kind: str) -> None:
    odd, said, _ = ODD[kind]
    cells = [*MANY[:3], odd, *MANY[4:]]
    if form == "pandas arrays":
        cells = [odd if cell is odd else np.array(cell) for cell in cells]
    table = {"id": [f"m{i}" for i in range(12)], "v": cells}
    with pytest.raises(GraphError) as refused:
        nova.load_graph(**FORMS[form](table, tmp_path))
    assert f"column 'v': {said}" in str(refused.value)


@pytest.mark.parametrize("form", FORMS)
def test_a_vector_that_is_not_asked_for_does_no_harm(tmp_path: Path, form: str) -> None:
    table = columns([[1.0], *VECTORS[1:]]) | {"size": [float(i * i) for i in range(8)]}
    loaded = nova.load_graph(**FORMS[form](table, tmp_path), features=["size"])
    assert loaded.graph.feature_names == ("size",)


@pytest.mark.parametrize("form", FORMS)
def test_a_later_file_has_the_very_same_features(tmp_path: Path, form: str) -> None:
    first = nova.load_graph(nodes=pd.DataFrame(columns()))
    document = json.loads(json.dumps(first.recipe.as_json()))
    recipe = TableEncoder.from_json(document)
    assert recipe == first.recipe
    later = nova.load_graph(**FORMS[form](columns(VECTORS[:5]), tmp_path), recipe=recipe)
    assert later.graph.x.tobytes() == first.graph.x[:5].tobytes()
    none = nova.load_graph(**FORMS[form]({"id": ["a"], "v": [None]}, tmp_path), recipe=recipe)
    assert none.graph.x.tolist() == [[0, 0, 0]]
    other = FORMS[form](columns([[1.0, 2.0]] * 2), tmp_path)
    with pytest.raises(
        GraphError, match="holds vectors of 2 numbers, but the model expects vectors of 3"
    ):
        nova.load_graph(**other, recipe=recipe)
    words = {"nodes": pd.DataFrame({"id": ["a"], "v": ["some text"]})}
    with pytest.raises(GraphError, match="holds 'some text', but the model expects vectors of 3"):
        nova.load_graph(**words, recipe=recipe)


def test_a_recipe_without_vectors_is_written_as_before() -> None:
    table = pd.DataFrame({"id": list("abcd"), "size": [1.5, 2.5, 9.0, 4.0]})
    column = nova.load_graph(nodes=table).recipe.as_json()["columns"][0]
    assert set(column) == {
        "name", "kind", "cuts", "centre", "spread", "values", "has_other", "has_missing"
    }  # fmt: skip


TITLES = ["graph plan", "cell join", "graph join", "cell plan"] * 2


def test_beside_words_vectors_stay_numbers_unless_that_is_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = pd.DataFrame(columns() | {"title": TITLES})
    dense = nova.load_graph(nodes=table, text_columns=["title"])
    assert isinstance(dense.graph.x, np.ndarray)
    assert dense.graph.feature_names == (
        "v[0]", "v[1]", "v[2]", "cell", "graph", "join", "plan"
    )  # fmt: skip
    assert dense.graph.x[:, :3].tobytes() == expected().tobytes()
    assert dense.graph.x[:, 3:].tolist()[0] == [0, 1, 0, 1]
    monkeypatch.setattr(recipe, "MAX_DENSE", 8 * 7 - 1)
    cut = nova.load_graph(nodes=table, text_columns=["title"])
    assert sp.issparse(cut.graph.x)
    names = cut.graph.feature_names
    assert sum(name.startswith("v[0]>=") for name in names) == 4
    limit = float(names[0].removeprefix("v[0]>="))
    above = [v[0] >= limit - 1e-9 for v in VECTORS]
    assert cut.graph.x.toarray()[:, 0].tolist() == above
    assert any("the numbers of v are cut at their quintiles" in note for note in cut.notes)
    again = nova.load_graph(nodes=table, recipe=TableEncoder.from_json(cut.recipe.as_json()))
    assert (again.graph.x != cut.graph.x).sum() == 0


def test_vectors_that_are_mostly_zero_are_words_and_stay_sparse() -> None:
    hot = np.eye(8, 6).astype(int)
    hot[6:, 0] = 1
    graph = nova.load_graph(nodes=pd.DataFrame(columns(hot.tolist()))).graph
    assert sp.issparse(graph.x)
    assert graph.feature_names == tuple(f"v[{i}]" for i in range(6))
    assert graph.x.toarray().tolist() == hot.tolist()


@pytest.mark.parametrize(("cells", "said"), [
    ([[1.0, 2.0]] * 4, "column 'v' is the same in every row; not used"),
    ([[], None, [], None], "column 'v' is empty; not used"),
])  # fmt: skip
def test_vectors_that_say_nothing_are_not_used(cells: list[Any], said: str) -> None:
    table = {"id": list("abcd"), "size": [1.0, 2.5, 3.0, 9.0], "v": cells}
    for nodes in (pl.DataFrame(table), pa.table(table), pd.DataFrame(table)):
        loaded = nova.load_graph(nodes=nodes)
        assert loaded.graph.feature_names == ("size",)
        assert any(said in note for note in loaded.notes)


TAGS = [["cell biology", "join"], ["graph"], None, ["graph", "join"]]
TAGGED = {"id": list("abcd"), "v": TAGS}


@pytest.mark.parametrize(
    "form", ["jsonl", "json", "parquet", "arrow", "polars lists", "pandas lists", "networkx"]
)
def test_lists_of_texts_are_words(tmp_path: Path, form: str) -> None:
    loaded = nova.load_graph(**FORMS[form](TAGGED, tmp_path))
    assert loaded.graph.feature_names == ("graph", "join")
    assert entries(loaded.graph).tolist() == [[0, 1], [1, 0], [0, 0], [1, 1]]
    assert any("column 'v' holds lists of texts; their words are used" in n for n in loaded.notes)
    chosen = nova.load_graph(**FORMS[form](TAGGED, tmp_path), features=["v"])
    assert chosen.graph.feature_names == ("graph", "join")


@pytest.mark.parametrize("form", ["jsonl", "json", "parquet", "arrow", "pandas lists", "networkx"])
def test_records_are_left_out_and_refused_when_asked_for(tmp_path: Path, form: str) -> None:
    table = {"id": list("abc"), "size": [1.0, 2.5, 9.0], "v": [{"p": 1}, {"p": 2}, {"p": 4}]}
    loaded = nova.load_graph(**FORMS[form](table, tmp_path))
    assert loaded.graph.feature_names == ("size",)
    assert any("column 'v' holds records; not used" in note for note in loaded.notes)
    with pytest.raises(GraphError, match="column 'v' has several values in a cell"):
        nova.load_graph(**FORMS[form](table, tmp_path), features=["v"])


def test_text_in_brackets_that_is_no_vector_stays_text(tmp_path: Path) -> None:
    for cell in ("[to be filled in]", "[1, 2", "['a', 'b']", "[[1, 2], [3, 4]]"):
        table = {"id": IDS, "v": [cell, *[f"some words of node {i}" for i in range(7)]]}
        loaded = nova.load_graph(**csv_file(table, tmp_path))
        assert "v[0]" not in loaded.graph.feature_names
        assert any("column 'v' holds sentences; used as text" in note for note in loaded.notes)


def test_a_column_of_vectors_can_be_used_as_text_if_it_is_text(tmp_path: Path) -> None:
    table = {"id": IDS[:4], "v": ["[12, 15]", "[12, 17]", "[15]", "[17, 99]"]}
    loaded = nova.load_graph(**csv_file(table, tmp_path), text_columns=["v"])
    assert loaded.graph.feature_names == ("12", "15", "17")


def test_vectors_come_through_a_discovery_and_its_folder(tmp_path: Path) -> None:
    data = nova.synthetic(nodes=90, classes=3, words=30, seed=1)
    vectors = np.random.default_rng(0).normal(size=(90, 6)) + 3 * np.eye(6)[data.y]
    names = np.array(["red", "blue", ""])[data.y]
    table = pl.DataFrame({"id": range(90), "label": names, "emb": vectors})
    edges = pl.DataFrame(data.graph.edge_index.T, schema=["source", "target"], orient="row")
    found = nova.NodeDiscoverer(num_new=1).fit((table, edges))
    found.report(tmp_path / "run")
    document = json.loads((tmp_path / "run" / "features.json").read_text())
    recipe = TableEncoder.from_json(document["recipe"])
    later = nova.load_graph((table, edges), recipe=recipe)
    by_model = found.model_.predict_proba(found.run_.graph)
    assert found.model_.predict_proba(later.graph).tobytes() == by_model.tobytes()
    assert (found.labels_[data.y == 2] == found.classes_[2]).mean() > 0.9
