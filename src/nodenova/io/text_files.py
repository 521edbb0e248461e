"""Text files: unpacked when gzipped, and decoded in the encoding that fits, with a note."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from nodenova.errors import GraphError, first_line
from nodenova.files.arrays import MAX_GROWTH, unpacked_limit
from nodenova.files.documents import check_encodable

BLOCK_BYTES = 1 << 20
READ_ERRORS = (UnicodeError, OSError, EOFError, zlib.error)
# A mark of UTF-32 begins with that of UTF-16.
MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
GZIP_MAGIC = b"\x1f\x8b"
NOT_IN_CP1252 = b"\x81\x8d\x8f\x90\x9d"


def file_ending(path: Path) -> str:
    """Return the ending of a file's name, in lower case and without .gz: '.csv'."""
    endings = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return endings[-1] if endings else ""


def check_file(path: Path) -> None:
    """Raise unless this is a file that can be read."""
    if path.is_dir():
        raise GraphError(f"{path}: a folder, not a file")
    if not path.exists():
        raise GraphError(f"{path}: no such file")
    if not path.is_file():
        raise GraphError(f"{path}: a pipe or a device, not a file; write it to a file first")
    check_encodable([path.name], "the file", GraphError)  # notes and titles hold its name
    try:
        with path.open("rb") as file:
            file.read(1)
    except PermissionError:
        raise GraphError(f"{path}: no permission to read it") from None
    except OSError as error:
        raise GraphError(f"{path}: cannot be read ({error.strerror})") from None


@contextmanager
def text_file(
    path: Path, encoding: str | None, notes: list[str]
) -> Iterator[tuple[IO[str], Callable[[], float]]]:
    """Open a file as text; yield the text and a function that returns the share read so far.

    What goes wrong while the text is read is a GraphError, unless the caller handles it.
    """
    is_packed = _is_gzip(path, notes)
    chosen = encoding or _find_encoding(path, is_packed, notes)
    _check_encoding(chosen, path)
    size = max(path.stat().st_size, 1)
    try:
        with path.open("rb") as raw:
            stream: Any = _GzipText(raw, path) if is_packed else raw
            with io.TextIOWrapper(stream, encoding=chosen, newline="") as text:
                yield text, lambda: raw.tell() / size
    except UnicodeError as error:
        what = f"cannot be decoded as {chosen} ({first_line(error)})"
        raise GraphError(f"{path.name}: {what}") from None
    except READ_ERRORS as error:
        raise _gzip_error(path, error) from None


def _check_encoding(encoding: str, path: Path) -> None:
    """Raise unless bytes can be decoded to text by this name: rot13 and zip are codecs, too."""
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=encoding).close()
    except (LookupError, ValueError, TypeError):
        raise GraphError(
            f"{path.name}: unknown encoding {str(encoding)[:40]!a}; try utf-8, cp1252 or utf-16"
        ) from None


class _GzipText(gzip.GzipFile):
    """A gzip file that stops where it unpacks to far more than its size."""

    def __init__(self, raw: IO[bytes], path: Path) -> None:
        super().__init__(fileobj=raw)
        self._path = path
        self._limit = unpacked_limit(path.stat().st_size)

    def _check_limit(self, block: bytes) -> bytes:
        self._limit -= len(block)
        if self._limit < 0:
            raise GraphError(
                f"{self._path.name}: unpacks to more than {MAX_GROWTH} times its size; "
                "unpack it first if that is right"
            )
        return block

    def read(self, size: int | None = -1) -> bytes:
        """Read at most `size` bytes, a negative number in blocks up to the limit."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(BLOCK_BYTES), b""))
        return self._check_limit(super().read(size))

    def read1(self, size: int = -1) -> bytes:
        """Read what one call gives, at most a block."""
        return self._check_limit(super().read1(size if size >= 0 else BLOCK_BYTES))


def _is_gzip(path: Path, notes: list[str]) -> bool:
    with path.open("rb") as file:
        is_packed = file.read(2) == GZIP_MAGIC
    if path.suffix.lower() == ".gz" and not is_packed and path.stat().st_size:
        raise GraphError(f"{path.name}: its name ends in .gz, but it is not a gzip file")
    if is_packed and path.suffix.lower() != ".gz":
        notes.append(f"{path.name}: gzipped despite its name; unpacked")
    return is_packed


def _find_encoding(path: Path, is_packed: bool, notes: list[str]) -> str:
    """Return utf-8 if the whole file is, else utf-16 by its mark, else Windows' Western one."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, is_first, is_utf8, is_cp1252 = 1, True, True, True
    with path.open("rb") as raw:
        file: Any = _GzipText(raw, path) if is_packed else raw
        for block in iter(lambda: _read_block(file, path), b""):
            marked = next((name for mark, name in MARKS if block.startswith(mark)), None)
            if is_first and marked is not None:
                notes.append(f"{path.name}: decoded as {marked.upper()}")
                return marked
            if is_first and block.startswith(codecs.BOM_UTF8):
                notes.append(f"{path.name}: a byte order mark was removed")
            is_first = False
            if b"\0" in block:
                line += block[: block.index(b"\0")].count(b"\n")
                what = f"line {line} holds a NUL byte; this is no text file, or its encoding is not"
                what = f"{what} detected: give it (--encoding utf-16-le)"
                raise GraphError(f"{path.name}: {what}")
            line += block.count(b"\n")
            is_utf8 = is_utf8 and _decodes(decoder, block)
            is_cp1252 = is_cp1252 and not any(byte in block for byte in NOT_IN_CP1252)
        is_utf8 = is_utf8 and _decodes(decoder, b"", final=True)
    if is_utf8:
        return "utf-8-sig"
    chosen = "cp1252" if is_cp1252 else "latin-1"
    notes.append(
        f"{path.name}: not UTF-8; decoded as {chosen} (set the encoding if letters look wrong)"
    )
    return chosen


def _decodes(decoder: codecs.IncrementalDecoder, block: bytes, final: bool = False) -> bool:
    try:
        decoder.decode(block, final)
    except UnicodeDecodeError:
        return False
    return True


def _read_block(file: Any, path: Path) -> bytes:
    try:
        return file.read(BLOCK_BYTES)
    except (OSError, EOFError, zlib.error) as error:
        raise _gzip_error(path, error) from error


def _gzip_error(path: Path, error: Exception) -> GraphError:
    what = f"damaged or cut off, cannot be unpacked ({first_line(error)})"
    return GraphError(f"{path.name}: {what}")
