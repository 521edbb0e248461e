"""Sparse matrices that are too large to be used in one piece, as blocks of rows or of columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from nodenova.graph import Graph

BLOCK_ENTRIES = 2**24  # of a matrix on disk that are used at a time: 128 MiB
PART_ENTRIES = 2**21  # that are put into their blocks at a time
# Rows of the dense side that a product picks from at a time: eight columns of them are 4 MiB, which
# stay in the cache. A row picked from memory costs six times as much as one from the cache.
BLOCK_COLUMNS = 2**17

Empty = Callable[[int, type[np.generic]], np.ndarray]


@dataclass(frozen=True, eq=False)
class Blocks:
    """A CSR matrix as blocks; a product takes one after the other and adds up what they say.

    Attributes:
        shape: (n, m).
        nnz: How many entries it has.
        device: The processor.
        places: Rows and columns of each block.
        blocks: (rows, columns) each.
    """

    shape: tuple[int, int]
    nnz: int
    device: torch.device
    places: tuple[tuple[slice, slice], ...]
    blocks: tuple[Tensor, ...]

    @classmethod
    def of_rows(cls, matrix: sp.csr_array, device: torch.device) -> Blocks:
        """Over the same arrays as SciPy's, of which a product has some in memory at a time."""
        places, blocks = [], []
        for start, end in row_blocks(matrix.indptr):
            first, last = int(matrix.indptr[start]), int(matrix.indptr[end])
            part = sp.csr_array((end - start, matrix.shape[1]), dtype=np.float32)
            part.indptr = matrix.indptr[start : end + 1] - first
            part.indices, part.data = matrix.indices[first:last], matrix.data[first:last]
            places.append((slice(start, end), slice(None)))
            blocks.append(torch_csr(part, device))
        return cls(matrix.shape, matrix.nnz, device, tuple(places), tuple(blocks))

    @classmethod
    def of_columns(
        cls, matrix: sp.csr_array, device: torch.device, count: int, empty: Empty
    ) -> Blocks:
        """In arrays of its own.

        Args:
            matrix: Rows sorted.
            device: The processor.
            count: How many blocks.
            empty: Makes the arrays.
        """
        n, m = matrix.shape
        width = -(-m // count)
        starts = [empty(n + 1, np.int32) for _ in range(count)]
        for rows, _, block in _parts(matrix, width):
            row = np.repeat(np.arange(rows.stop - rows.start), np.diff(_pointers(matrix, rows)))
            for number, size in enumerate(starts):
                mine = row[block == number]
                size[rows.start + 1 : rows.stop + 1] = np.bincount(
                    mine, minlength=rows.stop - rows.start
                )
        for size in starts:
            size[0] = 0
            np.cumsum(size, out=size)
        columns = [empty(int(size[-1]), np.int32) for size in starts]
        values = [empty(int(size[-1]), np.float32) for size in starts]
        for rows, entries, block in _parts(matrix, width):
            for number, size in enumerate(starts):
                mine = block == number
                place = slice(int(size[rows.start]), int(size[rows.stop]))
                columns[number][place] = matrix.indices[entries][mine] - number * width
                values[number][place] = matrix.data[entries][mine]
        places, blocks = [], []
        for number, parts in enumerate(zip(values, columns, starts, strict=True)):
            place = slice(number * width, min((number + 1) * width, m))
            part = sp.csr_array((n, place.stop - place.start), dtype=np.float32)
            part.data, part.indices, part.indptr = parts
            places.append((slice(None), place))
            blocks.append(torch_csr(part, device))
        return cls((n, m), matrix.nnz, device, tuple(places), tuple(blocks))

    def __matmul__(self, dense: Tensor) -> Tensor:
        out = dense.new_zeros(self.shape[0], dense.shape[1])
        for (rows, columns), block in zip(self.places, self.blocks, strict=True):
            torch.addmm(out[rows], block, dense[columns], out=out[rows])
        return out


def num_column_blocks(matrix: sp.csr_array) -> int:
    """How many blocks of columns a product with a matrix should take.

    So many that what it picks from stays in the cache, but no more than there are entries in a row:
    each block has all rows to go through.

    Examples:
        >>> num_column_blocks(sp.eye_array(10, format="csr"))
        1
    """
    rows, columns = matrix.shape
    return max(min(-(-columns // BLOCK_COLUMNS), matrix.nnz // max(rows, 1)), 1)


def row_blocks(indptr: np.ndarray, entries: int | None = None) -> Iterator[tuple[int, int]]:
    """First and last row, exclusive, of blocks of at most so many entries, or of one row.

    Args:
        indptr: Where the rows of a CSR matrix start.
        entries: BLOCK_ENTRIES unless given.

    Examples:
        >>> list(row_blocks(np.array([0, 4, 5, 6]), entries=4))
        [(0, 1), (1, 3)]
    """
    start, rows = 0, len(indptr) - 1
    entries = entries or BLOCK_ENTRIES
    while start < rows:
        most = np.searchsorted(indptr, indptr[start] + entries, side="right") - 1
        end = min(max(int(most), start + 1), rows)
        yield start, end
        start = end


def transposed(matrix: sp.csr_array, graph: Graph) -> sp.csr_array:
    """The transpose in arrays of the graph's own kind, block by block; rows are sorted."""
    n, m = matrix.shape
    count = np.zeros(m, dtype=np.int64)
    for start, end in row_blocks(matrix.indptr):
        part = matrix.indices[matrix.indptr[start] : matrix.indptr[end]]
        count += np.bincount(part, minlength=m)
    indptr = np.concatenate([[0], np.cumsum(count)])
    indices = graph.empty(matrix.nnz, np.int32 if n < 2**31 else np.int64)
    data = graph.empty(matrix.nnz, np.float32)
    filled = indptr[:-1].copy()
    for start, end in row_blocks(matrix.indptr):
        first, last = int(matrix.indptr[start]), int(matrix.indptr[end])
        places = (matrix.indices[first:last], matrix.indptr[start : end + 1] - first)
        block = sp.csr_array((matrix.data[first:last], *places), shape=(end - start, m))
        turned = sp.csr_array(block.T)
        size = np.diff(turned.indptr)
        place = np.repeat(filled - turned.indptr[:-1], size) + np.arange(turned.nnz)
        indices[place] = turned.indices + start
        data[place] = turned.data
        filled += size
    made = sp.csr_array((m, n), dtype=np.float32)
    made.indptr, made.indices, made.data = indptr, indices, data
    return made


def torch_csr(matrix: sp.csr_array, device: torch.device) -> Tensor:
    """PyTorch's over the arrays of SciPy's, as far as their types allow."""
    # 32-bit indices are what MKL's kernel takes as it is; 64-bit ones are converted in every
    # product.
    index = np.int32 if max(matrix.nnz, *matrix.shape) < 2**31 else np.int64
    with quiet():
        return torch.sparse_csr_tensor(
            torch.from_numpy(matrix.indptr.astype(index, copy=False)),
            torch.from_numpy(matrix.indices.astype(index, copy=False)),
            torch.from_numpy(matrix.data.astype(np.float32, copy=False)),
            matrix.shape,
            check_invariants=False,  # the matrix comes from SciPy, which keeps them
        ).to(device)


@contextmanager
def quiet() -> Iterator[None]:
    """Without PyTorch's warnings that sparse matrices are young, and that a file is read-only."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        yield


def _parts(matrix: sp.csr_array, width: int) -> Iterator[tuple[slice, slice, np.ndarray]]:
    """Some rows at a time, where their entries are, and in which block of columns each is."""
    for start, end in row_blocks(matrix.indptr, PART_ENTRIES):
        entries = slice(int(matrix.indptr[start]), int(matrix.indptr[end]))
        yield slice(start, end), entries, matrix.indices[entries] // width


def _pointers(matrix: sp.csr_array, rows: slice) -> np.ndarray:
    return matrix.indptr[rows.start : rows.stop + 1]
