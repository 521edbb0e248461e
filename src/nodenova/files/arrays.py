"""The gate for array files: npz and npy files are checked before an array is read.

The directory of an archive and the header of an array are compared with each other and with the
size of the file first; only then is memory taken. Objects, records and complex numbers are refused,
and nothing is ever unpickled.
"""

from __future__ import annotations

import math
import os
import re
import zipfile
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from nodenova.errors import GraphError, NodenovaError, first_line

NPY_MAGIC = b"\x93NUMPY"
ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
MAX_HEADER = 10_000  # bytes of an npy header; that of a plain array has about a hundred
MAX_DIMENSIONS = 8
READ_BYTES = 1 << 18
BLOCK_ENTRIES = 1 << 20  # of an array that is checked block by block
NUMBERS = "biuf"  # truth values, whole numbers with and without a sign, floating point
PLAIN = NUMBERS + "USMm"  # also texts, bytes, dates and durations

# Unpacked arrays cost at most MAX_GROWTH times the file plus SPARE bytes. Packed ones and zeros
# shrink by 1,000, so that the spare room is large; a file that is not packed always passes.
MAX_GROWTH = 100
SPARE = 1 << 29
ENTRY_COST = 32  # bytes that follow from each entry of the longest side: names, numbers, edges
MAX_UNUSED_COLUMNS = 1 << 24  # of a sparse matrix, beyond the number of its entries

_ITEM = (
    r"""\s*['"](?:(descr)['"]\s*:\s*['"]([^'"]*)['"]|(fortran_order)['"]\s*:\s*(True|False)|"""
    r"""(shape)['"]\s*:\s*\(([\d\sL,]*)\))\s*"""
)
_HEADER = re.compile(rf"\{{{_ITEM},{_ITEM},{_ITEM},?\s*\}}\s*")


class Header(NamedTuple):
    """The header of an npy file."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_fortran: bool
    length: int  # bytes before the values

    @property
    def data_bytes(self) -> int:
        """Number of bytes of the values."""
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def cost(self) -> int:
        """Bytes of the values, and of what is made for each entry of the longest side."""
        return self.data_bytes + ENTRY_COST * max(self.shape, default=1)


def unpacked_limit(size: int) -> int:
    """Return how many bytes a packed file of `size` bytes may unpack to."""
    return MAX_GROWTH * size + SPARE


@contextmanager
def enough_memory(
    source: str, error: type[NodenovaError] = GraphError, hint: str = ""
) -> Iterator[None]:
    """Turn a MemoryError into an error of ours that names the file."""
    try:
        yield
    except MemoryError:
        what = "does not fit into the memory of this machine"
        raise error(f"{source}: {what}{hint and '; '}{hint}") from None


def is_npz(path: Path) -> bool:
    """Whether a file begins as an npz archive does."""
    with path.open("rb") as file:
        return file.read(4) in ZIP_MAGICS


def read_npz(
    path: Path,
    names: Collection[str] | None = None,
    *,
    source: str = "",
    error: type[NodenovaError] = GraphError,
) -> dict[str, np.ndarray]:
    """Read the arrays of an npz archive, or those with these names; others are not looked at.

    `source` is the file's name in messages, by default its path.
    """
    source = source or str(path)
    with enough_memory(source, error), _open(path, source, error) as file:
        size = os.fstat(file.fileno()).st_size
        magic = file.read(6)
        if magic == NPY_MAGIC:
            raise error(f"{source}: a single array, not an npz archive of named arrays")
        if magic[:4] not in ZIP_MAGICS:
            raise error(f"{source}: not a readable npz file (it is no zip archive)")
        try:
            with zipfile.ZipFile(file) as archive:
                members = _find_members(archive, names, source, error)
                return _read_members(archive, members, size, source, error)
        except (NodenovaError, MemoryError):
            raise
        except Exception as problem:  # of any kind, from a damaged archive
            what = f"not a readable npz file ({first_line(problem)})"
            raise error(f"{source}: {what}") from problem


def open_npy(
    path: Path,
    *,
    source: str = "",
    error: type[NodenovaError] = GraphError,
    in_memory: bool = True,
) -> np.ndarray:
    """Read the array of an npy file; unless `in_memory`, map it read-only: it may exceed memory."""
    source = source or str(path)
    with enough_memory(source, error), _open(path, source, error) as file:
        header = _read_header(file, source, error)
        size = os.fstat(file.fileno()).st_size - header.length
        if size != header.data_bytes:
            raise _wrong_size(source, size, header, error)
        if in_memory or not size:
            return _read_values(file, header, source, error)
        order: Any = "F" if header.is_fortran else "C"
        place = {"offset": header.length, "shape": header.shape, "order": order}
        array = np.asarray(np.memmap(file, header.dtype, "r", **place))
    _check_texts(array, source, error)
    return array


@contextmanager
def _open(path: Path, source: str, error: type[NodenovaError]) -> Iterator[IO[bytes]]:
    if not path.is_file():
        raise error(f"{path}: no such file")
    try:
        with path.open("rb") as file:
            yield file
    except OSError as problem:
        raise error(f"{source}: cannot be read ({first_line(problem)})") from None


def _find_members(
    archive: zipfile.ZipFile,
    names: Collection[str] | None,
    source: str,
    error: type[NodenovaError],
) -> dict[str, zipfile.ZipInfo]:
    """Return the wanted members of an archive by the names of their arrays."""
    found = [(info.filename.removesuffix(".npy"), info) for info in archive.infolist()]
    wanted = [(name, info) for name, info in found if names is None or name in names]
    for name, count in Counter(name for name, _ in wanted).items():
        if count > 1:
            raise error(f"{source}: holds {count} arrays that are called {_short(name)}")
    for name, info in wanted:
        if info.flag_bits & 1:
            raise error(f"{source}: array {_short(name)} is encrypted")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise error(
                f"{source}: array {_short(name)} is packed in a way that NumPy does not use; "
                "write it with np.savez"
            )
    return dict(wanted)


def _read_members(
    archive: zipfile.ZipFile,
    members: dict[str, zipfile.ZipInfo],
    size: int,
    source: str,
    error: type[NodenovaError],
) -> dict[str, np.ndarray]:
    """Read members; the header of each is compared with the file's size before its values."""
    cost, arrays = 0, {}
    for name, info in members.items():
        where = f"{source}: array {_short(name)}"
        with archive.open(info) as member:
            header = _read_header(member, where, error)
            if info.file_size - header.length != header.data_bytes:
                raise _wrong_size(where, info.file_size - header.length, header, error)
            cost += header.cost
            if cost > unpacked_limit(size):
                raise error(
                    f"{where}: the arrays are more than {MAX_GROWTH} times as large as the file; "
                    "write them with np.savez, which does not pack them, or x as sparse parts"
                )
            arrays[name] = _read_values(member, header, where, error)
    return arrays


def _read_header(file: IO[bytes], where: str, error: type[NodenovaError]) -> Header:
    """Parse the header of an array, with nothing but a regular expression."""
    magic = file.read(8)
    if magic[:6] != NPY_MAGIC or magic[6] not in (1, 2, 3):
        raise error(f"{where}: not an array as NumPy writes it")
    width = 2 if magic[6] == 1 else 4
    length = int.from_bytes(file.read(width), "little")
    text = file.read(length).decode("latin-1") if length <= MAX_HEADER else ""
    match = _HEADER.fullmatch(text)
    items = [] if match is None else [part for part in match.groups() if part is not None]
    values = dict(zip(items[::2], items[1::2], strict=True))
    if len(values) < 3:
        what = "has records or an odd" if "[" in text else "has a damaged"
        raise error(f"{where}: {what} header; only plain arrays of numbers or texts are read")
    shape = tuple(int(side[:20]) for side in re.findall(r"\d+", values["shape"]))
    try:
        dtype = np.dtype(values["descr"])
    except (TypeError, ValueError, SyntaxError):
        raise error(f"{where}: has an unknown type, {_short(values['descr'])}") from None
    header = Header(dtype, shape, values["fortran_order"] == "True", 8 + width + length)
    _check_header(header, where, error)
    return header


def _check_header(header: Header, where: str, error: type[NodenovaError]) -> None:
    dtype, shape = header.dtype, header.shape
    if dtype.kind not in PLAIN or dtype.subdtype is not None:
        kinds = {"O": "Python objects", "c": "complex numbers"}
        what = kinds.get(dtype.kind, f"values of type {dtype.kind!r}")
        raise error(f"{where}: holds {what}; only plain arrays of numbers or texts are read")
    # An array without bytes could have any number of entries.
    is_empty = not header.data_bytes
    if len(shape) > MAX_DIMENSIONS or (is_empty and max(shape, default=1) > BLOCK_ENTRIES):
        raise error(f"{where}: has the shape {_short(str(shape))}, which no array here has")
    if is_empty and 0 not in shape:
        raise error(f"{where}: has texts of length 0")


def _read_values(
    file: IO[bytes], header: Header, where: str, error: type[NodenovaError]
) -> np.ndarray:
    """Read the values block by block: memory is touched only as far as there are values."""
    flat = np.empty(math.prod(header.shape), dtype=header.dtype)
    room, done = flat.view(np.uint8), 0
    while done < len(room):
        block = file.read(min(READ_BYTES, len(room) - done))
        if not block:
            raise error(f"{where}: cut off after {done:,} of {len(room):,} bytes")
        room[done : done + len(block)] = np.frombuffer(block, dtype=np.uint8)
        done += len(block)
    if file.read(1):  # also makes zipfile compare its checksum
        raise error(f"{where}: has more values than its header states")
    if not flat.dtype.isnative:
        flat = flat.astype(flat.dtype.newbyteorder("="))
    _check_texts(flat, where, error)
    return flat.reshape(header.shape, order="F" if header.is_fortran else "C")


def _wrong_size(where: str, size: int, header: Header, error: type[NodenovaError]) -> NodenovaError:
    shape = _short(str(header.shape))
    return error(
        f"{where}: damaged, its header states {header.dtype} of shape {shape}, "
        f"but there are {max(size, 0):,} bytes"
    )


def _check_texts(array: np.ndarray, where: str, error: type[NodenovaError]) -> None:
    """Raise if an array of texts has a character that does not exist or cannot be written."""
    if array.dtype.kind == "U" and not are_texts(array):
        raise error(f"{where}: a text has a character that cannot be written as UTF-8")


def are_texts(array: np.ndarray) -> bool:
    """Whether all characters of an array of texts can be written as UTF-8.

    Examples:
        >>> are_texts(np.array(["oak", "ébène"])), are_texts(np.array(["\\ud800"]))
        (True, False)
    """
    if not array.size or not array.dtype.itemsize:
        return True
    for block in blocks(array.reshape(-1)):
        codes = np.ascontiguousarray(block, block.dtype.newbyteorder("=")).view(np.uint32)
        if codes.max() >= 0xD800 and ((codes > 0x10FFFF) | (codes >> 11 == 0x1B)).any():
            return False
    return True


def blocks(array: np.ndarray) -> Iterator[np.ndarray]:
    """Yield an array in consecutive blocks of rows, so that checks need little memory."""
    step = max(1, BLOCK_ENTRIES // max(1, math.prod(array.shape[1:])))
    return (array[start : start + step] for start in range(0, len(array), step))


def are_finite(array: np.ndarray) -> bool:
    """Whether all numbers of an array are finite, read block by block."""
    return all(bool(np.isfinite(block).all()) for block in blocks(array))


def check_csr(
    data: np.ndarray,
    indices: np.ndarray,
    indptr: np.ndarray,
    shape: tuple[int, int],
    where: str,
    *,
    is_sorted: bool = False,
) -> None:
    """Raise a GraphError unless these are parts of a CSR matrix that any library may walk through.

    `is_sorted`: the columns of each row must also ascend. `where` begins the message.

    Examples:
        >>> data, indices = np.ones(3, np.float32), np.array([0, 1, 1])
        >>> check_csr(data, indices, np.array([0, 2, 3]), (2, 2), "a.npz: x")
        >>> try:
        ...     check_csr(data, indices, np.array([0, 9, 3]), (2, 2), "a.npz: x")
        ... except GraphError as error:
        ...     print(error)
        a.npz: x: the row starts (indptr) fall in row 1
    """
    rows, columns = shape
    if any(part.ndim != 1 for part in (data, indices, indptr)):
        raise GraphError(f"{where}: data, indices and indptr must each have one dimension")
    if indices.dtype.kind not in "iu" or indptr.dtype.kind not in "iu":
        raise GraphError(f"{where}: indices and indptr must hold whole numbers")
    if data.dtype.kind not in NUMBERS:
        raise GraphError(f"{where}: the data must be numbers, it holds {data.dtype}")
    if rows < 0 or len(indptr) != rows + 1:
        raise GraphError(f"{where}: indptr has {len(indptr):,} entries for {rows:,} rows")
    if not 0 <= columns <= MAX_UNUSED_COLUMNS + len(indices):
        raise GraphError(f"{where}: {columns:,} columns for {len(indices):,} entries")
    if indptr[0] != 0 or indptr[-1] != len(indices) or len(data) != len(indices):
        raise GraphError(
            f"{where}: indptr goes from {indptr[0]} to {indptr[-1]} for {len(indices):,} indices "
            f"and {len(data):,} entries"
        )
    step = BLOCK_ENTRIES
    for start in range(0, rows, step):
        block = indptr[start : start + step + 1]
        falls = block[1:] < block[:-1]
        if falls.any():
            row = start + int(falls.argmax())
            raise GraphError(f"{where}: the row starts (indptr) fall in row {row}")
    for start in range(0, len(indices), step):
        # One entry more, so that neighbors in two blocks are compared as well.
        block = indices[start : start + step + 1]
        if block.min() < 0 or block.max() >= columns:
            outside = (block < 0) | (block >= columns)
            bad = block[outside.argmax()]
            raise GraphError(f"{where}: an index is {bad}, columns are 0..{columns - 1}")
        if is_sorted:
            new_rows = np.flatnonzero(block[1:] <= block[:-1]) + start + 1
            if (indptr[np.searchsorted(indptr, new_rows)] != new_rows).any():
                raise GraphError(f"{where}: the columns of a row do not ascend")


def _short(text: str) -> str:
    """A name from a file in a message, quoted and cut."""
    return repr(text if len(text) <= 40 else text[:37] + "...")
