"""Prism's representation: smoothed and projected features, several views side by side.

A view is the truncated SVD of P X W: X who has which word, W weights of words, P one of I,
(I + S + S^2) / 3, S^8 with S = D^-1/2 (A + I) D^-1/2. One more is made of how many words and
neighbors there are, instead of which. It is fitted in closed form, and no label takes part in it.
Nothing dense of size N x d or N x N is built: features are projected, then smoothed.

Who has which word, weighted: what Prism's views are made of.

What a language model makes of texts, as views of Prism's beside those of words.

A view is the truncated SVD of P (V - mean): V the vectors of the nodes, P as for words. Vectors
hear what words of the same meaning share, words keep what is rare; how much each view counts is
learned from the known classes, as for all views.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

from nodenova.encoders.prism.degree import COLUMNS, DegreeFeatures
from nodenova.encoders.prism.svd import AVERAGED, DEPTHS, projected, right_bases
from nodenova.errors import GraphError
from nodenova.graph import Graph
from nodenova.nn.distributed import (
    Columns,
    GraphSplit,
    SplitMatrix,
    Words,
    centered_moments,
    gather_rows,
    map_rows,
    read_rows,
    smoothing,
    split_of,
)
from nodenova.nn.encoder import Encoder
from nodenova.nn.multirank import MultiRank
from nodenova.nn.seeding import join_views
from nodenova.nn.sparse import BagMatrix, quiet_torch, row_blocks, smooth_operator


def word_weights(graph: Graph) -> np.ndarray:
    """(2, d) weights of words: df^-1/4 for what common ones say, idf^2 for what rare ones say."""
    split = split_of(graph)
    if isinstance(graph.x, np.ndarray):
        # Measurements, not words: as they are, and each divided by its spread.
        spread = graph.x.std(axis=0) if split is None else _spread(split)
        over = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        return np.stack([np.ones_like(spread), over])
    having = _having(graph) if split is None else split.total(_having)
    df = np.maximum(having.long().numpy(), 1)
    return np.stack([df**-0.25, np.log(graph.num_nodes / df) ** 2]).astype(np.float32)


def weighted_words(graph: Graph, weight: np.ndarray, kind: str, device: torch.device) -> Words:
    """(N, d) who has which word, times the word's weight.

    Args:
        graph: Whose words.
        weight: (d,) of each word.
        kind: One of WEIGHTS; for "common", long texts do not count for more.
        device: Where to.
    """
    split, mean = split_of(graph), None
    if isinstance(graph.x, np.ndarray):
        mean = graph.x.mean(axis=0) if split is None else _mean(split)
    build = partial(_weighted, weight, kind, device, mean)
    return build(graph) if split is None else SplitMatrix(split, build, graph.num_features)


def _weighted(
    weight: np.ndarray, kind: str, device: torch.device, mean: np.ndarray | None, graph: Graph
) -> BagMatrix | Tensor:
    """Of all rows of a graph, or of a block of them."""
    x = graph.x
    if isinstance(x, np.ndarray):
        return torch.from_numpy((x - mean) * weight.astype(np.float32)).to(device)
    length = np.diff(x.indptr)
    per_text = np.maximum(length, 1) ** -0.5 if kind == "common" else np.ones(len(length))
    weighted = sp.csr_array(x.shape, dtype=np.float32)
    weighted.indptr, weighted.indices = x.indptr, x.indices
    weighted.data = graph.empty(x.nnz, np.float32)
    for start, end in row_blocks(x.indptr):
        place = slice(int(x.indptr[start]), int(x.indptr[end]))
        per_word = np.repeat(per_text[start:end], length[start:end])
        weighted.data[place] = per_word * weight[x.indices[place]]
    return BagMatrix.of(weighted, device, graph=graph)


def _having(graph: Graph) -> Tensor:
    """(d,) how many nodes have each word."""
    x, df = graph.x, np.zeros(graph.num_features, dtype=np.int64)
    assert not isinstance(x, np.ndarray)
    for start, end in row_blocks(x.indptr):
        df += np.bincount(x.indices[x.indptr[start] : x.indptr[end]], minlength=len(df))
    return torch.from_numpy(df)


def _mean(split: GraphSplit) -> np.ndarray:
    """(d,) of dense features that are split."""
    mean: np.ndarray = (split.total(_sum) / split.num_nodes).float().numpy()
    return mean


def _spread(split: GraphSplit) -> np.ndarray:
    """(d,) standard deviations of dense features that are split."""
    squares = split.total(partial(_squares, _mean(split)))
    spread: np.ndarray = (squares / split.num_nodes).sqrt().float().numpy()
    return spread


def _sum(graph: Graph) -> Tensor:
    return torch.from_numpy(np.asarray(graph.x.sum(axis=0, dtype=np.float64)))


def _squares(mean: np.ndarray, graph: Graph) -> Tensor:
    return torch.from_numpy(np.square(graph.x - mean).sum(axis=0, dtype=np.float64))


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
            yield gather_rows(projected(smooth, x, basis, depth, depth == AVERAGED))[:, :rank]

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
    with quiet_torch():  # they may be mapped, and are not written to
        return torch.from_numpy(graph.vectors).to(device)


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
        views = map(gather_rows, self.each_view(graph))  # which holds no view that is done
        return join_views(views, (graph.num_nodes, self.spec.hidden), self.basis.device)

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
                yield map_rows(partial(_turned, basis, shift, rank), self.counts(graph))
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
