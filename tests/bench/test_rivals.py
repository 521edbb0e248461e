"""What people use instead: rivals on planted classes, and the rules by which clusters get names."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

import nodenova as nova
from nodenova.bench import rivals
from nodenova.bench.rivals import (
    EVoC,
    FastRP,
    Leiden,
    LeidenCount,
    ScikitLearn,
    name_by_majority,
    name_one_to_one,
)
from nodenova.bench.run import run_one
from nodenova.bench.runs import open_world_runs
from nodenova.data.mixed_splits import OpenWorld, split_mixed
from nodenova.errors import SettingError
from nodenova.evaluation import metrics
from nodenova.nn.seeding import repeatable


@pytest.fixture(scope="module")
def graph() -> nova.LabelledGraph:
    return nova.synthetic(nodes=600, classes=5, homophily=0.95, topic_share=0.8, words=60)


@pytest.fixture(scope="module")
def world(graph: nova.LabelledGraph) -> OpenWorld:
    return split_mixed(graph, [0, 1, 2], share_old=0.5)


@pytest.fixture(scope="module")
def model(world: OpenWorld) -> nova.Model:
    return nova.fit(world.old)


def labelled_task(
    groups: list[int], ids: list[int], y: list[int]
) -> tuple[np.ndarray, nova.OldTask]:
    graph = nova.synthetic(nodes=len(groups), classes=2).graph
    old = nova.OldTask(
        graph, np.array(ids), np.array(y), np.array([], int), np.array([], int), ("a", "b")
    )
    return np.array(groups), old


def test_a_community_has_its_majority_label_and_others_are_new_by_size() -> None:
    groups, old = labelled_task([0, 0, 0, 1, 1, 2, 3, 3, 2, 3], [0, 1, 2, 3], [1, 0, 1, 0])
    named = name_by_majority(groups, old, np.arange(4, 10))
    # Community 3 has three unlabelled nodes, community 2 two: they are classes 2 and 3.
    assert named.tolist() == [1, 1, 1, 0, 0, 3, 2, 2, 3, 2]


def test_every_known_class_gets_one_cluster_and_no_cluster_two() -> None:
    # Cluster 1 has most labels of both classes; class 1, which has more of them, gets it.
    groups, old = labelled_task([1, 1, 1, 0, 1, 2, 2, 0, 1, 2], [0, 1, 3, 4, 8], [1, 1, 0, 0, 1])
    named = name_one_to_one(groups, old)
    assert named.tolist() == [1, 1, 1, 0, 1, 2, 2, 0, 1, 2]


@pytest.mark.parametrize(
    ("rival", "least"), [(Leiden(), 80), (FastRP(dimensions=64), 80), (ScikitLearn(), 60)]
)
def test_rivals_find_planted_classes(
    rival: Leiden | FastRP | ScikitLearn, least: float, world: OpenWorld, model: nova.Model
) -> None:
    (task,), (exam,) = world.tasks, world.exams
    with repeatable(0, "rival"):
        found = rival.assign(model, world.old, task)
    with repeatable(0, "rival"):
        again = rival.assign(model, world.old, task)
    assert np.array_equal(found, again)
    assert found.shape == (task.graph.num_nodes,)
    number = max(int(found.max()) + 1, 5)
    confusion = metrics.confusion_matrix(exam.y, found[exam.ids], 5, number)
    matches = metrics.match_block(confusion, (3, 2), (3, number - 3))
    assert metrics.accuracies(confusion, 3, matches)["all"] > least


def test_rivals_read_no_label_of_an_unlabelled_node(
    graph: nova.LabelledGraph, world: OpenWorld, model: nova.Model
) -> None:
    """They are given a task and labelled nodes; neither has a label of another node."""
    (task,) = world.tasks
    assert not np.isin(world.old.train_ids, task.ids).any()
    assert not hasattr(task, "y")
    assert len(world.old.train_y) == len(world.old.train_ids) < graph.graph.num_nodes / 2


@pytest.mark.slow
def test_evoc_finds_planted_classes(world: OpenWorld, model: nova.Model) -> None:
    (task,), (exam,) = world.tasks, world.exams
    with repeatable(0, "rival"):
        found = EVoC().assign(model, world.old, task)
    right = metrics.confusion_matrix(exam.y, found[exam.ids], 5, int(found.max()) + 1)
    assert metrics.nmi(right) > 50


def test_leiden_counts_communities_beyond_the_known_classes(
    world: OpenWorld, model: nova.Model
) -> None:
    with repeatable(0, "count"):
        assert LeidenCount().count_classes(model, world.tasks[0]).number == 2


def test_clusters_beyond_the_number_of_classes_have_no_partner(graph: nova.LabelledGraph) -> None:
    (spec, *_) = open_world_runs("mixed", [graph], ["leiden"], [0])
    row = run_one(graph, spec.plan, spec.seed).row
    assert row.predicted_sizes[1] >= row.num_new
    assert {"old_nodes", "old_labels"} <= set(row.sees)


def test_a_missing_package_is_one_sentence_before_anything_runs(
    graph: nova.LabelledGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(missing: str) -> Callable[[str], ModuleType]:
        def load(name: str) -> ModuleType:
            if name == missing:
                raise ModuleNotFoundError(name)
            return importlib.import_module(name)

        return load

    for package, entrants in (("igraph", ["leiden"]), ("evoc", ["evoc"])):
        monkeypatch.setattr(rivals, "import_module", without(package))
        with pytest.raises(
            SettingError, match=f"this entrant needs {package}: pip install {package}"
        ):
            open_world_runs("mixed", [graph], entrants, [0])
