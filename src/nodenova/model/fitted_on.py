"""What a model keeps of the graph that its encoder was fitted on: size and features, no node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodenova.errors import GraphError
from nodenova.graph import RECIPE, Graph
from nodenova.nn.sparse import once


@dataclass(frozen=True)
class FittedOn:
    """The graph that an encoder was fitted on, without its nodes.

    Attributes:
        nodes: How many nodes it had.
        edges: How many edges, each in both directions.
        feature_names: Its features in the encoder's order; None where they had no names.
        recipe: How the columns of a table became these features, as plain values; None where they
            were ready made. `load_graph(..., recipe=model.recipe)` reads later tables by it.

    Examples:
        >>> import numpy as np
        >>> FittedOn.of(Graph.of(np.eye(2), [[0], [1]], feature_names=["oak", "elm"]))
        FittedOn(nodes=2, edges=2, feature_names=('oak', 'elm'))
    """

    nodes: int
    edges: int
    feature_names: tuple[str, ...] | None = None
    recipe: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, graph: Graph) -> FittedOn:
        """What is kept of a graph."""
        recipe = graph.derived.get(RECIPE)
        known = dict(recipe) if isinstance(recipe, Mapping) else None
        return cls(graph.num_nodes, graph.num_edges, graph.feature_names, known)

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `FittedOn.from_json`; without a recipe as it was before there was."""
        document = {"nodes": self.nodes, "edges": self.edges, "feature_names": self.feature_names}
        return document if self.recipe is None else document | {"recipe": dict(self.recipe)}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> FittedOn:
        """From what `to_json` made of one."""
        names, recipe = saved["feature_names"], saved.get("recipe")
        known = None if names is None else tuple(names)
        return cls(saved["nodes"], saved["edges"], known, recipe)


def with_features(graph: Graph, names: tuple[str, ...]) -> Graph:
    """The graph with the features of these names, in this order: what it lacks is zero.

    It is made once for a graph, so that whoever asks next gets the same object.

    Raises:
        GraphError: It has none of them.

    Examples:
        >>> import numpy as np
        >>> graph = Graph.of(np.array([[1, 2], [3, 4]]), [[0], [1]], feature_names=["a", "b"])
        >>> with_features(graph, ("b", "c", "a")).x.tolist()
        [[2.0, 0.0, 1.0], [4.0, 0.0, 3.0]]
    """
    if graph.feature_names is None or graph.feature_names == names:
        return graph
    if not set(names) & set(graph.feature_names):
        theirs, ours = (", ".join(map(repr, some[:3])) for some in (graph.feature_names, names))
        raise GraphError(
            f"the graph has no feature that the model knows: the graph's begin with {theirs}, "
            f"the model's with {ours}"
        )
    return once(graph, ("features", names), lambda: graph.aligned(names)[0])
