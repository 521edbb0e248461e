"""The folder of a discovery on a user's own graph: whole or not at all, and a review becomes part of it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import nodenova as nova
from nodenova.errors import SettingError, StorageError
from nodenova.experiments.exports import EXPORTS
from nodenova.experiments.own_run import Found, OwnRun
from nodenova.experiments.predictions import Predictions
from nodenova.graph import Graph
from nodenova.storage import weights_digest


@pytest.fixture(scope="module")
def found() -> Found:
    data = nova.synthetic(nodes=150, classes=5, words=120, seed=2)
    names = [f"word{i}" for i in range(data.graph.num_features)]
    graph = Graph.of(data.graph.x, data.graph.edge_index, node_ids=[f"p{i}" for i in range(150)], feature_names=names)
    old, new, exam = nova.split(nova.Labelled(graph, data.y, data.class_names), old=[0, 1, 2])
    model = nova.discover(nova.fit(old), new)
    y = np.full(150, -1)
    y[exam.ids] = exam.y
    return Found("Mine", model, graph, {"Seed": 0}, answers=(y, exam.class_names))


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def review(model: nova.Model, *decisions: dict[str, object]) -> dict[str, object]:
    return {"format": "nodenova review", "version": 1, "model": weights_digest(model), "decisions": list(decisions)}


def test_everything_is_there_and_comes_back(found: Found, tmp_path: Path) -> None:
    run = OwnRun.write(tmp_path / "runs" / "mine", found)
    files = {
        "run.json",
        "model",
        "graph.npz",
        "features.json",
        "answers.npz",
        "predictions.csv",
        "classes.csv",
        "report.html",
    }
    assert {path.name for path in run.path.iterdir()} == files
    assert {path.name for path in run.path.parent.iterdir()} == {"mine"}
    assert run.features() == (found.graph.feature_names, None)
    again = OwnRun(run.path)
    assert np.array_equal(again.model().predict_proba(again.graph()), found.model.predict_proba(found.graph))
    lines = table(run.path / "predictions.csv")
    assert [line["node"] for line in lines] == found.graph.node_ids.tolist()
    assert [int(line["class"]) for line in lines] == found.model.predict(found.graph).tolist()
    classes = table(run.path / "classes.csv")
    assert [int(line["size"]) for line in classes] == np.bincount(found.model.predict(found.graph), minlength=5).tolist()
    with np.load(run.path / "graph.npz") as arrays:
        assert not {"y", "train_mask", "class_names"} & set(arrays.files)  # no label in the graph that is kept


def test_a_review_changes_model_tables_and_page_and_a_wrong_one_nothing(found: Found, tmp_path: Path) -> None:
    run = OwnRun.write(tmp_path / "mine", found)
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    with pytest.raises(SettingError, match=r"decision 2 \(reject\)"):
        run.apply(review(run.model(), {"do": "rename", "class": 3, "name": "fish"}, {"do": "reject", "class": 99}))
    assert before == {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    decisions = ({"do": "rename", "class": 3, "name": "fish"}, {"do": "merge", "classes": [3, 4]})
    run.apply(review(run.model(), *decisions))
    model = OwnRun(run.path).model()
    assert [c.name for c in model.classes] == ["class-0", "class-1", "class-2", "fish"]
    names = {line["name"] for line in table(run.path / "predictions.csv")}
    assert "fish" in names
    assert "new-4" not in names
    assert "fish" in (run.path / "report.html").read_text()
    assert json.loads((run.path / "review.json").read_text())["decisions"] == list(decisions)


def test_a_failure_while_writing_leaves_nothing_and_what_was_there_stays(
    found: Found, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = OwnRun.write(tmp_path / "mine", found)
    before = (run.path / "run.json").read_bytes()

    def full(*arguments: object, **told: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nodenova.experiments.own_run.write_review_page", full)
    for path in (tmp_path / "mine", tmp_path / "other"):
        with pytest.raises(OSError, match="No space left"):
            OwnRun.write(path, found, overwrite=True)
    assert {path.name for path in tmp_path.iterdir()} == {"mine"}
    assert (run.path / "run.json").read_bytes() == before


def test_places_that_are_not_ours_are_refused(found: Found, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"full is not empty; choose another --out"):
        OwnRun.write(tmp_path / "full", found)
    with pytest.raises(StorageError, match=r"full is not a run of `nodenova discover`: it has no run.json"):
        OwnRun.write(tmp_path / "full", found, overwrite=True)
    with pytest.raises(StorageError, match="file is a file, not a folder for a run"):
        OwnRun.write(tmp_path / "file", found)
    with pytest.raises(StorageError, match="it does not exist"):
        OwnRun(tmp_path / "nowhere")
    assert (tmp_path / "full" / "thesis.txt").read_text() == "mine"


def test_without_its_graph_a_run_can_still_be_reviewed_but_not_drawn(found: Found, tmp_path: Path) -> None:
    run = OwnRun.write(tmp_path / "mine", found, keep_graph=False)
    assert not (run.path / "graph.npz").exists()
    run.apply(review(run.model(), {"do": "rename", "class": 3, "name": "fish"}))
    assert run.model().class_of(3).name == "fish"
    with pytest.raises(StorageError, match=r"keeps no graph: give it with --graph"):
        run.report()


def test_exports_hold_what_the_model_says(found: Found, tmp_path: Path) -> None:
    import networkx as nx
    import torch
    from torch_geometric.data import Data

    model, graph = found.model, found.graph
    for name, export in EXPORTS.items():
        export(model, graph, tmp_path / f"{name}.npz")
    assert (tmp_path / "csv.npz" / "nodes.csv").is_file()
    made = nx.read_graphml(tmp_path / "networkx.npz")
    assert made.number_of_edges() == graph.num_edges // 2
    assert [made.nodes[node]["class"] for node in graph.node_ids] == model.predict(graph).tolist()
    data = Data.from_dict(torch.load(tmp_path / "pyg.npz", weights_only=True))
    assert torch.equal(data.x.to_dense(), torch.from_numpy(graph.x.toarray()))
    assert torch.equal(data.pred, torch.from_numpy(model.predict(graph)))
    with np.load(tmp_path / "embeddings.npz") as arrays:
        assert np.array_equal(arrays["z"], model.embed(graph))
    EXPORTS["embeddings"](model, graph, tmp_path / "z.csv")
    assert len((tmp_path / "z.csv").read_text().splitlines()) == graph.num_nodes + 1
    with pytest.raises(StorageError, match="is a folder, and --out must name a file"):
        EXPORTS["pyg"](model, graph, tmp_path)


def test_predictions_as_parquet_are_those_as_csv(found: Found, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    predictions = Predictions.of(found.model, found.graph, unsure_below=0.9)
    path = tmp_path / "p.parquet"
    path.write_bytes(predictions.content(path))
    assert pq.read_table(path).to_pydict() == predictions.columns()
    assert predictions.unsure.tolist() == (found.model.predict_proba(found.graph).max(axis=1) < 0.9).tolist()
