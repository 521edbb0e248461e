"""A recipe that meets a later table."""

from __future__ import annotations

import numpy as np
import pandas as pd

import nodenova as nova

SPRING = pd.DataFrame(
    {
        "id": list("abcdef"),
        "title": ["oak tree", "oak leaf", "elm tree", "elm leaf", "oak leaf", "elm tree"],
        "price": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
        "colour": ["red", "red", "blue", "blue", "red", "blue"],
    }
)
EDGES = pd.DataFrame({"source": list("abc"), "target": list("bcd")})
COLUMNS = {"text_columns": ["title"], "features": ["price", "colour"]}


def test_what_was_known_is_as_it_was_and_what_came_has_features_of_its_own() -> None:
    later = pd.DataFrame(
        {
            "id": list("ghij"),
            "title": ["ash oak", "ash tree", "ash leaf", "oak tree"],
            "price": [100.0, 200.0, 300.0, None],
            "colour": ["red", "green", "green", "green"],
        }
    )
    summer = pd.concat([SPRING, later])
    first = nova.load_graph(nodes=SPRING, edges=EDGES, **COLUMNS)  # type: ignore[arg-type]
    fresh = nova.load_graph(nodes=summer, edges=EDGES, **COLUMNS)  # type: ignore[arg-type]
    assert first.recipe is not None
    assert fresh.recipe is not None
    both = first.recipe.extended(fresh.recipe)
    came = len(both.feature_names) - len(first.recipe.feature_names)
    old, new = set(first.recipe.feature_names), set(both.feature_names)
    assert old < new
    assert new - old == {"ash", "colour=green", "price is missing"}
    assert came == 3
    now = nova.load_graph(nodes=summer, edges=EDGES, recipe=both).graph
    known = now.aligned(first.recipe.feature_names)[0].x[:6].toarray()
    assert np.array_equal(known, first.graph.x.toarray())
    again = both.extended(fresh.recipe)
    more = len(again.feature_names) - len(both.feature_names)
    assert (again, more) == (both, 0)


def test_neighbors_that_came_are_features_where_there_are_no_others() -> None:
    spring = nova.load_graph(edges=pd.DataFrame({"source": list("aab"), "target": list("bcc")}))
    edges = pd.DataFrame({"source": list("aabdd"), "target": list("bccab")})
    summer = nova.load_graph(edges=edges)
    assert spring.recipe is not None
    assert summer.recipe is not None
    both = spring.recipe.extended(summer.recipe)
    came = len(both.feature_names) - len(spring.recipe.feature_names)
    assert both.neighbors == ("a", "b", "c", "d")
    assert came == 1
