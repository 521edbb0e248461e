"""Weights, types of edges and vectors of texts on the command line, and on a grown graph."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import nodenova as nova
from nodenova.cli import app
from nodenova.errors import NodenovaError
from tests.io.tiny_model import make_model


def nodenova(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == code, result.output
    return result.output


def write_tables(folder: Path, nodes: int = 120) -> list[object]:
    """The first nodes of 150 of five topics, two of them not told; edges weigh and have types."""
    data = nova.synthetic(nodes=150, classes=5, words=90, seed=4)
    x = data.graph.x.toarray()
    folder.mkdir(exist_ok=True)
    with (folder / "nodes.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["id", "topic", "text"])
        for i in range(nodes):
            words = " ".join(f"word{j}" for j in np.flatnonzero(x[i]))
            lines.writerow([f"n{i}", f"t{data.y[i]}" if data.y[i] < 3 else "", words])
    inside = (data.graph.edge_index < nodes).all(axis=0)
    with (folder / "edges.csv").open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["source", "target", "w", "kind"])
        for a, b in data.graph.edge_index[:, inside].T:
            lines.writerow([f"n{a}", f"n{b}", 1 + (a + b) % 3, ("cites", "writes")[(a + b) % 2]])
    return ["--nodes", folder / "nodes.csv", "--edges", folder / "edges.csv"]


COLUMNS = ("--label-column", "topic", "--text-column", "text")
EDGES = ("--weight-column", "w", "--edge-type-column", "kind", "--edge-types", "cites,writes=0.5")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, model: Path) -> Path:
    folder = tmp_path_factory.mktemp("run")
    tables = write_tables(folder / "spring")
    vectors = ("--text-vectors", model)
    said = nodenova(
        "discover", *tables, *COLUMNS, *EDGES, *vectors, "--num-new", 2, "--out", folder / "run"
    )
    assert "note: nodes.csv: texts became vectors of 16 numbers by tiny, beside words" in said
    assert "edge types are" in said
    return folder / "run"


def test_inspect_says_what_becomes_of_edges_and_texts(tmp_path: Path, model: Path) -> None:
    tables = write_tables(tmp_path)
    asked = (*COLUMNS, *EDGES, "--text-vectors", model, "--json", tmp_path / "d.json")
    said = nodenova("inspect", *tables, *asked)
    assert "weights    " in said
    assert "vectors    16 numbers per node" in said
    assert "carry equal total weight, times cites 1, writes 0.5" in said
    assert json.loads((tmp_path / "d.json").read_text())["vectors"] == 16


def test_a_run_keeps_weights_and_vectors_but_no_place_of_a_model(run: Path, model: Path) -> None:
    kept = nova.load_graph(run / "graph.npz").graph
    assert kept.edge_weight is not None
    assert kept.vectors is not None
    assert kept.vectors.shape == (120, 16)
    document = (run / "run.json").read_text() + (run / "features.json").read_text()
    assert str(model.parent) not in document
    assert json.loads((run / "run.json").read_text())["reading"]["weights"] == "count"
    assert '"name": "tiny"' in (run / "features.json").read_text()
    with (run / "classes.csv").open(newline="") as file:
        names = [line["auto_name"] for line in csv.DictReader(file)]
    assert all(name.startswith("word") for name in names)


def test_predict_reads_a_later_table_the_same_way(run: Path, model: Path, tmp_path: Path) -> None:
    tables = [*write_tables(tmp_path / "summer", 150), "--label-column", "topic"]
    out = ("--out", tmp_path / "p.csv")
    nodenova("predict", run, *tables, *EDGES, "--text-vectors", model, *out)
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 151
    first = (tmp_path / "p.csv").read_bytes()
    nodenova("predict", run, *tables, "--text-vectors", model, *out)  # the run remembers its edges
    assert (tmp_path / "p.csv").read_bytes() == first
    np.save(tmp_path / "v.npy", np.zeros((150, 4)))
    refused = (
        ((), r"learned with vectors of texts \(tiny, 16 numbers\): give text_vectors"),
        (("--text-vectors", tmp_path / "v.npy"), "v.npy gives vectors of 4 numbers"),
        (("--text-vectors", "MiniLM"), "'MiniLM' is neither a folder of a language model"),
    )
    for options, sentence in refused:
        with pytest.raises(NodenovaError, match=sentence):
            nodenova("predict", run, *tables, *EDGES, *options, *out)


def test_a_run_goes_on_with_the_same_columns_and_vectors(
    run: Path, model: Path, tmp_path: Path
) -> None:
    tables = write_tables(tmp_path / "summer", 150)
    again = ("--from", run, "--num-new", 1, "--out", tmp_path / "next", "-q")
    nodenova("discover", *tables, *again, "--text-vectors", model)
    kept = nova.load_graph(tmp_path / "next" / "graph.npz").graph
    assert kept.edge_weight is not None
    assert kept.vectors is not None
    assert len(kept.vectors) == 150
    assert "text_vectors" not in (tmp_path / "next" / "run.json").read_text()


def test_a_run_made_before_weights_counted_goes_on_without_them(tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    columns = (*COLUMNS, "--weight-column", "w", "--weights", "filter", "--num-new", 2)
    nodenova("discover", *tables, *columns, "--out", tmp_path / "run", "-q")
    document = json.loads((tmp_path / "run" / "run.json").read_text())
    assert document["reading"].pop("weights") == "filter"
    (tmp_path / "run" / "run.json").write_text(json.dumps(document))
    again = ("--from", tmp_path / "run", "--num-new", 1, "--out", tmp_path / "next", "-q")
    nodenova("discover", *tables, *again)
    assert nova.load_graph(tmp_path / "next" / "graph.npz").graph.edge_weight is None


def test_prepare_keeps_weights(tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    said = nodenova("prepare", *tables, *COLUMNS, "--weight-column", "w", "--out", tmp_path / "g")
    assert "weighted edges" in said
    nodenova("count", "--graph", tmp_path / "g", "-q", "--json", tmp_path / "count.json")
    assert json.loads((tmp_path / "count.json").read_text())["sentence"]


def test_an_encoder_that_does_not_use_weights_says_so_and_all_use_vectors(tmp_path: Path) -> None:
    tables = write_tables(tmp_path)
    np.save(tmp_path / "v.npy", np.random.default_rng(0).random((120, 4)))
    asked = (*COLUMNS, "--weight-column", "w", "--text-vectors", tmp_path / "v.npy")
    said = nodenova(
        "discover", *tables, *asked, "--encoder", "gat", "--method", "frozen_kmeans", "--all-new",
        "--num-new", 2, "--out", tmp_path / "run",
    )  # fmt: skip
    assert "note: gat does not use edge weights" in said
    assert "does not use vectors" not in said
    model = json.loads((tmp_path / "run" / "model" / "model.json").read_text())
    assert (model["version"], model["encoder"]["vector_size"]) == (7, 4)
