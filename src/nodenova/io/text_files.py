"""Files as text: unpacked when gzipped, decoded in the encoding that fits; notes say so."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from nodenova.errors import GraphError

BLOCK = 1 << 20
GZIP_MAGIC = b"\x1f\x8b"


def file_ending(path: Path) -> str:
    """What a name ends in, whether the file is gzipped or not.

    Examples:
        >>> file_ending(Path("nodes.CSV.gz"))
        '.csv'
    """
    endings = [suffix.lower() for suffix in path.suffixes if suffix.lower() != ".gz"]
    return endings[-1] if endings else ""


def check_file(path: Path) -> None:
    """Refuse what is no file, or cannot be read, with a sentence."""
    if path.is_dir():
        raise GraphError(f"{path}: a folder, not a file")
    if not path.exists():
        raise GraphError(f"{path}: no such file")
    try:
        with path.open("rb") as file:
            file.read(1)
    except PermissionError:
        raise GraphError(f"{path}: no permission to read it") from None


@contextmanager
def text_file(
    path: Path, encoding: str | None, notes: list[str]
) -> Iterator[tuple[IO[str], Callable[[], float]]]:
    """Open a file as text, unpacked and decoded.

    Args:
        path: The file.
        encoding: Found by default.
        notes: Gets a sentence on what was done.

    Yields:
        The text, and a function that says which share of the file has been read.

    Raises:
        GraphError: The encoding is unknown, or the file is damaged or not a text.
    """
    packed = _is_gzip(path, notes)
    chosen = encoding or _encoding(path, packed, notes)
    try:
        codecs.lookup(chosen)
    except LookupError:
        raise GraphError(
            f"{path.name}: unknown encoding {encoding!r}; try utf-8, cp1252 or utf-16"
        ) from None
    size = max(path.stat().st_size, 1)
    with path.open("rb") as raw:
        stream: Any = gzip.GzipFile(fileobj=raw) if packed else raw
        with io.TextIOWrapper(stream, encoding=chosen, newline="") as text:
            yield text, lambda: raw.tell() / size


def _is_gzip(path: Path, notes: list[str]) -> bool:
    with path.open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    if path.suffix.lower() == ".gz" and not packed and path.stat().st_size:
        raise GraphError(f"{path.name}: its name ends in .gz, but it is not a gzip file")
    if packed and path.suffix.lower() != ".gz":
        notes.append(f"{path.name}: gzipped, although its name does not say so; unpacked")
    return packed


def _encoding(path: Path, packed: bool, notes: list[str]) -> str:
    """utf-8 if the whole file is, else by its byte order mark, else Windows' Western encoding."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line, first, is_utf8, western = 1, True, True, True
    with gzip.open(path) if packed else path.open("rb") as file:
        for block in iter(lambda: _read(file, path), b""):
            if first and block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                notes.append(f"{path.name}: decoded as UTF-16")
                return "utf-16"
            if first and block.startswith(codecs.BOM_UTF8):
                notes.append(f"{path.name}: a byte order mark was removed")
            first = False
            if b"\0" in block:
                line += block[: block.index(b"\0")].count(b"\n")
                raise GraphError(
                    f"{path.name}: line {line} holds a NUL byte; this is not a text file"
                )
            line += block.count(b"\n")
            if is_utf8:
                try:
                    decoder.decode(block)
                except UnicodeDecodeError:
                    is_utf8 = False
            western = western and not any(
                byte in block for byte in b"\x81\x8d\x8f\x90\x9d"
            )  # not in cp1252
        if is_utf8:
            try:
                decoder.decode(b"", final=True)
            except UnicodeDecodeError:
                is_utf8 = False
    if is_utf8:
        return "utf-8-sig"
    chosen = "cp1252" if western else "latin-1"
    notes.append(
        f"{path.name}: not UTF-8; decoded as {chosen} (give the encoding if letters look wrong)"
    )
    return chosen


def _read(file: Any, path: Path) -> bytes:
    try:
        return file.read(BLOCK)
    except (OSError, EOFError, zlib.error) as error:
        raise GraphError(
            f"{path.name}: damaged or cut off, cannot be unpacked ({error})"
        ) from error
