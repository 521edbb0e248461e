"""Prism's encoder: smoothed and projected features, several views side by side.

A view is the truncated SVD of P X W: X the 0/1 matrix of words, W weights of words, P one of I,
(I + S + S^2) / 3, S^8 with S = D^-1/2 (A + I) D^-1/2. One more view is built from the numbers of
words and neighbors, and three from text vectors if the graph has them. All of it is fitted in
closed form, without labels; features are projected before they are smoothed, so that nothing dense
of size N x d or N x N is built.
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
from nodenova.encoders.prism.svd import AVERAGED, DEPTHS, project, right_bases
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
from nodenova.nn.numerics import check_finite, cholesky, eigh
from nodenova.nn.seeding import join_views
from nodenova.nn.sparse import BagMatrix, row_blocks, smooth_operator, text_vectors

VECTOR_VIEWS = len(DEPTHS)
WEIGHTS = ("common", "rare")  # the two weightings of words
WORD_VIEWS = len(DEPTHS) * len(WEIGHTS)
RANKS = (6, 8, 12, 16, 24, 32, 48, 64, 96, 128)  # ranks at which class statistics are stored
CENTERING = 0.5  # share of the mean over all nodes that is subtracted
BLOCK = 16_384  # nodes that are whitened at a time


def word_weights(graph: Graph) -> np.ndarray:
    """(2, d) weights of words: df^-1/4 for common words, log(N / df)^2 for rare ones."""
    split = split_of(graph)
    if isinstance(graph.x, np.ndarray):
        # Measurements, not words: unweighted, and each divided by its standard deviation.
        spread = graph.x.std(axis=0) if split is None else _split_std(split)
        over = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        return np.stack([np.ones_like(spread), over])
    df = _document_frequency(graph) if split is None else split.total(_document_frequency)
    df = np.maximum(df.long().numpy(), 1)
    return np.stack([df**-0.25, np.log(graph.num_nodes / df) ** 2]).astype(np.float32)


def weighted_words(graph: Graph, weight: np.ndarray, kind: str, device: torch.device) -> Words:
    """(N, d) 0/1 matrix of words times (d,) weights; "common" divides by the root of the length."""
    split, mean = split_of(graph), None
    if isinstance(graph.x, np.ndarray):
        mean = graph.x.mean(axis=0) if split is None else _split_mean(split)
    build = partial(_weight_words, weight, kind, device, mean)
    return build(graph) if split is None else SplitMatrix(split, build, graph.num_features)


def _weight_words(
    weight: np.ndarray, kind: str, device: torch.device, mean: np.ndarray | None, graph: Graph
) -> BagMatrix | Tensor:
    """`weighted_words` of the rows of one graph, or of one block."""
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


def _document_frequency(graph: Graph) -> Tensor:
    """(d,) number of nodes that have each word."""
    x, df = graph.x, np.zeros(graph.num_features, dtype=np.int64)
    assert not isinstance(x, np.ndarray)
    for start, end in row_blocks(x.indptr):
        df += np.bincount(x.indices[x.indptr[start] : x.indptr[end]], minlength=len(df))
    return torch.from_numpy(df)


def _split_mean(split: GraphSplit) -> np.ndarray:
    """(d,) mean of dense features that are split."""
    mean: np.ndarray = (split.total(_sum) / split.num_nodes).float().numpy()
    return mean


def _split_std(split: GraphSplit) -> np.ndarray:
    """(d,) standard deviations of dense features that are split."""
    squares = split.total(partial(_squares, _split_mean(split)))
    spread: np.ndarray = (squares / split.num_nodes).sqrt().float().numpy()
    return spread


def _sum(graph: Graph) -> Tensor:
    return torch.from_numpy(np.asarray(graph.x.sum(axis=0, dtype=np.float64)))


def _squares(mean: np.ndarray, graph: Graph) -> Tensor:
    return torch.from_numpy(np.square(graph.x - mean).sum(axis=0, dtype=np.float64))


class VectorViews(nn.Module):
    """Views of text vectors V: the truncated SVD of P (V - mean) for each of the depths.

    Vectors recognize words of the same meaning, words keep what is rare.
    """

    def __init__(self, width: int, view_size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("basis", torch.zeros(VECTOR_VIEWS, width, view_size))
        self.mean: Tensor
        self.basis: Tensor

    def fit(self, graph: Graph, ids: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Fit each view; yield its mean row (rank,) and the rows (n, rank) of the nodes `ids`."""
        device = self.mean.device
        self.mean.copy_(text_vectors(graph, len(self.mean), device).mean(dim=0))
        x = self._centered(graph)
        # A view has at most as many columns as the vectors; the other columns stay 0.
        rank = min(self.basis.shape[2], len(self.mean), max(graph.num_nodes - 1, 1))
        bases = right_bases(smooth_operator(graph, device), x, rank, ids)
        for number, (basis, mean, rows) in enumerate(bases):
            self.basis[number, :, :rank] = basis
            padding = (0, self.basis.shape[2] - rank)
            yield nn.functional.pad(mean, padding), nn.functional.pad(rows, padding)

    def each_view(self, graph: Graph, rank: int | None) -> Iterator[Tensor]:
        """Yield (N, rank) one view at a time, before the mean row is subtracted."""
        smooth, x = smooth_operator(graph, self.mean.device), self._centered(graph)
        for depth, basis in zip(DEPTHS, self.basis, strict=True):
            # Cut afterwards: a dense product of fewer columns is rounded differently.
            yield gather_rows(project(smooth, x, basis, depth, depth == AVERAGED))[:, :rank]

    def rows(self, graph: Graph, nodes: np.ndarray | None, p: Sequence[Tensor]) -> list[Tensor]:
        """(n, rank) rows of n nodes in each view, from columns (b, n) of P on `nodes` (b,)."""
        x = self._centered(graph)
        x = x if nodes is None else x[torch.from_numpy(nodes).to(x.device)]
        return [columns.t() @ x @ basis for columns, basis in zip(p, self.basis, strict=True)]

    def _centered(self, graph: Graph) -> Tensor:
        return text_vectors(graph, len(self.mean), self.mean.device) - self.mean


@dataclass(frozen=True)
class PrismEncoderSpec:
    """Shape of a Prism encoder, saved beside its numbers."""

    name: str
    num_features: int  # number of columns of a graph's x
    view_size: int  # rank of each view
    # 6 in models saved before the view of counts existed
    views: int = WORD_VIEWS + 1
    is_random: bool = False
    averaged: bool = False  # whether the middle depth is an average; False in older models
    vector_size: int = 0  # number of columns of the text vectors; 0 without vectors

    @property
    def hidden(self) -> int:
        """Number of columns of z."""
        return self.views * self.view_size

    @property
    def trainable(self) -> bool:
        """False: the encoder is computed in closed form."""
        return False

    @property
    def receptive_field(self) -> None:
        """None: eight steps reach most of a graph."""

    @property
    def multirank(self) -> MultiRank:
        """The ranks of RANKS that a view has."""
        ranks = sorted({min(rank, self.view_size) for rank in RANKS})
        return MultiRank(self.views, self.view_size, tuple(ranks))

    @property
    def counted(self) -> bool:
        """Whether there is a view of counts, after the views of words."""
        return self.views > WORD_VIEWS

    @property
    def prior_weight(self) -> tuple[float, ...]:
        """Prior weight of each view: 0.5 for counts, which are less informative on most graphs."""
        beside = (1.0,) * VECTOR_VIEWS if self.vector_size else ()
        return (1.0,) * WORD_VIEWS + ((0.5,) if self.counted else ()) + beside

    def as_settings(self) -> dict[str, object]:
        words = {"depths": DEPTHS, "averaged": self.averaged, "weights": WEIGHTS}
        vectors = {"vectors": self.vector_size} if self.vector_size else {}
        return {**words, "counted": self.counted, "rank": self.view_size, **vectors}


class PrismEncoder(Encoder):
    """g: Graph -> z of shape (N, views * rank), affine in weighted features or in bumps of counts.

    The numbers are 0 until `fit`, or until a state is loaded.
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
        """Fit the basis of each view to a graph."""
        return cls.fit_rows(graph, torch.zeros(0, dtype=torch.long), device)[0]

    @classmethod
    @torch.no_grad()
    def fit_rows(
        cls, graph: Graph, ids: Tensor, device: torch.device
    ) -> tuple[PrismEncoder, Tensor]:
        """Fit to a graph, and return z (n, hidden) of the nodes `ids` too, without another pass."""
        rank = max(min(max(RANKS), min(graph.x.shape) - 1), 1)
        width = 0 if graph.vectors is None else graph.vectors.shape[1]
        num_views = WORD_VIEWS + 1 + (VECTOR_VIEWS if width else 0)
        spec = PrismEncoderSpec("prism", graph.num_features, rank, num_views, False, True, width)
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
        vectors = eigh(products, "the scatter of the counts")[1].flip(1)
        main = vectors[:, : views.spec.view_size].float()
        views.count_basis[:, : main.shape[1]] = main  # the other columns stay 0
        shift = views.shift[WORD_VIEWS].copy_(mean @ views.count_basis)
        torch.sub(read_rows(bumps, ids) @ views.count_basis, shift, out=places[WORD_VIEWS])
        beside = views.vectors.fit(graph, ids) if width else ()
        for number, (mean, rows) in enumerate(beside, start=WORD_VIEWS + 1):
            views.shift[number] = mean
            torch.sub(rows, mean, out=places[number])
        return views, z

    def _bases(self) -> list[Tensor]:
        """(features, rank) basis of each view."""
        words = [*self.basis, self.count_basis] if self.spec.counted else [*self.basis]
        return [*words, *self.vectors.basis] if self.spec.vector_size else words

    @torch.no_grad()
    def whiten(self, z: Tensor, y: Tensor) -> tuple[PrismEncoder, Tensor]:
        """Whiten each view by the covariance within classes; return the encoder and z (n, hidden).

        The first len(y) rows of z are labelled nodes. With L the Cholesky factor of the softened
        covariance, L^-1 is triangular: the first r columns of a whitened view are the first r
        columns of the view, whitened. It is folded into the basis.
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
            softened = within + (soft + 1e-9 * soft[0] + 1e-12).diag()
            factor = cholesky(softened, "the covariance within classes")
            one = torch.eye(size, dtype=factor.dtype, device=z.device)
            turn = torch.linalg.solve_triangular(factor, one, upper=False)
            basis.copy_(check_finite(basis @ turn.t().float(), "the basis of the encoder"))
            white.shift[number] = self.shift[number] @ turn.t().float()
            for rows, white_rows in zip(z.split(BLOCK), z_white.split(BLOCK), strict=True):  # type: ignore[no-untyped-call]
                white_rows[:, place] = (rows[:, place].double() @ turn.t()).float()
        return white, check_finite(z_white, "the embedding")

    def forward(self, graph: Graph) -> Tensor:
        """(N, views * rank) z of all nodes."""
        views = map(gather_rows, self.each_view(graph))  # holds one view at a time
        return join_views(views, (graph.num_nodes, self.spec.hidden), self.basis.device)

    @torch.no_grad()
    def rows(self, graph: Graph, ids: Tensor) -> Tensor:
        """(n, views * rank) z of the nodes `ids`; at most one view of all nodes is in memory."""
        z = torch.empty(len(ids), self.spec.hidden, device=self.basis.device)
        views = self.each_view(graph)
        for place in self.places(z):  # a zip would hold a view while the next one is computed
            place.copy_(read_rows(next(views), ids))
        return z

    def places(self, z: Tensor) -> tuple[Tensor, ...]:
        """The columns of z (n, hidden), one part per view."""
        return torch.split(z, self.spec.view_size, dim=1)

    def each_view(self, graph: Graph, rank: int | None = None) -> Iterator[Columns]:
        """Yield z (N, rank) of all nodes one view at a time, by default with all columns."""
        smooth = smoothing(graph, self.basis.device)
        words = [self._weighted(graph, weight) for weight in range(len(WEIGHTS))]
        for number, (basis, shift) in enumerate(zip(self._bases(), self.shift, strict=True)):
            if number == WORD_VIEWS:
                # Cut afterwards: a dense product of fewer columns is rounded differently.
                yield map_rows(partial(_project_bumps, basis, shift, rank), self.counts(graph))
                break
            depth = DEPTHS[number // len(WEIGHTS)]
            averaged = self.spec.averaged and depth == AVERAGED
            x = words[number % len(WEIGHTS)]
            yield project(smooth, x, basis[:, :rank], depth, averaged).sub_(shift[:rank])
        if self.spec.vector_size:
            shifts = self.shift[-VECTOR_VIEWS:]
            for view, shift in zip(self.vectors.each_view(graph, rank), shifts, strict=True):
                yield view - shift[:rank]

    def _weighted(self, graph: Graph, weight: int) -> Words:
        weights = self.word_weight[weight].cpu().numpy()
        return weighted_words(graph, weights, WEIGHTS[weight], self.basis.device)


def _project_bumps(basis: Tensor, shift: Tensor, rank: int | None, bumps: Tensor) -> Tensor:
    return (bumps @ basis).sub_(shift)[:, :rank]
