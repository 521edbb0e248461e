"""Estimates of the number of new classes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from sklearn.metrics import silhouette_samples

import nodenova as nova
from nodenova.data.tasks import tasks_from_labels
from nodenova.errors import SettingError
from nodenova.nn.encode_cache import encode
from nodenova.nn.seeding import repeatable
from nodenova.open_world.count import (
    ClassCountEstimate,
    Evidence,
    LinearScore,
    best_number,
    collect_evidence,
    estimate_count,
)
from nodenova.open_world.count_features import group_likeness, silhouettes


@pytest.fixture(scope="module")
def world():
    """A model of three of six planted classes, every other node, and where nothing is new."""
    data = nova.synthetic(nodes=900, classes=6, words=300, seed=1)
    old, _, _ = nova.split(data, old=[0, 1, 2])
    rest = np.setdiff1d(np.arange(900), old.train_ids)
    known = rest[data.y[rest] < 3]
    mixed, nothing = (nova.NewTask(data.graph, ids, None, mixed=True) for ids in (rest, known))
    strict = nova.NewTask(data.graph, rest[data.y[rest] >= 3], None)
    return nova.fit(old), mixed, nothing, strict, data


def test_the_planted_number_is_among_the_likely_ones(world) -> None:
    model, mixed, _, strict, _ = world
    for task in (mixed, strict):
        count = nova.count_new(model, task)
        assert 3 in count.likely
        assert sum(count.probabilities) == pytest.approx(1)
        assert count.number >= 1
    assert nova.count_new(model, mixed).p_value is not None
    assert nova.count_new(model, strict).p_value is None
    assert nova.count_new(model, strict).probabilities[0] == 0


def test_the_share_of_new_nodes_is_about_right(world) -> None:
    assert 0.3 < nova.count_new(world[0], world[1]).share < 0.65


def test_where_nothing_is_new_nothing_is_added_and_the_stage_says_so(world) -> None:
    model, _, nothing, _, data = world
    found = nova.discover(model, nothing)
    assert found.classes == model.classes
    assert len(found.stages) == 2
    count = found.stages[-1].count
    assert count is not None
    assert count.number == 0
    assert count.sentence().startswith("No new class found (p = ")
    assert np.array_equal(found.predict_proba(data.graph), model.predict_proba(data.graph))


def test_a_later_stage_goes_on_from_one_that_found_nothing(world) -> None:
    model, mixed, nothing, _, _ = world
    found = nova.discover(
        nova.discover(model, nothing),
        dataclasses.replace(mixed, num_new=3),
        nova.Prism(n_resamples=0),
    )
    assert found.classes_per_stage == (3, 0, 3)


def test_discovering_an_unknown_number_takes_the_one_that_was_counted(world) -> None:
    model, mixed, _, _, _ = world
    count = nova.count_new(model, mixed, seed=4)
    found = nova.discover(model, mixed, nova.Prism(n_resamples=0), seed=4)
    assert found.stages[-1].count == count
    assert len(found.classes) == 3 + count.number


def test_the_number_the_user_gives_wins(world) -> None:
    model, mixed, _, _, _ = world
    found = nova.discover(model, dataclasses.replace(mixed, num_new=5), nova.Prism(n_resamples=0))
    assert len(found.classes) == 8
    assert found.stages[-1].count is None


def test_counting_twice_gives_the_same_and_leaves_the_callers_generator_alone(world) -> None:
    model, mixed, _, _, _ = world
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    first, second = (nova.count_new(model, mixed, seed=2) for _ in range(2))
    assert first == second
    assert torch.equal(before, torch.random.get_rng_state())


def test_other_encoders_cannot_count_and_say_so(world) -> None:
    _, mixed, _, _, data = world
    old, _, _ = nova.split(data, old=[0, 1, 2])
    with pytest.raises(SettingError, match="on the prism encoder only, not on gcn: give num_new"):
        nova.count_new(nova.fit(old, "gcn", epochs=1), mixed)


def test_few_nodes_can_be_counted(world) -> None:
    model, mixed, _, _, data = world
    for mixture in (True, False):
        for n in (1, 2, 9):
            task = nova.NewTask(data.graph, mixed.ids[:n], None, mixed=mixture)
            assert 0 <= nova.count_new(model, task).number <= n


def test_features_exist_for_every_candidate_and_are_numbers(world) -> None:
    model, mixed, _, strict, data = world
    z = encode(model.frozen_encoder(), data.graph)
    for task in (mixed, strict):
        with repeatable(0, "test"):
            found = collect_evidence(
                model.frozen_encoder().spec.multirank,
                model.memory.classes,
                model.cells,
                z[torch.from_numpy(task.ids)],
                task.mixed,
                model.lda,
            )
        for values in found.number.values():
            assert values.shape == (40,)
            assert np.isfinite(values).all()
        assert bool(found.novelty) == task.mixed
        assert np.isfinite([float(value) for value in found.novelty.values()]).all()


def test_probabilities_are_the_softmax_times_the_chance_of_anything_new() -> None:
    k = np.arange(1, 16) / 10
    evidence = Evidence({"k": k}, {"share": np.array(0.3)}, 0.2, 0.3, 100)
    number, new = LinearScore({"k": (0.8, 0.4, -1.0)}), LinearScore({"share": (0.1, 0.1, 1.0)}, 0.5)
    count = estimate_count(evidence, number, new, threshold=0.0)
    each = np.exp(-(k - 0.8) / 0.4)
    p_new = 1 / (1 + np.exp(-2.5))
    assert count.probabilities[1:] == pytest.approx((p_new * each / each.sum()).tolist())
    assert count.p_new == pytest.approx(p_new)
    assert count.number == 1
    assert estimate_count(evidence, number, new, threshold=2.6).number == 0


def test_the_likely_numbers_are_the_fewest_with_four_fifths() -> None:
    count = ClassCountEstimate(3, (0.05, 0.3, 0.05, 0.4, 0.15, 0.05), 0.95, 0.01, 0.5, 10)
    assert count.likely == (1, 3, 4)
    assert (count.low, count.high) == (1, 4)


def test_there_are_never_more_classes_than_nodes() -> None:
    count = ClassCountEstimate(3, (0.0, 0.1, 0.2, 0.7), 1.0, 0.01, 0.5, 2)
    assert count.capped(2).number == 2
    assert count.capped(3) == count


@pytest.mark.parametrize(
    ("count", "sentence"),
    [
        (
            ClassCountEstimate(1, (0.0, 0.9, 0.1), 1.0, 1e-4, 0.2, 1500),
            "About 20% of the 1,500 unlabelled nodes seem to belong to new classes; "
            "probably 1 new class.",
        ),
        (
            ClassCountEstimate(2, (0.0, 0.3, 0.4, 0.3), 1.0, None, 1.0, 50),
            "All 50 unlabelled nodes were declared new; probably 2 new classes (1 to 3).",
        ),
        (
            ClassCountEstimate(0, (0.8, 0.2), 0.2, 0.36, 0.1, 50),
            "No new class found (p = 0.36). A class smaller than 10% of the nodes would usually be "
            "missed. No class was added",
        ),
        (
            ClassCountEstimate(1, (0.0, *[0.2] * 5), 1.0, 0.01, 0.5, 50),
            "their number is uncertain (1 to 4), using 1.",
        ),
    ],
)
def test_sentence_for_a_person(count: ClassCountEstimate, sentence: str) -> None:
    assert sentence in count.sentence()


def test_silhouettes_are_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    points, groups = rng.random((30, 2)), np.arange(30) % 4
    groups[0] = 9
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    expected = silhouette_samples(points, groups)
    found = silhouettes(distance, groups)
    assert found is not None
    assert np.allclose(found, expected, atol=1e-6)
    assert silhouettes(distance, np.zeros(30, dtype=int)) is None


def test_likeness_of_groups_leaves_out_a_node_with_itself() -> None:
    rng = np.random.default_rng(0)
    rows, groups = rng.random((12, 3)), np.array([0, 1, 1, -1, 0, 1, 0, 0, 1, 1, 2, 2])
    alike, mean, size = group_likeness(rows, groups, np.array([0, 1]))
    product = rows @ rows.T
    a, b = np.flatnonzero(groups == 0), np.flatnonzero(groups == 1)
    assert alike[0, 1] == pytest.approx(product[np.ix_(a, b)].mean())
    within = product[np.ix_(a, a)]
    assert alike[0, 0] == pytest.approx(within[~np.eye(len(a), dtype=bool)].mean())
    assert np.allclose(mean[1], rows[b].mean(axis=0))
    assert size.tolist() == [4, 5]


def test_another_number_by_size_is_reported_with_the_option_to_try() -> None:
    p = (0.02, 0.2, 0.5, 0.2, 0.02, 0.02, 0.02, 0.01, 0.01)
    count = ClassCountEstimate(2, p, 0.98, 0.001, 0.41, 2000, by_size=6.4)
    assert count.other_number == 6
    assert count.sentence().endswith(
        "If new classes are as large as yours, there are rather 6: try num_new=6 (--num-new 6) and "
        "compare."
    )
    for by_size in (None, 2.9, 1.2, 3.4):  # no other evidence, or nearly the same
        alike = dataclasses.replace(count, by_size=by_size)
        assert alike.other_number is None
        assert alike.sentence().endswith("Set it yourself with num_new (--num-new).")
    assert dataclasses.replace(count, number=8, by_size=3.0).other_number == 3
    assert dataclasses.replace(count, by_size=300.0).other_number == 8  # no number beyond the table
    assert dataclasses.replace(count, number=0).other_number is None


@pytest.mark.parametrize(
    ("p", "number"),
    [
        ({1: 0.2, 2: 0.4, 3: 0.4}, 2),
        ({1: 0.5, 3: 0.5}, 1),
        ({4: 0.3, 12: 0.2, 13: 0.2, 15: 0.2, 16: 0.1}, 13),  # many numbers near each other
    ],
)
def test_the_best_number_has_most_probability_at_and_around_it(
    p: dict[int, float], number: int
) -> None:
    assert best_number(np.array([p.get(k, 0.0) for k in range(1, 41)])) == number


@pytest.mark.slow
@pytest.mark.parametrize(
    "hidden", [("plant", "food", "location"), ("animal", "act", "person", "substance", "body")]
)
def test_the_number_moves_by_at_most_a_third_without_a_fifth_of_the_nodes(
    hidden: tuple[str, ...],
) -> None:
    data = nova.load_dataset("wordnet")
    kinds = np.array(data.class_names)[data.y]
    assert {*hidden} < {*kinds}
    is_labelled = ~np.isin(kinds, hidden) & (np.arange(len(kinds)) % 8 == 0)
    y = np.where(is_labelled, data.y, -1)

    def number(kept: np.ndarray) -> int:
        place = np.full(len(kinds), -1)
        place[kept] = np.arange(len(kept))
        edges = place[data.graph.edge_index]
        part = nova.Graph(data.graph.x[kept], edges[:, (edges >= 0).all(axis=0)], kept)
        user = nova.load_graph(nova.LabelledGraph(part, y[kept], data.class_names))
        old, new, _ = tasks_from_labels(user)
        return nova.count_new(nova.fit(old), new).number

    whole = number(np.arange(len(kinds)))
    assert whole > 1
    for seed in range(2):
        drawn = np.random.default_rng(seed).permutation(len(kinds))[: 4 * len(kinds) // 5]
        assert abs(number(np.sort(drawn)) - whole) <= max(whole / 3, 1)
