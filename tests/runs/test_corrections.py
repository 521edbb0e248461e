"""Labels that their user takes back: in the run, never in the model."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import nodenova as nova
from nodenova.cli.review import ReviewSession
from nodenova.errors import SettingError
from nodenova.model.decisions import Relabel, from_json, to_json
from nodenova.model.saving import weights_digest
from nodenova.runs.apply import Review, read_labels
from nodenova.runs.folder import RunFolder
from nodenova.runs.run import DiscoveryRun


@pytest.fixture(scope="module")
def found() -> DiscoveryRun:
    data = nova.synthetic(nodes=120, classes=4, words=80, seed=1)
    graph = replace(data.graph, node_ids=np.array([f"p{i}" for i in range(120)]))
    old, new, _ = nova.split(nova.LabelledGraph(graph, data.y, data.class_names), [0, 1])
    model = nova.discover(nova.fit(old), new)
    given = np.full(120, -1)
    given[old.train_ids] = old.train_y
    return DiscoveryRun("Mine", model, graph, label_ids=given, label_names=("oak", "elm"))


@pytest.fixture
def folder(found: DiscoveryRun, tmp_path: Path) -> RunFolder:
    return RunFolder.write(tmp_path / "run", found)


def rows(folder: RunFolder) -> dict[str, dict[str, str]]:
    with (folder.path / "predictions.csv").open(newline="") as file:
        return {line["node"]: line for line in csv.DictReader(file)}


def review(model: nova.Model, *decisions: dict[str, object]) -> dict[str, object]:
    document = Review(weights_digest(model)).to_json()
    return document | {"decisions": list(decisions)}


def content(folder: RunFolder) -> dict[str, bytes]:
    files = (path for path in folder.path.rglob("*") if path.is_file())
    return {str(path): path.read_bytes() for path in files}


def test_a_corrected_label_is_kept_in_the_tables_and_the_model_stays(
    found: DiscoveryRun, folder: RunFolder
) -> None:
    node = int(np.flatnonzero(found.label_ids == 0)[0])
    other = int(np.flatnonzero(found.label_ids == 1)[0])
    before = (folder.path / "model" / "model.json").read_bytes()
    folder.apply(
        review(
            found.model,
            {"do": "relabel", "nodes": [f"p{node}"], "class": 1},
            {"do": "relabel", "nodes": [f"p{other}"], "class": 3},
        )
    )
    assert (folder.path / "model" / "model.json").read_bytes() == before
    table = rows(folder)
    assert (table[f"p{node}"]["class"], table[f"p{node}"]["label"]) == ("1", "elm")
    name = found.names[3]  # the user has no word for a class that was discovered
    assert (table[f"p{other}"]["class"], table[f"p{other}"]["label"]) == ("3", name)
    kept = read_labels(folder.path)
    assert kept is not None
    assert np.array_equal(kept["told"], found.label_ids)
    assert np.flatnonzero(kept["y"] != found.label_ids).tolist() == sorted([node, other])
    folder.apply(review(found.model, {"do": "relabel", "nodes": [f"p{node}"], "class": 0}))
    again = read_labels(folder.path)
    assert again is not None
    assert again["y"][node] == 0
    assert np.array_equal(again["told"], found.label_ids)


def test_a_label_follows_its_class_through_later_decisions(
    found: DiscoveryRun, folder: RunFolder
) -> None:
    node = int(np.flatnonzero(found.label_ids == 0)[0])
    folder.apply(
        review(
            found.model,
            {"do": "relabel", "nodes": [f"p{node}"], "class": 3},
            {"do": "merge", "classes": [2, 3], "name": "trees"},
        )
    )
    line = rows(folder)[f"p{node}"]
    assert (line["class"], line["name"], line["label"]) == ("2", "trees", "trees")


@pytest.mark.parametrize(
    ("decision", "sentence"),
    [
        ({"do": "relabel", "nodes": ["x9"], "class": 1}, "relabel: there is no node 'x9' in"),
        ({"do": "relabel", "nodes": ["p1"], "class": 9}, r"\(relabel\): there is no class 9"),
        (
            {"do": "relabel", "nodes": "p1", "class": 1},
            "nodes must be a list of at most 100,000 ids of nodes",
        ),
        ({"do": "relabel", "nodes": ["p1"]}, r"\(relabel\): class is missing"),
    ],
)
def test_a_wrong_correction_changes_nothing(
    found: DiscoveryRun, folder: RunFolder, decision: dict[str, object], sentence: str
) -> None:
    before = content(folder)
    with pytest.raises(SettingError, match=sentence):
        folder.apply(review(found.model, {"do": "rename", "class": 2, "name": "z"}, decision))
    assert content(folder) == before


def test_a_run_without_its_labels_cannot_correct_them(found: DiscoveryRun, tmp_path: Path) -> None:
    bare = RunFolder.write(tmp_path / "bare", found, keep_graph=False)
    with pytest.raises(SettingError, match="has no graph, and no labels"):
        bare.apply(review(found.model, {"do": "relabel", "nodes": ["p1"], "class": 1}))


def test_the_page_of_a_served_run_shows_the_corrected_label(
    found: DiscoveryRun, folder: RunFolder
) -> None:
    session = ReviewSession(folder.path, quiet=True)
    session.page()
    node = int(np.flatnonzero(found.label_ids == 0)[0])
    before = rows(folder)[f"p{node}"]["label"]
    session.save(Review(weights_digest(found.model), (Relabel((f"p{node}",), 1),)))
    assert (before, rows(folder)[f"p{node}"]["label"]) == ("oak", "elm")
    assert RunFolder(folder.path).run.label_ids[node] == 1


def test_a_correction_has_one_form_and_is_never_part_of_a_model() -> None:
    told = Relabel(("p1", 7), 3)
    assert to_json(told) == {"do": "relabel", "nodes": ["p1", 7], "class": 3}
    assert from_json(to_json(told)) == told
    with pytest.raises(
        SettingError, match="one of rename, merge, reject, split, create, not 'relabel'"
    ):
        from_json(to_json(told), done=True)
