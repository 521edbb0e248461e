"""What a model is made of: private, and handed out as copies."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from nodenova.errors import GraphError, renamed_attribute
from nodenova.graph import Graph
from nodenova.model.fitted_on import FittedOn, with_features
from nodenova.nn.encoder import Encoder
from nodenova.nn.heads import Head, UnitLinearHead
from nodenova.nn.memory import Memory
from nodenova.nn.passes import encode, last_pass
from nodenova.nn.rowsplit import split_of
from nodenova.nn.seeding import fixed_threads
from nodenova.nn.split_heads import read_split
from nodenova.prism.cells import Cells
from nodenova.prism.encoder import PrismEncoder
from nodenova.prism.few_nodes import few_rows

MAX_FEW = 32  # nodes beyond which a pass over all costs less than their own neighborhoods


@dataclass(frozen=True, eq=False)
class ModelParts:
    """An encoder, a joint head and a memory of classes: what a method takes from a model.

    All of them are copies, so that a method cannot damage the model it starts from.

    Attributes:
        fitted_on: The graph that the encoder was fitted on, without its nodes; None in models saved
            before it was kept.
    """

    _encoder: Encoder
    _head: Head
    _novel_head: nn.Linear | None
    _memory: Memory
    _cells: Cells | None  # of the views of `prism`; trained encoders have none
    fitted_on: FittedOn | None = field(default=None, kw_only=True)

    def encoder(self) -> Encoder:
        """A copy of g, to be trained further."""
        return copy.deepcopy(self._encoder).requires_grad_(True)

    def frozen_encoder(self) -> Encoder:
        """A copy of g as it is, for distillation: no gradient, no dropout."""
        return copy.deepcopy(self._encoder)

    def head(self) -> Head:
        """A copy of the joint head h^a, to be trained further."""
        return copy.deepcopy(self._head).requires_grad_(True)

    def novel_head(self) -> nn.Linear | None:
        """A copy of h^u, the head for the newest classes only, when the last method has one."""
        h = copy.deepcopy(self._novel_head)
        return None if h is None else h.requires_grad_(True)

    @property
    def memory(self) -> Memory:
        """A copy of what is remembered of each class."""
        return self._memory.copy()

    @property
    def cells(self) -> Cells | None:
        """A copy of where labelled nodes were, by which known and new nodes are told apart.

        None if it was not kept.
        """
        return None if self._cells is None else self._cells.map(Tensor.clone)

    prototypes = renamed_attribute("Model", "prototypes", "memory")

    @property
    def recipe(self) -> Mapping[str, Any] | None:
        """How columns of a table become its features, for `load_graph`; None if nobody knows."""
        return None if self.fitted_on is None else self.fitted_on.recipe

    @property
    def device(self) -> torch.device:
        """Where it is kept, and runs."""
        return self._head.linear.weight.device

    def to(self, device: str | torch.device) -> Self:
        """The same model on another device."""
        place = torch.device(device)
        novel = copy.deepcopy(self._novel_head)
        return replace(
            self,
            _encoder=copy.deepcopy(self._encoder).to(place),
            _head=copy.deepcopy(self._head).to(place),
            _novel_head=None if novel is None else novel.to(place),
            _memory=self._memory.to(place),
            _cells=None if self._cells is None else self._cells.to(place),
        )

    def aligned(self, graph: Graph) -> Graph:
        """The graph with the features that this model knows, in the model's order.

        Features are matched by name where both have names: those that the model does not know are
        left out, those that the graph lacks are zero. Without names there must be as many.

        Args:
            graph: Any.

        Raises:
            GraphError: It has none of the features, or no names and another number of them.
        """
        names = None if self.fitted_on is None else self.fitted_on.feature_names
        if names is not None:
            graph = with_features(graph, names)
        expected = self._encoder.spec.num_features
        if graph.num_features != expected:
            raise GraphError(
                f"the graph has {graph.num_features} features, the model was trained on {expected}"
            )
        return graph

    def check(self, graph: Graph) -> None:
        """Raise a GraphError unless the graph has features this model was trained on."""
        self.aligned(graph)

    def _rows(self, graph: Graph, ids: np.ndarray) -> Tensor:
        """(n, hidden) z of some nodes: of few of them, by those near them alone."""
        g, field = self._encoder, self._encoder.spec.receptive_field
        if len(ids) > MAX_FEW or split_of(graph) is not None:
            return encode(g, graph)[torch.from_numpy(ids)]
        if isinstance(g, PrismEncoder):
            return few_rows(g, graph, ids)
        if field is None:
            return g.rows(graph, torch.from_numpy(ids))
        asked, place = np.unique(ids, return_inverse=True)
        near, places = graph.k_hop_subgraph(asked, field + 1)
        return g.rows(near, torch.from_numpy(places[place]))

    def _run(self, graph: Graph, read: Callable[[Tensor], Tensor]) -> np.ndarray:
        """What `read` makes of z of all nodes."""
        graph = self.aligned(graph)
        with torch.no_grad(), fixed_threads():
            return read(encode(self._encoder, graph)).cpu().numpy()

    def _run_head(
        self, graph: Graph, read: Callable[[Tensor], Tensor], only: Iterable[object] | None = None
    ) -> np.ndarray:
        """What `read` makes of (N, columns) what the joint head says of all nodes, or of some.

        Of many views no more than one is held, cut to the ranks that the head reads.
        """
        graph = self.aligned(graph)
        g, h = self._encoder, self._head
        with torch.no_grad(), fixed_threads():
            if only is not None:
                return read(h(self._rows(graph, graph.numbers_of(only)))).cpu().numpy()
            if not isinstance(g, PrismEncoder) or not isinstance(h, UnitLinearHead):
                return read(h(encode(g, graph))).cpu().numpy()
            views: Any = g.each_view(graph, max(h.multirank.ranks))
            if split_of(graph) is not None:
                return read_split(h, views, read)
            kept = last_pass(g, graph)
            return read(h.from_views(views if kept is None else g.places(kept))).cpu().numpy()
