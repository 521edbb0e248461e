"""A user's table with the classes beside it: in its own form, in any other, and read back."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import nodenova as nova
from nodenova.cli import app
from nodenova.errors import GraphError, SettingError, StorageError
from nodenova.io.nodes import find_export_columns
from nodenova.io.tables import read_table
from nodenova.runs.export import export_input, export_table
from nodenova.runs.new_graph import PredictInput
from nodenova.runs.predictions import prediction_frame

N = 90
ADDED = ["class", "name", "kind", "probability"]
DATA = nova.synthetic(nodes=N, classes=3, words=40, seed=1)


def columns(label: str = "topic", **more: list[Any]) -> dict[str, list[Any]]:
    """Classes red and blue are half labelled, the third is not known."""
    y, rng = DATA.y, np.random.default_rng(0)
    half = [c < 2 and i % 2 == 0 for i, c in enumerate(y.tolist())]
    vectors = rng.normal(size=(N, 4)) + 0.7 * np.eye(4)[y]
    return {
        "key": [f"p{i}" for i in range(N)],
        label: [["red", "blue"][c] if known else None for c, known in zip(y, half, strict=True)],
        "size": rng.integers(9, size=N).tolist(),
        "emb": [[round(v, 3) for v in row] for row in vectors.tolist()],
        **more,
    }


LINKS = {
    end: [f"p{i}" for i in DATA.graph.edge_index[k][::6]] for k, end in enumerate(("src", "dst"))
}


def write(folder: Path, table: dict[str, list[Any]], ending: str, stem: str = "nodes") -> Path:
    path = folder / f"{stem}{ending}"
    rows = list(zip(*table.values(), strict=True))
    if ending == ".parquet":
        pq.write_table(pa.table(table), path)
    elif ending in (".jsonl", ".json"):
        records = [dict(zip(table, row, strict=True)) for row in rows]
        lines = "".join(json.dumps(record) + "\n" for record in records)
        path.write_text(lines if ending == ".jsonl" else json.dumps(records))
    else:
        with path.open("w", newline="") as file:
            writer = csv.writer(file, delimiter="\t" if ending == ".tsv" else ",")
            writer.writerow(table)
            writer.writerows(["" if c is None else c for c in row] for row in rows)
    return path


@pytest.fixture(scope="module")
def found() -> nova.NodeDiscoverer:
    return nova.NodeDiscoverer(num_new=1).fit((pl.DataFrame(columns()), pl.DataFrame(LINKS)))


@pytest.fixture(scope="module")
def run(found: nova.NodeDiscoverer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return found.report(tmp_path_factory.mktemp("runs") / "mine").parent


@pytest.fixture(scope="module")
def limit(found: nova.NodeDiscoverer) -> float:
    """A probability that half of the unlabelled nodes have."""
    said = found.run_.predictions
    return float(np.median([p for p, y in zip(said.probability, said.label, strict=True) if not y]))


FRAMES = {
    "pandas": lambda table: pd.DataFrame(table).rename(index=lambda row: row + 500),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


def column(frame: Any, name: str) -> list[Any]:
    cells = frame.column(name).to_pylist() if isinstance(frame, pa.Table) else frame[name].to_list()
    return [None if cell != cell else cell for cell in cells]


@pytest.mark.parametrize("library", FRAMES)
def test_a_frame_comes_back_as_one_of_its_library(found: nova.NodeDiscoverer, library: str) -> None:
    frame = FRAMES[library](columns())
    made = nova.with_classes(frame, found)
    assert type(made) is type(frame)
    names = made.column_names if library == "pyarrow" else list(made.columns)
    assert names == [*columns(), *ADDED]
    said = found.run_.predictions.columns()
    for name in ADDED:
        assert column(made, name) == said[name]
    assert column(made, "size") == columns()["size"]
    if library == "pandas":
        assert made.index.tolist() == frame.index.tolist()


@pytest.mark.parametrize("library", FRAMES)
def test_predictions_are_a_frame_of_any_library(found: nova.NodeDiscoverer, library: Any) -> None:
    for source in (found, found.run_, found.run_.predictions):
        frame = prediction_frame(source, library)
        assert type(frame).__module__.split(".")[0] == library
        for name, cells in found.run_.predictions.columns().items():
            assert column(frame, name) == cells


def test_rows_go_by_id_and_not_by_place(found: nova.NodeDiscoverer) -> None:
    frame = pl.DataFrame(columns())
    some = frame[::-3]
    made = nova.with_classes(some, found)
    whole = dict(zip(columns()["key"], found.run_.predictions.columns()["class"], strict=True))
    assert made["class"].to_list() == [whole[key] for key in some["key"]]


@pytest.mark.parametrize("library", FRAMES)
def test_a_table_that_was_given_classes_is_read_back_with_them_as_labels(
    found: nova.NodeDiscoverer, library: str
) -> None:
    first = nova.load_graph((FRAMES[library](columns()), FRAMES[library](LINKS)))
    made = nova.with_classes(FRAMES[library](columns()), found)
    back = nova.load_graph((made, FRAMES[library](LINKS)))
    assert back.graph.feature_names == first.graph.feature_names
    assert back.graph.x.tobytes() == first.graph.x.tobytes()
    assert back.class_names == found.run_.names
    assert [back.class_names[c] for c in back.y] == found.run_.predictions.columns()["name"]
    notes = "\n".join(back.notes)
    assert "were added by nodenova; 'class' is taken as label_column" in notes
    assert "column 'topic' repeats 'class'; not used" in notes


@pytest.mark.parametrize("library", FRAMES)
def test_nodes_that_are_not_settled_are_unlabelled_when_read_back(
    found: nova.NodeDiscoverer, limit: float, library: str
) -> None:
    made = nova.with_classes(FRAMES[library](columns()), found, settled=limit)
    back = nova.load_graph(nodes=made)
    said = found.run_.predictions
    unsure = (said.probability < limit) & np.array([not label for label in said.label])
    assert back.new_ids.tolist() == np.flatnonzero(unsure).tolist()
    assert back.class_names == found.run_.names
    assert column(made, "probability") == said.columns()["probability"]


FILES = [".csv", ".tsv", ".parquet", ".jsonl"]


@pytest.mark.parametrize("into", FILES)
@pytest.mark.parametrize("ending", [*FILES, ".json"])
def test_a_file_of_any_form_becomes_one_of_any_other_and_the_same_graph(
    found: nova.NodeDiscoverer, limit: float, tmp_path: Path, ending: str, into: str
) -> None:
    table, edges = write(tmp_path, columns(), ending), write(tmp_path, LINKS, ending, "edges")
    first = nova.load_graph(nodes=table, edges=edges)
    path = tmp_path / f"out{into}"
    assert export_table(found, table, path, settled=limit) == [
        f"{table.name}: column 'key', the first, is taken as id_column"
    ]
    assert list(read_table(path).columns) == [*columns(), *ADDED]
    back = nova.load_graph(nodes=path, edges=edges)
    assert back.graph.x.tobytes() == first.graph.x.tobytes()
    assert back.graph.feature_names == first.graph.feature_names
    said = found.run_.predictions
    settled = (said.probability >= limit) | np.array([bool(label) for label in said.label])
    assert 0 < settled.sum() < N
    names = [name if on else "" for name, on in zip(said.columns()["name"], settled, strict=True)]
    assert [back.class_names[c] if c >= 0 else "" for c in back.y] == names
    assert back.new_ids.tolist() == np.flatnonzero(~settled).tolist()


def test_types_and_values_of_a_file_are_kept(found: nova.NodeDiscoverer, tmp_path: Path) -> None:
    more: dict[str, Any] = {
        "tags": [["a", "b"]] * N,
        "meta": [{"p": 1}] * N,
        "note": ['x, "y"\nz'] * N,
        "price": [None, *[0.1] * (N - 1)],
    }
    table = write(tmp_path, columns(**more), ".parquet")
    export_table(found, table, tmp_path / "out.parquet")
    schema = pq.read_schema(table)
    assert pq.read_schema(tmp_path / "out.parquet").names == [*schema.names, *ADDED]
    made = pq.read_table(tmp_path / "out.parquet")
    assert made.select(schema.names).equals(pq.read_table(table))
    export_table(found, table, tmp_path / "out.jsonl")
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert first == {**{k: v[0] for k, v in columns(**more).items()},
                     **{k: first[k] for k in ADDED}}  # fmt: skip
    lines = write(tmp_path, columns(**more), ".jsonl")
    export_table(found, lines, tmp_path / "again.jsonl")
    again = json.loads((tmp_path / "again.jsonl").read_text().splitlines()[0])
    assert again == first
    export_table(found, table, tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="") as file:
        row = next(csv.DictReader(file))
    assert (row["note"], row["meta"], row["price"]) == ('x, "y"\nz', '{"p": 1}', "")


def test_values_of_several_types_become_text_in_parquet(
    found: nova.NodeDiscoverer, tmp_path: Path
) -> None:
    table = write(tmp_path, columns(odd=[1, "x", None] * (N // 3)), ".jsonl")
    export_table(found, table, tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet")["odd"].to_pylist()[:3] == ["1", "x", None]


def test_columns_of_the_same_name_are_kept_and_the_added_ones_get_a_prefix(
    found: nova.NodeDiscoverer, tmp_path: Path
) -> None:
    names = [f"Jane {i % 4}" for i in range(N)]
    table = write(tmp_path, columns(name=names), ".csv")
    notes = export_table(found, table, tmp_path / "out.csv")
    prefixed = [f"nodenova_{name}" for name in ADDED]
    said = f"nodes.csv: has a column 'name' of its own; added: {', '.join(prefixed)}"
    assert notes[-1] == said
    back = nova.load_graph(nodes=tmp_path / "out.csv", edges=write(tmp_path, LINKS, ".csv", "e"))
    assert back.class_names == found.run_.names
    assert {f"name=Jane {i}" for i in range(4)} <= {*back.graph.feature_names}
    assert not any("nodenova_" in name for name in back.graph.feature_names)


def test_what_was_added_before_is_replaced(found: nova.NodeDiscoverer, tmp_path: Path) -> None:
    for more in ({}, {"name": [f"Jane {i % 4}" for i in range(N)]}):
        table = write(tmp_path, columns(**more), ".csv")
        export_table(found, table, table, settled=0.9)
        once = table.read_bytes()
        assert export_table(found, table, table, settled=0.9)
        assert table.read_bytes() == once
        frame = nova.with_classes(pl.DataFrame(columns(**more)), found)
        assert nova.with_classes(frame, found).equals(frame)
    again = nova.with_classes(prediction_frame(found, "polars"), found)
    assert again.columns == ["node", "label", *ADDED]


def test_labels_that_were_merged_or_renamed_are_no_features_either(
    found: nova.NodeDiscoverer, tmp_path: Path
) -> None:
    model = found.model_.rename(0, "something else")
    table = write(tmp_path, columns("grp"), ".csv")
    run = found.run_
    what = PredictInput(model, run.graph, labels=run.labels)
    export_input(what, "table", tmp_path / "out.csv", table=table)
    back = nova.load_graph(nodes=tmp_path / "out.csv")
    assert "something else" in back.class_names
    assert not any(name.startswith("grp") for name in back.graph.feature_names)
    assert any("column 'grp' repeats 'class'" in note for note in back.notes)


def test_options_win_over_what_was_found(found: nova.NodeDiscoverer, tmp_path: Path) -> None:
    made = nova.with_classes(pl.DataFrame(columns()), found)
    own = nova.load_graph(nodes=made, label_column="topic")
    assert own.class_names == ("blue", "red")
    assert "class" not in str(own.graph.feature_names)
    asked = nova.load_graph(nodes=made, features=["probability", "topic"])
    assert "probability" in str(asked.graph.feature_names)
    assert "topic=red" in asked.graph.feature_names


@pytest.mark.parametrize("words", [("known", "discovered"), ("old", "new")])
@pytest.mark.parametrize("change", [
    {"kind": ["a", "b"] * 45}, {"kind": [None] * N}, {"probability": [3.0] * N},
    {"probability": ["high"] * N}, {"probability": [None] * N},
])  # fmt: skip
def test_a_table_that_only_looks_like_one_of_ours_is_read_as_any_other(
    change: dict[str, list[Any]], words: tuple[str, str]
) -> None:
    own: dict[str, list[Any]] = {
        "class": ["a", "b"] * 45,
        "name": [f"n{i % 5}" for i in range(N)],
        "kind": [*words] * 45,  # as they are written, and as earlier versions wrote them
        "probability": [0.5, 0.25, 1.0] * 30,
    }
    table = pl.DataFrame({"id": range(N), **own})
    assert find_export_columns(read_table(table, source="t")) is not None
    table = pl.DataFrame({"id": range(N), **own, **change})
    assert find_export_columns(read_table(table, source="t")) is None
    loaded = nova.load_graph(nodes=table)
    assert loaded.class_names == ("a", "b")
    assert "name=n1" in loaded.graph.feature_names


def test_predictions_of_a_run_are_read_back_as_well(run: Path, tmp_path: Path) -> None:
    back = nova.load_graph(nodes=run / "predictions.csv", edges=write(tmp_path, LINKS, ".csv", "e"))
    assert back.num_classes == 3
    assert back.recipe.columns == ()
    assert (back.y >= 0).all()


# what is wrong with the table, the path or the options; the error; what it says
WRONG: list[tuple[dict[str, list[Any]], str, dict[str, Any], type[Exception], str]] = [
    (columns() | {"key": [f"q{i}" for i in range(N)]}, "out.csv", {}, GraphError,
     "nodes.csv: 90 of 90 rows are of no node of the run, first: 'q0' in column 'key'"),
    (columns(), "out.xlsx", {}, SettingError,
     "out.xlsx: a table is written as .csv, .tsv, .parquet, .pq, .jsonl, .ndjson, by its name"),
    (columns(), "out.csv", {"id_column": "uid"}, GraphError, "nodes.csv: no column 'uid'"),
    (columns(), "out.csv", {"settled": 2}, SettingError, "settled is a probability from 0 to 1"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "name", "options", "error", "said"), WRONG)
def test_what_cannot_be_exported_is_one_sentence(
    found: nova.NodeDiscoverer,
    tmp_path: Path,
    table: dict[str, list[Any]],
    name: str,
    options: dict[str, Any],
    error: type[Exception],
    said: str,
) -> None:
    path = write(tmp_path, table, ".csv")
    with pytest.raises(error) as refused:
        export_table(found, path, tmp_path / name, **options)
    assert said in str(refused.value)
    assert not (tmp_path / name).exists()


def test_what_is_no_frame_and_no_run_is_refused(found: nova.NodeDiscoverer, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"a table is a data frame .* not dict"):
        nova.with_classes(columns(), found)
    with pytest.raises(SettingError, match="classes come from a fitted NodeDiscoverer"):
        nova.with_classes(pl.DataFrame(columns()), "runs/mine")
    with pytest.raises(SettingError, match="knows the backends pandas, polars, pyarrow, not 'r'"):
        prediction_frame(found, "r")  # type: ignore[arg-type]
    (tmp_path / "out.csv").mkdir()
    with pytest.raises(StorageError, match="is a folder"):
        export_table(found, write(tmp_path, columns(), ".csv"), tmp_path / "out.csv")


def nodenova(*arguments: object) -> tuple[int, str]:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return 2, str(done.exception)
    return done.exit_code, done.output


def test_the_command_line_writes_it_and_discovers_in_it_again(
    run: Path, limit: float, tmp_path: Path
) -> None:
    table, edges = write(tmp_path, columns(), ".csv"), write(tmp_path, LINKS, ".csv", "edges")
    path = tmp_path / "settled.parquet"
    export = ("export", run, "--to", "table", "--table", table, "--out", path)
    code, shown = nodenova(*export, "--settled", limit)
    assert code == 0, shown
    assert f"Written: {path}" in shown.replace("\n", "")
    back = nova.load_graph(nodes=path, edges=edges)
    assert back.num_classes == 3
    assert len(back.new_ids)
    code, shown = nodenova("discover", "--nodes", path, "--edges", edges, "--num-new", "1",
                           "--out", tmp_path / "again")  # fmt: skip
    assert code == 0
    with (tmp_path / "again" / "predictions.csv").open(newline="") as file:
        assert sum(row["kind"] == "known" for row in csv.DictReader(file)) > N / 2
    code, shown = nodenova(*export, "--settled", "7")
    assert (code, shown) == (2, "--settled is a probability from 0 to 1, not 7.0")
    code, shown = nodenova("export", run, "--to", "table", "--out", path)
    assert (code, shown) == (2, "--to table needs your table of nodes: give --table FILE")
