"""A graph whose rows are on several machines, and columns of numbers that are split with it.

The heavy parts of Prism are products with S and with the features, and sums over nodes. Each is a
function of one block of rows; only sums and requested rows come back.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from nodenova.graph import Graph
from nodenova.nn.seeding import on_threads
from nodenova.nn.sparse import BagMatrix, SparseMatrix, smooth_operator

ROWS = 65_536  # nodes whose sums are taken at a time
OfBlock = Callable[..., Tensor]  # (block of the graph, rows of columns on it) -> (n, c)
# Left-hand sides of `smooth @ columns` and `x @ basis`, here or on other machines.
Smooth: TypeAlias = "SparseMatrix | SplitSmoothing"
Words: TypeAlias = "SparseMatrix | SplitMatrix | Tensor"
Columns: TypeAlias = "Tensor | SplitColumns"


class GraphSplit(ABC):
    """Blocks of rows of a graph, and the machines that hold them.

    A function that is sent to a block gets its rows as a graph (n of N nodes with their features
    and edges; the adjacency is (n, N)) and the block's rows (n, c) of some columns.
    """

    num_nodes: int  # N
    at_once: int  # columns that are multiplied at a time

    @abstractmethod
    def each(self, function: OfBlock, *columns: SplitColumns) -> SplitColumns:
        """Columns whose block is what a function returns for it, (n, c)."""

    @abstractmethod
    def total(self, function: OfBlock, *columns: SplitColumns) -> Tensor:
        """Sum over blocks of what a function returns for each, in double precision."""

    @abstractmethod
    def smooth(self, columns: SplitColumns) -> SplitColumns:
        """S columns."""

    @abstractmethod
    def rows(self, columns: SplitColumns, ids: Tensor) -> Tensor:
        """(n, c) rows of the nodes `ids`."""


@dataclass(frozen=True, eq=False)
class SplitColumns:
    """(N, c) numbers, split with the rows of a graph."""

    split: GraphSplit
    blocks: tuple[Any, ...]  # the machines' references to the rows of each block

    def __add__(self, other: SplitColumns) -> SplitColumns:
        return self.split.each(_add, self, other)

    def __truediv__(self, by: float) -> SplitColumns:
        return self.split.each(partial(_divide, by), self)

    def sub_(self, row: Tensor) -> SplitColumns:
        """Subtract a row (c,)."""
        return self.split.each(partial(_subtract, row), self)

    def moments(self) -> tuple[Tensor, Tensor]:
        """(c, c) sum of r' r over all rows r, in double precision, and (c,) their mean."""
        both = self.split.total(_moments, self)
        return both[:-1], (both[-1] / self.split.num_nodes).float()

    def rows(self, ids: Tensor) -> Tensor:
        """(n, c) rows of the nodes `ids`."""
        return self.split.rows(self, ids)


@dataclass(frozen=True, eq=False)
class SplitMatrix:
    """(N, d) features that are split by rows."""

    split: GraphSplit
    # builds (n, d) from a block of the graph, on the machine that has it
    build: Callable[[Graph], SparseMatrix | Tensor]
    num_features: int  # d

    @property
    def shape(self) -> tuple[int, int]:
        return self.split.num_nodes, self.num_features

    def __matmul__(self, basis: Tensor) -> SplitColumns:
        return self.split.each(partial(_times, self.build, basis))

    def transpose(self) -> SplitTransposed:
        """(d, N)."""
        return SplitTransposed(self)


@dataclass(frozen=True, eq=False)
class SplitTransposed:
    """The (d, N) transpose of a SplitMatrix; its products are sums over blocks."""

    matrix: SplitMatrix

    def __matmul__(self, columns: SplitColumns) -> Tensor:
        transposed = partial(_transposed_times, self.matrix.build)
        return self.matrix.split.total(transposed, columns).float()


@dataclass(frozen=True, eq=False)
class SplitSmoothing:
    """S = D^-1/2 (A + I) D^-1/2, split by rows."""

    split: GraphSplit

    def __matmul__(self, columns: SplitColumns) -> SplitColumns:
        return self.split.smooth(columns)


def split_of(graph: Graph) -> GraphSplit | None:
    """The split of a graph; None for a graph on this machine."""
    found = graph.cache.get(GraphSplit)
    return found if isinstance(found, GraphSplit) else None


def smoothing(graph: Graph, device: torch.device) -> BagMatrix | SplitSmoothing:
    """`smooth_operator`, wherever the rows of the graph are."""
    split = split_of(graph)
    return smooth_operator(graph, device) if split is None else SplitSmoothing(split)


def join_columns(parts: Sequence[Columns]) -> Columns:
    """Concatenate columns."""
    split = [part for part in parts if isinstance(part, SplitColumns)]
    if not split:
        return torch.cat([part for part in parts if isinstance(part, Tensor)], dim=1)
    return split[0] if len(split) == 1 else split[0].split.each(_join, *split)


def read_rows(columns: Columns, ids: Tensor) -> Tensor:
    """(n, c) rows of the nodes `ids`, wherever they are."""
    return columns.rows(ids) if isinstance(columns, SplitColumns) else columns[ids]


def gather_rows(columns: Columns) -> Tensor:
    """(N, c) all rows, on this machine."""
    if isinstance(columns, Tensor):
        return columns
    return columns.rows(torch.arange(columns.split.num_nodes))


def map_rows(function: Callable[[Tensor], Tensor], columns: Columns) -> Columns:
    """Apply a function of rows, wherever the columns are."""
    if isinstance(columns, Tensor):
        return function(columns)
    return columns.split.each(partial(_map, function), columns)


def centered_moments(columns: Columns) -> tuple[Tensor, Tensor]:
    """(c,) mean of all rows and (c, c) sum of r' r over centered rows r, in double precision."""
    if isinstance(columns, Tensor):
        mean = columns.mean(dim=0)
        return mean, _centered_gram(mean, None, columns)
    split = columns.split
    mean = (split.total(_sum, columns) / split.num_nodes).float()
    return mean, split.total(partial(_centered_gram, mean), columns)


def gram(rows: Tensor) -> Tensor:
    """(c, c) sum of r' r over rows r, in double precision."""
    blocks = rows.split(ROWS)  # type: ignore[no-untyped-call]
    products = rows.new_empty(len(blocks), rows.shape[1], rows.shape[1])

    def fill(number: int) -> None:
        torch.mm(blocks[number].t(), blocks[number], out=products[number])

    on_threads(fill, range(len(blocks)))
    return products.sum(dim=0, dtype=torch.float64)


def _add(graph: Graph, left: Tensor, right: Tensor) -> Tensor:
    return left + right


def _divide(by: float, graph: Graph, rows: Tensor) -> Tensor:
    return rows / by


def _subtract(row: Tensor, graph: Graph, rows: Tensor) -> Tensor:
    return rows - row


def _map(function: Callable[[Tensor], Tensor], graph: Graph, rows: Tensor) -> Tensor:
    return function(rows)


def _join(graph: Graph, *parts: Tensor) -> Tensor:
    return torch.cat(parts, dim=1)


def _sum(graph: Graph, rows: Tensor) -> Tensor:
    return rows.sum(dim=0, dtype=torch.float64)


def _centered_gram(mean: Tensor, graph: Graph | None, rows: Tensor) -> Tensor:
    total = torch.zeros(rows.shape[1], rows.shape[1], dtype=torch.float64, device=rows.device)
    for block in rows.split(ROWS):  # type: ignore[no-untyped-call]
        centered = (block - mean).double()
        total += centered.t() @ centered
    return total


def _moments(graph: Graph, rows: Tensor) -> Tensor:
    return torch.cat([gram(rows), rows.sum(dim=0, keepdim=True, dtype=torch.float64)])


def _times(build: Callable[[Graph], Any], basis: Tensor, graph: Graph) -> Tensor:
    product: Tensor = build(graph) @ basis
    return product


def _transposed_times(build: Callable[[Graph], Any], graph: Graph, rows: Tensor) -> Tensor:
    x = build(graph)
    transposed = x.transpose() if isinstance(x, SparseMatrix) else x.t()
    product: Tensor = transposed @ rows
    return product
