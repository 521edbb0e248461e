"""The model of a run written alone: what is in it, what is not, and that it predicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import nodenova as nova
from nodenova.errors import SettingError, StorageError
from tests.runs.tables import discover_spring, files, nodenova, tables, write_tables


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("alone")
    discover_spring(place)
    write_tables(place / "autumn")
    return place


def test_the_model_alone_has_no_graph_no_id_and_no_label(place: Path, tmp_path: Path) -> None:
    printed = nodenova("export", place / "run", "--to", "model", "--out", tmp_path / "model")
    assert "holds no graph, no node id and no label of a node" in printed
    assert "words and category values of your columns" in printed
    names = sorted(path.name.split("-")[0] for path in (tmp_path / "model").iterdir())
    assert names == ["model.json", "weights"]
    text = (tmp_path / "model" / "model.json").read_text()
    ids = [str(node) for node in nova.open_run(place / "run").graph.node_ids]
    assert ids
    assert not [node for node in ids if f'"{node}"' in text]
    # The words of the table are in the recipe.
    assert '"word1"' in text


def test_it_predicts_later_tables_as_the_run_does(place: Path, tmp_path: Path) -> None:
    run = nova.open_run(place / "run")
    run.export("model", tmp_path / "model")
    model = nova.load_model(tmp_path / "model")
    assert np.array_equal(model.predict(run.graph), run.model.predict(run.graph))
    columns = ["--id-column", "key", "--source-column", "a", "--target-column", "b"]
    columns += ["--weight-column", "w", "--edge-type-column", "kind"]
    out = tmp_path / "p.csv"
    nodenova("predict", tmp_path / "model", *files(place / "autumn"), *columns, "-q", "--out", out)
    by_run = run.predict(**tables(place / "autumn"), relabel=True)
    by_model = [line.split(",")[:2] for line in out.read_text().splitlines()[1:]]
    assert [c for _, c in by_model] == [str(c) for c in by_run["class"]]


def test_a_run_without_its_graph_has_a_model_too(place: Path, tmp_path: Path) -> None:
    data = nova.synthetic(nodes=60, classes=3, words=40)
    y = [c if c < 2 else -1 for c in data.y.tolist()]
    nova.NodeDiscoverer(num_new=1).fit(data.graph, y).report(tmp_path / "run", keep_graph=False)
    notes = nova.open_run(tmp_path / "run").export("model", tmp_path / "model")
    assert len(notes) == 1 + (data.graph.feature_names is not None)
    assert len(nova.load_model(tmp_path / "model").classes) == 3


def test_files_and_other_folders_are_refused(place: Path, tmp_path: Path) -> None:
    words = ["export", place / "run", "--to", "model", "--out"]
    with pytest.raises(SettingError, match="--to model writes no graph"):
        nodenova(*words, tmp_path / "model", *files(place / "autumn"))
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(StorageError, match="not a saved model; nothing was written"):
        nodenova(*words, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
