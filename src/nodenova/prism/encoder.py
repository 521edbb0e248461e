"""Prism's representation: smoothed and projected features, several views side by side.

A view is the truncated SVD of P X W: X who has which word, W weights of words, P one of I,
(I + S + S^2) / 3, S^8 with S = D^-1/2 (A + I) D^-1/2. One more is made of how many words and
neighbors there are, instead of which. It is fitted in closed form, and no label takes part in it.
Nothing dense of size N x d or N x N is built: features are projected, then smoothed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from nodenova.graph import Graph
from nodenova.nn.encoder import Encoder
from nodenova.nn.multirank import MultiRank
from nodenova.nn.rowsplit import (
    Columns,
    Words,
    centered_moments,
    gathered,
    mapped,
    read_rows,
    smoothing,
)
from nodenova.nn.wide import side_by_side
from nodenova.prism.degree_features import COLUMNS, DegreeFeatures
from nodenova.prism.subspace import AVERAGED, DEPTHS, projected, right_bases
from nodenova.prism.vector_views import VECTOR_VIEWS, VectorViews
from nodenova.prism.words import weighted_words as weighted_words
from nodenova.prism.words import word_weights as word_weights

WEIGHTS = ("common", "rare")  # what frequent words say, what rare words say
WORD_VIEWS = len(DEPTHS) * len(WEIGHTS)
RANKS = (6, 8, 12, 16, 24, 32, 48, 64, 96, 128)  # ranks at which classes are remembered
CENTERING = 0.5  # how much of the mean over all nodes is subtracted
BLOCK = 16_384  # nodes that are whitened at a time


@dataclass(frozen=True)
class PrismEncoderSpec:
    """Everything but the numbers, saved beside them.

    Attributes:
        name: "prism".
        num_features: Columns of a graph's x.
        view_size: Rank of each view.
        views: How many; models saved before there were counts have one less.
        is_random: Never.
        averaged: Whether the middle depth is an average; models saved before there was one have
            none.
        vector_size: Columns of a graph's vectors, of which the last views are; 0 for none.
    """

    name: str
    num_features: int
    view_size: int
    views: int = WORD_VIEWS + 1
    is_random: bool = False
    averaged: bool = False
    vector_size: int = 0

    @property
    def hidden(self) -> int:
        """Columns of z."""
        return self.views * self.view_size

    @property
    def trainable(self) -> bool:
        """It is computed."""
        return False

    @property
    def receptive_field(self) -> None:
        """The wider community speaks in it: eight steps reach most of a graph."""

    @property
    def multirank(self) -> MultiRank:
        """At all of RANKS that a view has."""
        ranks = sorted({min(rank, self.view_size) for rank in RANKS})
        return MultiRank(self.views, self.view_size, tuple(ranks))

    @property
    def counted(self) -> bool:
        """Whether there is a view of counts, after those of words."""
        return self.views > WORD_VIEWS

    @property
    def prior_weight(self) -> tuple[float, ...]:
        """What each view weighs before any class is known.

        Counts half, as they tell less of most graphs than words do.
        """
        beside = (1.0,) * VECTOR_VIEWS if self.vector_size else ()
        return (1.0,) * WORD_VIEWS + ((0.5,) if self.counted else ()) + beside

    def as_settings(self) -> dict[str, object]:
        words = {"depths": DEPTHS, "averaged": self.averaged, "weights": WEIGHTS}
        vectors = {"vectors": self.vector_size} if self.vector_size else {}
        return {**words, "counted": self.counted, "rank": self.view_size, **vectors}


class PrismEncoder(Encoder):
    """g: Graph -> z of shape (N, views * rank).

    But for a shift it is linear in weighted features, or in bumps of counts.

    Args:
        spec: Its shape; the numbers are zero until `fit` or a saved state brings them.
    """

    spec: PrismEncoderSpec

    def __init__(self, spec: PrismEncoderSpec) -> None:
        super().__init__()
        self.spec = spec
        self.register_buffer("word_weight", torch.zeros(len(WEIGHTS), spec.num_features))
        self.register_buffer("basis", torch.zeros(WORD_VIEWS, spec.num_features, spec.view_size))
        self.register_buffer("shift", torch.zeros(spec.views, spec.view_size))
        self.word_weight: Tensor
        self.basis: Tensor
        self.shift: Tensor
        if spec.counted:
            self.counts = DegreeFeatures()
            self.register_buffer("count_basis", torch.zeros(COLUMNS, spec.view_size))
            self.count_basis: Tensor
        if spec.vector_size:
            self.vectors = VectorViews(spec.vector_size, spec.view_size)

    @classmethod
    @torch.no_grad()
    def fit(cls, graph: Graph, device: torch.device) -> PrismEncoder:
        """The basis of each view from the graph alone.

        Args:
            graph: What it is fitted on.
            device: Where it is computed and kept.
        """
        return cls.fit_rows(graph, torch.zeros(0, dtype=torch.long), device)[0]

    @classmethod
    @torch.no_grad()
    def fit_rows(
        cls, graph: Graph, ids: Tensor, device: torch.device
    ) -> tuple[PrismEncoder, Tensor]:
        """The basis of each view, and what the views say of some nodes, without another pass.

        Args:
            graph: What it is fitted on.
            ids: (n,) numbers of nodes.
            device: Where it is computed and kept.

        Returns:
            The views, and (n, hidden) z of these nodes.
        """
        rank = max(min(max(RANKS), min(graph.x.shape) - 1), 1)
        width = 0 if graph.vectors is None else graph.vectors.shape[1]
        many = WORD_VIEWS + 1 + (VECTOR_VIEWS if width else 0)
        spec = PrismEncoderSpec("prism", graph.num_features, rank, many, False, True, width)
        views = cls(spec).to(device)
        views.word_weight.copy_(torch.from_numpy(word_weights(graph)))
        z = torch.empty(len(ids), views.spec.hidden, device=device)
        places = torch.split(z, rank, dim=1)
        smooth = smoothing(graph, device)
        for weight in range(len(WEIGHTS)):
            bases = right_bases(smooth, views._weighted(graph, weight), rank, ids)
            for depth, (basis, mean, rows) in enumerate(bases):
                number = depth * len(WEIGHTS) + weight
                views.basis[number] = basis
                views.shift[number] = CENTERING * mean
                torch.sub(rows, views.shift[number], out=places[number])
        views.counts = DegreeFeatures.fit(graph, device)
        bumps = views.counts(graph)
        mean, products = centered_moments(bumps)
        vectors = torch.linalg.eigh(products)[1].flip(1)
        main = vectors[:, : views.spec.view_size].float()
        views.count_basis[:, : main.shape[1]] = main  # the columns beyond the bumps stay empty
        shift = views.shift[WORD_VIEWS].copy_(mean @ views.count_basis)
        torch.sub(read_rows(bumps, ids) @ views.count_basis, shift, out=places[WORD_VIEWS])
        beside = views.vectors.fit(graph, ids) if width else ()
        for number, (mean, rows) in enumerate(beside, start=WORD_VIEWS + 1):
            views.shift[number] = mean
            torch.sub(rows, mean, out=places[number])
        return views, z

    def _bases(self) -> list[Tensor]:
        """(features, bumps or numbers of a vector, rank) of each view."""
        words = [*self.basis, self.count_basis] if self.spec.counted else [*self.basis]
        return [*words, *self.vectors.basis] if self.spec.vector_size else words

    @torch.no_grad()
    def whitened(self, z: Tensor, y: Tensor) -> tuple[PrismEncoder, Tensor]:
        """The same views whitened: the spread within classes is taken out of each.

        With L the Cholesky factor of that covariance, softened on its diagonal, L^-1 is triangular:
        the first r columns of a whitened view are the first r columns of the view, whitened. It is
        folded into the basis, so nothing more is kept.

        Args:
            z: (n, hidden) nodes in these views, the labelled ones first.
            y: (labelled nodes,) their classes.

        Returns:
            The whitened views, and (n, hidden) z in them.
        """
        white = copy.deepcopy(self)
        z_white = torch.empty_like(z)
        size = self.spec.view_size
        for number, basis in enumerate(white._bases()):
            place = slice(number * size, (number + 1) * size)
            part = z[: len(y), place].double()
            centre = torch.stack([part[y == c].mean(0) for c in range(int(y.max()) + 1)])
            residual = part - centre[y]
            within = residual.t() @ residual / max(len(part) - len(centre), 1)
            # Each column is softened by the mean variance of the columns up to it.
            soft = within.diagonal().cumsum(0) / torch.arange(1, size + 1, device=z.device)
            factor = torch.linalg.cholesky(within + (soft + 1e-9 * soft[0] + 1e-12).diag())
            one = torch.eye(size, dtype=factor.dtype, device=z.device)
            turn = torch.linalg.solve_triangular(factor, one, upper=False)
            basis.copy_(basis @ turn.t().float())
            white.shift[number] = self.shift[number] @ turn.t().float()
            for rows, white_rows in zip(z.split(BLOCK), z_white.split(BLOCK), strict=True):  # type: ignore[no-untyped-call]
                white_rows[:, place] = (rows[:, place].double() @ turn.t()).float()
        return white, z_white

    def forward(self, graph: Graph) -> Tensor:
        """(N, views * rank) z of all nodes."""
        views = map(gathered, self.each_view(graph))  # which holds no view that is done
        return side_by_side(views, (graph.num_nodes, self.spec.hidden), self.basis.device)

    @torch.no_grad()
    def rows(self, graph: Graph, ids: Tensor) -> Tensor:
        """(n, views * rank) z of the nodes `ids`; no more than a view of all nodes is held."""
        z = torch.empty(len(ids), self.spec.hidden, device=self.basis.device)
        views = self.each_view(graph)
        for place in self.places(z):  # a zip would hold a view while the next one is made
            place.copy_(read_rows(next(views), ids))
        return z

    def places(self, z: Tensor) -> tuple[Tensor, ...]:
        """The views that z (n, hidden) is made of."""
        return torch.split(z, self.spec.view_size, dim=1)

    def each_view(self, graph: Graph, rank: int | None = None) -> Iterator[Columns]:
        """(N, rank) z of all nodes a view at a time.

        Args:
            graph: Whose nodes.
            rank: How many columns of each view; all of them unless given.
        """
        smooth = smoothing(graph, self.basis.device)
        words = [self._weighted(graph, weight) for weight in range(len(WEIGHTS))]
        for number, (basis, shift) in enumerate(zip(self._bases(), self.shift, strict=True)):
            if (
                number == WORD_VIEWS
            ):  # cut afterwards: a dense product of fewer columns rounds otherwise
                yield mapped(partial(_turned, basis, shift, rank), self.counts(graph))
                break
            depth = DEPTHS[number // len(WEIGHTS)]
            averaged = self.spec.averaged and depth == AVERAGED
            x = words[number % len(WEIGHTS)]
            yield projected(smooth, x, basis[:, :rank], depth, averaged).sub_(shift[:rank])
        if self.spec.vector_size:
            shifts = self.shift[-VECTOR_VIEWS:]
            for view, shift in zip(self.vectors.each_view(graph, rank), shifts, strict=True):
                yield view - shift[:rank]

    def _weighted(self, graph: Graph, weight: int) -> Words:
        weights = self.word_weight[weight].cpu().numpy()
        return weighted_words(graph, weights, WEIGHTS[weight], self.basis.device)


def _turned(basis: Tensor, shift: Tensor, rank: int | None, bumps: Tensor) -> Tensor:
    return (bumps @ basis).sub_(shift)[:, :rank]
