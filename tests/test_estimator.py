"""Discovery in scikit-learn's shape.

Any graph, any labels, the same result as by the functions, clear sentences.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator
from torch_geometric.data import Data

import nodenova as nova
from nodenova.data.tasks import tasks_from_labels
from nodenova.errors import NodenovaError, StorageError
from nodenova.estimator import NodeDiscoverer
from nodenova.io.load import search_note
from nodenova.review.node_text import shown_columns
from nodenova.review.trust import calibrate

QUICK = nova.Prism(n_resamples=0, restarts=2)


@pytest.fixture(scope="module")
def data() -> nova.LabelledGraph:
    """150 nodes of five classes; the tests hide the labels of the last two."""
    return nova.synthetic(nodes=150, classes=5, words=120, seed=2)


@pytest.fixture(scope="module")
def y(data: nova.LabelledGraph) -> np.ndarray:
    return np.where(data.y < 3, data.y, -1)


@pytest.fixture(scope="module")
def found(data: nova.LabelledGraph, y: np.ndarray) -> NodeDiscoverer:
    return NodeDiscoverer(2).fit(data.graph, y)


def test_it_is_fit_and_discover_bit_for_bit(
    data: nova.LabelledGraph, y: np.ndarray, found: NodeDiscoverer
) -> None:
    old, new, _ = tasks_from_labels(
        nova.load_graph(nova.LabelledGraph(data.graph, y, ("0", "1", "2"))), 2, seed=0
    )
    model = nova.discover(nova.fit(old, seed=0), new, seed=0)
    by_model = model.predict_proba(data.graph)
    assert np.array_equal(found.model_.predict_proba(found.run_.graph), by_model)
    assert np.array_equal(found.predict_proba(), calibrate(by_model, found.run_.shifts))
    assert np.array_equal(found.transform(), model.embed(data.graph))
    assert np.array_equal(found.predict_proba(data.graph), found.predict_proba())
    assert np.array_equal(found.transform(data.graph), found.transform())
    assert new.mixed
    ids = np.array([c.id for c in model.classes])
    assert (
        ids[[list(found.classes_).index(label) for label in found.predict(data.graph)]].tolist()
        == model.predict(data.graph).tolist()
    )
    differ = np.flatnonzero(found.predict(data.graph) != found.labels_)
    assert (y[differ] >= 0).all()  # labelled nodes, which keep their labels
    other = NodeDiscoverer(2, random_state=1).fit(data.graph, y)
    assert other.run_.facts["Seed"] == 1
    assert not np.array_equal(other.predict_proba(), found.predict_proba())


def test_hidden_classes_are_found_and_known_ones_keep_their_labels(
    data: nova.LabelledGraph, y: np.ndarray, found: NodeDiscoverer
) -> None:
    assert found.classes_[:3].tolist() == [0, 1, 2]
    assert {type(label) for label in found.classes_} == {int, str}
    assert (found.labels_[y >= 0] == y[y >= 0]).all()
    assert (found.predict(data.graph)[y >= 0] == y[y >= 0]).mean() > 0.9
    for c in (3, 4):
        mine = found.labels_[data.y == c].tolist()
        assert mine.count(max(set(mine), key=mine.count)) > 0.8 * len(mine)
    assert found.n_features_in_ == 120
    assert found.notes_ == (search_note(66),)
    assert found.grade_ is None


@pytest.fixture(scope="module")
def half(data: nova.LabelledGraph) -> np.ndarray:
    """Labels on every other node of three classes: the others are of known and of new ones."""
    return np.where((data.y < 3) & (np.arange(150) % 2 == 0), data.y, -1)


def test_unlabelled_nodes_may_be_of_known_classes_unless_all_are_said_to_be_new(
    data: nova.LabelledGraph, half: np.ndarray
) -> None:
    mixed = NodeDiscoverer(5, method=QUICK).fit(data.graph, half)  # a wrong number, on purpose
    strict = NodeDiscoverer(5, method=QUICK, mixed=False).fit(data.graph, half)
    assert [each.model_.stages[-1].mixed for each in (mixed, strict)] == [True, False]
    hidden = (data.y < 3) & (half < 0)
    known = (mixed.labels_[hidden] == data.y[hidden]).mean()
    assert known > 0.8
    assert (strict.labels_[hidden] == data.y[hidden]).mean() < 0.5
    assert ("Unlabelled nodes" in mixed.run_.facts, "New nodes" in strict.run_.facts) == (
        True,
        True,
    )
    assert mixed.count_ is None


def test_named_new_nodes_are_all_new(data: nova.LabelledGraph) -> None:
    new = np.flatnonzero(data.y >= 3)
    loaded = nova.load_graph(data, new_nodes=data.graph.node_ids[new].tolist())
    found = NodeDiscoverer(2, method=QUICK).fit(loaded)
    assert not found.model_.stages[-1].mixed
    assert found.grade_ is not None
    assert NodeDiscoverer(2, method=QUICK, mixed=True).fit(loaded).model_.stages[-1].mixed


def test_named_new_nodes_stay_new_beside_labels_of_their_own(data: nova.LabelledGraph) -> None:
    new = np.flatnonzero(data.y >= 3)
    bare = nova.load_graph(data.graph, new_nodes=data.graph.node_ids[new].tolist())
    words = np.array(["oak", "elm", "ash", "box", "yew"])[data.y].tolist()
    words[0] = None  # of a known class: neither labelled nor new
    found = NodeDiscoverer(2, method=QUICK).fit(bare, words)
    assert not found.model_.stages[-1].mixed
    assert found.run_.facts["New nodes"] == f"{len(new):,}"
    assert found.classes_[:3].tolist() == ["ash", "elm", "oak"]
    told = found.run_.label_ids >= 0
    assert told.sum() == (data.y < 3).sum() - 1
    assert set(found.labels_[told]) == {"ash", "elm", "oak"}
    assert found.grade_ is not None  # the labels of new nodes are an answer key
    hidden = [word if c < 3 else None for word, c in zip(words, data.y, strict=True)]
    again = NodeDiscoverer(2, method=QUICK).fit(bare, hidden)
    assert np.array_equal(again.predict_proba(), found.predict_proba())
    assert again.grade_ is None


def test_suggestions_and_nodes_that_fit_none_are_told(
    data: nova.LabelledGraph, half: np.ndarray
) -> None:
    wrong = half.copy()
    first = int(np.flatnonzero(half == 0)[0])
    wrong[first] = 2
    found = NodeDiscoverer(2, method=QUICK, none_share=0.1).fit(data.graph, wrong)
    told = {one.node: one.class_id for one in found.suggestions().labels}
    assert told[data.graph.node_ids[first].item()] == 0
    assert len(told) < 5
    assert found.run_.fits_none is not None
    assert found.run_.fits_none.sum() == len(found.suggestions().none) > 0
    with pytest.raises(NodenovaError, match="none_share is a share from 0 to below 1, not 1"):
        NodeDiscoverer(2, none_share=1).fit(data.graph, half)
    with pytest.raises(NodenovaError, match="found by labelled nodes and the prism encoder"):
        NodeDiscoverer(
            2, method="frozen_kmeans", encoder="gcn", fit_settings={"epochs": 2}, none_share=0.1
        ).fit(data.graph, half)


def test_without_a_number_the_classes_are_counted(
    data: nova.LabelledGraph, half: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = iter(
        [
            nova.ClassCountEstimate(2, (0.1, 0.2, 0.7), 0.9, 0.01, 0.5, 108),
            nova.ClassCountEstimate(0, (0.9, 0.1, 0.0), 0.1, 0.6, 0.0, 108),
        ]
    )
    monkeypatch.setattr("nodenova.discovery.count_new", lambda *given, **more: next(counts))
    found = NodeDiscoverer(method=QUICK).fit(data.graph, half)
    assert (found.count_.number, len(found.classes_)) == (2, 5)
    none = NodeDiscoverer(method=QUICK).fit(data.graph, half)
    assert (none.count_.number, none.classes_.tolist()) == (0, [0, 1, 2])
    assert none.predict_proba().shape == (150, 3)


def test_a_count_is_that_of_the_functions(data: nova.LabelledGraph, half: np.ndarray) -> None:
    loaded = nova.load_graph(nova.LabelledGraph(data.graph, half, ("0", "1", "2")))
    old, new, _ = tasks_from_labels(loaded)
    expected = nova.count_new(nova.fit(old), new)
    found = NodeDiscoverer(method=QUICK).fit(data.graph, half)
    assert found.count_ == expected
    assert len(found.classes_) == 3 + expected.number


def test_a_method_that_cannot_do_mixtures_takes_all_for_new_and_says_so(
    data: nova.LabelledGraph, half: np.ndarray
) -> None:
    asked = {"method": nova.FrozenKMeans(), "fit_settings": {"hidden": 8, "epochs": 3}}
    found = NodeDiscoverer(2, **asked).fit(data.graph, half)
    assert not found.model_.stages[-1].mixed
    said = "frozen_kmeans assumes that all unlabelled nodes are new"
    assert [note for note in found.notes_ if note.startswith(said)]
    quiet = NodeDiscoverer(2, mixed=False, **asked).fit(data.graph, half)
    assert not [note for note in quiet.notes_ if note.startswith(said)]


def test_labels_are_kept_unless_the_model_is_to_have_its_way(
    data: nova.LabelledGraph, half: np.ndarray
) -> None:
    wrong = half.copy()
    wrong[np.flatnonzero(data.y == 4)[:6]] = 0  # six nodes of a hidden class are called 0
    kept = NodeDiscoverer(2).fit(data.graph, wrong)
    assert (kept.labels_[wrong >= 0] == wrong[wrong >= 0]).all()
    loose = NodeDiscoverer(2, keep_labels=False).fit(data.graph, wrong)
    assert np.array_equal(loose.labels_, kept.predict(data.graph))
    assert not np.array_equal(loose.labels_, kept.labels_)


@pytest.fixture(scope="module")
def quick(data: nova.LabelledGraph, y: np.ndarray) -> NodeDiscoverer:
    return NodeDiscoverer(2, method=QUICK).fit(data.graph, y)


def sources(data: nova.LabelledGraph) -> dict[str, object]:
    """One graph in every form: arrays of words are read alike.

    Columns of a NetworkX graph become the same words.
    """
    graph = data.graph
    dense, edges = graph.x.toarray(), graph.edge_index
    drawn = nx.Graph()
    for i in range(graph.num_nodes):
        drawn.add_node(i, **{f"w{j}": float(dense[i, j]) for j in range(5)})
    drawn.add_edges_from(edges.T.tolist())
    return {
        "Graph": graph,
        "PyG": Data(
            x=torch.from_numpy(dense), edge_index=torch.from_numpy(edges), y=torch.zeros(150, 3)
        ),
        "edge_index": (dense, edges),
        "tensors": (torch.from_numpy(dense), torch.from_numpy(edges)),
        "lists": (dense.tolist(), edges.tolist()),
        "SciPy": (graph.x, graph.adjacency),
        "NumPy": (dense, graph.adjacency.toarray()),
        "NetworkX": drawn,
    }


@pytest.mark.parametrize("kind", ["PyG", "edge_index", "tensors", "lists", "SciPy", "NumPy"])
def test_the_same_graph_in_any_form_gives_the_same_classes(
    data: nova.LabelledGraph, y: np.ndarray, quick: NodeDiscoverer, kind: str
) -> None:
    source = sources(data)[kind]
    other = NodeDiscoverer(2, method=QUICK).fit(source, y)
    assert np.array_equal(other.predict_proba(), quick.predict_proba())
    assert np.array_equal(other.predict_proba(source), quick.predict_proba())
    assert len(set(other.labels_)) == 5


def test_a_networkx_graph_later_is_read_as_the_first_was(
    data: nova.LabelledGraph, y: np.ndarray
) -> None:
    drawn = sources(data)["NetworkX"]
    found = NodeDiscoverer(2, method=QUICK).fit(drawn, y)
    assert found.n_features_in_ == found.model_.frozen_encoder().spec.num_features
    assert np.array_equal(found.predict_proba(drawn), found.predict_proba())
    assert found.run_.recipe is not None
    some = drawn.subgraph(range(40))
    assert found.predict(some).shape == (40,)


def test_labels_may_come_with_the_graph(
    data: nova.LabelledGraph, y: np.ndarray, quick: NodeDiscoverer
) -> None:
    dense = torch.from_numpy(data.graph.x.toarray())
    pyg = Data(x=dense, edge_index=torch.from_numpy(data.graph.edge_index), y=torch.from_numpy(y))
    labelled = nova.LabelledGraph(data.graph, y, ("a", "b", "c"))
    for source, classes in (
        (pyg, ["0", "1", "2"]),
        (labelled, ["a", "b", "c"]),
        (nova.load_graph(labelled), ["a", "b", "c"]),
    ):
        other = NodeDiscoverer(2, method=QUICK).fit(source)
        assert np.array_equal(other.predict_proba(), quick.predict_proba())
        assert other.classes_[:3].tolist() == classes
    assert torch.equal(pyg.y, torch.from_numpy(y))


def test_labels_of_y_go_before_those_of_the_graph_and_that_is_said(
    data: nova.LabelledGraph, y: np.ndarray
) -> None:
    labelled = nova.LabelledGraph(data.graph, data.y, data.class_names)
    other = NodeDiscoverer(2, method=QUICK).fit(labelled, y)
    assert other.classes_[:3].tolist() == [0, 1, 2]
    assert "labels are taken from y, not from the graph" in other.notes_


UNKNOWN = {
    "-1": lambda y: y,
    "list with None": lambda y: [None if c < 0 else int(c) for c in y],
    "NaN": lambda y: np.where(y < 0, np.nan, y),
    "pandas.NA": lambda y: pd.array([pd.NA if c < 0 else c for c in y], dtype="Int64"),
    "pandas column": lambda y: pd.Series([None if c < 0 else f"kind {c}" for c in y]),
    "categories": lambda y: pd.Categorical([None if c < 0 else f"kind {c}" for c in y]),
    "texts": lambda y: np.array(["" if c < 0 else f"kind {c}" for c in y]),
    "tensor": lambda y: torch.from_numpy(y),
    "objects": lambda y: np.array(
        [None if c < 0 else [True, "two", 3.5][c] for c in y], dtype=object
    ),
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_labels_of_any_kind_come_back_as_they_are(
    data: nova.LabelledGraph, y: np.ndarray, kind: str
) -> None:
    told = UNKNOWN[kind](y)
    values = told.tolist() if hasattr(told, "tolist") else told
    found = NodeDiscoverer(2, method=QUICK).fit(data.graph, told)
    known = {label for label, c in zip(values, y, strict=True) if c >= 0}
    assert len(found.classes_) == 5
    assert set(found.classes_[:3]) == known
    assert [a for a, c in zip(found.labels_, y, strict=True) if c >= 0] == [
        b for b, c in zip(values, y, strict=True) if c >= 0
    ]


def test_an_array_alone_is_a_graph_without_edges(data: nova.LabelledGraph, y: np.ndarray) -> None:
    x = data.graph.x.toarray()
    found = NodeDiscoverer(2, method=QUICK).fit(x, y)
    assert found.run_.graph.num_edges == 0
    assert np.array_equal(found.predict_proba(x), found.predict_proba())
    assert np.array_equal(
        NodeDiscoverer(2, method=QUICK).fit(sp.csr_array(x), y).predict_proba(),
        found.predict_proba(),
    )
    table = pd.DataFrame(x, columns=[f"word {j}" for j in range(120)])
    assert NodeDiscoverer(2, method=QUICK).fit(table, y).feature_names_in_.tolist() == list(
        table.columns
    )


def test_one_labelled_node_a_class_is_enough(data: nova.LabelledGraph) -> None:
    y = np.full(150, -1)
    for c in range(3):
        y[np.flatnonzero(data.y == c)[0]] = c
    found = NodeDiscoverer(2).fit(data.graph, y)
    assert np.isfinite(found.predict_proba()).all()


def test_few_nodes_later_are_read_as_words_or_measurements_as_all_were(
    data: nova.LabelledGraph, y: np.ndarray
) -> None:
    found = NodeDiscoverer(2, method=QUICK).fit(data.graph, y)
    full = np.ones((2, 120), dtype=np.float32)  # taken by themselves, they would be dense
    assert isinstance(nova.load_graph((full, np.empty((2, 0), int))).graph.x, np.ndarray)
    words = nova.Graph.of(full, np.empty((2, 0), int), dense=False)
    assert np.array_equal(found.predict_proba(full), found.model_.predict_proba(words))


@pytest.mark.parametrize(
    ("change", "told", "sentence"),
    [
        (
            {},
            lambda y: np.arange(150) % 3,
            "every node has a label and none is marked as new",
        ),
        (
            {},
            lambda y: np.where(y == 1, 1, -1),
            "all labelled nodes are of one class, '1'; at least two",
        ),
        (
            {},
            lambda y: np.full(150, np.nan),
            "no labelled nodes apart from new ones",
        ),
        (
            {},
            lambda y: None,
            "no labelled nodes apart from new ones",
        ),
        ({}, lambda y: y[:7], "y has 7 labels, but the graph has 150 nodes"),
        (
            {},
            lambda y: y[:, None],
            r"y must be a list .* one label per node, not a ndarray of shape \(150, 1\)",
        ),
        ({}, lambda y: [[1]] * 150, "y holds a list, but a label is a single text or number"),
        ({}, lambda y: "labels", "y must be a list .* one label per node, not a str"),
        ({"method": "prisn"}, lambda y: y, "unknown method 'prisn'; known: .*prism"),
        (
            {"method": nova.Prism},
            lambda y: y,
            r"method is a name or a method like nova.Prism\(\), not the class",
        ),
        ({"method": 3}, lambda y: y, r"method is a name or a method like nova.Prism\(\), not 3"),
        ({"encoder": "gnc"}, lambda y: y, "unknown encoder 'gnc'"),
        (
            {"method": "sword", "encoder": "prism"},
            lambda y: y,
            "sword needs an encoder that can be trained",
        ),
        (
            {"fit_settings": {"hidden": 8}},
            lambda y: y,
            "hidden: only for encoders that are trained",
        ),
        ({"num_new": 0}, lambda y: y, "num_new must be a whole number from 1 on, it is 0"),
        ({"num_new": 2.5}, lambda y: y, "num_new must be a whole number from 1 on, it is 2.5"),
        (
            {"num_new": 500},
            lambda y: y,
            "500 new classes need at least 500 unlabelled nodes, there are 66",
        ),
        ({"mixed": "yes"}, lambda y: y, "mixed is True, False or None, not 'yes'"),
        (
            {"mixed": True, "num_new": 2, "method": "sword"},
            lambda y: y,
            "sword assumes that all nodes are new, and this task is mixed",
        ),
        (
            {"method": "sword"},
            lambda y: y,
            "can be estimated on the prism encoder only, not on gcn: give num_new",
        ),
        ({"min_confidence": 2}, lambda y: y, "min_confidence is a probability from 0 to 1, not 2"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    data: nova.LabelledGraph, y: np.ndarray, change: dict[str, object], told: object, sentence: str
) -> None:
    with pytest.raises(NodenovaError, match=sentence):
        NodeDiscoverer(**change).fit(data.graph, told(y))  # type: ignore[operator]


@pytest.mark.parametrize("call", ["predict", "predict_proba", "transform", "class_info"])
def test_before_fit_there_is_nothing_to_ask(call: str) -> None:
    with pytest.raises(NotFittedError, match="This NodeDiscoverer instance is not fitted yet"):
        getattr(NodeDiscoverer(), call)()


def test_a_graph_with_other_features_is_refused(found: NodeDiscoverer) -> None:
    with pytest.raises(
        NodenovaError, match="the graph has 3 features, the model was trained on 120"
    ):
        found.predict((np.ones((4, 3)), np.empty((2, 0), int)))


def test_what_is_given_out_can_be_changed_without_harm(found: NodeDiscoverer) -> None:
    before = found.predict_proba().copy()
    for values in (found.predict(), found.predict_proba(), found.transform()):
        values[:] = 0
    assert np.array_equal(found.predict_proba(), before)
    assert set(found.predict()) == set(found.labels_) != {0}


def test_settings_are_scikit_learns(
    data: nova.LabelledGraph, y: np.ndarray, found: NodeDiscoverer
) -> None:
    gnn = NodeDiscoverer(
        method=nova.Sword(epochs=2),
        encoder="gcn",
        fit_settings={"hidden": 8, "epochs": 3},
        random_state=4,
    )
    same = clone(gnn)
    assert same.get_params() == gnn.get_params()
    same.set_params(num_new=2, random_state=5)
    assert (gnn.num_new, same.num_new) == (None, 2)
    same.fit(data.graph, y)
    assert same.model_.stages[0].settings["hidden"] == 8
    assert [stage.seed for stage in same.model_.stages] == [5, 5]
    assert not hasattr(clone(found), "model_")
    random = [
        NodeDiscoverer(2, method=QUICK, random_state=np.random.RandomState(3)).fit(data.graph, y)
        for _ in range(2)
    ]
    assert np.array_equal(random[0].predict_proba(), random[1].predict_proba())
    assert (
        NodeDiscoverer(2, method=QUICK, random_state=None).fit(data.graph, y).run_.facts["Seed"]
        >= 0
    )


def test_fit_predict_and_fit_transform_are_fit_and_then_that(
    data: nova.LabelledGraph, y: np.ndarray, quick: NodeDiscoverer
) -> None:
    assert np.array_equal(clone(quick).fit_predict(data.graph, y), quick.predict())
    assert np.array_equal(clone(quick).fit_transform(data.graph, y), quick.transform())
    again = clone(quick).fit(data.graph, np.roll(y, 1))
    # Nothing is left of an earlier fit.
    assert np.array_equal(again.fit(data.graph, y).labels_, quick.labels_)


def test_a_pickle_is_refused_with_the_way_to_go(found: NodeDiscoverer, tmp_path: Path) -> None:
    way = r"save its model with model_.save\(folder\), or all of it with report"
    with pytest.raises(StorageError, match=rf"is not pickled.*: {way}"):
        pickle.dumps(found)
    assert pickle.loads(pickle.dumps(NodeDiscoverer(4))).num_new == 4  # only settings
    found.model_.save(tmp_path / "model")
    loaded, graph = nova.load_model(tmp_path / "model"), found.run_.graph
    assert np.array_equal(loaded.predict_proba(graph), found.model_.predict_proba(graph))


def test_classes_as_a_table_are_called_as_labels_are(
    found: NodeDiscoverer, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = found.class_info().to_frame()
    assert table["name"].tolist() == [str(label) for label in found.classes_]
    assert table["size"].sum() == 150
    assert table.shape == (5, 23)
    labelled = found.run_.label_ids >= 0
    by_model = found.model_.class_info(found.run_.graph, labelled=labelled)
    for info, plain in zip(found.class_info(), by_model, strict=True):
        assert info.size == sum(found.labels_ == found.classes_[found.class_info().index(info)])
        assert info.size_by_model == plain.size
        assert info.features == plain.features
    assert table["labelled"].sum() == labelled.sum()
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(
        NodenovaError,
        match=r"to_frame\(backend='pandas'\) needs pandas: pip install pandas",
    ):
        found.class_info().to_frame()


def test_a_report_is_what_the_command_line_writes(data: nova.LabelledGraph, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from nodenova.cli import app

    rows = ["id,label,text"]
    for i in range(150):
        words = " ".join(f"word{j}" for j in data.graph.x[[i]].indices)
        rows.append(f"n{i},{'' if data.y[i] > 2 else 'abc'[data.y[i]]},{words}")
    (tmp_path / "nodes.csv").write_text("\n".join(rows) + "\n")
    edges = "\n".join(f"n{a},n{b}" for a, b in data.graph.edge_index.T)
    (tmp_path / "edges.csv").write_text(f"source,target\n{edges}\n")
    files = {"nodes": tmp_path / "nodes.csv", "edges": tmp_path / "edges.csv"}
    asked = [
        "discover",
        "--nodes",
        files["nodes"],
        "--edges",
        files["edges"],
        "--num-new",
        2,
        "--title",
        "Mine",
        "--show",
        "text",
        "--out",
        tmp_path / "cli",
    ]
    done = CliRunner().invoke(app, [str(a) for a in asked], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    loaded = nova.load_graph(**files)
    shown = shown_columns(files["nodes"], ["text"], loaded.graph.node_ids.tolist())
    page = NodeDiscoverer(2).fit(loaded).report(tmp_path / "python", title="Mine", shown=shown)
    assert page == tmp_path / "python" / "report.html"

    def content(folder: Path) -> dict[str, bytes]:
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }

    written = content(tmp_path / "python")
    assert written == content(tmp_path / "cli")
    assert {
        "run.json",
        "graph.npz",
        "labels.npz",
        "report.html",
        "predictions.csv",
        "classes.csv",
    } <= set(written)
    with pytest.raises(StorageError, match="is not empty"):
        NodeDiscoverer(2, method=QUICK).fit(nova.load_graph(**files)).report(tmp_path / "python")


class TwoThirds(NodeDiscoverer):
    """scikit-learn's checks give a label to every sample.

    Here one in three is not told, and is to be discovered in.
    """

    def fit(self, graph: object, y: object = None) -> NodeDiscoverer:
        if y is not None and np.asarray(y).ndim == 1:
            y = np.array(np.asarray(y), dtype=object)
            y[2::3] = None
        return super().fit(graph, y)


TEXTS = (
    "classes that were discovered have names, and the check subtracts predictions from each other"
)
COUNTED = "discovered classes have probabilities too, and the check counts the labels in y"
EXPECTED = {
    "check_estimators_pickle": "a pickle is refused; model_.save and report are the way",
    "check_estimator_sparse_array": COUNTED,
    "check_estimator_sparse_matrix": COUNTED,
    "check_fit_idempotent": TEXTS,
    "check_methods_sample_order_invariance": TEXTS,
    "check_methods_subset_invariance": f"{TEXTS}; and what a node is depends on the graph it is in",
}


@pytest.mark.slow
def test_scikit_learns_own_checks_pass_but_for_named_ones() -> None:
    estimator = TwoThirds(1, method=QUICK)
    results = check_estimator(
        estimator, expected_failed_checks=EXPECTED, on_skip=None, on_fail=None
    )
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == set(EXPECTED)
    assert sum(r["status"] == "passed" for r in results) >= 35


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_later_frames_of_any_kind_are_read_by_the_same_recipe(kind: str) -> None:
    """The table encoder of the first graph, whoever made the frame.

    The same features, hence the same bits.
    """
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    nodes = pd.DataFrame({"id": np.arange(150), "a": rng.random(150), "b": rng.integers(0, 9, 150)})
    nodes["label"] = np.where(np.arange(150) < 60, np.where(nodes["a"] > 0.5, "x", "y"), None)
    ends = rng.integers(0, 150, (2, 300))
    edges = pd.DataFrame({"source": ends[0], "target": ends[1]})
    found = NodeDiscoverer(1, method=QUICK).fit((nodes, edges))
    fewer = nodes[:100].drop(columns="label")
    inner = edges[(edges["source"] < 100) & (edges["target"] < 100)]
    expected = found.predict_proba((fewer, inner))
    if kind == "polars":
        pl = pytest.importorskip("polars")
        later = (pl.from_pandas(fewer), pl.from_pandas(inner))
    else:
        pa = pytest.importorskip("pyarrow")
        later = (pa.Table.from_pandas(fewer), pa.Table.from_pandas(inner))
    assert np.array_equal(found.predict_proba(later), expected)
