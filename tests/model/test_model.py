from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.errors import GraphError
from nodenova.graph import Graph
from nodenova.model.model import Model
from nodenova.nn.training import freeze


@pytest.fixture(scope="session")
def twice(labelled) -> list[Model]:
    """One old class, then a stage of one class and a stage of two."""
    old, news, _ = nova.split_stages(labelled, [0], [[1], [2, 3]])
    models = [nova.fit(old, "gcn", hidden=8, epochs=5)]
    for new in news:
        models.append(nova.discover(models[-1], new, nova.Sword(epochs=3)))
    return models


def test_shapes_and_consistency(discovered: Model, labelled) -> None:
    graph = labelled.graph
    z, p, ids = discovered.embed(graph), discovered.predict_proba(graph), discovered.predict(graph)
    assert z.shape == (120, 16)
    assert p.shape == (120, 4)
    assert ids.shape == (120,)
    assert np.allclose(p.sum(axis=1), 1, atol=1e-5)
    assert (p.argmax(axis=1) == ids).all()
    with torch.no_grad():
        logits = discovered.head()(torch.from_numpy(z))
    assert np.allclose(logits.softmax(dim=1).numpy(), p, atol=1e-6)


def test_predicting_is_repeatable_and_changes_no_random_state(discovered: Model, labelled) -> None:
    state = torch.get_rng_state()
    assert (
        discovered.predict_proba(labelled.graph) == discovered.predict_proba(labelled.graph)
    ).all()
    assert torch.equal(torch.get_rng_state(), state)


def test_predicting_gives_the_callers_threads_back(discovered: Model, labelled) -> None:
    torch.set_num_threads(2)
    try:
        discovered.predict(labelled.graph)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)


def test_predict_new_is_the_head_for_new_classes(discovered: Model, labelled) -> None:
    z = torch.from_numpy(discovered.embed(labelled.graph))
    with torch.no_grad():
        expected = 2 + discovered.novel_head()(z).argmax(dim=1).numpy()
    assert (discovered.predict_new(labelled.graph) == expected).all()


def test_predict_new_without_such_a_head_is_the_joint_heads_new_part(
    discovered: Model, labelled
) -> None:
    bare = dataclasses.replace(discovered, _novel_head=None)
    expected = 2 + bare.predict_proba(labelled.graph)[:, 2:].argmax(axis=1)
    assert (bare.predict_new(labelled.graph) == expected).all()


def test_predict_new_needs_discovered_classes(fitted: Model, labelled) -> None:
    with pytest.raises(GraphError, match="call discover first"):
        fitted.predict_new(labelled.graph)


def test_parts_that_are_handed_out_are_copies(discovered: Model, labelled) -> None:
    before = discovered.predict_proba(labelled.graph)
    for part in (
        discovered.encoder(),
        discovered.frozen_encoder(),
        discovered.head(),
        discovered.novel_head(),
    ):
        with torch.no_grad():
            for parameter in part.parameters():
                parameter.fill_(7.0)
        part.train()
    assert (discovered.predict_proba(labelled.graph) == before).all()


def test_what_is_handed_out_for_training_learns_and_the_frozen_one_does_not(
    discovered: Model,
) -> None:
    for part in (discovered.encoder(), discovered.head(), discovered.novel_head()):
        assert all(p.requires_grad for p in part.parameters())
    assert not any(p.requires_grad for p in discovered.frozen_encoder().parameters())
    assert not discovered.frozen_encoder().training


def test_frozen_is_a_copy_without_gradient_or_dropout() -> None:
    module = torch.nn.Linear(2, 2)
    copy = freeze(module)
    assert not copy.training
    assert not copy.weight.requires_grad
    assert module.training
    assert module.weight.requires_grad
    assert copy.weight.data_ptr() != module.weight.data_ptr()


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "embed", "predict_new"])
def test_a_graph_with_other_features_is_refused(discovered: Model, ask: str) -> None:
    other = Graph.of(np.ones((3, 5)), [[0], [1]])
    with pytest.raises(GraphError, match="the graph has 5 features, the model was trained on 60"):
        getattr(discovered, ask)(other)


def test_discover_refuses_a_graph_with_other_features(fitted: Model) -> None:
    with pytest.raises(GraphError, match="5 features"):
        nova.discover(
            fitted, nova.NewTask(Graph.of(np.ones((3, 5)), [[0], [1]]), np.array([0, 1]), 1)
        )


def test_a_model_classifies_a_graph_it_has_not_seen(discovered: Model) -> None:
    other = nova.synthetic(nodes=30, classes=4, words=60, seed=9)
    assert discovered.predict(other.graph).shape == (30,)


def test_classes_and_num_old_over_the_stages(twice: list[Model]) -> None:
    assert [m.num_old for m in twice] == [1, 1, 2]
    assert [len(m.classes) for m in twice] == [1, 2, 4]
    assert [c.stage for c in twice[2].classes] == [0, 1, 2, 2]
    assert [c.id for c in twice[2].classes] == [0, 1, 2, 3]
    assert [c.is_new for c in twice[2].classes] == [False, True, True, True]
    assert twice[2].classes[:2] == twice[1].classes
    assert twice[0].class_names == ("class-0",)
    assert len(set(twice[2].class_names)) == 4
    assert [len(m.memory.replay.mean) for m in twice] == [1, 2, 4]
    assert torch.equal(twice[2].memory.replay.mean[:2], twice[1].memory.replay.mean)


def test_stages_record_what_was_done(twice: list[Model]) -> None:
    fit, first, second = twice[2].stages
    assert (fit.method, first.method, second.method) == ("fit", "sword", "sword")
    assert fit.sees == ("graph", "old_nodes", "old_labels")
    assert first.sees == ("graph", "new_ids")
    assert first.settings == dataclasses.asdict(nova.Sword(epochs=3))
    assert len(second.history["pseudo"]) == 3
    assert fit.settings["epochs"] == 5
    assert first.seed == 0


def test_to_cpu_is_the_same_model_with_parts_of_its_own(discovered: Model, labelled) -> None:
    moved = discovered.to("cpu")
    assert moved.device == torch.device("cpu")
    assert (moved.predict_proba(labelled.graph) == discovered.predict_proba(labelled.graph)).all()
    assert (moved.predict_new(labelled.graph) == discovered.predict_new(labelled.graph)).all()
    assert moved.classes == discovered.classes
    assert moved.stages == discovered.stages
    assert moved._head.linear.weight.data_ptr() != discovered._head.linear.weight.data_ptr()


def test_a_model_is_frozen_and_says_what_it_is(discovered: Model) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        discovered.classes = ()  # type: ignore[misc]
    assert repr(discovered) == "Model(gcn, 4 classes, 2 of them discovered)"


def test_fit_is_a_pure_function_of_task_and_seed(tasks, labelled) -> None:
    state = torch.get_rng_state()
    a, b, c = (nova.fit(tasks[0], "gcn", hidden=8, epochs=4, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), state)
    assert (a.predict_proba(labelled.graph) == b.predict_proba(labelled.graph)).all()
    assert (a.predict_proba(labelled.graph) != c.predict_proba(labelled.graph)).any()


@pytest.mark.parametrize("encoder", ["gcn", "gat", "sage"])
def test_fit_learns_the_old_classes(tasks, encoder: str) -> None:
    old = tasks[0]
    model = nova.fit(old, encoder, hidden=8, heads=2, epochs=60)
    assert (model.predict(old.graph)[old.train_ids] == old.train_y).mean() > 0.9
    assert (model.predict(old.graph)[old.val_ids] == old.val_y).mean() > 0.7


@pytest.mark.parametrize("dropout", [{"dropout": 0.5}, {"dropout": 0.0}, {"input_dropout": 0.5}])
def test_fit_keeps_eq_9_of_its_own_training_nodes(tasks, dropout: dict[str, float]) -> None:
    """Eq. 9 is over the training nodes as they are embedded, without the dropout of training."""
    old = tasks[0]
    fitted = nova.fit(old, "gcn", hidden=4, epochs=30, **dropout)
    z = fitted.embed(old.graph)[old.train_ids]
    for c in range(2):
        assert np.allclose(
            fitted.memory.replay.mean[c].numpy(), z[old.train_y == c].mean(axis=0), atol=1e-5
        )
        assert np.allclose(
            fitted.memory.replay.var[c].numpy(), z[old.train_y == c].var(axis=0), atol=1e-6
        )
    assert fitted.stages[0].settings["prototype_passes"] == 0


def test_passes_with_dropout_remember_classes_wider_than_they_are(tasks) -> None:
    old = tasks[0]
    narrow, wide = (
        nova.fit(old, "gcn", hidden=4, epochs=30, prototype_passes=passes) for passes in (0, 20)
    )
    # The passes are made when training is over.
    assert (narrow.embed(old.graph) == wide.embed(old.graph)).all()
    assert (wide.memory.replay.var > 1.1 * narrow.memory.replay.var).all()
    assert torch.allclose(wide.memory.replay.mean, narrow.memory.replay.mean, atol=0.05)
    assert float(wide.memory.classes.dof) == 20 * len(old.train_ids) - 2
    calm = nova.fit(old, "gcn", hidden=4, epochs=30, dropout=0.0, prototype_passes=20)
    # Without dropout all passes are alike: one is enough.
    assert float(calm.memory.classes.dof) == len(old.train_ids) - 2


def test_fit_divides_features_by_their_sum_only_where_they_are_counts(tasks) -> None:
    assert nova.fit(tasks[0], "gcn", hidden=4, epochs=1).encoder().spec.row_normalize
    old = tasks[0]
    signed = Graph.of(old.graph.x.toarray() - 0.5, old.graph.edge_index)
    assert (
        not nova.fit(dataclasses.replace(old, graph=signed), "gcn", hidden=4, epochs=1)
        .encoder()
        .spec.row_normalize
    )


def test_fit_without_validation_nodes_runs_all_epochs(tasks) -> None:
    none = np.array([], dtype=np.int64)
    model = nova.fit(
        dataclasses.replace(tasks[0], val_ids=none, val_y=none),
        "gcn",
        hidden=4,
        epochs=7,
        patience=1,
    )
    assert len(model.stages[0].history["ce"]) == 7
