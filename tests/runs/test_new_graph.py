"""Later graphs are read as the run's own: by the command line, by Python, and by --from alike."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import nodenova as nova
from nodenova.errors import NodenovaError
from nodenova.io import load
from tests.runs.tables import (
    COLUMNS,
    SPRING,
    discover_spring,
    files,
    nodenova,
    tables,
    write_tables,
)

ONE = nova.Prism(n_resamples=0)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the tables of spring, the tables of autumn, and what came between."""
    place = tmp_path_factory.mktemp("later")
    discover_spring(place)
    write_tables(place / "autumn")
    write_tables(place / "came", first=SPRING)
    return place


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def frame_rows(frame: pd.DataFrame) -> list[dict[str, str]]:
    return [{name: str(value) for name, value in row.items()} for row in frame.to_dict("records")]


def test_run_json_remembers_how_its_tables_were_read(place: Path) -> None:
    reading = json.loads((place / "run" / "run.json").read_text())["reading"]
    assert reading == {
        "id_column": "key", "label_column": "topic", "source_column": "a", "target_column": "b",
        "weight_column": "w", "weights": "count", "edge_type_column": "kind",
    }  # fmt: skip


@pytest.mark.parametrize("way", ["predict", "add", "from"])
def test_remembered_options_equal_options_given_again(
    place: Path, tmp_path: Path, way: str
) -> None:
    data = files(place / ("came" if way == "add" else "autumn"))
    again = [option for option in COLUMNS if option not in ("--text-column", "text")]
    written = []
    for name, options in (("short", []), ("long", again)):
        out = tmp_path / name
        if way == "from":
            asked = ["discover", "--from", place / "run", "--set", "n_resamples=0", "--num-new", 1]
            nodenova(*asked, *data, *options, "-q", "--out", out)
            written.append((out / "predictions.csv").read_bytes())
            assert (out / "run.json").is_file()
        else:
            add = ["--add"] if way == "add" else []
            nodenova("predict", place / "run", *data, *options, *add, "-q", "--out", out)
            written.append(out.read_bytes())
    assert written[0] == written[1]
    if way == "from":
        documents = [json.loads((tmp_path / n / "run.json").read_text()) for n in ("short", "long")]
        assert documents[0]["reading"] == documents[1]["reading"]


@pytest.mark.parametrize("way", ["whole", "only", "add", "own", "own-relabel"])
def test_the_command_line_predicts_what_python_predicts(
    place: Path, tmp_path: Path, way: str
) -> None:
    run, out = nova.open_run(place / "run"), tmp_path / "p.csv"
    options: dict[str, tuple[list[object], dict[str, Any]]] = {
        "whole": (files(place / "autumn"), tables(place / "autumn")),
        "only": (
            [*files(place / "autumn"), "--only", "n3,n100"],
            {**tables(place / "autumn"), "only": ["n3", "n100"]},
        ),
        "add": ([*files(place / "came"), "--add"], {**tables(place / "came"), "add": True}),
        "own": ([], {}),
        "own-relabel": (["--relabel", "--none-share", 0.1], {"relabel": True, "none_share": 0.1}),
    }
    arguments, keywords = options[way]
    nodenova("predict", place / "run", *arguments, "-q", "--out", out)
    assert rows(out) == frame_rows(run.predict(**keywords))


def test_the_command_line_continues_as_python_does(place: Path, tmp_path: Path) -> None:
    asked = ["--from", place / "run", *files(place / "autumn"), "--set", "n_resamples=0"]
    nodenova("discover", *asked, "--num-new", 1, "-q", "--out", tmp_path / "cli")
    later = nova.open_run(place / "run").continue_with(
        **tables(place / "autumn"), num_new=1, method=ONE
    )
    folder = later.write(tmp_path / "python", report=False)
    for name in ("predictions.csv", "classes.csv", "model/model.json"):
        assert (folder.path / name).read_bytes() == (tmp_path / "cli" / name).read_bytes()
    reading = [json.loads((tmp_path / n / "run.json").read_text())["reading"]
               for n in ("cli", "python")]  # fmt: skip
    assert reading[0] == reading[1]


def test_tables_are_read_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    for name in ("read_nodes", "read_edges"):
        read = getattr(load, name)

        def counted(*given: Any, read: Any = read, name: str = name, **more: Any) -> Any:
            reads.append(name)
            return read(*given, **more)

        monkeypatch.setattr(load, name, counted)
    nodes, edges = place / "autumn" / "nodes.csv", place / "autumn" / "edges.csv"
    nova.open_run(place / "run").continue_with(nodes=nodes, edges=edges, method=ONE, num_new=1)
    assert sorted(reads) == ["read_edges", "read_nodes"]


@pytest.mark.parametrize("way", ["predict", "add", "from"])
def test_without_their_column_edges_count_as_one_type_with_a_note(
    place: Path, tmp_path: Path, way: str
) -> None:
    first = SPRING if way == "add" else 0
    data = write_tables(tmp_path / "data", first=first, without=["kind", "topic"])
    if way == "from":
        asked = ["discover", "--from", place / "run", "--set", "n_resamples=0", "--num-new", 1]
        text = nodenova(*asked, *files(data), "--out", tmp_path / "next")
        reading = json.loads((tmp_path / "next" / "run.json").read_text())["reading"]
        assert "edge_type_column" not in reading
        assert reading["weight_column"] == "w"
    else:
        add = ["--add"] if way == "add" else []
        text = nodenova("predict", place / "run", *files(data), *add, "--out", tmp_path / "p.csv")
    assert "edges.csv: no column 'kind': its edges count as one type" in text
    assert "nodes.csv: no column 'topic': only labels of the earlier run are known" in text


def test_a_column_that_is_given_again_must_be_there(place: Path, tmp_path: Path) -> None:
    data = write_tables(tmp_path / "data", without=["kind"])
    with pytest.raises(NodenovaError, match=r"edges\.csv: no column 'kind'; it has"):
        nodenova(
            "predict", place / "run", *files(data), "--edge-type-column", "kind", "--out",
            tmp_path / "p.csv",
        )  # fmt: skip


def test_weights_that_are_missing_count_alike_with_a_note(place: Path, tmp_path: Path) -> None:
    data = write_tables(tmp_path / "data", without=["kind", "w"])
    run = nova.open_run(place / "run")
    found = run.predict_input(None, *tables(data).values(), nova_options())
    assert found.graph.edge_weight is None
    assert any("no column 'w': its edges count alike" in note for note in found.notes)
    assert any("trained with edge weights" in note for note in found.notes)


def nova_options() -> Any:
    from nodenova.io.table_options import TableOptions

    return TableOptions()


def test_a_ready_graph_is_not_read_with_options_of_tables(place: Path, tmp_path: Path) -> None:
    run = nova.open_run(place / "run")
    path = place / "run" / "graph.npz"
    assert run.predict(path)["node"].tolist() == run.graph.node_ids.tolist()
    same = run.predict(path)["class"].to_numpy() == run.predictions["class"].to_numpy()
    assert np.mean(same) > 0.9
    nodenova("predict", place / "run", "--graph", path, "-q", "--out", tmp_path / "p.csv")
    assert rows(tmp_path / "p.csv") == frame_rows(run.predict(path))


def test_class_sizes_are_those_of_predictions_everywhere(place: Path) -> None:
    run = nova.open_run(place / "run")
    counts = run.predictions["class"].value_counts()
    classes = rows(place / "run" / "classes.csv")
    assert [int(row["size"]) for row in classes] == [int(counts[int(row["id"])]) for row in classes]
    assert [info.size for info in run.classes] == [int(row["size"]) for row in classes]
    assert sum(int(row["size_by_model"]) for row in classes) == SPRING
    text = nodenova("classes", place / "run")
    page = (place / "run" / "report.html").read_text(encoding="utf-8")
    for info in run.classes:
        assert any(f" {info.size} " in line and info.kind in line for line in text.splitlines())
        assert f"{info.size} nodes" in page
    changes = run.diff(place / "run").classes
    assert {change.id: change.after for change in changes} == {c.id: c.size for c in run.classes}
