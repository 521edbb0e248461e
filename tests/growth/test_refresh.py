"""Discovery on a graph that has grown: features by name, the representation fitted anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import nodenova as nova
from nodenova.errors import GraphError, SettingError
from nodenova.growth import (
    IN_DOUBT,
    change_of,
    find_anchor_nodes,
    refit_encoder,
    refit_if_changed,
)
from nodenova.model.loading import load_model
from nodenova.model.saving import read_document, weights_digest
from nodenova.open_world.count import ClassCountEstimate
from tests.growth.seasons import LATE, SPRING, Seasons, seasons

ONE = nova.Prism(n_resamples=2)


@pytest.fixture(scope="module")
def grown() -> Seasons:
    return seasons()


@pytest.fixture(scope="module")
def model(grown: Seasons) -> nova.Model:
    return grown.model


def shuffled(graph: nova.Graph, seed: int = 0) -> nova.Graph:
    order = np.random.default_rng(seed).permutation(graph.num_features)
    names = [graph.feature_names[i] for i in order]  # type: ignore[index]
    return graph.aligned(names)[0]


def test_shuffled_and_further_columns_give_bit_identical_predictions(
    grown: Seasons, model: nova.Model
) -> None:
    first = model.predict_proba(grown.spring)
    assert np.array_equal(first, model.predict_proba(shuffled(grown.spring)))
    wide = grown.autumn.subgraph(np.arange(SPRING))  # with words that nobody had met
    assert wide.num_features > grown.spring.num_features
    assert np.array_equal(first, model.predict_proba(wide))
    task = nova.NewTask(grown.autumn, grown.came, 1, mixed=True)
    two = [
        nova.discover(model, replace(task, graph=graph), ONE, refresh=False)
        for graph in (grown.autumn, shuffled(grown.autumn))
    ]
    assert weights_digest(two[0]) == weights_digest(two[1])


def test_features_that_cannot_be_matched_are_refused_in_a_sentence(
    grown: Seasons, model: nova.Model
) -> None:
    nameless = replace(grown.autumn, feature_names=None)
    with pytest.raises(GraphError, match="graph has 90 features, the model was trained on 78"):
        nova.discover(model, nova.NewTask(nameless, grown.came, 1, mixed=True), ONE)
    other = replace(grown.autumn, feature_names=tuple(map(str, range(90))))
    with pytest.raises(GraphError, match=r"no feature that the model knows: .* with '0', '1', '2'"):
        model.predict(other)
    same = replace(grown.spring, feature_names=None)
    assert np.array_equal(model.predict(same), model.predict(grown.spring))


def found_late(grown: Seasons, model: nova.Model) -> float:
    """The share of the late class in the class of the last stage, less that of others in it."""
    inside = model.predict(grown.autumn) == model.classes[-1].id
    return float(inside[grown.y == LATE].mean() - inside[grown.y != LATE].mean())


def test_a_class_told_by_new_words_alone_is_found_after_a_refresh_and_not_without(
    grown: Seasons, model: nova.Model
) -> None:
    task = nova.NewTask(grown.autumn, grown.came, None, mixed=True)
    told = replace(task, num_new=1)
    anew = nova.discover(model, task, ONE, before=grown.spring)
    assert len(anew.classes) == len(model.classes) + 1
    assert found_late(grown, anew) > 0.95
    stays = nova.discover(model, told, ONE, refresh=False)
    assert found_late(grown, stays) < 0.7
    assert found_late(grown, nova.discover(model, told, ONE, before=grown.spring)) > 0.95
    assert stays.stages[-1].refresh is None
    done = anew.stages[-1].refresh
    assert done is not None
    assert done.why == "16% of what the nodes have is in features the model did not know"
    assert [c for c, _ in done.carried] == [0, 1, 2, 3]
    assert all(20 <= count <= 40 for _, count in done.carried)
    assert anew.fit_signature == nova.fit(_labelled(grown)).fit_signature


def _labelled(grown: Seasons) -> nova.OldTask:
    return nova.split(nova.LabelledGraph(grown.autumn, grown.y, tuple("abcde")), [0, 1])[0]


@pytest.mark.parametrize("with_ids", [True, False])
@pytest.mark.parametrize("refresh", [True, False])
def test_nodes_that_were_there_keep_their_classes(
    grown: Seasons, model: nova.Model, refresh: bool, with_ids: bool
) -> None:
    before = grown.spring if with_ids else None
    task = nova.NewTask(grown.autumn, grown.came, 1, mixed=True)
    after = nova.discover(model, task, ONE, refresh=refresh, before=before)
    was, now = model.predict(grown.spring), after.predict(grown.autumn)[:SPRING]
    assert (was == now).mean() >= 0.98


def test_ids_names_decisions_and_stages_survive_a_refresh(
    grown: Seasons, model: nova.Model
) -> None:
    reviewed = model.merge([2, 3], "bushes").rename(0, "trees").split(1, grown.spring)
    task = nova.NewTask(grown.autumn, grown.came, 1, mixed=True)
    after = nova.discover(reviewed, task, ONE, refresh=True, before=grown.spring)
    assert after.classes[:-1] == reviewed.classes
    assert after.edits == reviewed.edits
    assert after.stages[:-1] == reviewed.stages
    assert after.column_class_ids[:-1] == reviewed.column_class_ids
    assert after.classes[-1].id == reviewed.next_id
    bushes = after.predict(grown.autumn) == 2
    assert bushes[np.isin(grown.y, (2, 3))].mean() > 0.95
    assert bushes[np.isin(grown.y, (0, 1, LATE))].mean() < 0.05


def test_weights_of_views_and_temperature_stay_after_a_refresh(
    grown: Seasons, model: nova.Model
) -> None:
    """They were learned from labels; sure nodes are easier than most."""
    after, _ = refit_encoder(model, grown.autumn, "asked")
    was, now = model.memory.classes, after.memory.classes
    assert now.view_scale.tolist() == was.view_scale.tolist()
    assert float(now.temperature) == float(was.temperature)


def test_nodes_that_came_or_have_strange_words_carry_nothing(
    grown: Seasons, model: nova.Model
) -> None:
    met = np.arange(grown.autumn.num_nodes) < SPRING
    assert find_anchor_nodes(model, grown.autumn, met=met).sample.max() < SPRING
    unknown = find_anchor_nodes(model, grown.autumn)
    assert not np.isin(unknown.sample, np.flatnonzero(grown.y == LATE)).any()
    assert (unknown.ids >= SPRING).any()  # others that came are known by what they are like
    strict = find_anchor_nodes(model, grown.autumn, all_new=np.arange(SPRING, 200))
    assert strict.sample.max() < SPRING
    told = np.full(grown.autumn.num_nodes, -1)
    told[-3:], told[-6:-3] = 9, 2
    with_labels = find_anchor_nodes(model, grown.autumn, met=met, label_ids=told)
    assert with_labels.columns[-6:].tolist() == [2, 2, 2, 4, 4, 4]
    assert with_labels.num_columns == 5


def test_a_class_that_is_gone_is_named_and_its_words_are_news_when_they_come_back(
    grown: Seasons, model: nova.Model
) -> None:
    without = np.flatnonzero((grown.y != 3) & (grown.y != LATE))
    met = np.flatnonzero(grown.y == 3)[:5]
    gone = model.predict(grown.spring)[met]
    (class_id,) = set(gone.tolist())
    names = [name for name in grown.autumn.feature_names or () if not name.startswith("own3")]
    gone_too = grown.autumn.subgraph(without).aligned(names)[0]
    away = gone_too.aligned(grown.autumn.feature_names or ())[0]  # the words of class 3 are zero
    after, done = refit_encoder(model, away, "a class is gone")
    assert dict(done.carried)[class_id] <= 1
    assert [
        note
        for note in done.notes
        if f"class {class_id} (new-{class_id}): the grown graph has no node" in note
    ]
    assert (after.predict(away) == class_id).mean() < 0.02
    # Its words are gone from the representation, and so they are news when they come back.
    assert after.fit_signature is not None
    back = change_of(after.fit_signature, grown.autumn.subgraph(np.flatnonzero(grown.y != LATE)))
    assert back.unknown > 0.1


def test_a_new_class_is_found_beside_one_that_is_gone(grown: Seasons, model: nova.Model) -> None:
    ids = np.flatnonzero(grown.y != 3)
    graph, y = grown.autumn.subgraph(ids), grown.y[ids]
    task = nova.NewTask(graph, np.flatnonzero(ids >= SPRING), 1, mixed=True)
    after = nova.discover(model, task, ONE, before=grown.spring)
    said = after.predict(graph)
    assert (said[y == LATE] == 4).mean() > 0.95
    assert (said[y != LATE] == 4).mean() < 0.02
    old, was = ids[ids < SPRING], model.predict(grown.spring)
    assert (said[ids < SPRING] == was[old]).mean() >= 0.98


def test_a_graph_of_other_things_carries_nothing_over(grown: Seasons, model: nova.Model) -> None:
    with pytest.raises(SettingError, match="sure of no node of two classes in this graph"):
        refit_encoder(
            model, grown.autumn, "asked", met=np.zeros(grown.autumn.num_nodes, dtype=bool)
        )


def test_an_unknown_refresh_is_refused_before_anything_is_done(
    grown: Seasons, model: nova.Model
) -> None:
    with pytest.raises(SettingError, match="refresh is \"auto\", True or False, not 'always'"):
        refit_if_changed(model, grown.autumn, "always")


def test_trained_encoders_stay_as_they_are_and_refuse_to_be_refreshed(grown: Seasons) -> None:
    fitted = nova.fit(_labelled(grown), "gcn", epochs=2)
    small = grown.autumn.subgraph(np.arange(100))
    task = nova.NewTask(small, np.arange(60, 100), 1)
    with pytest.raises(SettingError, match="the representation of gcn is trained"):
        nova.discover(fitted, task, nova.FrozenKMeans(), refresh=True)
    assert nova.discover(fitted, task, nova.FrozenKMeans()).stages[-1].refresh is None


def test_refreshed_models_are_saved_whole_and_come_back_the_same(
    grown: Seasons, model: nova.Model, tmp_path: Path
) -> None:
    task = nova.NewTask(grown.autumn, grown.came, 1, mixed=True)
    after = nova.discover(model, task, ONE, refresh=True)
    after.save(tmp_path / "m")
    again = load_model(tmp_path / "m")
    assert again.stages[-1].refresh == after.stages[-1].refresh
    assert again.fit_signature == after.fit_signature
    assert np.array_equal(again.predict_proba(grown.autumn), after.predict_proba(grown.autumn))
    twice = nova.discover(model, task, ONE, refresh=True)
    assert weights_digest(twice) == weights_digest(after)
    model.save(tmp_path / "n")
    versions = [read_document(tmp_path / name)["version"] for name in ("m", "n")]
    assert versions == [5, 5]  # what is found in each stage tells in how many groupings it was


def test_a_model_that_does_not_know_its_graph_is_refreshed_when_asked_alone(
    grown: Seasons, model: nova.Model
) -> None:
    """As models were saved before they kept what they were fitted on."""
    old = replace(model, fit_signature=None)
    narrow = grown.autumn.aligned(grown.spring.feature_names or ())[0]
    task = nova.NewTask(narrow, grown.came, 1, mixed=True)
    assert nova.discover(old, task, ONE).stages[-1].refresh is None
    done = nova.discover(old, task, ONE, refresh=True).stages[-1].refresh
    assert done is not None
    assert done.why == "it was requested"


@pytest.mark.parametrize(("p_new", "refits"), [(0.1, False), (0.4, True)])
def test_no_new_class_among_what_came_is_believed_only_where_it_is_unlikely(
    grown: Seasons, model: nova.Model, p_new: float, refits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few nodes came, and all of their features are known."""
    none = ClassCountEstimate(0, (1 - p_new, p_new), p_new, 0.5, 0.1, 20)
    monkeypatch.setattr("nodenova.discovery.count_new", lambda *_, **__: none)
    nodes = np.arange(SPRING + 20)
    summer = grown.autumn.subgraph(nodes).aligned(grown.spring.feature_names)[0]
    task = nova.NewTask(summer, nodes[SPRING:], None, mixed=True)
    done = nova.discover(model, task, ONE, before=grown.spring).stages[-1].refresh
    assert (done is not None) == refits
    assert done is None or done.why == IN_DOUBT
    for refresh in (False, True):
        done = nova.discover(model, task, ONE, before=grown.spring, refresh=refresh).stages[-1]
        assert (done.refresh is not None) == refresh
    same = replace(task, graph=grown.spring, ids=np.arange(0, SPRING, 3))  # nothing came
    assert nova.discover(model, same, ONE, before=grown.spring).stages[-1].refresh is None


@pytest.mark.slow
def test_an_unknown_class_among_what_came_is_found_where_new_features_are_few() -> None:
    """A tenth of WordNet came, a third of it of an unknown class, with few new words."""
    whole, rng = nova.load_dataset("wordnet"), np.random.default_rng(0)
    late = whole.class_names.index("plant")
    others = rng.permutation(np.flatnonzero(whole.y != late))
    inside = rng.permutation(np.flatnonzero(whole.y == late))[:260]
    nodes = np.sort(np.concatenate([others, inside]))
    graph, y = whole.graph.subgraph(nodes), whole.y[nodes]
    is_met = np.isin(nodes, others[450:])
    early = graph.subgraph(np.flatnonzero(is_met))
    labels = np.where(rng.random(early.num_nodes) < 0.15, y[is_met], -1)
    loaded = nova.load_graph(nova.LabelledGraph(early, labels, whole.class_names))
    model = nova.fit(nova.tasks_from_labels(loaded)[0])
    assert not change_of(model.fit_signature, graph, early).is_much  # type: ignore[arg-type]
    task = nova.NewTask(graph, np.flatnonzero(~is_met), None, mixed=True)
    before = nova.discover(model, task, ONE, before=early, refresh=False)
    assert len(before.classes) == len(model.classes)
    found = nova.discover(model, task, ONE, before=early)
    is_new = np.isin(found.predict(graph)[task.ids], [c.id for c in found.classes if c.is_new])
    assert is_new[y[task.ids] == late].mean() > 0.5
    assert is_new[y[task.ids] != late].mean() < 0.05
