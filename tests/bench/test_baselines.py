"""Rivals on a graph whose classes are plain to see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import nodenova as nova
from nodenova.bench.baselines import GCDKMeans, HDBSCANCount, ScatterRule, Silhouette
from nodenova.data.mixed_splits import OpenWorld, split_mixed
from nodenova.errors import SettingError
from nodenova.evaluation.metrics import confusion_matrix, count_right, match_block
from nodenova.nn.seeding import repeatable


@pytest.fixture(scope="module")
def planted() -> nova.LabelledGraph:
    return nova.synthetic(nodes=700, classes=5, homophily=0.95, topic_share=0.8, words=400)


@pytest.fixture(scope="module")
def world(planted: nova.LabelledGraph) -> OpenWorld:
    return split_mixed(planted, [0, 1], share_old=0.4)


@pytest.fixture(scope="module")
def model(world: OpenWorld) -> nova.Model:
    return nova.fit(world.old)


def test_gcd_finds_planted_classes_and_keeps_the_old_ones(
    world: OpenWorld, model: nova.Model
) -> None:
    exam = world.exams[0]
    with repeatable(0, "rival"):
        said = GCDKMeans().assign(model, world.old, world.tasks[0])
    confusion = confusion_matrix(exam.y, said[exam.ids], 5, 5)
    right, total = count_right(confusion, match_block(confusion, (2, 3), (2, 3)))
    assert right / total > 0.9
    assert np.bincount(said[world.old.train_ids[world.old.train_y == 1]]).argmax() == 1


def test_gcd_keeps_a_labelled_node_in_its_class_while_centers_move() -> None:
    """The one labelled node of class 0 lies near those of class 1, and its center stays there."""
    fixed, y = np.array([[5.0, 0.0], [6.0, 0.0], [7.0, 0.0]]), np.array([0, 1, 1])
    free = np.array([[6.4, 0.0], [6.6, 0.0]])
    centers = GCDKMeans._cluster(fixed, y, free, np.array([[5.0, 0.0], [6.5, 0.0]]), num_new=0)
    assert centers.tolist() == [[5.0, 0.0], [6.5, 0.0]]


def test_gcd_is_the_same_for_the_same_seed(world: OpenWorld, model: nova.Model) -> None:
    found = []
    for seed in (0, 0):
        with repeatable(seed, "rival"):
            found.append(GCDKMeans(restarts=2).assign(model, world.old, world.tasks[0]))
    assert (found[0] == found[1]).all()
    with pytest.raises(SettingError, match="restarts must be at least 1"):
        GCDKMeans(restarts=0)


@pytest.mark.parametrize("rule", [Silhouette(), HDBSCANCount()])
@pytest.mark.parametrize("mixed", [True, False])
def test_rules_count_planted_classes(
    rule: Silhouette | HDBSCANCount, mixed: bool, world: OpenWorld, model: nova.Model
) -> None:
    task = replace(world.handed(0, "mixed" if mixed else "told"), num_new=None)
    with repeatable(0, "count"):
        assert rule.count_classes(model, task).number == 3


@pytest.mark.parametrize("share", [0.4, 1.0])
def test_the_scatter_rule_stops_where_clusters_are_as_narrow_as_old_classes(share: float) -> None:
    planted = nova.synthetic(nodes=1500, classes=5, homophily=0.95, topic_share=0.8, words=400)
    world = split_mixed(
        planted, [0, 1], share_old=share, per_class=60
    )  # with few nodes old classes look too narrow
    model, task = nova.fit(world.old), replace(world.tasks[0], num_new=None)
    counted = []
    for times in (1.0, 1.15, 100.0):
        with repeatable(0, "count"):
            counted.append(ScatterRule(times=times).count_classes(model, task).number)
    assert counted[0] >= counted[1] >= counted[2] == 0
    assert counted[1] == (0 if share == 1.0 else 3)


def test_at_least_one_class_is_new_where_all_nodes_are(world: OpenWorld, model: nova.Model) -> None:
    task = replace(world.handed(0, "told"), num_new=None)
    with repeatable(0, "count"):
        assert ScatterRule(times=100.0).count_classes(model, task).number == 1
        assert HDBSCANCount(share=0.9).count_classes(model, task).number == 1
