"""Saved decisions: listed, taken back, and never mixed up with those of another reader."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import nodenova as nova
from nodenova.errors import SettingError
from nodenova.model.decisions import Create, Merge, Reject, Relabel, Rename, Split, Unlabel
from nodenova.model.saving import weights_digest
from nodenova.review.review_file import History, Review, cached_page
from nodenova.runs.folder import RunFolder
from nodenova.runs.run import DiscoveryRun


@pytest.fixture(scope="module")
def found() -> DiscoveryRun:
    data = nova.synthetic(nodes=150, classes=5, words=60, seed=2)
    old, new, _ = nova.split(data, [0, 1, 2])
    given = np.full(150, -1)
    given[old.train_ids] = data.y[old.train_ids]
    model = nova.discover(nova.fit(old), new)
    return DiscoveryRun(
        "Mine", model, data.graph, label_ids=given, label_names=("a", "b", "c"), keep_labels=True
    )


@pytest.fixture
def folder(found: DiscoveryRun, tmp_path: Path) -> RunFolder:
    return RunFolder.write(tmp_path / "mine", found)


def review(folder: RunFolder, *decisions: object, after: int | None = None) -> Review:
    return Review(weights_digest(folder.model), decisions, after)  # type: ignore[arg-type]


def state(folder: RunFolder) -> dict[str, object]:
    """What a run says of its classes and nodes."""
    model = RunFolder(folder.path).model
    run = RunFolder(folder.path).run
    return {
        "classes": model.classes,
        "p": model.predict_proba(run.graph).tolist(),
        "given": None if run.label_ids is None else run.label_ids.tolist(),
        "table": (folder.path / "predictions.csv").read_text(),
    }


def test_decisions_are_kept_in_order_and_the_last_ones_are_taken_back(
    folder: RunFolder,
) -> None:
    first = state(folder)
    folder.apply(review(folder, Rename(3, "fish")))
    second = state(folder)
    folder.apply(review(folder, Relabel((_node(folder),), 3)))
    folder.apply(review(folder, Split(3), Reject(4)))
    history = History.read(folder.path)
    assert history.revision == 3
    assert [one.do for one in history.decisions] == ["rename", "relabel", "split", "reject"]
    folder.undo(3)
    assert folder.history.decisions == (Rename(3, "fish"),)
    assert state(folder) == second
    folder.undo()
    assert folder.history == History(5, ())
    assert state(folder) == first
    with pytest.raises(SettingError, match="the run has 0 saved decisions"):
        folder.undo()
    assert History.read(folder.path).revision == 5


def _node(folder: RunFolder) -> object:
    return folder.graph.node_ids.tolist()[7]


def test_a_review_made_before_another_was_saved_is_refused_and_changes_nothing(
    folder: RunFolder,
) -> None:
    mine, other = (review(folder, Rename(3, name), after=0) for name in ("fish", "fowl"))
    folder.apply(mine)
    before = state(folder)
    with pytest.raises(SettingError, match="reviewed since: this review is of revision 0, and"):
        folder.apply(other)
    assert state(folder) == before
    folder.apply(review(folder, Rename(3, "fowl"), after=1))
    assert folder.model.class_of(3).name == "fowl"
    folder.undo()
    with pytest.raises(SettingError, match="the run is at 3"):
        folder.apply(review(folder, Rename(3, "fowl"), after=1))


def test_a_review_that_does_not_say_its_revision_is_taken_as_before(
    folder: RunFolder,
) -> None:
    folder.apply(review(folder, Rename(3, "fish")))
    folder.apply(review(folder, Rename(3, "fowl")))
    assert folder.model.class_of(3).name == "fowl"


def test_moved_nodes_and_named_classes_become_labels(
    folder: RunFolder, found: DiscoveryRun
) -> None:
    assert not (folder.path / "labels.csv").exists()
    node = _node(folder)
    folder.apply(review(folder, Rename(3, "fish"), Relabel((node,), 4)))  # type: ignore[arg-type]
    with (folder.path / "labels.csv").open(newline="") as file:
        lines = {line["node"]: line for line in csv.DictReader(file)}
    with (folder.path / "predictions.csv").open(newline="") as file:
        said = list(csv.DictReader(file))
    assert lines[str(node)]["why"] == "moved"
    for line in said:
        label = lines.get(line["node"])
        if line["label"]:
            assert label is not None
            assert label["label"] == line["label"]
        elif line["name"] == "fish" and float(line["probability"]) > 0.9:
            assert label is not None
            assert (label["label"], label["why"]) == ("fish", "settled")
        else:
            assert label is None or float(line["probability"]) == 0.9
    assert {line["why"] for line in lines.values()} == {"yours", "moved", "settled"}
    folder.undo(2)
    assert not (folder.path / "labels.csv").exists()


def test_a_class_of_chosen_nodes_is_theirs_until_it_is_undone(
    folder: RunFolder, found: DiscoveryRun
) -> None:
    """In the model, the labels, the tables and the page, and after further decisions."""
    first = state(folder)
    nodes = tuple(folder.graph.node_ids.tolist()[20:30])
    folder.apply(review(folder, Create(nodes, "ferns"), Relabel((_node(folder),), 5)))
    again = RunFolder(folder.path)
    assert again.model.class_of(5).name == "ferns"
    assert again.history.decisions[0] == Create(nodes, "ferns", 5)
    assert again.run.predictions.row[20:30].tolist() == [5] * 10
    assert again.run.predictions.row[7] == 5
    assert {str(node) for one in again.run.moves for node in one.nodes} == {
        *map(str, nodes), str(_node(folder)),
    }  # fmt: skip
    with (folder.path / "labels.csv").open(newline="") as file:
        lines = {line["node"]: line for line in csv.DictReader(file)}
    assert {(lines[str(n)]["label"], lines[str(n)]["why"]) for n in nodes} == {("ferns", "moved")}
    second = state(folder)
    model = (folder.path / "model" / "model.json").read_text()
    assert '"nodes": [' not in model[model.index('"edits"') :]  # a model keeps no node
    folder.apply(review(folder, Split(3), Create(nodes[:4], "moss")))
    assert folder.history.decisions[-1] == Create(nodes[:4], "moss", 8)
    assert RunFolder(folder.path).run.predictions.row[20] == again.run.model.num_columns + 1
    folder.undo(2)
    assert state(folder) == second
    folder.undo(2)
    assert state(folder) == first


def test_a_wrong_label_is_removed_until_it_is_undone(folder: RunFolder) -> None:
    first = state(folder)
    labelled = int(np.flatnonzero(np.array(first["given"]) >= 0)[0])
    node = folder.graph.node_ids.tolist()[labelled]
    folder.apply(review(folder, Unlabel((node,))))
    assert state(folder)["given"][labelled] == -1  # type: ignore[index]
    assert f"\n{node}," not in (folder.path / "labels.csv").read_text()
    assert state(folder)["p"] == first["p"]
    with pytest.raises(SettingError, match="unlabel: there is no node 'nowhere'"):
        folder.apply(review(folder, Unlabel(("nowhere",))))
    folder.undo()
    assert state(folder) == first


def test_a_node_is_moved_where_nobody_had_labelled_any(found: DiscoveryRun, tmp_path: Path) -> None:
    bare = DiscoveryRun("Mine", found.model, found.graph)
    folder = RunFolder.write(tmp_path / "bare", bare)
    folder.apply(review(folder, Relabel((_node(folder),), 3)))  # type: ignore[arg-type]
    assert RunFolder(folder.path).run.label_ids.tolist()[7] == 3  # type: ignore[union-attr]
    assert RunFolder(folder.path).run.predictions.row[7] == 3
    folder.undo()
    assert RunFolder(folder.path).run.label_ids is None


def test_the_page_of_a_run_is_served_as_it_is_until_the_run_changes(
    folder: RunFolder,
) -> None:
    page = cached_page(folder.path)
    assert page == folder.page()
    outdated = (folder.path / "report.html").read_bytes()
    folder.apply(review(folder, Rename(3, "fish")))
    assert cached_page(folder.path) == folder.page() != page
    (folder.path / "report.html").write_bytes(outdated)
    assert cached_page(folder.path) is None  # of the model before
    (folder.path / "report.html").unlink()
    assert cached_page(folder.path) is None


def test_the_map_is_laid_out_once(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def positions(z: np.ndarray, steps: object) -> np.ndarray:
        asked.append(len(z))
        return np.zeros((len(z), 2))

    monkeypatch.setattr("nodenova.runs.folder.positions", positions)
    before = (folder.path / "map.npz").read_bytes()
    folder.apply(review(folder, Merge((3, 4), "all new")))
    folder.page()
    assert asked == []
    assert (folder.path / "map.npz").read_bytes() == before
    (folder.path / "map.npz").write_bytes(before[:100])  # damaged: made anew
    folder.report()
    assert asked == [150]


def test_a_map_with_places_outside_the_picture_is_made_anew(folder: RunFolder) -> None:
    path = folder.path / "map.npz"
    with np.load(path) as stored:
        arrays = {name: stored[name] for name in stored.files}
    far = arrays["xy"].copy()
    far[0] = 1e6
    np.savez(path, **(arrays | {"xy": far}))
    folder.report()
    with np.load(path) as stored:
        np.testing.assert_array_equal(stored["xy"], arrays["xy"])


def test_without_a_page_everything_else_is_there_and_it_can_be_made_later(
    found: DiscoveryRun, tmp_path: Path
) -> None:
    folder = RunFolder.write(tmp_path / "mine", found, report=False)
    names = {path.name for path in folder.path.iterdir()}
    assert {"predictions.csv", "classes.csv", "suggestions.json"} <= names
    assert not {"report.html", "map.npz"} & names
    folder.report()
    again = RunFolder.write(tmp_path / "again", found)
    for name in ("report.html", "predictions.csv"):
        assert (folder.path / name).read_bytes() == (again.path / name).read_bytes()


def test_a_list_of_decisions_is_a_review_of_the_run_as_it_is(folder: RunFolder) -> None:
    model = folder.apply([{"do": "rename", "class": 3, "name": "fish"}])
    assert model.class_of(3).name == "fish"
    assert folder.apply([{"do": "reject", "class": 4}]).edits == RunFolder(folder.path).model.edits
    assert [decision.do for decision in RunFolder(folder.path).history.decisions] == [
        "rename",
        "reject",
    ]
