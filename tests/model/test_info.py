from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import nodenova as nova
from nodenova.errors import NodenovaError
from nodenova.model.classes import display_names
from nodenova.model.info import ClassInfo, class_info
from nodenova.nn.seeding import fixed_sample


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def test_sizes_confidence_and_unsure_are_those_of_predict(case) -> None:
    p, said = case.model.predict_proba(case.graph), case.model.predict(case.graph)
    infos = case.model.class_info(case.graph, min_confidence=0.7)
    assert [i.id for i in infos] == [0, 1, 2, 3]
    assert [i.kind for i in infos] == ["known", "known", "discovered", "discovered"]
    assert [i.stage for i in infos] == [0, 0, 1, 1]
    assert [i.name for i in infos] == ["class-0", "class-1", infos[2].auto_name, infos[3].auto_name]
    for info in infos:
        mine = said == info.id
        assert info.size == mine.sum()
        assert info.share == pytest.approx(mine.mean())
        assert info.confidence == pytest.approx(p[mine].max(axis=1).mean(), abs=1e-5)
        assert info.unsure == (p[mine].max(axis=1) < 0.7).sum()


def test_cohesion_nearest_and_representatives_by_hand(cases) -> None:
    """On the cosine head, where what the head reads is z/|z|."""
    model, graph = cases["gcn"].model, cases["gcn"].graph
    z, said, p = (
        unit(model.embed(graph).astype(float)),
        model.predict(graph),
        model.predict_proba(graph).max(axis=1),
    )
    means = unit(np.stack([z[said == c].mean(axis=0) for c in range(4)]))
    cosine = z @ means.T
    for info in class_info(model, graph, representatives=3):
        c, mine = info.id, np.flatnonzero(said == info.id)
        others = np.delete(cosine, c, axis=1).max(axis=1)
        assert info.cohesion == pytest.approx((cosine[mine, c] - others[mine]).mean(), abs=1e-5)
        like = means @ means[c]
        like[c] = -2
        assert info.nearest == like.argmax()
        assert info.nearest_similarity == pytest.approx(like.max(), abs=1e-5)
        sure = [i for i in mine if p[i] >= np.median(p[mine])]
        best = max(sure, key=lambda i: cosine[i, c])
        assert info.representative_nodes[0] == best
        assert len(info.representatives) == len(info.representative_nodes) == 3
        assert set(info.representative_nodes) <= set(sure)
        assert (
            graph.adjacency[list(info.representative_nodes)][
                :, list(info.representative_nodes)
            ].sum()
            == 0
        )


def test_neighbours_are_counted_edge_by_edge(case) -> None:
    said, (a, b) = case.model.predict(case.graph), case.graph.edge_index
    for info in class_info(case.model, case.graph, neighbors=2):
        from_me = said[b[said[a] == info.id]]
        assert info.own_edges == pytest.approx((from_me == info.id).mean())
        assert len(info.neighbors) == 2
        assert info.neighbors[0].share >= info.neighbors[1].share
        for other in info.neighbors:
            assert other.id != info.id
            assert other.share == pytest.approx((from_me == other.id).mean())
            assert other.expected == pytest.approx((said[b] == other.id).mean())


def test_features_have_names_and_name_the_class() -> None:
    """Words of a class are drawn for it alone: they are what names it."""
    labelled = nova.synthetic(nodes=200, classes=3, words=60, words_per_node=8)
    names = [f"word-{j}" for j in range(60)]
    graph = dataclasses.replace(labelled.graph, feature_names=tuple(names))
    old, _, _ = nova.split(dataclasses.replace(labelled, graph=graph), [0, 1])
    model = nova.fit(old)
    infos = class_info(model, graph, features=4)
    assert all(len(info.features) == 4 for info in infos)
    for info in infos:
        assert info.auto_name == ", ".join(f.name for f in info.features[:3])
        assert [f.weight for f in info.features] == sorted(
            (f.weight for f in info.features), reverse=True
        )
        has = graph.x[:, [names.index(info.features[0].name)]].toarray()[:, 0] > 0
        mine = model.predict(graph) == info.id
        assert has[mine].mean() > has[~mine].mean()
    assert infos[0].auto_name != infos[1].auto_name


def test_a_class_is_called_by_its_features_until_somebody_names_it(case) -> None:
    plain = case.model.class_info(case.graph)
    assert plain[2].name == plain[2].auto_name != "new-2"
    # No features, no automatic names.
    assert [i.name for i in case.model.class_info()] == list(case.model.class_names)
    named = case.model.rename(2, "fish").rename(1, plain[3].auto_name).class_info(case.graph)
    assert [i.name for i in named[1:]] == [plain[3].auto_name, "fish", f"{plain[3].auto_name} (2)"]
    assert [i.auto_name for i in named] == [i.auto_name for i in plain]


def test_names_where_some_are_missing_or_taken() -> None:
    classes = [
        nova.NodeClass(0, "fish", 0),
        nova.NodeClass(1, "new-1", 1),
        nova.NodeClass(2, "new-2 (2)", 1),
    ]
    assert display_names(classes, {}) == ["fish", "new-1", "new-2 (2)"]
    assert display_names(classes, {0: "water", 1: "fish", 2: "fish"}) == [
        "fish",
        "fish (2)",
        "fish (3)",
    ]
    assert display_names(classes, {1: "", 2: "birds"}) == ["fish", "new-1", "birds"]


def test_as_a_table_it_has_a_row_a_class(case) -> None:
    infos = case.model.class_info(case.graph)
    table = infos.to_frame()
    assert table["id"].tolist() == [0, 1, 2, 3]
    assert table["name"].tolist() == [i.name for i in infos]
    assert table["features"][2] == tuple(f.name for f in infos[2].features)
    assert table["size"].sum() == case.graph.num_nodes


def test_outputs_that_are_known_are_not_computed_again(
    case, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs, expected = case.model.embed_and_predict(case.graph), case.model.class_info(case.graph)
    monkeypatch.setattr(type(case.model), "embed_and_predict", None)
    assert class_info(case.model, case.graph, outputs=outputs) == expected


def test_without_a_graph_only_what_the_model_knows(case) -> None:
    for info in case.model.class_info():
        assert (
            info.size
            is info.share
            is info.confidence
            is info.cohesion
            is info.unsure
            is info.own_edges
            is None
        )
        assert info.representatives == info.features == info.neighbors == ()
        assert info.auto_name == info.name
        assert info.nearest != info.id
        assert -1 <= info.nearest_similarity <= 1


def test_edited_classes_are_described_by_their_ids(case) -> None:
    edited = case.model.split(2, case.graph).merge([0, 3], "old and new")
    infos = edited.class_info(case.graph)
    assert [(i.id, i.kind) for i in infos] == [
        (0, "known"),
        (1, "known"),
        (4, "discovered"),
        (5, "discovered"),
    ]
    assert [i.name for i in infos] == [
        "old and new",
        "class-1",
        infos[2].auto_name,
        infos[3].auto_name,
    ]
    said = edited.predict(case.graph)
    assert [i.size for i in infos] == [(said == i.id).sum() for i in infos]
    assert {i.nearest for i in infos} <= {0, 1, 4, 5}
    assert all(n.id in {0, 1, 4, 5} for i in infos for n in i.neighbors)
    assert len(edited.class_info()) == 4


def test_a_class_without_nodes_and_a_graph_without_edges(case) -> None:
    """A few nodes of one class: the others are empty, and nothing is divided by nothing."""
    some = np.flatnonzero(case.model.predict(case.graph) == 1)[:5]
    lonely = nova.Graph.of(
        case.graph.x[some], np.empty((2, 0), dtype=int), node_ids=[f"n{i}" for i in range(5)]
    )
    infos = case.model.class_info(lonely)
    assert sum(i.size for i in infos) == 5
    empty = [i for i in infos if i.size == 0]
    assert empty
    for info in empty:
        assert info.confidence is info.cohesion is info.own_edges is None
        assert info.unsure == 0
        assert info.representatives == info.features == info.neighbors == ()
    full = next(i for i in infos if i.size)
    assert set(full.representatives) <= {"n0", "n1", "n2", "n3", "n4"}


def test_a_model_with_one_class_has_no_nearest(labelled) -> None:
    old, _, _ = nova.split(labelled, [0])
    (info,) = nova.fit(old).class_info(labelled.graph)
    assert info.nearest is info.nearest_similarity is info.cohesion is None
    assert info.size == labelled.graph.num_nodes


def test_it_is_the_same_each_time_and_plain_values(case) -> None:
    a, b = case.model.class_info(case.graph), case.model.class_info(case.graph)
    assert a == b
    assert isinstance(a[0], ClassInfo)
    assert {type(v) for v in dataclasses.asdict(a[0]).values()} <= {
        int,
        str,
        float,
        tuple,
        type(None),
    }
    assert type(a[0].representatives[0]) in (int, str)


def test_a_probability_is_asked_for(case) -> None:
    with pytest.raises(NodenovaError, match="min_confidence is a probability from 0 to 1, not 2"):
        case.model.class_info(case.graph, min_confidence=2)


def test_of_a_large_graph_typical_nodes_are_looked_for_among_some(
    case, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, graph = case.model, case.graph
    whole = nova.class_info(model, graph)
    monkeypatch.setattr("nodenova.model.info.MAX_COMPARED_NODES", 40)
    infos = nova.class_info(model, graph)
    said = model.predict(graph)
    seen = set(fixed_sample(graph.num_nodes, 40).tolist())
    for info, full in zip(infos, whole, strict=True):
        assert (info.size, info.confidence, info.features) == (
            full.size,
            full.confidence,
            full.features,
        )
        for node in info.representative_nodes:
            assert node in seen
            assert said[node] == info.id
        assert info.representative_nodes
        assert info.cohesion is not None
