"""How much a graph has changed since a representation was fitted on it. No label is asked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from nodenova.errors import SettingError
from nodenova.graph import Graph
from nodenova.model.fitted_on import FittedOn

MAX_UNKNOWN = 0.05  # share of the features' mass in features the model does not know
MAX_NEW = 1 / 3  # share of nodes, or of edges, that are new
REFRESH = ("auto", True, False)


@dataclass(frozen=True)
class Change:
    """How a graph differs from the one that an encoder was fitted on.

    Attributes:
        unknown: Share of the mass of its features (the sum of their absolute values) that is in
            features the encoder does not know.
        nodes: Share of its nodes that are new.
        edges: Share of its edges that are new.
        matched: Whether nodes were told apart by their ids; otherwise `nodes` and `edges` are by
            how much there are more of them.

    Examples:
        >>> Change(unknown=0.09, nodes=0.2, edges=0.2, matched=True).why()
        '9 % of what the nodes have is in features the model did not know'
        >>> Change(unknown=0.0, nodes=0.2, edges=0.2, matched=True).is_much
        False
    """

    unknown: float
    nodes: float
    edges: float
    matched: bool

    @property
    def is_much(self) -> bool:
        """Whether a representation should be fitted anew."""
        return self.unknown > MAX_UNKNOWN or max(self.nodes, self.edges) > MAX_NEW

    def why(self) -> str:
        """What has changed, in words."""
        what = (
            f"{percent(self.unknown)} of what the nodes have is in features the model did not know"
        )
        if self.unknown > MAX_UNKNOWN:
            return what
        share, name = max((self.nodes, "nodes"), (self.edges, "edges"))
        grown = f"{percent(share)} of the {name} are new"
        if not self.matched:
            more = f"{percent(share / (1 - share))} more {name}" if share < 1 else f"{name} now"
            grown = f"the graph has {more}"
        return grown if share > MAX_NEW else f"it was asked for ({what}, {grown})"


def change_of(shown: FittedOn, graph: Graph, before: Graph | None = None) -> Change:
    """How much a graph has changed.

    Args:
        shown: What is kept of the graph that an encoder was fitted on.
        graph: As it is now, with all its features.
        before: As it was, if that is at hand: nodes of the same id are the same.

    Examples:
        >>> import nodenova as nova
        >>> whole = nova.synthetic(nodes=200, classes=4, seed=0).graph
        >>> part = whole.subgraph(np.arange(150))
        >>> change_of(FittedOn.of(part), whole, part).nodes
        0.25
    """
    mass = masses(graph)
    unknown = float(unknown_shares(shown, graph) @ mass / max(mass.sum(), 1e-12))
    met = None if before is None else is_met(graph, before)
    if before is None or met is None or not met.any():
        nodes, edges = (
            max(0.0, 1 - was / now) if now else 0.0
            for was, now in ((shown.nodes, graph.num_nodes), (shown.edges, graph.num_edges))
        )
        return Change(unknown, nodes, edges, matched=False)
    return Change(unknown, 1 - float(met.mean()), _new_edges(graph, before), matched=True)


def masses(graph: Graph) -> np.ndarray:
    """(N,) the sum of the absolute values of each node's features."""
    return np.asarray(abs(graph.x).sum(axis=1), dtype=np.float64).ravel()


def unknown_shares(shown: FittedOn, graph: Graph) -> np.ndarray:
    """(N,) what share of a node's features an encoder does not know; 0 where they have no names."""
    if shown.feature_names is None or graph.feature_names is None:
        return np.zeros(graph.num_nodes)
    known = set(shown.feature_names)
    strange = np.array([name not in known for name in graph.feature_names])
    x = abs(graph.x)
    part = sp.csr_array(x) @ strange if sp.issparse(x) else x @ strange
    return np.asarray(part, dtype=np.float64) / np.maximum(masses(graph), 1e-12)


def is_met(graph: Graph, before: Graph) -> np.ndarray:
    """(N,) which nodes were in an earlier graph, by their ids as texts."""
    return np.isin(graph.node_ids.astype(str), before.node_ids.astype(str))


def _new_edges(graph: Graph, before: Graph) -> float:
    """The share of edges that an earlier graph does not have."""
    if not graph.num_edges:
        return 0.0
    number = {node: i for i, node in enumerate(before.node_ids.astype(str).tolist())}
    was = np.array([number.get(node, -1) for node in graph.node_ids.astype(str).tolist()])
    ends = was[graph.edge_index]
    keys = ends[0] * before.num_nodes + ends[1]
    there = (ends >= 0).all(axis=0)
    old = before.edge_index[0] * before.num_nodes + before.edge_index[1]
    return 1 - float((there & np.isin(keys, old)).mean())


def check_refresh(refresh: object) -> None:
    """Raise unless it says when to fit a representation anew.

    Raises:
        SettingError: It is neither "auto", True nor False.
    """
    if not any(refresh is known or refresh == known == "auto" for known in REFRESH):
        raise SettingError(f'refresh is "auto", True or False, not {refresh!r}')


def percent(share: float) -> str:
    """A share in percent, as people write it."""
    return f"{100 * share:.0f} %"
