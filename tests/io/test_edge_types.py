"""Edges of several types: each counts alike at a node, one type is as no type, a choice is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nodenova as nova
from nodenova.errors import SettingError
from nodenova.io.edges import EdgeType, combine_types
from nodenova.io.table_options import parse_edge_types
from nodenova.nn.sparse import weighted_links

NODES = "id,label,size\na,red,1\nb,red,2\nc,blue,3\nd,,4\ne,,4\n"
EDGES = (
    "source,target,kind,w\na,b,cites,1\na,c,cites,2\na,d,cites,3\na,e,cites,4\n"
    "a,b,same author,9\nd,e,same author,9\n"
)


def load(folder: Path, edges: str = EDGES, **options: Any) -> nova.UserGraph:
    (folder / "nodes.csv").write_text(NODES)
    (folder / "edges.csv").write_text(edges)
    return nova.load_graph(folder, **{"edge_type_column": "kind", **options})


def test_edges_of_all_types_are_those_of_one_graph_and_it_is_said(tmp_path: Path) -> None:
    loaded = load(tmp_path)
    assert loaded.graph.num_edges == 10
    assert loaded.graph.edge_weight is not None
    assert any(
        "edges.csv: edge types are cites 4, same author 2; at each node" in note
        for note in loaded.notes
    )
    assert not any("repeat" in note for note in loaded.notes)


def test_one_type_is_as_no_type_bit_for_bit(tmp_path: Path) -> None:
    chosen = load(tmp_path, edge_types="cites")
    plain = load(tmp_path, "\n".join(EDGES.splitlines()[:5]) + "\n", edge_type_column=None)
    assert chosen.fingerprint() == plain.fingerprint()
    assert chosen.graph.edge_weight is None
    assert any("edge types not used: same author" in note for note in chosen.notes)


def test_one_type_with_weights_is_as_weights_alone(tmp_path: Path) -> None:
    typed = load(tmp_path, edge_types="cites", weight_column="w").graph.edge_weight
    lines = "\n".join(EDGES.splitlines()[:5]) + "\n"
    plain = load(tmp_path, lines, edge_type_column=None, weight_column="w").graph.edge_weight
    assert typed is not None
    assert plain is not None
    assert np.allclose(typed / typed[0], plain / plain[0])


def test_types_count_alike_where_all_nodes_have_as_many_of_each() -> None:
    """Ten edges of one type weigh at a node what two of another do."""
    ring = np.arange(60)
    far = [np.stack([ring, (ring + step) % 60]) for step in range(3, 8)]
    types = [
        EdgeType("many", np.concatenate(far, axis=1)),
        EdgeType("few", np.stack([ring, (ring + 1) % 60])),
    ]
    for shares, times in ((None, 1.0), ({"many": 1.0, "few": 3.0}, 3.0)):
        ends, weight = combine_types(types, 60, shares, "edges", [])
        links = weighted_links(nova.Graph.of(np.ones((60, 2)), ends, edge_weight=weight)).toarray()
        few = np.isin((ring[:, None] - ring) % 60, [1, 59])
        ratio = links[few].sum() / links[~few].sum()
        assert ratio == pytest.approx(times, rel=1e-5)


def test_weights_count_within_their_type_whatever_their_scale(tmp_path: Path) -> None:
    one = load(tmp_path, weight_column="w").graph.edge_weight
    heavy = EDGES.replace(",9", ",9000")
    assert np.allclose(load(tmp_path, heavy, weight_column="w").graph.edge_weight, one)
    other = EDGES.replace("a,b,cites,1", "a,b,cites,4")
    assert not np.allclose(load(tmp_path, other, weight_column="w").graph.edge_weight, one)


@pytest.mark.parametrize(
    ("given", "shares"),
    [
        (None, None),
        ("cites", {"cites": 1.0}),
        (" cites , same author=0.5", {"cites": 1.0, "same author": 0.5}),
        (["a=b=2"], {"a=b": 2.0}),
        ({"cites": 2}, {"cites": 2.0}),
    ],
)
def test_types_are_chosen_in_several_ways(given: Any, shares: Any) -> None:
    assert parse_edge_types(given) == shares


@pytest.mark.parametrize("given", ["", "cites=none", {"cites": -1}, {"cites": float("inf")}])
def test_a_choice_that_says_nothing_is_refused(given: Any) -> None:
    with pytest.raises(SettingError, match="edge_types"):
        parse_edge_types(given)


def test_a_graph_that_is_ready_has_no_types() -> None:
    with pytest.raises(SettingError, match="edge_types is for tables"):
        nova.load_graph(nova.synthetic(nodes=50, classes=2).graph, edge_types="cites")


def types_of(seed: int) -> tuple[np.ndarray, np.ndarray, list[EdgeType]]:
    """Words that say little, few edges within classes, many that lead anywhere."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 6, 500)
    groups = [np.flatnonzero(y == c) for c in range(6)]
    a = rng.integers(0, 500, 750)
    anywhere = rng.random(750) < 0.2
    b = np.where(anywhere, rng.integers(0, 500, 750), [rng.choice(groups[c]) for c in y[a]])
    x = (rng.random((500, 180)) < 0.02).astype(np.float32)
    own = 30 * y[:, None] + rng.integers(0, 30, (500, 1))
    np.put_along_axis(x, own, 1.0, axis=1)
    return (
        y,
        x,
        [EdgeType("good", np.stack([a, b])), EdgeType("noise", rng.integers(0, 500, (2, 4000)))],
    )


def test_many_edges_that_say_nothing_do_not_drown_few_that_do() -> None:
    y, x, types = types_of(0)

    def score(ends: np.ndarray, weight: np.ndarray | None) -> float:
        labelled = nova.LabelledGraph(
            nova.Graph.of(x, ends, edge_weight=weight), y, tuple("abcdef")
        )
        old, new, exam = nova.split(labelled, [0, 1, 2])
        model = nova.discover(nova.fit(old), new, nova.Prism(n_resamples=0))
        return nova.grade(model, exam).scores("block")["all"]

    untyped = score(np.concatenate([kind.ends for kind in types], axis=1), None)
    typed = score(*combine_types(types, 500, None, "edges", []))
    chosen = score(*combine_types(types, 500, {"good": 1.0}, "edges", []))
    assert typed > untyped + 5
    assert chosen > typed + 3
