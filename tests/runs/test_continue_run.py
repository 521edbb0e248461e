"""Going on from an earlier run when its graph has grown."""

from __future__ import annotations

import csv
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nodenova as nova
from nodenova.errors import SettingError, SplitError, StorageError
from nodenova.model.decisions import Relabel
from nodenova.model.saving import weights_digest
from nodenova.open_world.count import ClassCountEstimate
from nodenova.runs.continue_run import _nodes_to_search
from nodenova.runs.folder import ContinuedRun, RunFolder
from nodenova.runs.revise import undecided_classes
from nodenova.runs.run import MIN_STAY, DiscoveryRun
from tests.growth.seasons import AUTUMN, LATE, SPRING, Seasons, seasons

ONE = nova.Prism(n_resamples=2)
NAMES = ("oak", "elm")


@pytest.fixture(scope="module")
def grown() -> Seasons:
    return seasons()


@pytest.fixture(scope="module")
def spring(grown: Seasons, tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A reviewed run: one class has a name, two known nodes in three have labels."""
    model = grown.model
    given = np.where((np.arange(SPRING) % 3 > 0) & (grown.y[:SPRING] < 2), grown.y[:SPRING], -1)
    run = DiscoveryRun("spring", model, grown.spring, label_ids=given, label_names=NAMES)
    place = tmp_path_factory.mktemp("runs") / "spring"
    folder = RunFolder.write(place, run)
    name = {"do": "rename", "class": 2, "name": "heather"}
    review = {"format": "nodenova review", "version": 1, "model": weights_digest(model)}
    folder.apply(review | {"decisions": [name]})
    return RunFolder(place)


def autumn(grown: Seasons, labels: dict[int, str] | None = None) -> nova.UserGraph:
    """The grown graph with the labels of some nodes."""
    texts = labels or {}
    names = tuple(sorted(set(texts.values())))
    y = np.full(grown.autumn.num_nodes, -1)
    for node, text in texts.items():
        y[node] = names.index(text)
    return nova.load_graph(nova.LabelledGraph(grown.autumn, y, names, name="autumn"))


@pytest.fixture(scope="module")
def after(grown: Seasons, spring: RunFolder) -> ContinuedRun:
    return spring.continue_with(autumn(grown), method=ONE)


@pytest.mark.slow
def test_a_class_of_chosen_nodes_goes_on_when_the_graph_grows(
    grown: Seasons, spring: RunFolder, tmp_path: Path
) -> None:
    shutil.copytree(spring.path, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    chosen = np.flatnonzero(grown.y[:SPRING] == 3)[:30]
    wrong = int(np.flatnonzero(folder.run.label_ids == 0)[0])  # type: ignore[operator]
    review = {"format": "nodenova review", "version": 1, "model": weights_digest(folder.model)}
    nodes = grown.spring.node_ids[chosen].tolist()
    made = {"do": "create", "nodes": nodes, "name": "moss"}
    unlabel = {"do": "unlabel", "nodes": [grown.spring.node_ids[wrong].item()]}
    folder.apply(review | {"decisions": [made, unlabel]})
    done = folder.continue_with(autumn(grown), method=ONE)
    model = done.run.model
    assert model.class_of(4).name == "moss"
    assert model.edits == folder.model.edits
    said = np.array([model.classes[row].id for row in done.run.predictions.row])
    assert (said[chosen] == 4).all()  # their label
    assert (grown.y[said == 4] == 3).mean() > 0.8
    assert (said[SPRING:] == 4).any()
    assert done.run.label_ids is not None
    assert done.run.label_ids[wrong] == -1
    assert [c.id for c in model.classes if c.stage == 2] == [5]
    assert {str(n) for one in done.run.moves for n in one.nodes} >= {*map(str, nodes)}


def test_what_came_is_found_and_all_that_was_known_stays(
    grown: Seasons, spring: RunFolder, after: ContinuedRun
) -> None:
    model, before = after.run.model, spring.model
    assert [c.id for c in model.classes] == [0, 1, 2, 3, 4]
    shown = spring.class_names
    assert list(model.class_names[:4]) == shown  # also of the class that nobody has named
    assert shown[:3] == ["oak", "elm", "heather"]
    assert "," in shown[3]
    assert model.edits == before.edits
    said = np.array([model.classes[row].id for row in after.run.predictions.row])
    assert (said[grown.y == LATE] == 4).mean() > 0.95
    assert (said[grown.y != LATE] == 4).mean() < 0.02
    assert after.refresh is not None
    assert model.stages[-1].refresh == after.refresh
    assert after.refresh.sentence() in after.notes
    assert after.refresh.sentence() in after.run.facts.values()
    assert after.refresh.told == 53  # the labels of spring go on
    came = grown.autumn.num_nodes - SPRING
    assert after.run.facts["Nodes that came"] == f"{came:,}"
    assert after.run.facts["Method"].startswith("prism")


def test_labels_of_the_same_nodes_go_on_and_those_given_now_go_before(
    grown: Seasons, spring: RunFolder, after: ContinuedRun
) -> None:
    kept = [text for text in after.run.predictions.label if text]
    assert len(kept) == 53
    assert set(kept) == set(NAMES)
    first = next(i for i in range(SPRING) if after.run.predictions.label[i] == "oak")
    told = autumn(grown, {first: "elm", 250: "heather", 251: "oak"})
    again = spring.continue_with(told, method=ONE).run.predictions
    assert [again.label[i] for i in (first, 250, 251)] == ["elm", "heather", "oak"]
    assert [again.names[again.row[i]] for i in (first, 250, 251)] == ["elm", "heather", "oak"]
    assert again.agrees[first] == "no"


@pytest.mark.parametrize("refresh", [True, False])
def test_nodes_of_the_earlier_run_keep_their_class(
    grown: Seasons, spring: RunFolder, refresh: bool
) -> None:
    run = spring.continue_with(autumn(grown), num_new=1, method=ONE, refresh=refresh).run
    with (spring.path / "predictions.csv").open(newline="") as file:
        was = {line["node"]: int(line["class"]) for line in csv.DictReader(file)}
    columns = run.predictions.columns()
    now = dict(zip(columns["node"], columns["class"], strict=True))
    assert np.mean([now[node] == c for node, c in was.items()]) >= 0.98


def test_a_node_moves_when_its_class_has_become_unlikely(after: ContinuedRun) -> None:
    run = after.run
    p = run.probabilities.copy()
    rows = {c.id: i for i, c in enumerate(run.model.classes)}
    assert run.labels is not None
    assert run.earlier_ids is not None
    node = int(np.flatnonzero((run.earlier_ids == 3) & ~run.labels.labelled)[0])
    p[node] = 0
    p[node, rows[3]], p[node, rows[0]] = 2 * MIN_STAY, 1 - 2 * MIN_STAY
    assert run.labels.rows(run.model, p)[node] == rows[3]
    p[node, rows[3]], p[node, rows[0]] = MIN_STAY / 2, 1 - MIN_STAY / 2
    assert run.labels.rows(run.model, p)[node] == rows[0]
    free = replace(run.labels, keep=False)
    assert np.array_equal(free.rows(run.model, p), p.argmax(axis=1))
    came = run.earlier_ids == -1
    assert np.array_equal(run.labels.rows(run.model, p)[came], p.argmax(axis=1)[came])


def test_a_label_of_a_class_nobody_had_is_a_known_class_from_now_on(
    grown: Seasons, spring: RunFolder
) -> None:
    late = np.flatnonzero(grown.y == LATE)
    told = autumn(grown, dict.fromkeys(late[:8].tolist(), "bikes") | {200 - 1: "once"})
    found = spring.continue_with(told, method=ONE)
    model = found.run.model
    bikes = next(c for c in model.classes if c.name == "bikes")
    assert (bikes.id, bikes.stage) == (4, 0)
    assert model.classes_per_stage[0] == 3
    said = np.array([model.classes[row].id for row in found.run.predictions.row])
    assert (said[late] == 4).mean() > 0.95
    assert "label 'once' is on 1 node only and is ignored" in found.notes
    assert found.refresh is not None
    assert "labels name classes that it did not know ('bikes')" in found.refresh.why
    with pytest.raises(SettingError, match=r"labels name classes .* \('bikes'\): .* forbids"):
        spring.continue_with(told, method=ONE, refresh=False)


def test_labels_of_nodes_that_are_not_given_cannot_move_a_bit(
    grown: Seasons, spring: RunFolder
) -> None:
    """Nodes that were named as new keep their labels for grading; whatever these say."""
    results = []
    for seed in (0, 1):
        y = np.random.default_rng(seed).integers(3, size=grown.autumn.num_nodes)
        y[:SPRING] = -1
        labelled = nova.LabelledGraph(grown.autumn, y, ("oak", "elm", "yew"), name="autumn")
        new = grown.autumn.node_ids[SPRING:].tolist()
        loaded = nova.load_graph(labelled, new_nodes=new)
        run = spring.continue_with(loaded, num_new=1, method=ONE, mixed=True).run
        results.append((weights_digest(run.model), run.predictions.columns()))
    assert results[0] == results[1]


def test_only_nodes_that_came_are_asked_about_and_all_where_none_came(
    grown: Seasons, spring: RunFolder, after: ContinuedRun
) -> None:
    assert after.run.facts["Searched"] == "100 unlabelled nodes"
    same = nova.load_graph(nova.LabelledGraph(grown.spring, np.full(SPRING, -1), ()))
    again = spring.continue_with(same, method=ONE)
    assert again.run.facts["Searched"] == "107 unlabelled nodes"
    assert again.refresh is None
    everything = nova.load_graph(
        nova.LabelledGraph(grown.autumn, np.zeros(grown.autumn.num_nodes, dtype=int), ("oak",))
    )
    with pytest.raises(SplitError, match="every node has a label"):
        spring.continue_with(everything, method=ONE)


def test_labels_by_id_must_be_of_nodes_that_are_there(grown: Seasons, spring: RunFolder) -> None:
    with pytest.raises(SettingError, match=r"1 label is of nodes that are not in autumn, .*'x'"):
        spring.continue_with(autumn(grown), method=ONE, labels={"x": "oak"})
    run = spring.continue_with(autumn(grown), num_new=1, method=ONE, labels={"n255": "heather"}).run
    assert run.predictions.label[255] == "heather"


def test_a_run_that_goes_on_is_written_read_and_compared(
    spring: RunFolder, after: ContinuedRun, tmp_path: Path
) -> None:
    folder = RunFolder.write(tmp_path / "autumn", after.run)
    first = (folder.path / "predictions.csv").read_bytes()
    folder.report()
    assert (folder.path / "predictions.csv").read_bytes() == first
    page = (folder.path / "report.html").read_text(encoding="utf-8")
    assert "The representation was refitted" in page
    found = spring.diff(folder)
    assert found.continued
    assert (found.shared, found.nodes_came, found.nodes_went) == (SPRING, 100, 0)
    assert [change.what for change in found.classes].count("came") == 1
    assert not any(change.was for change in found.classes)
    assert not folder.diff(spring.path).continued


def test_corrected_labels_and_names_count_in_runs_that_continue(
    grown: Seasons, spring: RunFolder, tmp_path: Path
) -> None:
    """A label that was corrected wrongly is not suggested to be wrong, two runs later either."""
    shutil.copytree(spring.path, tmp_path / "spring")
    folder = RunFolder(tmp_path / "spring")
    node = str(grown.spring.node_ids[np.flatnonzero(folder.run.label_ids == 0)[0]])
    folder.apply([{"do": "relabel", "nodes": [node], "class": 1}])
    for name in ("autumn", "winter"):
        later = folder.continue_with(autumn(grown), num_new=1, method=ONE)
        folder = later.write(tmp_path / name, report=False)
        assert folder.run.moves == (Relabel((node,), 1),)
        assert node not in [str(one.node) for one in folder.suggestions.labels]
        unknown = replace(folder.run, earlier_moves=())
        assert node in [str(one.node) for one in unknown.suggestions.labels]
        assert list(folder.run.last_edits) == [2]
    assert "moves" in folder.document
    (tmp_path / "winter" / "run.json").write_text(json.dumps(folder.document | {"moves": [{}]}))
    with pytest.raises(SettingError, match=r'run\.json: move: "do" must be one of'):
        _ = RunFolder(tmp_path / "winter").run


def test_a_run_of_the_version_before_can_be_gone_on_from(tmp_path: Path) -> None:
    before = Path(__file__).parent.parent / "fixtures" / "previous" / "run"
    shutil.copytree(before, tmp_path / "run")
    folder = RunFolder(tmp_path / "run")
    assert folder.model.fit_signature is None
    graph = folder.graph
    wide = graph.aligned([*(graph.feature_names or ()), "further"])[0]
    loaded = nova.load_graph(nova.LabelledGraph(wide, np.full(wide.num_nodes, -1), ()))
    with pytest.raises(StorageError, match=r"has no predictions\.csv: nodenova report writes it"):
        folder.continue_with(loaded, num_new=1, method=ONE)
    folder.report()
    run = folder.continue_with(loaded, num_new=1, method=ONE).run
    assert [c.id for c in run.model.classes[:-1]] == [c.id for c in folder.model.classes]
    assert run.graph.num_features == graph.num_features + 1


def test_a_method_for_new_nodes_only_is_refused_before_anything_is_fitted(
    grown: Seasons, spring: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refit(*_: Any, **__: Any) -> None:
        raise AssertionError("fitted")

    monkeypatch.setattr("nodenova.runs.continue_run.refit_if_changed", refit)
    with pytest.raises(SettingError, match="assumes that all nodes are new"):
        spring.continue_with(autumn(grown), method=nova.Sword())
    with pytest.raises(AssertionError, match="fitted"):  # Prism by default, which may be mixed
        spring.continue_with(autumn(grown))


def test_nodes_to_search_are_those_that_came_without_a_label_and_may_be_known() -> None:
    plain: Any = SimpleNamespace(new_named=False, name="autumn")
    labels, earlier = np.array([-1, 0, -1, -1]), np.array([2, -1, -1, -1])
    for mixed, expected in ((None, True), (True, True), (False, False)):
        ids, is_mixed = _nodes_to_search(plain, labels, earlier, mixed)
        assert (ids.tolist(), is_mixed) == ([2, 3], expected)
    nothing_came = np.zeros(4, dtype=int)
    assert _nodes_to_search(plain, labels, nothing_came, None)[0].tolist() == [0, 2, 3]
    with pytest.raises(SplitError, match="autumn: every node has a label and none was named"):
        _nodes_to_search(plain, np.zeros(4, dtype=int), earlier, None)
    named: Any = SimpleNamespace(new_named=True, new_ids=np.array([1]))
    for mixed, expected in ((None, False), (True, True), (False, False)):
        ids, is_mixed = _nodes_to_search(named, labels, earlier, mixed)
        assert (ids.tolist(), is_mixed) == ([1], expected)


def test_a_revision_is_a_fresh_start_in_which_classes_found_again_keep_their_ids(
    grown: Seasons, tmp_path: Path
) -> None:
    y = np.where((np.arange(SPRING) % 3 > 0) & (grown.y[:SPRING] < 2), grown.y[:SPRING], -1)
    first = nova.load_graph(nova.LabelledGraph(grown.spring, y, NAMES, name="spring"))
    nova.NodeDiscoverer(num_new=1, method=ONE).fit(first).report(tmp_path / "one")
    spring = RunFolder(tmp_path / "one")  # two classes were found as one
    y = np.where((np.arange(AUTUMN) % 3 > 0) & (grown.y < 2), grown.y, -1)
    now = nova.load_graph(nova.LabelledGraph(grown.autumn, y, NAMES, name="autumn"))
    fresh = nova.NodeDiscoverer(num_new=3, method=ONE).fit(now)
    later = spring.continue_with(now, num_new=3, method=ONE, revise=True)
    model = later.run.model
    assert weights_digest(model) == weights_digest(fresh.model_)
    assert [c.id for c in model.classes] == [0, 1, 3, 4, 5]
    assert "revised 1 discovered class that you have not decided on: 0 stayed, 1 went, 3 came" in (
        later.notes
    )
    assert model.stages[-1].revised == (2,)
    assert len(model.stages) == len(spring.model.stages) + 1
    folder = later.write(tmp_path / "two")
    again = folder.continue_with(now, num_new=3, method=ONE, revise=True)
    assert [c.id for c in again.run.model.classes] == [0, 1, 3, 4, 5]
    assert again.run.names == later.run.names
    assert again.run.predictions.columns() == folder.run.predictions.columns()
    fewer = folder.continue_with(now, num_new=1, method=ONE, revise=True).run.model
    assert fewer.next_id >= 6  # an id that is gone is not used again


def test_a_revision_leaves_alone_what_a_person_has_decided(
    grown: Seasons, spring: RunFolder
) -> None:
    assert [c.id for c in undecided_classes(spring.model, np.array([-1, 0]))] == [3]
    assert undecided_classes(spring.model, np.array([3])) == []
    later = spring.continue_with(autumn(grown), num_new=2, method=ONE, revise=True)
    model = later.run.model
    assert model.class_of(2).name == "heather"
    assert model.edits == spring.model.edits
    now = np.array([model.classes[row].id for row in later.run.predictions.row])
    was = spring.class_of_nodes()
    heather = np.array([was.get(node) == 2 for node in grown.autumn.node_ids.tolist()])
    assert (now[heather] == 2).mean() > 0.98
    assert {c.id for c in model.classes} >= {0, 1, 2, 3}  # 3 was found again
    assert (now[grown.y == LATE] == 4).mean() > 0.9
    stays = spring.continue_with(autumn(grown), num_new=2, method=ONE, revise=True, refresh=False)
    assert stays.refresh is None
    assert stays.run.model.class_of(2).name == "heather"


def test_another_number_over_all_nodes_is_noted_with_what_to_do(
    grown: Seasons, spring: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def notes(number: int, most: int) -> list[str]:
        p = tuple(float(number <= k <= most) / (most - number + 1) for k in range(10))
        count = ClassCountEstimate(number, p, 1.0, 0.1, 0.5, 100)
        monkeypatch.setattr("nodenova.runs.revise.count_new", lambda *_, **__: count)
        later = spring.continue_with(autumn(grown), num_new=1, method=ONE)
        return [note for note in later.notes if "--revise" in note]

    assert notes(0, 0) == []
    assert notes(3, 3) == []  # 2 are there: class 3, and what is found now
    (note,) = notes(4, 4)
    assert re.fullmatch(
        r"counted together, the \d+ unlabelled nodes have probably 4 new classes, and this run has "
        r"2 that you have not decided on: --revise searches for them again, "
        r"--revise --num-new N for N classes",
        note,
    )
    assert len(notes(1, 1)) == 1
    assert notes(1, 2) == []  # 2 are likely, too


@pytest.mark.parametrize("share", ["some", "none"])
def test_nodes_of_the_earlier_run_alone_carry_its_classes(
    grown: Seasons, spring: RunFolder, monkeypatch: pytest.MonkeyPatch, share: str
) -> None:
    """Where nodes have other ids, it is not known which came, and any sure node may carry one."""
    seen: list[np.ndarray | None] = []

    def refit(*_: Any, met: np.ndarray | None, **__: Any) -> None:
        seen.append(met)
        raise AssertionError

    monkeypatch.setattr("nodenova.runs.continue_run.refit_if_changed", refit)
    graph = grown.autumn
    if share == "none":
        others = np.array([f"other{i}" for i in range(graph.num_nodes)])
        graph = replace(graph, node_ids=others)
    loaded = nova.load_graph(nova.LabelledGraph(graph, np.full(graph.num_nodes, -1), ()))
    with pytest.raises(AssertionError):
        spring.continue_with(loaded, num_new=1, method=ONE)
    (met,) = seen
    if share == "none":
        assert met is None
    else:
        known = {str(node) for node in grown.spring.node_ids.tolist()}
        there = [str(node) in known for node in loaded.canonical().graph.node_ids.tolist()]
        assert met is not None
        assert met.tolist() == there
        assert 0 < sum(there) < len(there)


def test_the_method_that_is_given_is_used_and_prism_by_default(
    after: ContinuedRun, spring: RunFolder
) -> None:
    assert after.run.model.stages[-1].settings["n_resamples"] == ONE.n_resamples
    assert nova.Prism().n_resamples != ONE.n_resamples
    again = spring.continue_with(spring.stored_graph, num_new=1)
    assert again.run.model.stages[-1].settings["n_resamples"] == nova.Prism().n_resamples
