"""nodenova prepare, and commands that read what it writes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import nodenova as nova
from nodenova.cli import app
from nodenova.cli.app import load_named
from nodenova.errors import NodenovaError


def nodenova(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def write_tables(folder: Path) -> list[object]:
    """150 nodes of five topics, two of them not told; what --nodes and --edges are."""
    data = nova.synthetic(nodes=150, classes=5, words=100, seed=4)
    x = data.graph.x.toarray()
    with (folder / "nodes.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "topic", "text"])
        for i in range(150):
            words = " ".join(f"word{j}" for j in np.flatnonzero(x[i]))
            lines.writerow([f"n{i}", f"t{data.y[i]}" if data.y[i] < 3 else "", words])
    with (folder / "edges.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["source", "target"])
        lines.writerows((f"n{a}", f"n{b}") for a, b in data.graph.edge_index.T)
    return ["--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv"]


def test_discover_and_predict_from_a_folder_give_what_the_tables_give(tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    columns = ["--label-column", "topic", "--text-column", "text"]
    said = nodenova("prepare", *tables, *columns, "--out", tmp_path / "graph")
    assert "Graph(150 nodes, " in said
    assert "note: nodes.csv: text gives " in said
    folder = ["--graph", tmp_path / "graph"]
    content = []
    for name, asked in (("tables", [*tables, *columns]), ("folder", folder)):
        run = tmp_path / name
        nodenova("discover", *asked, "--num-new", 2, "--out", run, "-q")
        again = folder if name == "folder" else tables
        nodenova("predict", run, *again, "--out", tmp_path / f"{name}.csv", "-q")
        files = [run / "predictions.csv", run / "classes.csv", tmp_path / f"{name}.csv"]
        content.append([path.read_text() for path in files])
    assert content[0] == content[1]


def test_inspect_and_count_read_a_folder(tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    nodenova("prepare", *tables, "--label-column", "topic", "--out", tmp_path / "graph", "-q")
    told = []
    for name, asked in (("tables", [*tables, "--label-column", "topic"]),
                        ("folder", ["--graph", tmp_path / "graph"])):  # fmt: skip
        nodenova("inspect", *asked, "--json", tmp_path / f"{name}.json", "-q")
        nodenova("count", *asked, "--json", tmp_path / f"{name}-count.json", "-q")
        paths = [tmp_path / f"{name}.json", tmp_path / f"{name}-count.json"]
        told.append([json.loads(path.read_text()) for path in paths])
    assert told[0] == told[1]


def test_a_dataset_is_converted_for_graded_runs(tmp_path: Path) -> None:
    name = "synthetic:nodes=150,classes=4"
    nodenova("prepare", "--dataset", name, "--out", tmp_path / "graph")
    expected, found = nova.load_dataset(name), load_named(None, tmp_path / "graph", None, 0)[0]
    assert found.graph.is_mapped
    assert (found.name, found.class_names) == (name, expected.class_names)
    assert np.array_equal(found.y, expected.y)
    assert np.array_equal(found.graph.edge_index, expected.graph.edge_index)


def test_an_npz_file_is_converted(tmp_path: Path, tiny: nova.LabelledGraph) -> None:
    arrays = {"x": tiny.graph.x, "edge_index": tiny.graph.edge_index, "y": tiny.y}
    np.savez(tmp_path / "mine.npz", **arrays)
    nodenova("prepare", "--graph", tmp_path / "mine.npz", "--out", tmp_path / "graph", "-q")
    found = nova.load_graph(tmp_path / "graph")
    assert found.graph.is_mapped
    assert np.array_equal(found.y, tiny.y)
    assert np.array_equal(found.graph.x, tiny.graph.x)


@pytest.mark.parametrize(
    "options", [[], ["--dataset", "wordnet", "--nodes", "n.csv"], ["--graph", "a", "--edges", "b"]]
)
def test_exactly_one_source_is_required(tmp_path: Path, options: list[str]) -> None:
    with pytest.raises(NodenovaError, match="or --dataset NAME"):
        nodenova("prepare", *options, "--out", tmp_path / "graph")


def test_progress_is_said_where_there_is_no_terminal(tmp_path: Path) -> None:
    said = nodenova("prepare", *write_tables(tmp_path), "--out", tmp_path / "graph")
    for stage in ("numbering nodes", "sorting edges", "choosing words", "writing features"):
        assert f" s  {stage}" in said
