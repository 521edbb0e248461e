"""Phase 2 cannot see a label: by type, and by a test that a leaky method fails."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields

import numpy as np
import pytest
import torch

import nodenova as nova
from nodenova.data.splits import with_split
from nodenova.encoders.gnn import LAYERS
from nodenova.methods import METHODS, get_method
from nodenova.methods.registry import preferred_encoder
from nodenova.nn.class_memory import Memory
from nodenova.nn.heads import grow
from nodenova.nn.multirank import MultiRank
from nodenova.testing import find_leak, permute_labels, scramble

# Enough epochs for every branch of every method; what leaks at all has leaked by then.
QUICK = {
    name: {"epochs": "15"}
    for name, kind in METHODS.items()
    if "epochs" in {f.name for f in fields(kind)}
}
QUICK["dtc"] |= {"warmup": "3", "update": "4"}


def labelled() -> nova.LabelledGraph:
    return nova.synthetic(nodes=160, classes=5, words=80, seed=3)


@pytest.mark.parametrize(
    ("method", "encoder"),
    [
        (m, e)
        for m in METHODS
        for e in (*LAYERS, "prism")
        if e != "prism" or preferred_encoder(METHODS[m]) == "prism"
    ],
)
def test_scrambled_labels_of_new_nodes_change_nothing(method: str, encoder: str) -> None:
    assert (
        find_leak(
            get_method(method, QUICK.get(method, {})), labelled(), old=[0, 1, 2], encoder=encoder
        )
        is None
    )


@pytest.mark.parametrize("encoder", list(LAYERS))
@pytest.mark.parametrize("reading", list(nova.Sword.READINGS))
def test_scrambled_labels_change_nothing_whichever_way_sword_is_read(
    reading: str, encoder: str
) -> None:
    method = get_method("sword", QUICK["sword"] | {"reading": reading})
    assert find_leak(method, labelled(), old=[0, 1, 2], encoder=encoder) is None


@pytest.mark.parametrize("encoder", list(LAYERS))
def test_scrambled_labels_change_nothing_where_sword_sees_batches(encoder: str) -> None:
    method, batches = get_method("sword", QUICK["sword"]), {"batch": 16, "neighbors": 3}
    given = {"old": [0, 1, 2], "encoder": encoder, "fit_settings": batches}
    assert find_leak(method, labelled(), **given) is None


@pytest.mark.parametrize("encoder", ["prism", "gcn"])
def test_scrambled_labels_of_unlabelled_nodes_change_nothing_in_a_mixture(encoder: str) -> None:
    """Which of them are known changes too."""
    assert find_leak(nova.Prism(), labelled(), old=[0, 1, 2], encoder=encoder, mixed=True) is None


def test_counting_gives_the_same_whichever_unlabelled_nodes_are_known() -> None:
    data = with_split(labelled())
    old, _, _ = nova.split(data, old=[0, 1, 2])
    rest = np.setdiff1d(np.arange(160), old.train_ids)
    other = permute_labels(data, rest)
    assert (np.isin(data.y[rest], [0, 1, 2]) != np.isin(other.y[rest], [0, 1, 2])).any()

    def counted(answers: nova.LabelledGraph) -> nova.ClassCountEstimate:
        ids, y = old.train_ids, answers.y[old.train_ids]
        none = np.zeros(0, dtype=np.int64)
        first = nova.OldTask(answers.graph, ids, y, none, none, old.class_names)
        return nova.count_new(nova.fit(first), nova.NewTask(answers.graph, rest, None, mixed=True))

    assert counted(data) == counted(other)


@dataclass(frozen=True)
class Leaky:
    """Goes around every type: looks for the answers in its callers' variables, and learns them."""

    def discover(self, model: nova.Model, task: nova.NewTask) -> nova.Model:
        variables = [value for frame in inspect.stack() for value in frame.frame.f_locals.values()]
        answers = next(value for value in variables if type(value) is nova.LabelledGraph)
        y = torch.from_numpy(answers.y[task.ids] % task.num_new)
        g, head = model.encoder(), grow(model.head(), task.num_new)
        with torch.no_grad():
            z = g(task.graph)[torch.from_numpy(task.ids)]
            new = Memory.of(z, y, task.num_new, MultiRank.whole(z.shape[1]))
            head.linear.weight[len(model.classes) :] = torch.nn.functional.normalize(
                new.replay.mean, dim=1
            )
        return model.grown(encoder=g, head=head, memory=model.memory.append(new))


def test_a_leaky_method_is_caught() -> None:
    leak = find_leak(Leaky(), labelled(), old=[0, 1, 2])
    assert leak is not None
    assert "changed on" in leak


@dataclass(frozen=True)
class LeakyAboutKnown:
    """Does a mixture after a look at which of its nodes are known."""

    mixed = True

    def discover(self, model: nova.Model, task: nova.NewTask) -> nova.Model:
        variables = [value for frame in inspect.stack() for value in frame.frame.f_locals.values()]
        answers = next(value for value in variables if type(value) is nova.LabelledGraph)
        new = task.ids[~np.isin(answers.y[task.ids], [0, 1, 2])]
        known_apart = nova.NewTask(task.graph, new, task.num_new)
        return nova.Prism(n_resamples=0).discover(model, known_apart)


def test_a_method_that_knows_which_nodes_are_known_is_caught() -> None:
    leak = find_leak(LeakyAboutKnown(), labelled(), old=[0, 1, 2], encoder="prism", mixed=True)
    assert leak is not None
    assert "labels of unlabelled nodes were scrambled" in leak


def test_scrambling_moves_new_labels_only() -> None:
    before = labelled()
    after = scramble(before, old=[0, 1, 2])
    is_old = np.isin(before.y, [0, 1, 2])
    assert np.array_equal(before.y[is_old], after.y[is_old])
    assert (before.y[~is_old] != after.y[~is_old]).mean() > 0.3
    assert np.array_equal(np.bincount(before.y), np.bincount(after.y))


def test_the_types_that_reach_phase_2_have_no_field_for_a_label() -> None:
    assert {f.name for f in fields(nova.NewTask)} == {"graph", "ids", "num_new", "mixed"}
    parts = {"x", "edge_index", "node_ids", "feature_names", "edge_weight", "vectors"}
    parts |= {"recipe", "given_order"}  # how columns of a table became x, and the order of its rows
    assert {f.name for f in fields(nova.Graph)} == parts


def test_the_recipe_that_a_graph_carries_has_no_label() -> None:
    kinds = ["oak", "elm", "ash"]
    rows = [{"id": i, "label": kinds[i % 3], "text": f"red leaf {i % 7}"} for i in range(60)]
    nodes = {name: [row[name] for row in rows] for name in rows[0]}
    links = {"source": list(range(59)), "target": list(range(1, 60))}
    pd = pytest.importorskip("pandas")
    carried = [
        nova.load_graph(nodes=pd.DataFrame(nodes | {"label": labels}), edges=pd.DataFrame(links))
        for labels in (nodes["label"], nodes["label"][::-1])
    ]
    recipes = [repr(loaded.graph.recipe) for loaded in carried]
    assert recipes[0] != "None"
    assert recipes[0] == recipes[1]
    assert not any(kind in recipes[0] for kind in kinds)


def test_a_model_keeps_no_node() -> None:
    """Everything in a fitted model is as large as classes, features or hidden sizes.

    Nothing has one row per node.
    """
    data = nova.synthetic(nodes=333, classes=4, words=60)
    old, _, _ = nova.split(data, old=[0, 1])
    model = nova.fit(old, "gcn", epochs=3)
    parts = [*model.frozen_encoder().state_dict().values(), *model.head().state_dict().values()]
    parts += [model.memory.replay.mean, model.memory.replay.var]
    assert 333 not in {size for part in parts for size in part.shape}
    assert len(old.train_ids) not in {size for part in parts for size in part.shape}


def test_ids_of_new_nodes_are_the_same_whatever_their_labels() -> None:
    data = with_split(labelled())
    _, before, _ = nova.split(data, old=[0, 1, 2])
    _, after, _ = nova.split(scramble(data, old=[0, 1, 2]), old=[0, 1, 2])
    assert (np.diff(before.ids) > 0).all()
    assert np.array_equal(before.ids, after.ids)
