"""Other numbers of new classes: previews in a run, discovery at one of them, and its adoption."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import nodenova as nova
from nodenova.cli import app
from nodenova.discovery import discover
from nodenova.errors import SettingError, StorageError
from nodenova.model.saving import weights_digest
from nodenova.runs.folder import RunFolder
from nodenova.runs.numbers import OtherNumbers, _match_ids, preview_numbers
from nodenova.runs.run import CHOSEN, DiscoveryRun

QUICK = nova.Prism(restarts=2, n_resamples=2)


def labelled() -> tuple[nova.Graph, np.ndarray]:
    data = nova.synthetic(nodes=240, classes=6, words=80, seed=3)
    return data.graph, np.where((data.y < 3) & (np.arange(240) % 2 == 0), data.y, -1)


@pytest.fixture(scope="module")
def found() -> nova.NodeDiscoverer:
    return nova.NodeDiscoverer(method=QUICK).fit(*labelled())


@pytest.fixture(scope="module")
def written(found: nova.NodeDiscoverer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("numbers") / "run"
    found.report(path)
    return path


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> RunFolder:
    shutil.copytree(written, tmp_path / "run")
    return RunFolder(tmp_path / "run")


def numbers_of(run: DiscoveryRun) -> OtherNumbers:
    assert run.numbers is not None
    return run.numbers


def content(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_neighbors_of_the_counted_number_are_kept(found: nova.NodeDiscoverer) -> None:
    numbers = numbers_of(found.run_)
    counted = numbers.count.number
    assert found.count_ == numbers.count
    assert counted > 0
    wanted = {counted + more for more in (-2, -1, 0, 1, 2, 4)}
    assert set(numbers.previews) == {number for number in wanted if number >= 1}
    assert all(len(ids) == 240 for ids in numbers.class_ids.values())
    for number in numbers.previews:
        assert len(numbers.new_ids(number)) <= number
        assert set(numbers.class_ids[number].tolist()) <= {0, 1, 2, *numbers.new_ids(number)}


def test_previews_do_not_change_what_was_counted() -> None:
    graph, y = labelled()
    run = nova.NodeDiscoverer(method=QUICK).fit(graph, y).run_
    known = nova.NodeDiscoverer(run.num_new, method=QUICK).fit(graph, y)
    assert weights_digest(run.model) == weights_digest(known.model_)
    assert known.run_.numbers is None


def test_a_number_is_what_a_discovery_with_it_given_finds(found: nova.NodeDiscoverer) -> None:
    number = numbers_of(found.run_).count.number + 1
    other = found.at(number)
    given = nova.NodeDiscoverer(number, method=QUICK).fit(*labelled())
    assert len(other.classes_) == 3 + number == len(given.classes_)
    assert weights_digest(other.model_) == weights_digest(given.model_)  # only the ids differ
    assert other.model_.stages[-1].count is None
    assert "chosen" in str(other.run_.facts[CHOSEN])
    assert found.run_.num_new == number - 1  # it is not changed
    assert len(found.labels_) == len(other.labels_) == 240


def test_the_way_back_has_the_same_bits(found: nova.NodeDiscoverer) -> None:
    counted = numbers_of(found.run_).count.number
    back = found.at(counted + 2).at(counted)
    assert weights_digest(back.model_) == weights_digest(found.model_)
    assert back.model_.stages == found.model_.stages
    assert back.model_.classes == found.model_.classes
    assert back.run_.facts == found.run_.facts
    assert found.run_.at(counted) is found.run_


def test_a_class_has_the_same_id_in_the_preview_and_in_the_run(found: nova.NodeDiscoverer) -> None:
    numbers = numbers_of(found.run_)
    for number in numbers.previews:
        run = found.run_.at(number)
        predicted = run.model.predict(run.graph)
        assert (predicted == numbers.class_ids[number]).mean() > 0.8
        assert [c.id for c in run.model.classes] == sorted(c.id for c in run.model.classes)


def some_numbers(**class_ids: list[int]) -> OtherNumbers:
    count = nova.ClassCountEstimate(2, (0.1, 0.2, 0.7), 1.0, None, 0.5, 8)
    kept = {int(name[1:]): np.array(ids) for name, ids in class_ids.items()}
    return OtherNumbers(count, np.arange(8), {}, kept, (0,))


def test_a_class_that_stays_keeps_its_id() -> None:
    numbers = some_numbers(n2=[0, 0, 1, 1, 1, 2, 2, 2])
    assert _match_ids(np.array([-1, -1, 1, 1, 1, 0, 0, 2]), 3, numbers) == [2, 1, 3]
    # Half of its nodes are not enough.
    assert _match_ids(np.array([-1, 0, 0, 0, -1, 2, 2, 1]), 3, numbers) == [3, 4, 2]
    # A class that a nearer number has found is recognized there.
    numbers = some_numbers(n2=[0, 0, 1, 1, 1, 2, 2, 2], n3=[0, 9, 9, 9, 1, 2, 2, 2])
    assert _match_ids(np.array([-1, 0, 0, 0, 1, 2, 2, 3]), 4, numbers) == [9, 1, 2, 10]


def test_a_number_that_cannot_be_shown(found: nova.NodeDiscoverer, folder: RunFolder) -> None:
    given = nova.NodeDiscoverer(2, method=QUICK).fit(*labelled())
    with pytest.raises(SettingError, match="keeps no other number of new classes"):
        given.at(3)
    with pytest.raises(SettingError, match="whole number from 1 to"):
        found.at(0)
    with pytest.raises(SettingError, match="whole number from 1 to"):
        found.at(10_000)
    folder.apply([{"do": "rename", "class": folder.model.classes[-1].id, "name": "plants"}])
    before = content(folder.path)
    with pytest.raises(SettingError, match=r"has 1 decision .*nodenova undo RUN --last 1"):
        folder.use_number(folder.run.num_new + 1)
    assert content(folder.path) == before


def test_a_run_takes_another_number_and_the_first_one_again(folder: RunFolder) -> None:
    before, counted = content(folder.path), folder.run.num_new
    expected = folder.at(counted + 1)
    model = folder.use_number(counted + 1)
    again = RunFolder(folder.path)
    assert weights_digest(again.model) == weights_digest(model) == weights_digest(expected.model)
    assert again.run.num_new == counted + 1
    assert {*again.class_of_nodes().values()} <= {c.id for c in model.classes}
    assert f"{counted + 1}, chosen; {counted} counted" in (again.path / "report.html").read_text()
    again.use_number(counted)
    assert content(folder.path) == before


def test_another_number_is_calibrated_anew(folder: RunFolder) -> None:
    """Later graphs are predicted with the shifts in run.json, which are those of the classes."""
    folder.use_number(folder.run.num_new + 1)
    again = RunFolder(folder.path)
    ids = [str(c.id) for c in again.model.classes if c.is_new]
    assert list(again.document["calibration"]) == ids
    assert again.document["calibration"] == again.run.evidence["calibration"]
    assert again.document["held_out"] == again.run.evidence["held_out"]
    later = again.predict(again.graph)
    assert later["probability"].tolist() == again.predictions["probability"].tolist()


def test_another_number_of_a_shuffled_table_has_the_same_classes() -> None:
    graph, y = labelled()
    nodes = [
        {"id": f"n{i}", "label": "" if y[i] < 0 else f"t{y[i]}", "text": words}
        for i, words in enumerate(_words(graph))
    ]
    edges = [{"source": f"n{a}", "target": f"n{b}"} for a, b in graph.edge_index.T.tolist()]
    classes = []
    for seed in (None, 1):
        order = np.arange(len(nodes))
        if seed is not None:
            np.random.default_rng(seed).shuffle(order)
        columns = ["id", "label", "text"] if seed is None else ["text", "label", "id"]
        table = pd.DataFrame([nodes[i] for i in order])[columns]
        loaded = nova.load_graph(nodes=table, edges=pd.DataFrame(edges), label_column="label")
        run = nova.NodeDiscoverer(method=QUICK).fit(loaded).run_
        other = run.at(run.num_new + 1).predictions
        classes.append(dict(zip(other.node_ids.tolist(), other.row.tolist(), strict=True)))
    assert classes[0] == classes[1]


def _words(graph: nova.Graph) -> list[str]:
    rows = zip(graph.x.indptr, graph.x.indptr[1:], strict=False)
    return [" ".join(f"word{j}" for j in graph.x.indices[a:b]) for a, b in rows]


def test_decisions_after_another_number_are_undone_to_it(folder: RunFolder) -> None:
    counted = folder.run.num_new
    first = folder.model.classes[-1].id
    folder.apply([{"do": "rename", "class": first, "name": "plants"}])
    folder.undo()  # leaves an origin
    folder.use_number(counted + 1)
    digest = weights_digest(folder.model)
    folder.apply([{"do": "reject", "class": folder.model.classes[-1].id}])
    folder.undo()
    assert weights_digest(RunFolder(folder.path).model) == digest


def test_a_run_without_numbers_is_read_as_before(
    found: nova.NodeDiscoverer, folder: RunFolder, tmp_path: Path
) -> None:
    (folder.path / "numbers.npz").unlink()  # as earlier versions wrote it
    older = RunFolder(folder.path)
    assert older.run.numbers is None
    with pytest.raises(SettingError, match="keeps no other number of new classes"):
        older.at(3)
    found.report(tmp_path / "bare", keep_graph=False)
    assert not (tmp_path / "bare" / "numbers.npz").exists()
    with pytest.raises(SettingError, match=r"keeps no graph.*--num-new 3"):
        RunFolder(tmp_path / "bare").at(3)


BROKEN: list[tuple[str, Any]] = [
    ("ids", np.zeros(0, np.int64)),
    ("ids", np.array([3, 2])),
    ("ids", np.array([1000])),
    ("known", np.array([7])),
    ("numbers", np.array([1, 1])),
    ("class_ids", np.zeros((2, 3), np.int64)),
    ("class_ids", -1),
    ("dof", np.array(np.nan, np.float32)),
    ("dof", np.array(0, np.float32)),
    ("dof", np.array(-50, np.float32)),  # made a model that could not be loaded again
    ("diag", -1),
    ("factor", np.zeros((2, 2), np.float32)),
    ("count", np.array("{}")),
    ("count", np.array("no")),
]


@pytest.mark.parametrize(("name", "value"), BROKEN)
def test_damaged_numbers(folder: RunFolder, name: str, value: Any) -> None:
    path = folder.path / "numbers.npz"
    with np.load(path) as stored:
        arrays = dict(stored)
    if isinstance(value, int):
        kind = np.float32 if arrays[name].dtype.kind == "f" else np.int64
        value = np.full(arrays[name].shape, value, kind)
    np.savez(path, **arrays | {name: value})
    with pytest.raises(StorageError, match=r"numbers\.npz"):
        _ = RunFolder(folder.path).run
    del arrays[name]
    np.savez(path, **arrays)
    with pytest.raises(StorageError, match=f"the array {name} is missing"):
        _ = RunFolder(folder.path).run


def test_where_nothing_seems_new_other_numbers_are_shown() -> None:
    data = nova.synthetic(nodes=200, classes=3, words=80, seed=1)
    y = np.where(np.arange(200) % 2 == 0, data.y, -1)
    found = nova.NodeDiscoverer(method=QUICK).fit(data.graph, y)
    numbers = numbers_of(found.run_)
    assert numbers.count.number == 0
    assert numbers.previews == (0, 1, 2, 4)
    one = found.at(1)
    assert one.run_.num_new == 1
    assert one.at(0).model_.classes == found.model_.classes
    assert one.at(0).count_ == found.count_


def test_many_nodes_have_no_previews(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new, _ = nova.split(nova.synthetic(nodes=200, classes=4, words=80), [0, 1])
    known = nova.fit(old)
    task = nova.NewTask(new.graph, new.ids, None)
    model = discover(known, task, QUICK)
    monkeypatch.setattr("nodenova.runs.numbers.MAX_KEPT", 100)
    numbers = preview_numbers(known, model, task, QUICK)
    assert numbers is not None
    assert numbers.previews == (numbers.count.number,)
    assert preview_numbers(known, model, task, nova.FrozenKMeans()) is None


def test_the_command_shows_a_number_and_uses_it(folder: RunFolder) -> None:
    number, path = folder.run.num_new + 1, str(folder.path)
    before = content(folder.path)
    shown = CliRunner().invoke(app, ["classes", path, "--num-new", str(number)])
    assert shown.exit_code == 0, shown.output
    assert "The run is unchanged" in shown.stdout
    assert f"--num-new {number} --use" in shown.stdout.replace("\n", " ")
    assert content(folder.path) == before
    target = folder.path.parent / "classes.json"
    options = ["--num-new", str(number), "--use", "--json", str(target), "--quiet"]
    assert CliRunner().invoke(app, ["classes", path, *options]).exit_code == 0
    assert RunFolder(folder.path).run.num_new == number
    assert len(json.loads(target.read_text())["classes"]) == 3 + number
    after = content(folder.path)
    options = ["--num-new", str(number - 1), "--use", "--json", str(folder.path.parent), "-q"]
    refused = CliRunner().invoke(app, ["classes", path, *options])
    assert "is a folder, not a file" in str(refused.exception or refused.output)
    assert content(folder.path) == after
    alone = CliRunner().invoke(app, ["classes", path, "--use"])
    assert alone.exit_code != 0
    assert "give --num-new" in str(alone.exception or alone.output)


def test_a_continued_run_has_numbers_too(folder: RunFolder) -> None:
    graph, _ = labelled()
    later = folder.continue_with(graph, method=QUICK)
    numbers = numbers_of(later.run)
    assert 1 in numbers.previews
    other = later.run.at(2)
    assert other.num_new == 2
    earlier = {c.id for c in folder.model.classes}
    assert earlier < {c.id for c in other.model.classes}
    written = later.write(folder.path.parent / "later")
    assert written.at(2).num_new == 2
