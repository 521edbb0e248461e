from __future__ import annotations

import numpy as np
import pytest

from nodenova.data.synthetic import synthetic
from nodenova.errors import SettingError
from nodenova.io.datasets import load_dataset


def test_shapes_and_names() -> None:
    labelled = synthetic(nodes=120, classes=4, words=60)
    assert labelled.graph.num_nodes == 120
    assert labelled.graph.num_features == 60
    assert labelled.num_classes == 4
    assert labelled.class_names == ("class-0", "class-1", "class-2", "class-3")
    assert len(labelled.graph.feature_names) == 60
    assert not labelled.has_split


def test_the_same_seed_is_the_same_graph() -> None:
    assert synthetic(nodes=100, seed=3).fingerprint() == synthetic(nodes=100, seed=3).fingerprint()
    assert synthetic(nodes=100, seed=3).fingerprint() != synthetic(nodes=100, seed=4).fingerprint()


def test_every_class_has_two_nodes_however_many_classes_there_are() -> None:
    labelled = synthetic(nodes=20, classes=10, words=20)
    assert (np.bincount(labelled.y, minlength=10) == 2).all()


@pytest.mark.parametrize(
    ("homophily", "expected"), [(1.0, 1.0), (0.8, 0.8 + 0.2 / 4), (0.0, 1 / 4)]
)
def test_homophily_is_what_was_asked_for(homophily: float, expected: float) -> None:
    labelled = synthetic(nodes=3000, classes=4, homophily=homophily)
    a, b = labelled.graph.edge_index
    assert (labelled.y[a] == labelled.y[b]).mean() == pytest.approx(expected, abs=0.02)


def test_degree_is_what_was_asked_for() -> None:
    graph = synthetic(nodes=3000, degree=8.0).graph
    assert graph.num_edges / graph.num_nodes == pytest.approx(8.0, rel=0.03)
    assert synthetic(nodes=50, degree=0.0).graph.num_edges == 0


def test_words_are_zero_or_one_and_speak_of_the_class() -> None:
    labelled = synthetic(nodes=2000, classes=4, words=400, words_per_node=10, topic_share=1.0)
    x = labelled.graph.x.tocoo()
    assert set(x.data) == {1.0}
    assert (x.coords[1] % 4 == labelled.y[x.coords[0]]).all()
    noise = synthetic(
        nodes=2000, classes=4, words=400, words_per_node=10, topic_share=0.0
    ).graph.x.tocoo()
    shares = np.bincount(noise.coords[1] % 4) / noise.nnz
    assert np.allclose(shares, 0.25, atol=0.02)


@pytest.mark.parametrize(
    "settings",
    [
        {"classes": 1},
        {"nodes": 7, "classes": 4},
        {"words": 7, "classes": 4},
        {"words_per_node": 0},
        {"homophily": 1.5},
        {"topic_share": -0.1},
        {"degree": -1.0},
    ],
)
def test_impossible_settings(settings: dict[str, float]) -> None:
    with pytest.raises(SettingError, match="synthetic"):
        synthetic(**settings)  # type: ignore[arg-type]


def test_by_name_with_options() -> None:
    labelled = load_dataset("synthetic:nodes=50,classes=5,homophily=0.5,seed=2")
    assert labelled.graph.num_nodes == 50
    assert labelled.num_classes == 5
    assert labelled.name == "synthetic:nodes=50,classes=5,homophily=0.5,seed=2"
    assert (
        labelled.fingerprint()
        == synthetic(nodes=50, classes=5, homophily=0.5, seed=2).fingerprint()
    )


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "synthetic:node=50",
            "unknown option of synthetic 'node'; known: classes, degree, .*nodes",
        ),
        ("synthetic:nodes=many", "nodes must be a number, it is 'many'"),
        ("synthetic:nodes", "nodes must be a number"),
        ("synthetic:nodes=5.5", "nodes must be a number"),
    ],
)
def test_bad_options(name: str, sentence: str) -> None:
    with pytest.raises(SettingError, match=sentence):
        load_dataset(name)
