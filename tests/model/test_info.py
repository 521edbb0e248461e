"""What is in a class: features, names, representatives, neighbors, tables."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from scipy import stats

import nodenova as nova
from nodenova.errors import NodenovaError, SettingError
from nodenova.model.classes import display_names
from nodenova.model.info import (
    PRIOR_NODES,
    Characteristics,
    ClassInfo,
    ClassInfos,
    Feature,
    characteristic,
    class_info,
    log_odds,
    mean_difference,
    weights,
)
from nodenova.model.stop_words import STOP_WORDS
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
    with pytest.raises(NodenovaError, match="min_confidence is a probability from 0 to 1, not 1e"):
        case.model.predict(case.graph, min_confidence=1e39)


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


INFOS = ClassInfos(
    ClassInfo(
        i,
        f"class {i}",
        "",
        "discovered",
        1,
        nearest=None if i else 1,
        size=3 + i,
        representatives=("a", "b"),
    )
    for i in range(2)
)


def test_classes_as_a_table_of_the_library_that_is_asked_for() -> None:
    plain, polars, arrow = (
        INFOS.to_frame(),
        INFOS.to_frame("polars"),
        INFOS.to_frame(backend="pyarrow"),
    )
    assert isinstance(plain, pd.DataFrame)
    assert isinstance(polars, pl.DataFrame)
    assert isinstance(arrow, pa.Table)
    assert list(plain.columns) == polars.columns == arrow.column_names
    for name, expected in (("name", ["class 0", "class 1"]), ("size", [3, 4])):
        assert plain[name].tolist() == expected
        assert polars[name].to_list() == arrow[name].to_pylist() == expected
    assert polars["nearest"].to_list() == arrow["nearest"].to_pylist() == [1, None]
    ids = [["a", "b"]] * 2
    assert polars["representatives"].to_list() == arrow["representatives"].to_pylist() == ids
    with pytest.raises(SettingError, match="one of pandas, polars, pyarrow, not 'dask'"):
        INFOS.to_frame("dask")


def test_a_library_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ImportError("polars")

    monkeypatch.setattr("narwhals.from_dict", fail)
    with pytest.raises(SettingError, match="needs polars: pip install polars"):
        ClassInfos().to_frame("polars")


def log_odds_naive(has: np.ndarray, groups: np.ndarray, c: int, word: int) -> float:
    """Written out for one class and one word, from the nodes."""
    n, having = len(has), sum(has[:, word])
    prior_with = PRIOR_NODES * (having + 1) / (n + 2)
    prior_without = PRIOR_NODES - prior_with
    counts = [prior_with, prior_without, prior_with, prior_without]
    for node in range(n):
        counts[2 * (groups[node] != c) + (not has[node, word])] += 1
    a, b, rest_a, rest_b = counts
    return (math.log(a / b) - math.log(rest_a / rest_b)) / math.sqrt(
        1 / a + 1 / b + 1 / rest_a + 1 / rest_b
    )


def a_graph(x: object, names: list[str] | None = None) -> nova.Graph:
    return nova.Graph.of(x, np.empty((2, 0), dtype=int), feature_names=names)


@pytest.fixture
def words() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    groups = rng.integers(3, size=80)
    has = rng.random((80, 12)) < np.where(np.arange(12) % 3 == groups[:, None], 0.25, 0.1)
    has[:, 11] = False
    return has, groups


def test_log_odds_are_those_of_the_naive_twin(words) -> None:
    has, groups = words
    counts = np.stack([has[groups == c].sum(axis=0) for c in range(3)]).astype(float)
    found = log_odds(counts, np.bincount(groups).astype(float))
    expected = [[log_odds_naive(has, groups, c, w) for w in range(12)] for c in range(3)]
    assert np.allclose(found, expected)


def test_log_odds_of_a_word_that_all_or_none_have_are_finite_and_near_nothing() -> None:
    found = log_odds(np.array([[5.0, 0.0], [30.0, 0.0]]), np.array([5.0, 30.0]))
    assert np.isfinite(found).all()
    assert np.abs(found).max() < 1


def test_a_word_seen_once_weighs_less_than_one_seen_often() -> None:
    found = log_odds(np.array([[1.0, 40.0], [0.0, 10.0]]), np.array([100.0, 900.0]))
    assert 0 < found[0, 0] < found[0, 1]


def test_mean_difference_is_welchs_t() -> None:
    rng = np.random.default_rng(1)
    x, groups = rng.normal(3, 2, (50, 4)), rng.integers(3, size=50)
    parts = [x[groups == c] for c in range(3)]
    found = mean_difference(
        np.stack([p.sum(0) for p in parts]),
        np.stack([(p**2).sum(0) for p in parts]),
        np.bincount(groups),
    )
    expected = [
        stats.ttest_ind(x[groups == c], x[groups != c], equal_var=False).statistic for c in range(3)
    ]
    assert np.allclose(found, expected)


def test_mean_difference_without_variance_or_without_nodes_is_zero() -> None:
    sums = np.array([[4.0, 1e6], [6.0, 2e6], [0.0, 0.0]])
    squares = np.array([[8.0, 1e12], [12.0, 2e12], [0, 0]])
    found = mean_difference(sums, squares, np.array([2, 3, 0]))
    assert found[:, 0].tolist() == [0, 0, 0]
    assert (found[2] == 0).all()
    assert np.isfinite(found).all()


@pytest.mark.parametrize("form", ["sparse counts", "dense binary"])
def test_words_are_weighed_by_who_has_them(words, form: str) -> None:
    has, groups = words
    x = sp.csr_array(has * 3.5) if form == "sparse counts" else np.hstack([has, np.ones((80, 12))])
    graph = a_graph(x)
    assert sp.issparse(graph.x) == (form == "sparse counts")
    found, is_word = weights(graph, groups, 3)
    assert is_word.all()
    assert found[1, 4] == pytest.approx(log_odds_naive(has, groups, 1, 4))


def test_measurements_among_sparse_words_are_weighed_by_their_means(words) -> None:
    has, groups = words
    x = np.zeros((80, 40))
    x[:, :12] = has
    x[:, 12] = np.linspace(1, 9, 80) + 5 * (groups == 2)
    x[0, 13] = -1.0
    graph = a_graph(x)
    assert sp.issparse(graph.x)
    found, is_word = weights(graph, groups, 3)
    assert np.flatnonzero(~is_word).tolist() == [12, 13]
    values = graph.x.toarray().astype(float)[:, 12]
    assert found[2, 12] == pytest.approx(
        stats.ttest_ind(values[groups == 2], values[groups != 2], equal_var=False).statistic
    )


def test_characteristic_words_name_the_group() -> None:
    groups = np.repeat([0, 1], 50)
    x = np.zeros((100, 20))
    x[:40, 3] = x[:35, 4] = x[:30, 5] = x[50:90, 7] = 1
    x[:50:2, 6] = x[50::2, 6] = 1
    names = [f"w{j}" for j in range(20)]
    names[3:8] = ["plant", "plants", "flower", "the", "dog"]
    features, keywords, auto = characteristic(a_graph(x, names), groups, 2, 10)
    assert [f.name for f in features[0]][:3] == ["plant", "plants", "flower"]
    assert auto == ["plant, flower", "dog"]  # one word of a stem, and no stop word
    assert [word.name for word in keywords[0]] == ["plant", "flower"]
    assert all(f.weight > 0 for f in features[0])
    assert isinstance(features[0][0], Feature)


def test_characteristic_measurements_are_high_or_low() -> None:
    groups = np.repeat([0, 1], 20)
    x = np.random.default_rng(0).normal(size=(40, 3))
    x[:20, 0] += 5
    x[20:, 1] += 3
    features, keywords, auto = characteristic(a_graph(x, ["age", "income", "noise"]), groups, 2, 2)
    assert auto == ["high age, low income", "low age, high income"]
    assert features[0][1].name == "income"
    assert features[0][1].weight < 0
    assert [word.name for word in keywords[0]] == ["high age", "low income"]
    assert keywords[0][1].weight == -features[0][1].weight


def test_names_are_unique_and_unnamed_features_are_numbered() -> None:
    groups = np.repeat([0, 1, 2], 30)
    x = np.zeros((90, 12))
    x[:60, :3] = 1
    x[:30, 3] = 1
    auto = characteristic(a_graph(x), groups, 3, 3).names
    assert auto[0].startswith("feature ")
    assert len(set(auto[:2])) == 2
    assert auto[2] == ""


GROUPS = np.repeat([0, 1], 40)


def found_in(columns: dict[str, np.ndarray]) -> Characteristics:
    x = sp.csr_array(np.stack(list(columns.values()), axis=1).astype(np.float32))
    edges = np.zeros((2, 0), dtype=np.int64)
    graph = nova.Graph.of(x, edges, feature_names=tuple(columns))
    return characteristic(graph, GROUPS, 2, 10)


def names_of(columns: dict[str, np.ndarray]) -> list[str]:
    return found_in(columns).names


def mostly(group: int, seed: int) -> np.ndarray:
    """A word that most nodes of a group have, and few others."""
    rng = np.random.default_rng(seed)
    return np.where(group == GROUPS, rng.random(80) < 0.8, rng.random(80) < 0.1)


def test_words_go_before_categories_and_these_before_numbers() -> None:
    first = names_of(
        {
            "installed_size>=555": GROUPS == 0,
            "maintainer=other": GROUPS == 0,
            "maintainer=Debian Multimedia": mostly(0, 1),
            "for": GROUPS == 0,
            "audio": mostly(0, 2),
            "x": mostly(1, 3),
        }
    )[0]
    assert first == "audio, Debian Multimedia, high installed_size"


def test_parts_of_vectors_are_named_only_where_there_is_nothing_else() -> None:
    noise = np.random.default_rng(0).normal(size=(3, 80))
    parts = {f"emb[{i}]": 9.0 * (GROUPS == 0) + noise[i] for i in range(3)}
    both = names_of({**parts, "audio": mostly(0, 2)})
    assert both[0] == "audio"
    assert names_of(parts)[0].startswith("high emb[")


def test_keywords_have_no_stop_word_no_cut_and_each_column_once() -> None:
    """The list of FIRST-HOURS: a size three times, a maintainer with =, "to" and "your"."""
    cuts = {f"installed_size>={cut}": GROUPS == 0 for cut in (418, 1963, 136)}
    stops = dict.fromkeys(("to", "your", "der", "les", "para", "från"), GROUPS == 0)
    found = found_in(
        {
            **cuts,
            **stops,
            "maintainer=Debian Ruby Team": GROUPS == 0,
            "maintainer=other": GROUPS == 0,
            "ruby": mostly(0, 1),
            "zone": mostly(1, 2),
        }
    )
    words = [word.name for word in found.keywords[0]]
    assert sorted(words) == ["Debian Ruby Team", "high installed_size", "ruby"]
    assert found.names == ["ruby, Debian Ruby Team, high installed_size", "zone"]
    assert any("=" in feature.name for feature in found.features[0])  # these stay as they are
    # A cut is a word to the encoder: what a class has less often does not describe it.
    assert [word.name for word in found.keywords[1]] == ["zone"]


def test_a_class_known_by_structure_alone_is_around_a_node() -> None:
    hubs = {f"next to {node}": mostly(0, node) for node in (3, 5, 8, 9)}
    hubs |= {"next to p=1": mostly(1, 1)}
    found = found_in(hubs)
    first = found.keywords[0][0].name.removeprefix("next to ")
    assert found.names == [f"around node {first} (+2)", "around node p=1"]
    # Words say more than neighbors do.
    assert names_of({**hubs, "audio": mostly(0, 2)})[0] == "audio"


def test_two_classes_around_the_same_nodes_have_different_names() -> None:
    groups = np.repeat([0, 1, 2], 30)
    x = np.zeros((90, 2))
    x[:60] = 1
    names = [f"next to {node}" for node in (7, 9)]
    auto = characteristic(a_graph(x, names), groups, 3, 3).names
    assert auto == ["around node 7 (+1)", "around node 9 (+1)", ""]


def test_words_that_mean_something_in_english_are_no_stop_words() -> None:
    assert not STOP_WORDS & {"war", "die", "son", "van", "var", "ruby", "food", "art", "port"}
    assert {"the", "und", "les", "para", "degli", "não", "het", "och", "się", "что"} <= STOP_WORDS
    assert all(word == word.lower() and " " not in word for word in STOP_WORDS)
