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

from nodenova.errors import GraphError

BLOCK_BYTES = 1 << 20
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
    try:
        with path.open("rb") as file:
            file.read(1)
    except PermissionError:
        raise GraphError(f"{path}: no permission to read it") from None


@contextmanager
def text_file(
    path: Path, encoding: str | None, notes: list[str]
) -> Iterator[tuple[IO[str], Callable[[], float]]]:
    """Open a file as text; yield the text and a function that returns the share read so far."""
    is_packed = _is_gzip(path, notes)
    chosen = encoding or _find_encoding(path, is_packed, notes)
    try:
        codecs.lookup(chosen)
    except LookupError:
        raise GraphError(
            f"{path.name}: unknown encoding {encoding!r}; try utf-8, cp1252 or utf-16"
        ) from None
    size = max(path.stat().st_size, 1)
    with path.open("rb") as raw:
        stream: Any = gzip.GzipFile(fileobj=raw) if is_packed else raw
        with io.TextIOWrapper(stream, encoding=chosen, newline="") as text:
            yield text, lambda: raw.tell() / size


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
    with gzip.open(path) if is_packed else path.open("rb") as file:
        for block in iter(lambda: _read_block(file, path), b""):
            if is_first and block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                notes.append(f"{path.name}: decoded as UTF-16")
                return "utf-16"
            if is_first and block.startswith(codecs.BOM_UTF8):
                notes.append(f"{path.name}: a byte order mark was removed")
            is_first = False
            if b"\0" in block:
                line += block[: block.index(b"\0")].count(b"\n")
                what = f"line {line} holds a NUL byte; this is not a text file"
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
        what = f"damaged or cut off, cannot be unpacked ({error})"
        raise GraphError(f"{path.name}: {what}") from error
