"""Which column is taken for what, by its name and by what is in it; and said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import nodenova as nova
from nodenova.errors import GraphError
from nodenova.io.column_guessing import guess_ends

N = 24
KEYS = [f"k{i}" for i in range(N)]
SIZES = [i % 5 + 0.5 for i in range(N)]


def said(loaded: nova.UserGraph, sentence: str) -> bool:
    return any(sentence in note for note in loaded.notes)


@pytest.mark.parametrize("name", [
    "id", "ID", "node", "node_id", "nodeId", "paperId", "paper_id", "corpusID", "Package", "key",
    "uuid", "DOI", "identifier", "user id",
])  # fmt: skip
def test_ids_are_found_by_name_wherever_they_stand(name: str) -> None:
    loaded = nova.load_graph(nodes=pl.DataFrame({"size": SIZES, name: KEYS}))
    assert loaded.graph.node_ids.tolist() == KEYS
    assert loaded.graph.feature_names == ("size",)
    assert said(loaded, f"nodes: column {name!r} is taken as id_column")


def test_a_name_of_ids_does_not_count_where_values_repeat() -> None:
    loaded = nova.load_graph(nodes=pl.DataFrame({"x": KEYS, "author_id": [1, 2, 3] * 8}))
    assert loaded.graph.node_ids.tolist() == KEYS
    assert said(loaded, "column 'x', the first, is taken as id_column")


def test_a_column_of_names_is_the_id_where_edges_speak_of_it() -> None:
    names = [f"Jane {i}" for i in range(N)]
    nodes = pl.DataFrame({"rank": list(range(100, 100 + N)), "name": names, "size": SIZES})
    by_name = pl.DataFrame({"from": names[:5], "to": names[5:10]})
    loaded = nova.load_graph((nodes, by_name))
    assert loaded.graph.node_ids.tolist() == names
    assert said(loaded, "column 'name' is taken as id_column")
    alone = nova.load_graph(nodes=nodes)
    assert alone.graph.node_ids[0] == "100"


def test_edges_decide_between_two_columns_of_ids(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(
        "twitch_id,new_id,views\n" + "".join(f"{900 + i},{i},{i % 3}\n" for i in range(N))
    )
    (tmp_path / "edges.csv").write_text(
        "node_1,node_2\n" + "".join(f"{i},{i + 1}\n" for i in range(9))
    )
    loaded = nova.load_graph(tmp_path)
    assert loaded.graph.node_ids.tolist() == [str(i) for i in range(N)]
    assert said(loaded, "nodes.csv: column 'new_id' is taken as id_column")


def test_edges_that_speak_of_another_column_name_it(tmp_path: Path) -> None:
    nodes = pl.DataFrame({"id": KEYS, "code": [f"c{i}" for i in range(N)], "size": SIZES})
    edges = pl.DataFrame({"source": ["c1"], "target": ["c2"]})
    with pytest.raises(GraphError) as refused:
        nova.load_graph((nodes, edges))
    hint = "column 'code' has these ids: give it as id_column (--id-column)"
    assert str(refused.value).endswith(f"first: 'c1' -> 'c2' (row 1); {hint}")
    assert nova.load_graph((nodes, edges), id_column="code").graph.num_edges == 2


@pytest.mark.parametrize("name", ["label", "class", "category", "y", "labels", "target", "topic",
                                  "Type", "classes", "categories"])  # fmt: skip
def test_labels_are_found_by_name(name: str) -> None:
    labels = ["red", "blue", None] * 8
    loaded = nova.load_graph(nodes=pl.DataFrame({"id": KEYS, "size": SIZES, name: labels}))
    assert loaded.class_names == ("blue", "red")
    assert loaded.graph.feature_names == ("size",)
    assert said(loaded, f"nodes: column {name!r} is taken as label_column")


def test_a_usual_name_goes_before_a_further_one() -> None:
    table = pl.DataFrame({"id": KEYS, "type": ["a", "b"] * 12, "label": ["red", "blue"] * 12})
    loaded = nova.load_graph(nodes=table)
    assert loaded.class_names == ("blue", "red")
    assert loaded.graph.feature_names == ("type=a", "type=b")


@pytest.mark.parametrize("cells", [KEYS, [None] * N, [i + 0.5 for i in range(12)] * 2, ["x"] * N])
def test_a_further_name_of_labels_does_not_count_for_what_are_no_classes(cells: list[Any]) -> None:
    loaded = nova.load_graph(nodes=pl.DataFrame({"id": KEYS, "size": SIZES, "target": cells}))
    assert loaded.class_names == ()
    assert not said(loaded, "label_column")


def test_what_is_asked_for_as_a_feature_is_not_guessed_to_be_the_label() -> None:
    table = pl.DataFrame({"id": KEYS, "type": ["a", "b", "c"] * 8})
    loaded = nova.load_graph(nodes=table, features=["type"])
    assert loaded.class_names == ()
    assert loaded.graph.feature_names == ("type=a", "type=b", "type=c")
    named = pl.DataFrame({"id": KEYS, "type": ["some words here", "b c d", "e f g"] * 8})
    assert nova.load_graph(nodes=named, text_columns=["type"]).class_names == ()


def test_a_feature_of_the_recipe_is_not_guessed_to_be_the_label_of_a_later_file() -> None:
    table = {"id": KEYS, "kind": ["x", "y"] * 12, "topic": ["a", "b", "c"] * 8}
    first = nova.load_graph(nodes=pl.DataFrame(table), label_column="kind")
    assert "topic=a" in first.graph.feature_names
    del table["kind"]
    later = nova.load_graph(nodes=pl.DataFrame(table), recipe=first.recipe)
    assert later.class_names == ()
    assert not said(later, "label_column")
    by_topic = nova.load_graph(nodes=pl.DataFrame(table))
    again = nova.load_graph(nodes=pl.DataFrame(table), recipe=by_topic.recipe)
    assert again.class_names == ("a", "b", "c")
    assert said(again, "column 'topic' is taken as label_column")


def test_what_could_be_the_label_is_said_where_nothing_is() -> None:
    columns = {"page_type": ["shop", "town", "band", "shop"] * 6, "open": ["yes", "no"] * 12}
    loaded = nova.load_graph(nodes=pl.DataFrame({"id": KEYS, "size": SIZES, **columns}))
    assert loaded.class_names == ()
    sentence = "no column is taken as label_column; it could be 'page_type' (3 values)"
    assert said(loaded, f"nodes: {sentence}")


@pytest.mark.parametrize(("one", "other"), [
    ("source", "target"), ("src", "dst"), ("src", "dest"), ("from", "to"), ("u", "v"),
    ("head", "tail"), ("citing", "cited"), ("node1", "node2"), ("node_1", "node_2"),
    ("id_1", "id_2"), ("sourceId", "targetId"), ("from_node", "to_node"),
    ("citingPaperId", "citedPaperId"), ("FromNodeId", "ToNodeId"), ("parent", "child"),
    ("subject", "object"), ("start", "end"), ("user1", "user2"), ("v1", "v2"),
])  # fmt: skip
def test_ends_of_edges_are_found_by_names_that_belong_together(one: str, other: str) -> None:
    edges = pl.DataFrame({"since": [1990], other: ["b"], "weight": [2.0], one: ["a"]})
    loaded = nova.load_graph(edges=edges)
    assert loaded.graph.node_ids.tolist() == ["a", "b"]
    assert said(loaded, f"edges: column {one!r} is taken as source_column")
    assert said(loaded, f"edges: column {other!r} is taken as target_column")


@pytest.mark.parametrize("header", [
    ["x", "z", "start_date", "end_date"], ["x", "z", "score1", "score2"], ["x", "z", "from_year"],
    ["x", "z", "avalue", "bvalue"],
])  # fmt: skip
def test_names_that_only_look_like_a_pair_are_not_taken(header: list[str]) -> None:
    assert guess_ends(header) is None
    edges = pl.DataFrame({name: [f"{name}-cell"] for name in header})
    assert nova.load_graph(edges=edges).graph.node_ids.tolist() == ["x-cell", "z-cell"]


def test_what_is_given_goes_before_any_guess() -> None:
    edges = pl.DataFrame({"source": ["a"], "target": ["b"], "buyer": ["c"], "seller": ["d"]})
    loaded = nova.load_graph(edges=edges, source_column="buyer", target_column="seller")
    assert loaded.graph.node_ids.tolist() == ["c", "d"]
    nodes = pl.DataFrame({"id": KEYS, "paperId": KEYS[::-1], "topic": ["a", "b"] * 12,
                          "kind": ["x", "y"] * 12})  # fmt: skip
    chosen = nova.load_graph(nodes=nodes, id_column="paperId", label_column="kind")
    assert chosen.graph.node_ids.tolist() == KEYS[::-1]
    assert chosen.class_names == ("x", "y")
