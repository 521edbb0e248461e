"""Held-out labels and calibrated probabilities of a run, in memory and in its folder."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import nodenova as nova
from nodenova.errors import StorageError


@pytest.fixture(scope="module")
def found() -> nova.NodeDiscoverer:
    data = nova.synthetic(nodes=300, classes=4, words=60, seed=1)
    y = np.where((data.y < 2) & (np.arange(300) % 2 == 0), data.y, -1)
    return nova.NodeDiscoverer(num_new=2).fit(data.graph, y)


@pytest.fixture
def folder(found: nova.NodeDiscoverer, tmp_path: Path) -> Path:
    found.report(tmp_path / "run")
    return tmp_path / "run"


def test_probabilities_of_discovered_classes_are_calibrated(found: nova.NodeDiscoverer) -> None:
    raw, p = found.model_.predict_proba(found.run_.graph), found.run_.probabilities
    is_new = np.array([c.is_new for c in found.model_.classes])
    groups = raw.argmax(axis=1)
    assert np.array_equal(p.argmax(axis=1), groups)
    assert np.array_equal(p[~is_new[groups]], raw[~is_new[groups]])
    assert not np.allclose(p[is_new[groups]], raw[is_new[groups]])
    for c in np.flatnonzero(is_new):
        mine = np.flatnonzero(groups == c)
        order = mine[np.argsort(raw[mine, c], kind="stable")]
        assert (np.diff(p[order, c]) >= -1e-6).all()


def test_one_probability_everywhere(found: nova.NodeDiscoverer, folder: Path) -> None:
    opened, p = nova.open_run(folder), found.predict_proba()
    table = opened.predictions
    unlabelled = (table["label"] == "").to_numpy()
    assert table["probability"].to_numpy()[unlabelled] == pytest.approx(
        p.max(axis=1)[unlabelled], abs=1e-4
    )
    assert opened.predict()["probability"].tolist() == table["probability"].tolist()
    again = opened.predict(found.run_.graph)
    assert again["probability"].tolist() == table["probability"].tolist()
    assert found.predict_proba(found.run_.graph) == pytest.approx(p, abs=1e-6)
    for info in found.class_info():
        mine = p[p.argmax(axis=1) == [c.id for c in found.model_.classes].index(info.id)]
        assert info.confidence == pytest.approx(mine.max(axis=1).mean(), abs=1e-6)


def test_held_out_labels_are_numbers_of_the_run(found: nova.NodeDiscoverer, folder: Path) -> None:
    document, scores = json.loads((folder / "run.json").read_text()), found.run_.held_out_scores
    assert scores is not None
    held_out = document["held_out"]
    infos = found.class_info()
    assert held_out["labels"] == sum(info.held_out for info in infos) == sum(scores.landed)
    assert held_out["right"] == sum(info.held_out_right for info in infos)
    assert held_out["in_new"] == sum(info.held_out for info in infos if info.is_new)
    assert scores.sentence.startswith(f"Of your {held_out['labels']} labels, each judged without")
    assert "in a discovered one" in scores.sentence
    for info in infos:
        assert (info.one_class is not None) == info.is_new


def test_a_review_calibrates_anew(folder: Path) -> None:
    opened = nova.open_run(folder)
    ids = [c.id for c in opened.model.classes if c.is_new]
    before = json.loads((folder / "run.json").read_text())["calibration"]
    assert set(before) == {str(c) for c in ids}
    opened.apply([{"do": "merge", "classes": ids}])
    after = json.loads((folder / "run.json").read_text())["calibration"]
    assert len(after) == 1
    assert nova.open_run(folder).predict()["probability"].tolist() == (
        nova.open_run(folder).predictions["probability"].tolist()
    )


def test_a_run_of_an_earlier_version_predicts_as_it_did(folder: Path) -> None:
    document = json.loads((folder / "run.json").read_text())
    del document["calibration"], document["held_out"]
    (folder / "run.json").write_text(json.dumps(document))
    opened = nova.open_run(folder)
    raw = opened.model.predict_proba(opened.stored_graph).max(axis=1)
    table = opened.predict()
    unlabelled = (table["label"] == "").to_numpy()
    assert table["probability"].to_numpy()[unlabelled] == pytest.approx(raw[unlabelled], abs=1e-4)


def test_damaged_calibration_is_named(folder: Path) -> None:
    document = json.loads((folder / "run.json").read_text())
    document["calibration"] = {"2": "high"}
    (folder / "run.json").write_text(json.dumps(document))
    with pytest.raises(StorageError, match=r"run\.json.*calibration"):
        nova.open_run(folder)
