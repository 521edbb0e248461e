"""A discovery as one value and as a folder.

One pass, one name a class, the same page each time, whole or not at all.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import nodenova as nova
from nodenova.bench.row import Row
from nodenova.cli import app
from nodenova.encoders.prism.encoder import PrismEncoder
from nodenova.errors import SettingError, StorageError
from nodenova.graph import Graph
from nodenova.model.saving import weights_digest
from nodenova.runs.export import EXPORTS
from nodenova.runs.folder import RunFolder, stored_layout
from nodenova.runs.new_graph import PredictInput
from nodenova.runs.predictions import Predictions
from nodenova.runs.run import DiscoveryRun
from nodenova.runs.run_dir import is_discovery
from tests.refusals import one_sentence

# Maps are in test_export_forms.py.
OF_GRAPH = {name: EXPORTS[name] for name in ("networkx", "pyg", "csv", "embeddings")}


@pytest.fixture(scope="module")
def found() -> DiscoveryRun:
    data = nova.synthetic(nodes=150, classes=5, words=120, seed=2)
    names = [f"word{i}" for i in range(data.graph.num_features)]
    graph = Graph.of(
        data.graph.x,
        data.graph.edge_index,
        node_ids=[f"p{i}" for i in range(150)],
        feature_names=names,
    )
    old, new, exam = nova.split(nova.LabelledGraph(graph, data.y, data.class_names), old=[0, 1, 2])
    model = nova.discover(nova.fit(old), new)
    y, given = np.full(150, -1), np.full(150, -1)
    y[exam.ids] = exam.y
    given[old.train_ids] = old.train_y
    return DiscoveryRun(
        "Mine", model, graph, {"Seed": 0}, answers=(y, exam.class_names), label_ids=given
    )


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[Graph]:
    """The graphs that the encoder runs over, one entry a pass."""
    seen: list[Graph] = []
    run = PrismEncoder.forward

    def counted(self: PrismEncoder, graph: Graph) -> torch.Tensor:
        seen.append(graph)
        return run(self, graph)

    monkeypatch.setattr(PrismEncoder, "forward", counted)
    return seen


def page_data(page: str) -> dict[str, Any]:
    """What the scripts of a page read."""
    return json.loads(
        re.search(r'<script type="application/json" id="story">(.*?)</script>', page, re.DOTALL)[1]
    )


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def review(model: nova.Model, *decisions: dict[str, object]) -> dict[str, object]:
    return {
        "format": "nodenova review",
        "version": 1,
        "model": weights_digest(model),
        "decisions": list(decisions),
    }


def test_everything_is_there_and_comes_back(found: DiscoveryRun, tmp_path: Path) -> None:
    run = RunFolder.write(tmp_path / "runs" / "mine", found)
    files = {
        "run.json",
        "model",
        "graph.npz",
        "features.json",
        "labels.npz",
        "answers.npz",
        "predictions.csv",
        "classes.csv",
        "suggestions.json",
        "report.html",
        "map.npz",
    }
    assert {path.name for path in run.path.iterdir()} == files
    assert {path.name for path in run.path.parent.iterdir()} == {"mine"}
    assert (run.feature_names, run.recipe) == (found.graph.feature_names, None)
    again = RunFolder(run.path)
    assert np.array_equal(
        again.model.predict_proba(again.graph), found.model.predict_proba(found.graph)
    )
    lines = table(run.path / "predictions.csv")
    assert [line["node"] for line in lines] == found.graph.node_ids.tolist()
    said = found.model.predict(found.graph)
    told = np.where(found.label_ids >= 0, found.label_ids, said)  # who was labelled keeps the label
    assert [int(line["class"]) for line in lines] == told.tolist()
    assert [line["label"] for line in lines] == [
        "" if c < 0 else f"class-{c}" for c in found.label_ids.tolist()
    ]
    assert [line["agrees"] for line in lines] == [
        "" if c < 0 else "yes" if c == mine else "no"
        for c, mine in zip(found.label_ids.tolist(), said.tolist(), strict=True)
    ]
    assert {line["agrees"] for line in lines} == {"", "yes", "no"}
    classes = table(run.path / "classes.csv")
    assert [int(line["size"]) for line in classes] == np.bincount(told, minlength=5).tolist()
    assert [int(line["size_by_model"]) for line in classes] == np.bincount(
        said, minlength=5
    ).tolist()
    with np.load(run.path / "graph.npz") as arrays:
        assert not {"y", "train_mask", "class_names"} & set(
            arrays.files
        )  # no label in the graph that is kept


def test_a_review_changes_model_tables_and_page_and_a_wrong_one_nothing(
    found: DiscoveryRun, tmp_path: Path
) -> None:
    run = RunFolder.write(tmp_path / "mine", found)
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    with pytest.raises(SettingError, match=r"decision 2 \(reject\)"):
        run.apply(
            review(
                run.model,
                {"do": "rename", "class": 3, "name": "fish"},
                {"do": "reject", "class": 99},
            )
        )
    assert before == {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    decisions = ({"do": "rename", "class": 3, "name": "fish"}, {"do": "merge", "classes": [3, 4]})
    run.apply(review(run.model, *decisions))
    model = RunFolder(run.path).model
    assert [c.name for c in model.classes] == ["class-0", "class-1", "class-2", "fish"]
    assert {line["name"] for line in table(run.path / "classes.csv")} == {
        c.name for c in model.classes
    }
    names = {line["name"] for line in table(run.path / "predictions.csv")}
    assert "fish" in names
    assert "new-4" not in names
    assert "fish" in (run.path / "report.html").read_text()
    assert json.loads((run.path / "review.json").read_text())["decisions"] == list(decisions)


def test_the_page_is_the_same_each_time_it_is_made(found: DiscoveryRun, tmp_path: Path) -> None:
    """Also with the labels of phase 1, which are on it, and with a grade."""
    counts = ((9, 0, 0, 1, 0), (0, 9, 0, 0, 0), (0, 0, 9, 0, 0), (0, 0, 0, 0, 9), (0, 0, 0, 0, 0))
    row = Row(
        dataset="mine", method="prism", encoder="prism", seed=3, num_old=3, num_new=2, sizes=(3, 2),
        predicted_sizes=(3, 2), confusion=counts, class_names=tuple(found.answers[1]),
    )  # fmt: skip
    run = RunFolder.write(tmp_path / "mine", dataclasses.replace(found, rows=[row]))
    first = {path.name: path.read_bytes() for path in run.path.iterdir() if path.is_file()}
    assert page_data(first["report.html"].decode())["given"] is not None
    assert "new-4" not in first["report.html"].decode()  # nor above the confusion
    RunFolder(run.path).report()
    assert {path.name: path.read_bytes() for path in run.path.iterdir() if path.is_file()} == first
    served = page_data(RunFolder(run.path).page())
    assert served == page_data(first["report.html"].decode()) | {"served": True}
    run.apply(review(run.model, {"do": "rename", "class": 3, "name": "fish"}))
    after = page_data((run.path / "report.html").read_text())
    assert after["given"] == served["given"]
    assert after["classes"][3]["name"] == "fish"
    assert page_data(RunFolder(run.path).page()) == after | {"served": True}


def test_without_labels_of_phase_1_the_page_shows_none(found: DiscoveryRun, tmp_path: Path) -> None:
    run = RunFolder.write(tmp_path / "mine", dataclasses.replace(found, label_ids=None))
    assert not (run.path / "labels.npz").exists()
    assert page_data((run.path / "report.html").read_text())["given"] is None


def test_a_label_stays_the_users_word_when_its_class_is_renamed_merged_or_split(
    found: DiscoveryRun, tmp_path: Path
) -> None:
    run = RunFolder.write(tmp_path / "mine", found)
    run.apply(
        review(
            run.model,
            {"do": "rename", "class": 0, "name": "zero"},
            {"do": "merge", "classes": [0, 4]},
            {"do": "split", "class": 1, "into": 2},
        )
    )
    lines = table(run.path / "predictions.csv")
    named = {c.id: c.name for c in run.model.classes}
    parts = {c for c in named if c > 4}
    assert len(parts) == 2
    for line, c in zip(lines, found.label_ids.tolist(), strict=True):
        assert line["label"] == ("" if c < 0 else f"class-{c}")
        if c == 0:
            assert (line["class"], line["name"]) == ("0", "zero")
        if c == 1:
            assert int(line["class"]) in parts
    assert {line["agrees"] for line in lines if line["label"] == "class-0"} == {"yes"}


def test_relabelled_nodes_are_where_the_model_puts_them_and_stay_so(
    found: DiscoveryRun, tmp_path: Path
) -> None:
    run = RunFolder.write(tmp_path / "mine", dataclasses.replace(found, keep_labels=False))
    first = (run.path / "predictions.csv").read_bytes()
    lines = table(run.path / "predictions.csv")
    assert [int(line["class"]) for line in lines] == found.model.predict(found.graph).tolist()
    assert "no" in {line["agrees"] for line in lines}
    RunFolder(run.path).report()
    assert (run.path / "predictions.csv").read_bytes() == first


def test_a_run_that_kept_numbers_of_labels_alone_calls_them_as_the_model_does(
    found: DiscoveryRun, tmp_path: Path
) -> None:
    """As the version before wrote it: no names in labels.npz, no keep_labels in run.json."""
    run = RunFolder.write(tmp_path / "mine", found)
    np.savez_compressed(run.path / "labels.npz", y=found.label_ids)
    document = json.loads((run.path / "run.json").read_text())
    del document["keep_labels"]
    (run.path / "run.json").write_text(json.dumps(document))
    before = (run.path / "predictions.csv").read_bytes()
    RunFolder(run.path).report()
    assert (run.path / "predictions.csv").read_bytes() == before


def test_tables_of_predict_and_export_have_the_labels_of_the_run(
    found: DiscoveryRun, tmp_path: Path
) -> None:
    import networkx as nx

    run = RunFolder.write(tmp_path / "mine", found)
    for arguments in (
        ["predict", run.path, "--out", tmp_path / "p.csv", "-q"],
        ["export", run.path, "--to", "csv", "--out", tmp_path / "t", "-q"],
        ["export", run.path, "--to", "networkx", "--out", tmp_path / "g.graphml", "-q"],
    ):
        CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    kept = table(run.path / "predictions.csv")
    shown = ("node", "class", "name", "label", "agrees")
    for path in (tmp_path / "p.csv", tmp_path / "t" / "nodes.csv"):
        assert [[line[key] for key in shown] for line in table(path)] == [
            [line[key] for key in shown] for line in kept
        ]
    drawn = nx.read_graphml(tmp_path / "g.graphml")
    assert [drawn.nodes[line["node"]]["label"] for line in kept] == [line["label"] for line in kept]


def test_one_pass_feeds_predictions_classes_and_page(
    found: DiscoveryRun, tmp_path: Path, passes: list[Graph]
) -> None:
    run = dataclasses.replace(found, keep_labels=False)
    assert run.predictions.counts.sum() == 150
    assert [info.size for info in run.classes] == run.predictions.counts.tolist()
    RunFolder.write(tmp_path / "mine", run)
    assert len(passes) == 1
    written = RunFolder(tmp_path / "mine")
    written.report()
    assert len(passes) == 2
    written.page()
    assert len(passes) == 2


@pytest.mark.parametrize("answers", [False, True])
def test_the_encoder_runs_once_in_one_nodenova_discover(
    tmp_path: Path, passes: list[Graph], answers: bool
) -> None:
    """In phase 2, whose result grade, tables and page read."""
    data = nova.synthetic(nodes=150, classes=5, words=120, seed=2)
    y = data.y if answers else np.where(data.y < 3, data.y, -1)
    np.savez(tmp_path / "g.npz", x=data.graph.x.toarray(), edge_index=data.graph.edge_index, y=y)
    (tmp_path / "new.txt").write_text("\n".join(str(i) for i in np.flatnonzero(data.y > 2)))
    asked = [
        "discover",
        "--graph",
        tmp_path / "g.npz",
        "--new-nodes",
        tmp_path / "new.txt",
        "--num-new",
        2,
    ]
    done = CliRunner().invoke(
        app, [str(a) for a in [*asked, "--out", tmp_path / "run"]], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    assert ("66 nodes of unknown classes have a label" in done.output) == answers
    assert len(passes) == 1  # phase 1 needs none


def test_a_discovered_class_is_called_by_its_features_wherever_it_is_shown(
    found: DiscoveryRun, tmp_path: Path
) -> None:
    run = RunFolder.write(tmp_path / "mine", found)
    names = [info.name for info in found.classes]
    assert names[:3] == ["class-0", "class-1", "class-2"]
    assert names[3:] == [info.auto_name for info in found.classes[3:]]
    assert all("word" in name for name in names[3:])
    assert found.model.class_names[3:] == ("new-3", "new-4")  # what is stored stays, and so do ids
    for shown in (run.path / "predictions.csv", run.path / "classes.csv"):
        assert {line["name"] for line in table(shown)} == set(names)
    page = (run.path / "report.html").read_text()
    assert [c["name"] for c in page_data(page)["classes"]] == names
    assert not re.search(r"new-[34]\b", page.split("<script")[0])
    for arguments in (["classes", run.path], ["predict", run.path, "--out", tmp_path / "p.csv"]):
        said = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False).output
        assert "new-3" not in said
        assert names[3].split(",")[0] in said
    CliRunner().invoke(
        app,
        ["export", str(run.path), "--to", "csv", "--out", str(tmp_path / "t")],
        catch_exceptions=False,
    )
    for shown in (tmp_path / "p.csv", tmp_path / "t" / "nodes.csv"):
        assert {line["name"] for line in table(shown)} == set(names)


def test_a_run_of_the_version_before_opens_and_its_classes_are_called_by_their_features(
    tmp_path: Path,
) -> None:
    before = Path(__file__).parent.parent / "fixtures" / "previous" / "run"
    shutil.copytree(before, tmp_path / "run")
    assert is_discovery(tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    run = folder.run
    assert run.label_ids is None
    assert folder.class_names == list(run.predictions.names)
    shown = {line["id"]: line for line in table(before / "classes.csv")}
    for info in run.classes:
        line = shown[str(info.id)]
        assert (str(info.size), info.auto_name) == (line["size"], line["auto_name"])
        assert info.name == (
            line["auto_name"] if line["name"] == f"new-{info.id}" else line["name"]
        )
    folder.report()
    assert "report.html" in {path.name for path in folder.path.iterdir()}


def test_a_failure_while_writing_leaves_nothing_and_what_was_there_stays(
    found: DiscoveryRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RunFolder.write(tmp_path / "mine", found)
    before = (run.path / "run.json").read_bytes()

    def full(*arguments: object, **told: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("nodenova.runs.folder.review_page", full)
    for path in (tmp_path / "mine", tmp_path / "other"):
        with pytest.raises(OSError, match="No space left"):
            RunFolder.write(path, found, overwrite=True)
    assert {path.name for path in tmp_path.iterdir()} == {"mine"}
    assert (run.path / "run.json").read_bytes() == before


def test_places_that_are_not_ours_are_refused(found: DiscoveryRun, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("mine")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"full is not empty; choose another --out"):
        RunFolder.write(tmp_path / "full", found)
    with pytest.raises(
        StorageError, match=r"full is not a run of `nodenova discover`: it has no run.json"
    ):
        RunFolder.write(tmp_path / "full", found, overwrite=True)
    with pytest.raises(StorageError, match="file is a file, not a folder for a run"):
        RunFolder.write(tmp_path / "file", found)
    with pytest.raises(StorageError, match="it does not exist"):
        RunFolder(tmp_path / "nowhere")
    assert (tmp_path / "full" / "thesis.txt").read_text() == "mine"


def test_without_its_graph_a_run_can_still_be_reviewed_but_not_drawn(
    found: DiscoveryRun, tmp_path: Path
) -> None:
    run = RunFolder.write(tmp_path / "mine", found, keep_graph=False)
    assert not (run.path / "graph.npz").exists()
    assert not (run.path / "labels.npz").exists()
    run.apply(review(run.model, {"do": "rename", "class": 3, "name": "fish"}))
    assert run.model.class_of(3).name == "fish"
    with pytest.raises(StorageError, match=r"keeps no graph: give it with --graph"):
        run.report()


def test_exports_hold_what_the_model_says(found: DiscoveryRun, tmp_path: Path) -> None:
    import networkx as nx
    import torch
    from torch_geometric.data import Data

    model, graph = found.model, found.graph
    for name, export in OF_GRAPH.items():
        export(PredictInput(model, graph), tmp_path / f"{name}.npz")
    assert (tmp_path / "csv.npz" / "nodes.csv").is_file()
    made = nx.read_graphml(tmp_path / "networkx.npz")
    assert made.number_of_edges() == graph.num_edges // 2
    assert [made.nodes[node]["class"] for node in graph.node_ids] == model.predict(graph).tolist()
    data = Data.from_dict(torch.load(tmp_path / "pyg.npz", weights_only=True))
    assert torch.equal(data.x.to_dense(), torch.from_numpy(graph.x.toarray()))
    assert torch.equal(data.pred, torch.from_numpy(model.predict(graph)))
    with np.load(tmp_path / "embeddings.npz") as arrays:
        assert np.array_equal(arrays["z"], model.embed(graph))
    EXPORTS["embeddings"](PredictInput(model, graph), tmp_path / "z.csv")
    assert len((tmp_path / "z.csv").read_text().splitlines()) == graph.num_nodes + 1
    with pytest.raises(StorageError, match="is a folder, and --out must name a file"):
        EXPORTS["pyg"](PredictInput(model, graph), tmp_path)


def test_exports_carry_the_weights_of_edges(tmp_path: Path) -> None:
    import networkx as nx
    import torch

    plain = nova.synthetic(nodes=60, classes=3, words=30, seed=0)
    weight = np.arange(plain.graph.num_edges) % 5 + 1.0
    graph = nova.Graph.of(plain.graph.x, plain.graph.edge_index, edge_weight=weight)
    labelled = nova.LabelledGraph(graph, plain.y, plain.class_names)
    old, _, _ = nova.split(labelled, [0, 1])
    what = PredictInput(nova.fit(old), graph)
    for name, export in OF_GRAPH.items():
        export(what, tmp_path / name)
    kept = graph.edge_weight[graph.edge_index[0] < graph.edge_index[1]]
    lines = (tmp_path / "csv" / "edges.csv").read_text().splitlines()
    assert lines[0] == "source,target,weight"
    assert [float(line.split(",")[2]) for line in lines[1:]] == kept.tolist()
    made = nx.read_graphml(tmp_path / "networkx")
    assert [data["weight"] for _, _, data in made.edges(data=True)] == pytest.approx(kept)
    parts = torch.load(tmp_path / "pyg", weights_only=True)
    assert parts["edge_weight"].tolist() == graph.edge_weight.tolist()


def test_predictions_as_parquet_are_those_as_csv(found: DiscoveryRun, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    predictions = Predictions.of(found.model, found.graph, min_confidence=0.9)
    path = tmp_path / "p.parquet"
    path.write_bytes(predictions.content(path))
    assert pq.read_table(path).to_pydict() == predictions.columns()
    assert (
        predictions.unsure.tolist()
        == (found.model.predict_proba(found.graph).max(axis=1) < 0.9).tolist()
    )


Y = np.zeros(150, np.int64)
BROKEN_ARRAYS: list[tuple[str, dict[str, Any] | bytes, str]] = [
    ("labels.npz", b"no zip", "not a readable npz file"),
    ("answers.npz", b"PK\x03\x04 cut", "not a readable npz file"),
    ("labels.npz", {"x": Y}, "the array y is missing"),
    ("answers.npz", {"y": Y[:5], "names": ["a"]}, "y must be 150 whole numbers"),
    ("answers.npz", {"y": Y}, "the array names is missing"),
    ("answers.npz", {"y": Y.astype("u1"), "names": np.zeros(0, "U1")}, "a class has no name"),
    ("before.npz", {"y": Y * 1.5}, "y must be 150 whole numbers"),
    ("before.npz", {"y": Y + 10**6}, "y has class ids from 1000000"),
    ("labels.npz", {"y": Y + 2**40}, "y has class ids from"),
    ("labels.npz", {"y": Y - 2, "names": ["a"]}, "y has class ids from -2"),
    ("labels.npz", {"y": Y + 1, "names": ["a"]}, "but 1 classes"),
    ("labels.npz", {"y": Y, "names": [["a"]]}, "names must be a list of texts"),
    ("labels.npz", {"y": Y, "names": [1, 2]}, "names must be a list of texts"),
    ("labels.npz", {"y": Y, "told": Y[:3], "names": ["a"]}, "told must be 150"),
    ("answers.npz", {"y": np.array([None] * 150), "names": ["a"]}, "holds Python objects"),
]


@pytest.fixture(scope="module")
def run_path(found: DiscoveryRun, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return RunFolder.write(tmp_path_factory.mktemp("arrays") / "run", found).path


@pytest.mark.parametrize(("name", "content", "expected"), BROKEN_ARRAYS)
def test_arrays_of_a_run_that_do_not_fit_its_graph(
    run_path: Path, name: str, content: dict[str, Any] | bytes, expected: str
) -> None:
    path = run_path / name
    before = path.read_bytes() if path.exists() else None
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        np.savez(path, **content)
    with pytest.raises(StorageError) as caught:
        _ = nova.open_run(run_path).run
    assert expected in one_sentence(caught.value, 300 + len(str(path)))
    if before is None:
        path.unlink()
    else:
        path.write_bytes(before)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"other"])
def test_a_damaged_map_of_a_run_is_made_anew(run_path: Path, content: bytes) -> None:
    z = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
    layout = stored_layout(run_path.parent, run_path.parent)
    first = layout(z)
    path = run_path.parent / "map.npz"
    path.write_bytes(content)
    assert np.array_equal(layout(z), first)
    with np.load(path) as stored:
        arrays = dict(stored)
    np.savez(path, **{**arrays, "xy": np.full((12, 2), np.nan)})
    assert np.array_equal(layout(z), first)


def test_an_overwriting_run_keeps_no_file_of_the_run_before(
    found: DiscoveryRun, tmp_path: Path
) -> None:
    run = RunFolder.write(tmp_path / "mine", found)
    run.apply([{"do": "rename", "class": 3, "name": "fish"}])
    (run.path / "notes.txt").write_text("mine")
    of_review = {"review.json", "decisions.json", "labels.csv", "origin"}
    assert of_review <= {path.name for path in run.path.iterdir()}
    bare = dataclasses.replace(found, answers=None)
    again = RunFolder.write(run.path, bare, overwrite=True, keep_graph=False, report=False)
    left = {"run.json", "model", "features.json", "predictions.csv", "classes.csv",
            "suggestions.json", "notes.txt"}  # fmt: skip
    assert {path.name for path in run.path.iterdir()} == left
    assert len([*(run.path / "model").iterdir()]) == 2
    assert not again.history.decisions


def test_shown_texts_are_guarded_with_the_other_tables(found: DiscoveryRun, tmp_path: Path) -> None:
    texts = {"title": ["=1+1"] * found.graph.num_nodes}
    run = RunFolder.write(tmp_path / "mine", dataclasses.replace(found, node_texts=texts))

    def titles() -> set[str]:
        return {line["title"] for line in table(run.path / "shown.csv")}

    assert titles() == {"=1+1"}
    run.report(safe_csv=True)
    assert titles() == {"'=1+1"}
    assert RunFolder(run.path).run.node_texts == texts
    run.report(safe_csv=False)
    assert titles() == {"=1+1"}


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_review_of_a_run_of_others_overwrites_no_file_of_mine(
    found: DiscoveryRun, tmp_path: Path, kind: str
) -> None:
    """The page stores its map beside it, where the folder may have a link to anywhere."""
    run = RunFolder.write(tmp_path / "mine", found)
    home, place = tmp_path / "profile", run.path / "map.npz"
    home.write_bytes(b"mine")
    place.unlink()
    if kind == "link":
        place.symlink_to(home)
    else:
        os.mkfifo(place)
    assert "<html" in run.page()
    assert home.read_bytes() == b"mine"
    assert place.is_file()
    assert not place.is_symlink()
