from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.errors import SettingError
from nodenova.model import edits
from nodenova.model.decisions import Create, Merge, Reject, Rename
from nodenova.model.edits import _metric, _part_rows, _shift
from nodenova.model.model import Model
from nodenova.nn.heads import LinearHead
from nodenova.nn.training import freeze
from nodenova.runs.predictions import Predictions


def ids_of(model: Model) -> list[int]:
    return [c.id for c in model.classes]


def columns_by_hand(model: Model, graph: nova.Graph) -> np.ndarray:
    """(N, columns) probabilities of the head itself, whatever its columns mean."""
    with torch.no_grad():
        return model.head()(torch.from_numpy(model.embed(graph))).double().softmax(dim=1).numpy()


def test_an_unedited_models_classes_are_its_columns(case) -> None:
    assert case.model.column_class_ids == (0, 1, 2, 3)
    assert case.model.num_columns == 4
    assert case.model.next_id == 4
    assert case.model.edits == ()
    assert np.allclose(
        case.model.predict_proba(case.graph), columns_by_hand(case.model, case.graph), atol=1e-6
    )


def test_rename_changes_a_name_and_nothing_else(case) -> None:
    renamed = case.model.rename(2, "  plants ")
    assert renamed.class_names == ("class-0", "class-1", "plants", "new-3")
    assert case.model.class_names[2] == "new-2"
    assert (renamed.predict_proba(case.graph) == case.model.predict_proba(case.graph)).all()
    assert renamed.edits == (Rename(2, "plants", was="new-2", after=2),)
    # Its own name is not taken by another.
    assert renamed.rename(2, "plants").class_of(2).name == "plants"


def test_merge_adds_probabilities_up(case) -> None:
    merged = case.model.merge([3, 0])
    assert ids_of(merged) == [0, 1, 2]
    assert merged.class_of(0) == case.model.class_of(0)
    p = columns_by_hand(case.model, case.graph)
    expected = np.stack([p[:, 0] + p[:, 3], p[:, 1], p[:, 2]], axis=1)
    assert np.allclose(merged.predict_proba(case.graph), expected, atol=1e-6)
    assert (merged.predict(case.graph) == expected.argmax(axis=1)).all()
    assert merged.edits[-1] == Merge((0, 3), "class-0", kept=0, after=2)


def test_merge_takes_the_oldest_id_whatever_the_order_and_a_name(case) -> None:
    merged = case.model.merge([3, 2], "both")
    assert merged.class_of(2) == nova.NodeClass(2, "both", 1)
    assert merged.class_names == ("class-0", "class-1", "both")
    # The name of one that goes is free.
    assert case.model.merge([2, 3], "new-3").class_of(2).name == "new-3"


def test_a_name_that_a_person_gave_is_not_lost_in_a_merge(case) -> None:
    named = case.model.rename(3, "plants")
    assert named.merge([2, 3]).class_of(2).name == "plants"
    assert named.rename(2, "fish").merge([2, 3]).class_of(2).name == "fish"
    assert named.merge([1, 3]).class_of(1).name == "class-1"


def test_a_rejection_records_the_classes_that_get_several_nodes(case) -> None:
    rejected = case.model.reject(3, case.graph)
    was, now = (model.predict(case.graph) for model in (case.model, rejected))
    ids, count = np.unique(now[was == 3], return_counts=True)
    assert rejected.edits[-1] == Reject(3, name="new-3", to=tuple(ids[count >= 5]), after=2)
    assert rejected.edits[-1].to
    assert case.model.reject(3).edits[-1].to == ()


def test_reject_leaves_the_rest_renormalised_and_every_node_in_a_class(case) -> None:
    left = case.model.reject(2)
    assert ids_of(left) == [0, 1, 3]
    p = np.delete(columns_by_hand(case.model, case.graph), 2, axis=1)
    expected = p / p.sum(axis=1, keepdims=True)
    assert np.allclose(left.predict_proba(case.graph), expected, atol=1e-5)
    assert (left.predict(case.graph) == np.array([0, 1, 3])[expected.argmax(axis=1)]).all()
    assert len(left.memory.replay.mean) == left.num_columns == 3
    others = case.model.predict(case.graph) != 2
    assert (left.predict(case.graph)[others] == case.model.predict(case.graph)[others]).all()


def test_split_gives_fresh_ids_that_divide_the_nodes_of_the_class(case) -> None:
    before = case.model.predict(case.graph)
    parted = case.model.split(2, case.graph)
    assert ids_of(parted) == [0, 1, 3, 4, 5]
    assert [parted.class_of(i) for i in (4, 5)] == [
        nova.NodeClass(4, "new-4", 1),
        nova.NodeClass(5, "new-5", 1),
    ]
    after = parted.predict(case.graph)
    # As many nodes in the parts as in the class.
    assert np.isin(after, [4, 5]).sum() == (before == 2).sum()
    assert min((after == 4).sum(), (after == 5).sum()) > 0
    assert (np.isin(after, [4, 5]) == (before == 2)).mean() > 0.9
    assert len(parted.memory.replay.mean) == parted.num_columns == 5
    assert np.allclose(parted.predict_proba(case.graph).sum(axis=1), 1, atol=1e-5)


def test_split_finds_classes_that_were_thrown_together(cases) -> None:
    """Of the true classes 2, 3 and 4 the model knows two, and they are merged.

    Three parts are the three again.
    """
    case = cases["prism"]
    after = case.model.merge([2, 3]).split(2, case.graph, into=3).predict(case.graph)
    together = np.array(
        [[((case.y == a) & (after == b)).sum() for b in (4, 5, 6)] for a in (2, 3, 4)]
    )
    assert sorted(together.argmax(axis=1)) == [0, 1, 2]
    assert together.max(axis=1).sum() / np.isin(case.y, [2, 3, 4]).sum() > 0.85


def test_parts_of_a_labelled_class_stay_old_and_keep_its_name(case) -> None:
    parted = case.model.split(0, case.graph, into=3)
    assert ids_of(parted) == [1, 4, 5, 6, 2, 3]  # by stage, then by id
    assert parted.class_names == (
        "class-1",
        "class-0 1",
        "class-0 2",
        "class-0 3",
        "new-2",
        "new-3",
    )
    assert parted.classes_per_stage == (4, 2)


def test_a_plain_linear_head_is_split_on_z_as_long_as_it_is(cases) -> None:
    """What `fit` returns. Read on unit length, the parts would be rows for another z."""
    labelled, graph = (
        nova.synthetic(nodes=300, classes=5, words=100, words_per_node=10),
        cases["gcn"].graph,
    )
    model = nova.fit(nova.split(labelled, [0, 1, 2])[0], "gcn", hidden=16, epochs=60)
    before = model.predict(graph)
    parted = model.split(0, graph)
    after = parted.predict(graph)
    assert isinstance(parted.head(), LinearHead)
    assert np.isin(after, [3, 4]).sum() == (before == 0).sum()
    assert (np.isin(after, [3, 4]) == (before == 0)).mean() > 0.98
    assert min((after == 3).sum(), (after == 4).sum()) > 5
    rows, means = parted.head().linear.weight.detach()[-2:], parted.memory.replay.mean[-2:]
    assert float(
        torch.cosine_similarity(rows[0] - rows[1], means[0] - means[1], dim=0)
    ) == pytest.approx(1.0, abs=1e-4)
    merged = parted.merge([3, 4])
    p = columns_by_hand(parted, graph)
    assert np.allclose(merged.predict_proba(graph)[:, -1], p[:, 2] + p[:, 3], atol=1e-6)


@pytest.mark.parametrize("columns", [[1], [2, 3]])
def test_parts_that_are_the_nodes_of_one_column_have_its_row(case, columns: list[int]) -> None:
    head, z = case.model.head(), torch.from_numpy(case.model.embed(case.graph))
    with torch.no_grad():
        nearest = head(z)[:, columns].argmax(dim=1)
        weight, bias = _part_rows(case.model, z, nearest, columns, len(columns))
        swapped = _part_rows(case.model, z, len(columns) - 1 - nearest, columns, len(columns))
    largest = float(head.linear.weight.detach().abs().max())
    assert torch.allclose(weight, head.linear.weight[columns], atol=1e-5 * largest)
    assert torch.allclose(bias, head.linear.bias[columns], atol=1e-5 * largest)
    assert torch.allclose(swapped[0], weight.flip(0), atol=1e-5 * largest)


@pytest.mark.parametrize("classes", [[0, 1], [0, 1, 2]])
def test_the_metric_has_the_scale_of_the_head(classes: list[int]) -> None:
    labelled = nova.synthetic(nodes=300, classes=5, words=100, words_per_node=10)
    model = nova.fit(nova.split(labelled, classes)[0])
    loud = model.head()
    with torch.no_grad():
        loud.linear.weight *= 2
        loud.linear.bias *= 2
        rows = torch.randn(3, loud.linear.weight.shape[1])
        plain = _metric(model)(rows)
        twice = _metric(dataclasses.replace(model, _head=freeze(loud)))(rows)
    assert torch.allclose(twice, 2 * plain, rtol=1e-3, atol=1e-3 * float(plain.abs().max()))


def test_parts_win_for_as_many_nodes_as_the_class_had() -> None:
    parts = torch.tensor([[3.0, 1.0], [0.0, 2.0], [1.0, 0.0], [5.0, 0.0]])
    others = torch.tensor([[0.0], [1.0], [4.0], [1.0]])
    for size in (1, 2, 3, 4):
        won = (parts + _shift(parts, others, size)).max(dim=1).values > others[:, 0]
        assert int(won.sum()) == size
    # Leads are 3, 1, -3 and 4: between the second and the third the border is 2.
    assert _shift(parts, others, 2) == -2.0
    assert _shift(parts, others[:, :0], 2) == 0.0


def test_split_is_a_pure_function_of_its_seed(case) -> None:
    state = torch.get_rng_state()
    a, b = (case.model.split(2, case.graph, seed=5).predict_proba(case.graph) for _ in range(2))
    assert (a == b).all()
    assert torch.equal(torch.get_rng_state(), state)
    case.model.reject(2)
    assert torch.equal(torch.get_rng_state(), state)


def test_a_class_of_chosen_nodes_is_as_large_and_is_met_on_a_later_graph(case) -> None:
    """Half of the graph first; the nodes of true class 4 are a class that a person saw."""
    half = case.graph.subgraph(np.arange(150))
    chosen = np.flatnonzero(case.y[:150] == 4)
    model = case.model.create_class(half.node_ids[chosen].tolist(), half, "ferns")
    made = model.classes[-1]
    assert (made.id, made.name, made.stage) == (4, "ferns", 1)
    (edit,) = model.edits
    assert (edit.nodes, edit.size, edit.class_id) == ((), len(chosen), 4)
    before, after = case.model.predict(half), model.predict(half)
    assert {*edit.sources} == {*np.unique(before[chosen]).tolist()}
    assert (after == 4).sum() == len(chosen)
    assert (after == before)[after != 4].all()  # the others stay where they are
    later = model.predict(case.graph)[150:] == 4
    truth = case.y[150:] == 4
    assert truth[later].mean() > 1.5 * truth.mean()
    if case.method == nova.Prism():
        assert truth[later].mean() > 0.7
        assert later[truth].mean() > 0.7


def test_a_class_of_a_sample_gets_its_share_of_all_nodes(case) -> None:
    request = Create(tuple(range(10)), among=100)
    model = edits.create(case.model, request, case.graph)
    assert (model.predict(case.graph) == 4).sum() == 30
    assert model.classes[-1].name == "new-4"
    assert model.edits[-1].size == 10


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Create((0, 1, 999)), "there is no node 999"),
        (Create((0, 1)), "of 3 nodes or more, not of 2"),
        (Create((0, 1, 1, 0)), "of 3 nodes or more, not of 2"),
        (Create((0, 1, 2), "new-2"), "already has the name 'new-2'"),
        (Create((0, 1, 2), " "), "non-empty text"),
        (Create((0, 1, 2), class_id=9), "the new class gets the id 4, not 9"),
        (Create((0, 1, 2), among=2), "3 of 2 shown nodes"),
        (Create((0, 1, 2), among=301), "3 of 301 shown nodes cannot be of a graph of 300"),
    ],
)
def test_a_class_that_cannot_be_made_is_refused(case, request_: Create, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        edits.create(case.model, request_, case.graph)


EDITS = {
    "rename": lambda case: case.model.rename(3, "named"),
    "merge": lambda case: case.model.merge([1, 3], "named"),
    "reject": lambda case: case.model.rename(2, "named").reject(3),
    "split": lambda case: case.model.split(3, case.graph).rename(5, "named"),
    "create": lambda case: case.model.create_class(list(range(9)), case.graph, "named"),
    "all": lambda case: case.model.split(2, case.graph).merge([0, 4]).reject(3).rename(5, "named"),
}


@pytest.mark.parametrize("edit", EDITS)
def test_edits_survive_save_and_load(case, edit: str, tmp_path) -> None:
    edited = EDITS[edit](case)
    edited.save(tmp_path / "m")
    loaded = nova.load_model(tmp_path / "m")
    assert loaded.classes == edited.classes
    assert loaded.column_class_ids == edited.column_class_ids
    assert loaded.edits == edited.edits
    assert loaded.next_id == edited.next_id
    assert (loaded.predict_proba(case.graph) == edited.predict_proba(case.graph)).all()
    document = json.loads((tmp_path / "m" / "model.json").read_text())
    is_told = any(stage.found_in for stage in edited.stages)
    version = 8 if edit == "create" else 5 if is_told else 3
    assert document["version"] == version  # what an older one misreads, it refuses


@pytest.mark.parametrize("edit", EDITS)
def test_ids_and_names_survive_further_discovery(case, edit: str) -> None:
    edited = EDITS[edit](case)
    later = nova.discover(edited, case.later, case.method)
    assert later.classes[:-1] == edited.classes
    newest = later.classes[-1]
    assert newest == nova.NodeClass(edited.next_id, f"new-{edited.next_id}", 2)
    assert newest.id not in {id_ for model in (case.model, edited) for id_ in ids_of(model)}
    assert later.column_class_ids == (*edited.column_class_ids, newest.id)
    assert later.edits == edited.edits
    assert set(np.unique(later.predict(case.graph))) <= set(ids_of(later))
    assert (later.predict_new(case.graph) == newest.id).all()
    assert "named" in later.class_names


def test_sword_and_the_distilled_gnn_discover_on_edited_models(cases) -> None:
    for case, method in (
        (cases["gcn"], nova.Sword(epochs=2)),
        (cases["prism"], nova.DistilledGNN(epochs=2, hidden=8)),
        (cases["gcn"], nova.NeverNew()),
    ):
        edited = EDITS["merge"](case)
        later = nova.discover(edited, case.later, method)
        assert ids_of(later) == [0, 1, 2, 4]
        assert later.predict_proba(case.graph).shape == (300, 4)


def test_an_id_is_never_given_out_again(case) -> None:
    """The last class goes in every way there is, and its number is not reused."""
    assert case.model.reject(3).next_id == 4
    assert case.model.merge([2, 3]).next_id == 4
    assert case.model.split(3, case.graph).reject(5).next_id == 6
    later = nova.discover(case.model.reject(3).reject(2), case.later, case.method)
    # The second stage, though the first left nothing.
    assert later.classes[-1] == nova.NodeClass(4, "new-4", 2)
    assert later.classes_per_stage == (2, 0, 1)
    assert later.num_old == 2


def test_a_discovered_class_does_not_take_a_name_that_is_taken(case) -> None:
    later = nova.discover(case.model.rename(2, "new-4"), case.later, case.method)
    assert later.class_of(4).name == "new-4 (2)"


def test_h_u_is_dropped_when_its_classes_change_and_kept_otherwise(
    discovered: Model, labelled
) -> None:
    assert discovered.novel_head() is not None
    assert discovered.rename(2, "x").novel_head() is not None
    for edited in (discovered.merge([1, 2]), discovered.reject(2)):
        assert edited.novel_head() is None
        assert set(np.unique(edited.predict_new(labelled.graph))) <= {
            c.id for c in edited.classes if c.is_new
        }


def test_unsure_nodes_and_embedding_in_one_pass_know_of_edits(case) -> None:
    edited = EDITS["all"](case)
    z, p = edited.embed_and_predict(case.graph)
    assert (z == edited.embed(case.graph)).all()
    assert (p == edited.predict_proba(case.graph)).all()
    least = float(np.median(p.max(axis=1)))
    sure = p.max(axis=1) >= least
    said = edited.predict(case.graph, min_confidence=least)
    assert (said[~sure] == -1).all()
    assert (said[sure] == np.array(ids_of(edited))[p.argmax(axis=1)][sure]).all()


def test_a_prior_that_the_method_was_given_is_the_splits_too(cases) -> None:
    case = cases["prism"]
    stages = (
        *case.model.stages[:-1],
        dataclasses.replace(case.model.stages[-1], settings={"prior": 5.0}),
    )
    other = dataclasses.replace(case.model, stages=stages)
    a, b = (m.split(2, case.graph).head().linear.weight for m in (case.model, other))
    assert not torch.allclose(a[3:], b[3:])
    assert torch.equal(a[:3], b[:3])


BAD = {
    "there is no class 9; the model has 0, 1, 2, 3": lambda m, g: m.rename(9, "x"),
    "there is no class -1": lambda m, g: m.reject(-1),
    "there is no class 7": lambda m, g: m.merge([2, 7]),
    "there is no class 8": lambda m, g: m.split(8, g),
    "must be a non-empty text, not ' '": lambda m, g: m.rename(2, " "),
    "non-empty text, not 3": lambda m, g: m.rename(2, 3),
    "non-empty text, not ''": lambda m, g: m.merge([2, 3], ""),
    "class 1 already has the name 'class-1'": lambda m, g: m.rename(2, "class-1"),
    "class 0 already has the name 'class-0'": lambda m, g: m.merge([2, 3], "class-0"),
    r"two or more different classes, not \[2, 2\]": lambda m, g: m.merge([2, 2]),
    r"two or more different classes, not \[2\]": lambda m, g: m.merge([2]),
    r"class 0 \(class-0\) was learned from labels": lambda m, g: m.reject(0),
    "two or more parts, not 1": lambda m, g: m.split(2, g, into=1),
    "two or more parts, not 2.0": lambda m, g: m.split(2, g, into=2.0),
    "too few or too alike": lambda m, g: m.split(2, g, into=200),
}


@pytest.mark.parametrize("message", BAD)
def test_what_cannot_be_done_says_so_in_one_sentence(case, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        BAD[message](case.model, case.graph)


def test_splitting_on_a_graph_with_other_features_is_refused(case) -> None:
    with pytest.raises(nova.NodenovaError, match="the graph has 5 features"):
        case.model.split(2, nova.Graph.of(np.ones((3, 5)), [[0], [1]]))


def test_a_class_whose_nodes_are_all_alike_cannot_be_split(cases) -> None:
    case = cases["prism"]
    node = int(np.flatnonzero(case.model.predict(case.graph) == 2)[0])
    same = nova.Graph.of(case.graph.x[[node] * 6], np.empty((2, 0), dtype=int))
    (only,) = set(case.model.predict(same).tolist())
    with pytest.raises(SettingError, match="6 nodes in this graph, too few or too alike"):
        case.model.split(only, same)


def test_a_table_of_predictions_names_classes_by_their_ids(case) -> None:
    edited = case.model.reject(2).rename(3, "plants")
    table = Predictions.of(edited, case.graph).columns()
    assert table["class"] == edited.predict(case.graph).tolist()
    assert {name for name, c in zip(table["name"], table["class"], strict=True) if c == 3} == {
        "plants"
    }
