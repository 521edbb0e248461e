"""What a language model makes of texts, as views of Prism's beside those of words.

A view is the truncated SVD of P (V - mean): V the vectors of the nodes, P as for words. Vectors
hear what words of the same meaning share, words keep what is rare; how much each view counts is
learned from the known classes, as for all views.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from nodenova.errors import GraphError
from nodenova.graph import Graph
from nodenova.nn.bags import smooth_operator
from nodenova.nn.blocks import quiet
from nodenova.nn.rowsplit import gathered
from nodenova.prism.subspace import AVERAGED, DEPTHS, projected, right_bases

VECTOR_VIEWS = len(DEPTHS)


class VectorViews(nn.Module):
    """Graph -> (N, rank) for each of the depths.

    Args:
        width: Numbers of a vector.
        view_size: Rank of each view.
    """

    def __init__(self, width: int, view_size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("basis", torch.zeros(VECTOR_VIEWS, width, view_size))
        self.mean: Tensor
        self.basis: Tensor

    def fit(self, graph: Graph, ids: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Find the basis of each view.

        Args:
            graph: With vectors.
            ids: (n,) nodes whose rows are asked for.

        Yields:
            (rank,) the mean row of a view, which is to be taken off, and (n, rank) those of the
            nodes `ids`.
        """
        device = self.mean.device
        self.mean.copy_(_vectors(graph, len(self.mean), device).mean(dim=0))
        x = self._centered(graph)
        # A view has no more columns than vectors have numbers; those beyond stay empty.
        rank = min(self.basis.shape[2], len(self.mean), max(graph.num_nodes - 1, 1))
        bases = right_bases(smooth_operator(graph, device), x, rank, ids)
        for number, (basis, mean, rows) in enumerate(bases):
            self.basis[number, :, :rank] = basis
            wide = (0, self.basis.shape[2] - rank)
            yield nn.functional.pad(mean, wide), nn.functional.pad(rows, wide)

    def each_view(self, graph: Graph, rank: int | None) -> Iterator[Tensor]:
        """(N, rank) a view at a time, its mean row still in it.

        Raises:
            GraphError: The graph has no vectors, or others.
        """
        smooth, x = smooth_operator(graph, self.mean.device), self._centered(graph)
        for depth, basis in zip(DEPTHS, self.basis, strict=True):
            # Cut afterwards: a dense product of fewer columns rounds otherwise.
            yield gathered(projected(smooth, x, basis, depth, depth == AVERAGED))[:, :rank]

    def rows(self, graph: Graph, nodes: np.ndarray | None, said: Sequence[Tensor]) -> list[Tensor]:
        """(n, rank) of a few nodes in each view, their mean rows still in them.

        Args:
            graph: With vectors.
            nodes: (b,) all that have a say; None for all nodes.
            said: (b, n) for each of the depths, how much each of them says of each of the few.
        """
        x = self._centered(graph)
        x = x if nodes is None else x[torch.from_numpy(nodes).to(x.device)]
        return [p.t() @ x @ basis for p, basis in zip(said, self.basis, strict=True)]

    def _centered(self, graph: Graph) -> Tensor:
        return _vectors(graph, len(self.mean), self.mean.device) - self.mean


def _vectors(graph: Graph, width: int, device: torch.device) -> Tensor:
    """(N, width) the vectors of a graph."""
    if graph.vectors is None:
        raise GraphError(
            f"the model was made with vectors of texts ({width} numbers), this graph has none: "
            "give text_vectors (--text-vectors)"
        )
    if graph.vectors.shape[1] != width:
        raise GraphError(
            f"the vectors of texts have {graph.vectors.shape[1]} numbers, those that the model was "
            f"made with have {width}"
        )
    with quiet():  # they may be mapped, and are not written to
        return torch.from_numpy(graph.vectors).to(device)
