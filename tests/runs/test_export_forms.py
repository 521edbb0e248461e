"""Exports for map viewers, Gephi and ONNX, each read back."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import onnx
import onnxruntime
import pyarrow.parquet as pq
import pytest

import nodenova as nova
from nodenova.errors import SettingError, StorageError
from nodenova.runs import export
from nodenova.runs.folder import RunFolder
from nodenova.runs.new_graph import PredictInput
from tests.runs.tables import discover_spring, files, nodenova, write_tables


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    place = tmp_path_factory.mktemp("forms")
    discover_spring(place)
    write_tables(place / "autumn")
    return nova.open_run(place / "run")


def arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as file:  # no pickle in it
        return dict(file)


def predictions(run: RunFolder) -> list[dict[str, str]]:
    with (run.path / "predictions.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_embedding_atlas_reads_places_classes_and_texts(run: RunFolder, tmp_path: Path) -> None:
    printed = nodenova("export", run.path, "--to", "atlas", "--out", tmp_path / "a.parquet")
    assert "the file holds ids and texts of nodes" in printed
    table = pq.read_table(tmp_path / "a.parquet").to_pydict()
    assert [*table][:7] == ["x", "y", "node", "class", "name", "kind", "probability"]
    rows = predictions(run)
    for name in ("node", "name", "kind", "label"):
        assert table[name] == [row[name] for row in rows], name
    assert table["class"] == [int(row["class"]) for row in rows]
    assert table["probability"] == [float(row["probability"]) for row in rows]
    texts = {row["key"]: row["text"] for row in node_table(run)}
    assert table["text"] == [texts[row["node"]] for row in rows]
    # The places are those of the page, by node.
    stored = arrays(run.path / "map.npz")["xy"]
    place = dict(zip(run.stored_graph.node_ids.tolist(), stored.tolist(), strict=True))
    xy = [list(pair) for pair in zip(table["x"], table["y"], strict=True)]
    assert xy == [place[node] for node in table["node"]]


def test_an_opened_run_predicts_what_it_has_written(run: RunFolder) -> None:
    # Its words are a quarter of all entries: read from a file, such features became dense.
    assert "sparse" in repr(run.stored_graph)
    written = [float(row["probability"]) for row in predictions(run)]
    assert run.predict()["probability"].tolist() == written


def node_table(run: RunFolder) -> list[dict[str, str]]:
    with (run.path.parent / "spring/nodes.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_an_atlas_of_later_tables(run: RunFolder, tmp_path: Path) -> None:
    out = tmp_path / "autumn.csv"
    autumn = files(run.path.parent / "autumn")
    nodenova("export", run.path, *autumn, "--to", "atlas", "--out", out, "-q")
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["node"] for row in rows] == [f"n{i}" for i in range(120)]
    assert all(row["text"] and 0 <= float(row["x"]) <= 1 for row in rows)
    with pytest.raises(SettingError, match=r"--to atlas writes \.parquet or \.csv"):
        run.export("atlas", tmp_path / "a.json")


def test_a_map_of_a_large_graph_is_a_sample(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "MAX_NODES", 50)
    monkeypatch.setattr(export, "MAX_SAMPLED", 30)
    monkeypatch.setattr("nodenova.review.page_data.MIN_PER_CLASS", 2)
    what = PredictInput.of_run(run.run, run.class_names, relabel=False)
    notes = export.to_atlas(what, tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet").to_pydict()
    assert 25 <= len(table["node"]) <= 31
    assert notes[0] == f"the map has {len(table['node'])} of 90 nodes, each class by its share"
    class_of = {row["node"]: row["name"] for row in predictions(run)}
    assert table["name"] == [class_of[node] for node in table["node"]]
    export.to_gephi(what, tmp_path / "g.gexf")
    nodes = nx.read_gexf(tmp_path / "g.gexf").nodes
    assert len(nodes) == 90
    assert {node for node in nodes if "viz" in nodes[node]} == {*table["node"]}


def test_datamapplot_gets_a_map_labels_and_hover_texts(run: RunFolder, tmp_path: Path) -> None:
    nodenova("export", run.path, "--to", "datamapplot", "--out", tmp_path / "m.npz", "-q")
    data = arrays(tmp_path / "m.npz")
    rows = predictions(run)
    assert data["data_map"].shape == (90, 2)
    assert data["data_map"].dtype == np.float32
    assert data["labels"].tolist() == [row["name"] for row in rows]
    assert data["node_ids"].tolist() == [row["node"] for row in rows]
    texts = {row["key"]: row["text"] for row in node_table(run)}
    assert data["hover_text"].tolist() == [texts[row["node"]] for row in rows]
    run.export("datamapplot", tmp_path / "m.npz", none_share=0.3)
    flagged = run.predict(none_share=0.3)["fits_none"] == "yes"
    assert flagged.any()
    assert (arrays(tmp_path / "m.npz")["labels"] == "Unlabelled").tolist() == flagged.tolist()


def test_gephi_reads_nodes_places_edges_and_weights(run: RunFolder, tmp_path: Path) -> None:
    nodenova("export", run.path, "--to", "gephi", "--out", tmp_path / "g.gexf", "-q")
    graph = nx.read_gexf(tmp_path / "g.gexf")
    rows = {row["node"]: row for row in predictions(run)}
    assert {*graph.nodes} == {*rows}
    for node, cells in graph.nodes(data=True):
        row = rows[node]
        assert cells["class"] == int(row["class"])
        assert cells["name"] == row["name"]
        assert cells["probability"] == float(row["probability"])
        assert {*cells["viz"]["position"]} == {"x", "y", "z"}
    own = run.graph
    assert own.edge_weight is not None
    ends = own.node_ids[own.edge_index].T.tolist()
    weights = {frozenset(e): w for e, w in zip(ends, own.edge_weight.tolist(), strict=True)}
    read = {frozenset((a, b)): cells["weight"] for a, b, cells in graph.edges(data=True)}
    assert {*read} == {*weights}
    assert all(read[e] == pytest.approx(weights[e]) for e in read)


def test_names_that_xml_reads_otherwise_are_escaped(run: RunFolder, tmp_path: Path) -> None:
    name = "a<b> & \"c\" 'd' \x07 é"
    what = PredictInput.of_run(run.run, [name, *run.class_names[1:]], relabel=False)
    export.to_gephi(what, tmp_path / "g.gexf")
    names = {cells["name"] for _, cells in nx.read_gexf(tmp_path / "g.gexf").nodes(data=True)}
    assert name.replace("\x07", "\ufffd") in names
    ids = [f"n{i}\x07" for i in range(90)]
    odd = replace(what, graph=replace_ids(what.graph, ids), run=None)
    with pytest.raises(SettingError, match="GEXF cannot hold the id"):
        export.to_gephi(odd, tmp_path / "odd.gexf")
    assert not (tmp_path / "odd.gexf").exists()


def replace_ids(graph: nova.Graph, ids: list[str]) -> nova.Graph:
    return nova.Graph.of(
        graph.x, graph.edge_index, node_ids=ids, feature_names=graph.feature_names,
        edge_weight=graph.edge_weight,
    )  # fmt: skip


def test_cells_that_look_like_formulas_are_guarded(run: RunFolder, tmp_path: Path) -> None:
    what = PredictInput.of_run(run.run, ["=1+1", *run.class_names[1:]], relabel=False)
    for safe in (False, True):
        export.export_input(what, "atlas", tmp_path / "a.csv", safe_csv=safe)
        with (tmp_path / "a.csv").open(newline="") as file:
            names = {row["name"] for row in csv.DictReader(file)}
        assert ("'=1+1" in names) is safe


@pytest.mark.parametrize("to", ["atlas", "datamapplot", "gephi", "onnx"])
def test_an_export_that_fails_leaves_the_file_that_was_there(
    run: RunFolder, tmp_path: Path, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / f"x{'.parquet' if to == 'atlas' else ''}"
    out.write_bytes(b"mine")

    def fails(*parts: object, **more: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fails)
    with pytest.raises(OSError, match="disk full"):
        run.export(to, out)
    monkeypatch.undo()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"mine"]
    folder = tmp_path / "folder.parquet"
    folder.mkdir()
    with pytest.raises(StorageError, match="--out must name a file"):
        run.export(to, folder)


def run_onnx(path: Path, z: np.ndarray) -> dict[str, Any]:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"embedding": z}), strict=True))


def test_onnx_is_equal_to_predict_on_features(run: RunFolder, tmp_path: Path) -> None:
    printed = nodenova("export", run.path, "--to", "onnx", "--out", tmp_path / "m.onnx")
    assert "holds no graph, no node id and no label" in printed
    run.export("embeddings", tmp_path / "z.npz")
    z = arrays(tmp_path / "z.npz")["z"]
    found = run_onnx(tmp_path / "m.onnx", z)
    expected = run.predict(relabel=True)
    assert found["class"].tolist() == expected["class"].tolist()
    assert np.abs(found["probability"] - expected["probability"]).max() < 1e-4  # four digits
    p = run.graph.in_given_order(run.model.predict_proba(run.graph))
    assert np.abs(found["probabilities"] - p).max() < 1e-5
    classes = json.loads(onnx.load(tmp_path / "m.onnx").metadata_props[0].value)
    assert [c["name"] for c in classes] == run.class_names
    assert [c["id"] for c in classes] == [c.id for c in run.model.classes]
    content = (tmp_path / "m.onnx").read_bytes()
    assert not [node for node in run.graph.node_ids if f'"{node}"'.encode() in content]


@pytest.mark.parametrize("encoder", ["prism", "gcn"])
def test_onnx_of_other_heads_and_of_merged_classes(encoder: str, tmp_path: Path) -> None:
    data = nova.synthetic(nodes=120, classes=4, words=40)
    old, new, _ = nova.split(data, [0, 1])
    fitted = nova.fit(old, encoder, **({"epochs": 5, "hidden": 8} if encoder == "gcn" else {}))
    method = nova.FrozenKMeans() if encoder == "gcn" else nova.Prism(n_resamples=0)
    models = [fitted, nova.discover(fitted, new, method)]
    models.append(models[-1].merge([1, 2]))
    for number, model in enumerate(models):
        path = tmp_path / f"{number}.onnx"
        export.export_model(model, path, "onnx")
        found = run_onnx(path, model.embed(data.graph))
        assert found["class"].tolist() == model.predict(data.graph).tolist()
        p = model.predict_proba(data.graph)
        assert np.abs(found["probabilities"] - p).max() < 1e-5
        assert np.abs(found["probability"] - p.max(axis=1)).max() < 1e-5


def test_onnx_of_a_saved_model(run: RunFolder, tmp_path: Path) -> None:
    run.model.save(tmp_path / "model")
    nodenova("export", tmp_path / "model", "--to", "onnx", "--out", tmp_path / "m.onnx", "-q")
    z = run.model.embed(run.graph)
    found = run_onnx(tmp_path / "m.onnx", z)
    assert found["class"].tolist() == run.model.predict(run.graph).tolist()
    more = files(run.path.parent / "autumn")
    with pytest.raises(SettingError, match="--to onnx writes no graph"):
        nodenova("export", run.path, *more, "--to", "onnx", "--out", tmp_path / "m.onnx")


def test_onnx_without_its_package_is_one_sentence(
    run: RunFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "onnx", None)
    with pytest.raises(SettingError, match=r"--to onnx needs onnx: pip install 'nodenova\[onnx\]'"):
        run.export("onnx", tmp_path / "m.onnx")
