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

BLOCK_ENTRIES = 2**24  # of a matrix on disk that are used at a time: 128 MiB
# Every row of transposed features picks from all of the dense side, of which so many rows at a time
# stay in the cache: that many columns has a block, or more where
BLOCK_COLUMNS = 2**15
MIN_ENTRIES = 8  # entries of a row would be too few: each block has all rows to go through

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
    def of_transpose(cls, matrix: sp.csr_array, device: torch.device, empty: Empty) -> Blocks:
        """The transpose of a matrix, some columns each, in arrays of its own.

        Args:
            matrix: (m, n); a block is the transpose of some of its rows.
            device: The processor.
            empty: Makes the arrays.
        """
        m, n = matrix.shape
        width = -(-m // num_transposed(matrix))
        indices, data = empty(matrix.nnz, np.int32), empty(matrix.nnz, np.float32)
        places, blocks = [], []
        for start in range(0, m, width):
            end = min(start + width, m)
            mine = slice(int(matrix.indptr[start]), int(matrix.indptr[end]))
            pointers = matrix.indptr[start : end + 1] - mine.start
            rows = (matrix.data[mine], matrix.indices[mine], pointers)
            turned = sp.csr_array(sp.csr_array(rows, shape=(end - start, n)).T)
            indices[mine], data[mine] = turned.indices, turned.data
            turned.indices, turned.data = indices[mine], data[mine]
            places.append((slice(None), slice(start, end)))
            blocks.append(torch_csr(turned, device))
        return cls((n, m), matrix.nnz, device, tuple(places), tuple(blocks))

    def __matmul__(self, dense: Tensor) -> Tensor:
        out = dense.new_zeros(self.shape[0], dense.shape[1])
        for (rows, columns), block in zip(self.places, self.blocks, strict=True):
            torch.addmm(out[rows], block, dense[columns], out=out[rows])
        return out


def num_transposed(matrix: sp.csr_array) -> int:
    """How many blocks the transpose of a matrix is made of.

    Examples:
        >>> num_transposed(sp.eye_array(10, format="csr"))
        1
    """
    rows, columns = matrix.shape
    return max(min(-(-rows // BLOCK_COLUMNS), matrix.nnz // max(MIN_ENTRIES * columns, 1)), 1)


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
