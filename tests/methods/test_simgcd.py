"""SimGCD: its terms and views, what it sees, and where it should find something."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.bench.baselines import LabelledSimGCD
from nodenova.data.mixed_splits import OpenWorld, split_mixed
from nodenova.errors import SettingError
from nodenova.evaluation.metrics import confusion_matrix, count_right, match_block
from nodenova.methods.simgcd import number_pairs
from nodenova.nn.seeding import repeatable
from nodenova.testing import find_leak


@pytest.fixture(scope="module")
def world() -> OpenWorld:
    """Classes 0 and 1 known; 40% of the unlabelled nodes are of them."""
    planted = nova.synthetic(400, 4, words=120, degree=10, homophily=0.95, topic_share=0.9)
    return split_mixed(planted, [0, 1], share_old=0.4)


@pytest.fixture(scope="module")
def model(world: OpenWorld) -> nova.Model:
    return nova.fit(world.old, "gcn", epochs=50)


TERMS = {"views", "contrast", "entropy", "classes", "same_class", "distill"}


@pytest.mark.parametrize(
    ("settings", "gone"),
    [
        ({}, set()),
        ({"epsilon": 0.0}, {"entropy"}),
        ({"lam": 0.0}, {"classes", "same_class"}),
        ({"lam": 1.0}, {"views", "contrast", "entropy"}),
        ({"omega_fd": 0.0}, {"distill"}),
    ],
)
def test_a_weight_of_zero_leaves_its_terms_out(
    model: nova.Model, world: OpenWorld, settings: dict[str, float], gone: set[str]
) -> None:
    method = nova.SimGCD(epochs=2, **settings)
    history = nova.discover(model, world.tasks[0], method).stages[-1].history
    assert set(history) == TERMS - gone


def test_the_temperature_of_the_teacher_falls_and_stays() -> None:
    method = nova.SimGCD()
    assert method.teacher_at(1) == pytest.approx(0.07)
    assert method.teacher_at(2) == pytest.approx(float(np.linspace(0.07, 0.04, 30)[1]))
    assert method.teacher_at(30) == method.teacher_at(200) == pytest.approx(0.04)
    assert nova.SimGCD(warmup_epochs=0).teacher_at(1) == pytest.approx(0.04)


@pytest.mark.parametrize("dense", [False, True])
def test_a_view_drops_whole_edges_and_whole_features(dense: bool) -> None:
    full = nova.synthetic(300, 4, words=80, degree=10).graph
    weight = np.random.default_rng(0).random(full.num_edges // 2)
    ends = full.edge_index[:, full.edge_index[0] < full.edge_index[1]]
    graph = nova.Graph.of(full.x, ends, dense=dense, edge_weight=weight)
    with repeatable(0, "view"):
        view = nova.SimGCD(drop_edges=0.3, mask_features=0.4).view(graph)
    kept = {(int(i), int(j)): w for i, j, w in zip(*view.edge_index, view.edge_weight, strict=True)}
    before = {
        (int(i), int(j)): w for i, j, w in zip(*graph.edge_index, graph.edge_weight, strict=True)
    }
    assert all((j, i) in kept and before[i, j] == w for (i, j), w in kept.items())
    assert len(kept) / len(before) == pytest.approx(0.7, abs=0.05)
    x, y = (np.asarray(each.todense() if not dense else each) for each in (graph.x, view.x))
    same = np.array([(x[:, c] == y[:, c]).all() for c in range(x.shape[1])])
    assert (y[:, ~same] == 0).all()
    assert (~same).mean() == pytest.approx(0.4, abs=0.15)


def test_a_view_without_drops_is_the_graph() -> None:
    graph = nova.synthetic(60, 3, words=30).graph
    view = nova.SimGCD(drop_edges=0.0, mask_features=0.0).view(graph)
    assert (view.edge_index == graph.edge_index).all()
    assert np.array_equal(view.x, graph.x)


def test_a_view_of_a_graph_without_edges_has_none() -> None:
    graph = nova.Graph.of(np.eye(4), np.zeros((2, 0), dtype=int))
    assert nova.SimGCD().view(graph).num_edges == 0


def test_both_directions_of_an_edge_have_one_number() -> None:
    graph = nova.Graph.of(np.eye(4), [[0, 1, 3], [1, 2, 0]])
    pair = number_pairs(graph)
    of = {(int(i), int(j)): int(p) for i, j, p in zip(*graph.edge_index, pair, strict=True)}
    assert all(of[i, j] == of[j, i] for i, j in of)
    assert sorted(set(of.values())) == [0, 1, 2]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"lam": 1.5}, "lam is a share, at most 1, it is 1.5"),
        ({"drop_edges": 1.0}, "drop_edges is a share, below 1, it is 1.0"),
        ({"mask_features": 2.0}, "mask_features is a share, below 1, it is 2.0"),
        ({"student": 0.0}, "student must be"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, float], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        nova.SimGCD(**settings)


def test_the_joint_head_is_a_cosine(model: nova.Model, world: OpenWorld) -> None:
    found = nova.discover(model, world.tasks[0], nova.SimGCD(epochs=3))
    linear = found.head().linear
    assert torch.allclose(linear.weight.norm(dim=1), torch.ones(4))
    assert (linear.bias == 0).all()
    assert torch.equal(found.novel_head().weight, linear.weight[2:])


@pytest.mark.parametrize("encoder", ["gcn", "gat", "sage"])
def test_scrambled_labels_of_unlabelled_nodes_change_nothing_in_a_mixture(encoder: str) -> None:
    """Which of them are known changes too."""
    data = nova.synthetic(nodes=160, classes=5, words=80, seed=3)
    method = nova.SimGCD(epochs=5)
    assert find_leak(method, data, old=[0, 1, 2], encoder=encoder, mixed=True) is None


@pytest.mark.slow
def test_unlabelled_nodes_of_known_classes_stay_out_of_the_new_ones(
    model: nova.Model, world: OpenWorld
) -> None:
    found = nova.discover(model, world.tasks[0], nova.SimGCD())
    scores = nova.grade(found, world.exams[0]).scores("block")
    assert scores["old_new_accuracy"] > 85
    assert scores["all"] > 70
    assert len(found.memory) == 4


def test_a_mixture_in_which_no_node_looks_new_has_statistics_all_the_same(
    model: nova.Model, world: OpenWorld
) -> None:
    """One node that is of a known class: the new class gets what there is."""
    known = world.old.train_ids[:1]
    task = nova.NewTask(world.tasks[0].graph, known, 1, mixed=True)
    found = nova.discover(model, task, nova.SimGCD(epochs=60, epsilon=0.0))
    assert found.memory.replay.mean.isfinite().all()
    assert np.isfinite(found.predict_proba(task.graph)).all()


@pytest.mark.slow
def test_with_labelled_nodes_it_is_a_baseline_of_the_bench(
    model: nova.Model, world: OpenWorld
) -> None:
    exam, method = world.exams[0], LabelledSimGCD()
    said = []
    for _ in range(2):
        with repeatable(0, "rival"):
            said.append(method.assign(model, world.old, world.tasks[0]))
    assert (said[0] == said[1]).all()
    confusion = confusion_matrix(exam.y, said[0][exam.ids], 4, 4)
    right, total = count_right(confusion, match_block(confusion, (2, 2), (2, 2)))
    assert right / total > 0.7
    # It learns the labels: exchanged labels exchange the answers.
    y = 1 - world.old.train_y
    other = nova.OldTask(
        world.old.graph,
        world.old.train_ids,
        y,
        world.old.val_ids,
        world.old.val_y,
        world.old.class_names,
    )
    with repeatable(0, "rival"):
        exchanged = method.assign(model, other, world.tasks[0])
    assert (exchanged[world.old.train_ids] == y).mean() > 0.9
