"""The gate for JSON documents and small tables that are read: limits first, then a schema.

A document has at most `MAX_BYTES`; parsed, it takes at most about 25 times as much memory. It is
UTF-8, has no key twice, no NaN and no half of a surrogate pair. A schema is a value made of `text`,
`whole(...)`, `list_of(...)`, `record(...)` and the like; `check` compares a whole document with it
and raises one sentence that names the place:

    runs/a/model.json: damaged, stages[0].sees must be a list of texts, it is 5
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import tomllib
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from nodenova.errors import NodenovaError, StorageError, brief, first_line
from nodenova.files.content import open_file, unguard_formula

MAX_BYTES = 2**28  # of a document
MAX_TOML_BYTES = 2**20  # of a plan, which a person writes
MAX_ROWS_BYTES = 2**30  # of a file of rows, unpacked
BLOCK_BYTES = 2**20  # that are unpacked at a time
MAX_DEPTH = 32  # of lists and objects inside each other, where a schema does not limit them
MAX_WHOLE = 2**53  # whole numbers that JSON keeps exactly in every program
MAX_NUMBER = 1e300
HALF = "holds half of a surrogate pair, which is no character"
Errors: TypeAlias = "type[NodenovaError]"


# Reading.


def read_json(path: Path, schema: Schema | None = None, error: Errors = StorageError) -> Any:
    """Read a JSON document; by default its root is any object.

    Args:
        path: Path of the file.
        schema: Schema of the document.
        error: Type of the error to raise.

    Raises:
        NodenovaError: If the file cannot be read, is no JSON or does not have this form.
    """
    document = parse_json(_read_bytes(path, MAX_BYTES, error), str(path), error)
    check(document, _OBJECT if schema is None else schema, str(path), error)
    return document


def parse_json(content: bytes | str, where: str, error: Errors = StorageError) -> Any:
    """Parse strict JSON; `where` begins the message of an error."""
    try:
        text = content if isinstance(content, str) else content.decode("utf-8-sig")
        value = _DECODER.decode(text)
        _check_pairs(text, value)
    except RecursionError:
        raise error(f"{where}: damaged, lists or objects are nested too deeply") from None
    except UnicodeDecodeError as found:
        raise error(f"{where}: damaged, byte {found.start:,} is not UTF-8") from None
    except UnicodeEncodeError:
        raise error(f"{where}: damaged, it {HALF}") from None
    except ValueError as found:
        what = f"not readable as JSON ({first_line(found)})"
        raise error(f"{where}: damaged, {what}") from None
    return value


def read_toml(path: Path, error: Errors = StorageError) -> dict[str, Any]:
    """Read a TOML document, which a person wrote.

    Raises:
        NodenovaError: If the file cannot be read or is no TOML.
    """
    try:
        return tomllib.loads(_read_bytes(path, MAX_TOML_BYTES, error).decode("utf-8-sig"))
    except RecursionError:
        raise error(f"{path}: lists or tables are nested too deeply") from None
    except UnicodeDecodeError as found:
        raise error(f"{path}: byte {found.start:,} is not UTF-8") from None
    except ValueError as found:
        raise error(f"{path}: not readable as TOML ({first_line(found)})") from None


def parse_cells(content: str, most: int = MAX_DEPTH) -> Any:
    """Parse JSON in a table of a user, where NaN is a missing value and keys may repeat.

    Raises:
        ValueError: If it is no JSON, is nested more than `most` deep, or holds half of a pair.
    """
    try:
        value = json.loads(content)
        if content.count("[") + content.count("{") > most and is_deep(value, most):
            raise RecursionError
        _check_pairs(content, value)
    except RecursionError:
        raise ValueError(f"more than {most} lists or objects are inside each other") from None
    except UnicodeEncodeError:
        raise ValueError(f"it {HALF}") from None
    return value


def _check_pairs(content: str, value: object) -> None:
    """Raise UnicodeEncodeError if a value holds half of a surrogate pair, written as an escape."""
    if "\\ud" in content or "\\uD" in content:
        json.dumps(value, ensure_ascii=False).encode()


def read_lines(path: Path) -> list[bytes]:
    """Read the lines of a file, which is unpacked if its name ends in .gz; the last may be torn."""
    content = _read_bytes(path, MAX_ROWS_BYTES, StorageError)
    if path.suffix == ".gz":
        try:
            with gzip.open(io.BytesIO(content)) as file:
                blocks = [block := file.read(BLOCK_BYTES)]
                while block and len(blocks) * BLOCK_BYTES <= MAX_ROWS_BYTES:
                    blocks.append(block := file.read(BLOCK_BYTES))
                content = b"".join(blocks)
        except (OSError, EOFError, zlib.error) as found:
            what = f"not readable as gzip ({first_line(found)})"
            raise StorageError(f"{path}: damaged, {what}") from None
        _check_size(len(content), path, MAX_ROWS_BYTES, StorageError)
    return content.split(b"\n")


def _read_bytes(path: Path, most: int, error: Errors) -> bytes:
    with open_file(path, error) as file:
        size = os.fstat(file.fileno()).st_size
        _check_size(size, path, most, error)
        try:
            # Not `most`: Python makes room for all that is asked for.
            return file.read(size)
        except OSError as found:
            raise error(f"{path}: cannot be read ({found.strerror})") from None


def _check_size(size: int, path: Path, most: int, error: Errors) -> None:
    if size > most:
        raise error(f"{path}: too large, such a file has at most {most >> 20:,} MiB")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {brief(twice)} is there twice")
    return found


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no number")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique_keys, parse_constant=_no_constant)


def is_deep(value: object, most: int = MAX_DEPTH) -> bool:
    """Whether more than `most` lists or objects are inside each other.

    Examples:
        >>> is_deep([[1]], most=1), is_deep([[1]], most=2)
        (True, False)
    """
    layer = [value]
    for _ in range(most + 1):
        nested = [part for part in layer if isinstance(part, list | tuple | dict)]
        if not nested:
            return False
        layer = [
            inner
            for part in nested
            for inner in (part.values() if isinstance(part, dict) else part)
        ]
    return True


# Small tables of run folders.


def read_columns(path: Path, kinds: Mapping[str, Callable[[str], Any]]) -> dict[str, list[Any]]:
    """Read a CSV file of a run folder: its columns in order, those of `kinds` converted.

    Cells that `safe_csv` guards are read as they were before.

    Args:
        path: Path of the file.
        kinds: Columns that it must have, each with `str`, `to_whole` or `to_number`.

    Raises:
        StorageError: If the file is no such table.
    """
    try:
        with io.TextIOWrapper(open_file(path, StorageError), "utf-8", newline="") as file:
            header, *rows = [row for row in csv.reader(file) if row] or [[]]
    except OSError as found:
        raise StorageError(f"{path}: cannot be read ({found.strerror})") from None
    except (UnicodeDecodeError, csv.Error) as found:
        raise StorageError(f"{path}: damaged, not a table in UTF-8 ({first_line(found)})") from None
    for name in kinds:
        if name not in header:
            raise StorageError(f"{path}: damaged, it has no column {name!r}")
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            what = f"row {number} has {len(row)} cells, the first one {len(header)}"
            raise StorageError(f"{path}: damaged, {what}")
    if has_safe_csv(path.parent):
        header, *rows = [[unguard_formula(cell) for cell in row] for row in (header, *rows)]
    columns: dict[str, list[Any]] = {
        name: [row[place] for row in rows] for place, name in enumerate(header)
    }
    for name, convert in kinds.items():
        cells = columns[name]
        try:
            columns[name] = list(map(convert, cells))
        except ValueError:
            cell = next(cell for cell in cells if not _converts(convert, cell))
            what = f"column {name!r} holds {brief(cell)}, which is not {_KINDS[convert]}"
            raise StorageError(f"{path}: damaged, {what}") from None
    return columns


def has_safe_csv(folder: Path) -> bool:
    """Whether the tables in a run folder were written with safe_csv."""
    path = folder / "run.json"
    return path.is_file() and read_json(path).get("safe_csv") is True


def to_whole(cell: str) -> int:
    """Return the whole number in a cell; raises ValueError."""
    value = int(cell)
    if abs(value) > MAX_WHOLE:
        raise ValueError
    return value


def to_number(cell: str) -> float:
    """Return the finite number in a cell; raises ValueError."""
    value = float(cell)
    if not abs(value) <= MAX_NUMBER:
        raise ValueError
    return value


_KINDS: dict[Callable[[str], Any], str] = {to_whole: "a whole number", to_number: "a finite number"}


def _converts(convert: Callable[[str], Any], cell: str) -> bool:
    try:
        convert(cell)
    except ValueError:
        return False
    return True


# Names.


def check_encodable(texts: Iterable[object], what: str, error: Errors) -> None:
    """Raise for a name that cannot be written as UTF-8, such as half of a surrogate pair.

    Args:
        texts: Names, ids or titles; values other than texts are skipped.
        what: Kind of the names, which begins the message.
        error: Type of the error to raise.
    """
    names = [name for name in texts if isinstance(name, str)]
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        bad = next(name for name in names if not is_encodable(name))
        raise error(f"{what} {brief(bad)} cannot be written as UTF-8: rename it") from None


def is_encodable(text: str) -> bool:
    """Whether a text can be written as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# Schemas.


class _MisfitError(Exception):
    """A value that does not fit; its path is collected from the inside out."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what, self.path = what, ""

    def inside(self, part: str) -> _MisfitError:
        dot = "" if self.path.startswith("[") or not self.path else "."
        self.path = f"{part}{dot}{self.path}"
        return self


@dataclass(frozen=True)
class Schema:
    """A form of JSON values; this one is a plain value of some types.

    Attributes:
        name: Noun phrase for messages: "a text".
        plural: The same for many: "texts".
        types: Types of such values.
        accepts: Further test of a value of these types.
    """

    name: str
    plural: str
    types: frozenset[type] = frozenset()
    accepts: Callable[[Any], bool] | None = None

    def check(self, value: Any) -> None:
        """Raise unless a value has this form."""
        if type(value) not in self.types or (self.accepts and not self.accepts(value)):
            raise _MisfitError(f"must be {self.name}, it is {brief(value)}")


def check(
    value: Any,
    schema: Schema,
    where: str,
    error: Errors = StorageError,
    *,
    verdict: str = "damaged, ",
) -> None:
    """Raise unless a document has the form of a schema; `where` begins the message.

    `verdict` follows it; a file that a person wrote is not damaged, but wrong.

    Examples:
        >>> form = record({"sees": list_of(text)}, {"seed": whole(0)})
        >>> check({"sees": ["graph"], "seed": -1}, form, "model.json")
        Traceback (most recent call last):
        nodenova.errors.StorageError: model.json: damaged, seed must be a whole number of at \
least 0, it is -1
    """
    try:
        schema.check(value)
    except _MisfitError as found:
        raise error(f"{where}: {verdict}{found.path or 'it'} {found.what}") from None


text = Schema("a text", "texts", frozenset({str}))
boolean = Schema("true or false", "truth values", frozenset({bool}))


def whole(low: int = -MAX_WHOLE, high: int = MAX_WHOLE) -> Schema:
    """Whole numbers from `low` to `high`."""
    bounds = f" of at least {low}" if low > -MAX_WHOLE else ""
    bounds = f" from {low} to {high:,}" if high < MAX_WHOLE else bounds
    name, plural = f"a whole number{bounds}", f"whole numbers{bounds}"
    return Schema(name, plural, frozenset({int}), lambda value: low <= value <= high)


def number(low: float = -MAX_NUMBER, high: float = MAX_NUMBER, above: bool = False) -> Schema:
    """Finite numbers from `low` to `high`; with `above`, without `low` itself."""
    bounds = f" {'above' if above else 'of at least'} {low:g}" if low > -MAX_NUMBER else ""
    bounds = f" from {low:g} to {high:g}" if high < MAX_NUMBER and not above else bounds
    name, plural = f"a finite number{bounds}", f"finite numbers{bounds}"
    fits = (lambda value: low < value <= high) if above else (lambda value: low <= value <= high)
    return Schema(name, plural, frozenset({int, float}), fits)


def one_of(*words: str) -> Schema:
    """One of some words."""
    name = f"one of {', '.join(words)}"
    return Schema(name, name, frozenset({str}), lambda value: value in words)


def nullable(schema: Schema) -> Schema:
    """A form, or null."""
    return _Either(f"{schema.name} or null", f"{schema.plural} or null", options=(schema, _NULL))


def either(*options: Schema) -> Schema:
    """Any of some forms."""
    name = " or ".join(option.name for option in options)
    return _Either(name, " or ".join(option.plural for option in options), options=options)


def list_of(each: Schema, low: int = 0, high: int = MAX_WHOLE) -> Schema:
    """Lists, or tuples, of values of one form; they have `low` to `high` entries."""
    size = "" if not low else f"{low} " if low == high else f"at least {low} "
    name = f"a list of {size}{each.plural}"
    return _ListOf(name, name.replace("a list", "lists", 1), each=each, low=low, high=high)


def map_of(each: Schema, key: Schema = text) -> Schema:
    """Objects with any keys, and values of one form."""
    name = f"an object of {each.plural}"
    return _MapOf(name, name.replace("an object", "objects", 1), each=each, key=key)


def record(
    needs: Mapping[str, Schema], optional: Mapping[str, Schema] = {}, exact: bool = False
) -> Schema:
    """Objects with some fields; where it is `exact`, no others."""
    return _Record("an object", "objects", needs=needs, optional=optional, exact=exact)


def variant(key: str, forms: Mapping[str, Schema]) -> Schema:
    """Objects whose form depends on the word under one key."""
    return _Variant("an object", "objects", key=key, forms=forms)


_NULL = Schema("null", "null", frozenset({type(None)}))


@dataclass(frozen=True)
class _Either(Schema):
    options: Sequence[Schema] = ()

    def check(self, value: Any) -> None:
        if len(self.options) == 2 and self.options[1] is _NULL:  # the message of the other form
            if value is not None:
                self.options[0].check(value)
            return
        for option in self.options:
            with suppress(_MisfitError):
                option.check(value)
                return
        raise _MisfitError(f"must be {self.name}, it is {brief(value)}")


@dataclass(frozen=True)
class _ListOf(Schema):
    each: Schema = text
    low: int = 0
    high: int = MAX_WHOLE

    def check(self, value: Any) -> None:
        if not isinstance(value, list | tuple) or not self.low <= len(value) <= self.high:
            raise _MisfitError(f"must be {self.name}, it is {brief(value)}")
        each = self.each
        if not each.accepts and each.types and set(map(type, value)) <= each.types:
            return  # quick for many texts
        place = 0
        try:
            for place, part in enumerate(value):  # noqa: B007
                each.check(part)
        except _MisfitError as found:
            raise found.inside(f"[{place}]") from None


@dataclass(frozen=True)
class _MapOf(Schema):
    each: Schema = text
    key: Schema = text

    def check(self, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise _MisfitError(f"must be {self.name}, it is {brief(value)}")
        for name, part in value.items():
            try:
                self.key.check(name)
            except _MisfitError as found:
                raise _MisfitError(f"has a key that {found.what}") from None
            try:
                self.each.check(part)
            except _MisfitError as found:
                raise found.inside(_key(name)) from None


@dataclass(frozen=True)
class _Record(Schema):
    needs: Mapping[str, Schema] = field(default_factory=dict)
    optional: Mapping[str, Schema] = field(default_factory=dict)
    exact: bool = False

    def check(self, value: Any) -> None:
        if not isinstance(value, Mapping):
            raise _MisfitError(f"must be an object, it is {brief(value)}")
        for name, schema in (*self.needs.items(), *self.optional.items()):
            try:
                if name in value:
                    schema.check(value[name])
                elif name in self.needs:
                    raise _MisfitError("is missing")
            except _MisfitError as found:
                raise found.inside(_key(name)) from None
        if self.exact:
            for name in value:
                if name not in self.needs and name not in self.optional:
                    raise _MisfitError(f"has an unknown key {brief(name)}")


@dataclass(frozen=True)
class _Variant(Schema):
    key: str = ""
    forms: Mapping[str, Schema] = field(default_factory=dict)

    def check(self, value: Any) -> None:
        _Record("", "", needs={self.key: one_of(*self.forms)}).check(value)
        self.forms[value[self.key]].check(value)


@dataclass(frozen=True)
class _Plain(Schema):
    """Any JSON value without infinity, at most `MAX_DEPTH` deep."""

    def check(self, value: Any, depth: int = 0) -> None:
        if depth > MAX_DEPTH:
            raise _MisfitError(f"must have at most {MAX_DEPTH} lists or objects inside each other")
        parts: Iterable[tuple[Any, Any]] = ()
        if isinstance(value, Mapping):
            parts = value.items()
        elif not isinstance(value, list | tuple):
            _SCALAR.check(value)
        elif not set(map(type, value)) <= {str}:
            parts = enumerate(value)
        for place, part in parts:
            try:
                self.check(part, depth + 1)
            except _MisfitError as found:
                inside = f"[{place}]" if isinstance(place, int) else _key(place)
                raise found.inside(inside) from None


_SCALAR = Schema(
    "a text, a finite number, true, false or null",
    "plain values",
    frozenset({str, int, float, bool, type(None)}),
    lambda value: isinstance(value, str) or value is None or not abs(value) > MAX_NUMBER,
)
plain = _Plain("a JSON value", "JSON values")
_OBJECT = record({})


def _key(name: object) -> str:
    known = isinstance(name, str) and name.isidentifier() and len(name) <= 40
    return str(name) if known else f"[{brief(name)}]"


def check_header(
    document: Any, where: str, form: str, versions: Iterable[int], error: Errors = StorageError
) -> None:
    """Raise unless a document has this format and one of the versions."""
    found = document.get("format") if isinstance(document, Mapping) else None
    if found != form:
        raise error(f'{where}: not a file of this kind, expected "format": "{form}"')
    known = sorted(versions)
    version = document.get("version")
    if type(version) is not int or version not in known:
        what = f"has version {brief(version)} of its format"
        raise error(f"{where}: {what}, this nodenova reads versions up to {known[-1]}")
