"""The graph that every phase sees: features, edges, names. There is no field for a label."""

from __future__ import annotations

from nodenova.graph.graph import RECIPE, Graph
from nodenova.graph.parts import Features

__all__ = ["RECIPE", "Features", "Graph"]
