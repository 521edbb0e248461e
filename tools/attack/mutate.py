"""Mutators: bytes, JSON trees, arrays and the files that hold them, and tables.

Every function takes its input and a random generator and returns a changed copy. The same
generator state gives the same change.
"""

from __future__ import annotations

import copy
import csv
import gzip
import io
import json
import re
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

Rng: TypeAlias = np.random.Generator
Rows: TypeAlias = list[dict[str, Any]]

# Texts that stand for what `json.dumps` cannot write; `json_bytes` puts the real thing in.
DEEP, DEEP_OBJECT, DIGITS, TWICE = "@deep@", "@deep object@", "@digits@", "@twice@"
SURROGATE = "\ud800"
ODD_TEXTS = (
    "", " ", "\x00", "a\x00b", SURROGATE, "é\u0301", "\u202e", "=1+1", "nan", "-1", "1e999", "None",
    "../../etc", "/", "a" * 300, "x" * 100_000, "\n", "a,b", '"', "<script>", "🙂", "\ufeff", "%s",
    "{}", "[1, 2]", "[[[", "0x10", "１２",
)  # fmt: skip
ODD_NUMBERS = (
    0, -1, 1, 2, 7, 255, 2**31 - 1, 2**31, 2**33, 2**40, 2**63, -(2**63) - 1, 10**30, 0.5, -0.0,
    1e-300, 1e308, float("nan"), float("inf"), float("-inf"),
)  # fmt: skip
ODD_VALUES: tuple[Any, ...] = (
    *ODD_TEXTS, *ODD_NUMBERS, None, True, False, [], {}, [[]], [None], [{}], {"": None}, {"a": 1},
    [1, "a", None], ["a", ["b"]], [0] * 1000, DEEP, DEEP_OBJECT, DIGITS,
)  # fmt: skip


def pick(rng: Rng, choices: Sequence[Any]) -> Any:
    """Return one of the choices; a list or an object as a copy, as later changes may edit it."""
    choice = choices[int(rng.integers(len(choices)))]
    return copy.deepcopy(choice) if type(choice) in (list, dict) else choice


def chance(rng: Rng, probability: float) -> bool:
    """Whether something with this probability happens."""
    return bool(rng.random() < probability)


# Bytes


def change_bytes(content: bytes, rng: Rng) -> bytes:
    """Change content in one to four places: flip, set, cut, repeat, insert, shorten."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 5))):
        if not data:
            data += bytes(rng.integers(0, 256, 4).tolist())
        at = int(rng.integers(len(data)))
        length = min(len(data) - at, 2 ** int(rng.integers(0, 9)))
        match int(rng.integers(8)):
            case 0:
                data[at] ^= 1 << int(rng.integers(8))
            case 1:
                data[at] = pick(rng, (0, 1, 9, 10, 13, 34, 44, 91, 123, 127, 128, 255))
            case 2:
                del data[at:]
            case 3:
                del data[at : at + length]
            case 4:
                data[at:at] = data[at : at + length]
            case 5:
                data[at:at] = bytes(rng.integers(0, 256, length).tolist())
            case 6:
                data[at : at + length] = bytes(length)
            case _:
                data[at:at] = pick(
                    rng, (b"\xff\xfe", b"\xef\xbb\xbf", b"\x00", b'"', b"\n", b"[[[")
                )
    return bytes(data)


def reencode(text: str, rng: Rng) -> bytes:
    """Write text in another encoding than UTF-8; characters that it lacks become '?'."""
    encoding = pick(
        rng, ("utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "utf-7", "cp037")
    )
    return text.encode(encoding, errors="replace")


# JSON


def change_json(document: Any, rng: Rng) -> Any:
    """Change a document in one to three places of its tree."""
    document = json.loads(json.dumps(document))
    for _ in range(int(rng.integers(1, 4))):
        places = list(_places(document))
        if not places:
            return pick(rng, ODD_VALUES)
        _change_place(*places[int(rng.integers(len(places)))], rng)
    return document


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key) of every value in a tree."""
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in list(items):
        yield node, key
        if isinstance(value, dict | list) and value:
            yield from _places(value)


def _change_place(container: Any, key: Any, rng: Rng) -> None:
    value = container[key]
    match int(rng.integers(8)):
        case 0:
            del container[key]
        case 1 if isinstance(container, dict):
            container[pick(rng, ("extra", "", "a" * 200, SURROGATE, TWICE))] = value
        case 1:
            container.insert(key, value)
        case 2 if isinstance(container, dict):
            container[str(key) + pick(rng, ("x", " ", "\x00"))] = container.pop(key)
        case 3 | 4:
            container[key] = change_value(value, rng)
        case 5:
            container[key] = [value] if chance(rng, 0.5) else {"value": value}
        case _:
            container[key] = pick(rng, ODD_VALUES)


def change_value(value: Any, rng: Rng) -> Any:
    """Change a value and keep its type, where it has one of JSON's types."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return pick(rng, (value + 1, value - 1, -value, value * 1000, 2**40, value + 0.5, 0))
    if isinstance(value, float):
        return pick(rng, (value * -1, value * 1e10, 0.0, 1e308, float("nan"), value // 1, 2.0))
    if isinstance(value, str):
        at = int(rng.integers(len(value) + 1))
        return value[:at] + pick(rng, ODD_TEXTS) + value[at:] if chance(rng, 0.7) else value[:at]
    if isinstance(value, list):
        kept = [one for one in value if chance(rng, 0.7)]
        return pick(rng, (kept, value * 2, value[::-1], value[:1], []))
    if isinstance(value, dict):
        return {key: one for key, one in value.items() if chance(rng, 0.7)}
    return pick(rng, ODD_VALUES)


def json_bytes(document: Any, indent: int | None = None) -> bytes:
    """Write a document, with the real thing where a stand-in is."""
    text = json.dumps(document, indent=indent)
    depth = 100_000
    for stand_in, real in (
        (f'"{DEEP}"', "[" * depth + "]" * depth),
        (f'"{DEEP_OBJECT}"', '{"a":' * depth + "1" + "}" * depth),
        (f'"{DIGITS}"', "9" * 5000),
        (f'"{TWICE}"', '"format"'),
    ):
        text = text.replace(stand_in, real)
    return text.encode()


def change_json_file(content: bytes, rng: Rng) -> bytes:
    """Change a JSON file: its tree, its bytes, its encoding, or all of it."""
    match int(rng.integers(10)):
        case 0 | 1:
            return change_bytes(content, rng)
        case 2:
            return pick(rng, (b"", b"null", b"[]", b"{}", b"1", b'"a"', b"[" * 100_000,
                              b'{"a":' * 100_000, b"\xff", b"NaN", b" " * 1000))  # fmt: skip
        case 3:
            return reencode(content.decode(), rng)
        case _:
            return json_bytes(change_json(json.loads(content), rng))


# Arrays, npy and npz

DTYPES = (
    "i1", "u1", "i2", "i4", "i8", "u8", "f2", "f4", "f8", "c8", "?", "<U5", "<U0", "S3", ">i4",
    ">f8", "M8[s]", "m8[s]", "V4", "O", "f4,i4",
)  # fmt: skip


def change_array(array: np.ndarray, rng: Rng) -> np.ndarray:
    """Change the type, the shape or the values of an array."""
    match int(rng.integers(3)):
        case 0:
            return _change_type(array, rng)
        case 1:
            return _change_shape(array, rng)
        case _:
            return _change_entries(array, rng)


def _change_type(array: np.ndarray, rng: Rng) -> np.ndarray:
    dtype = pick(rng, DTYPES)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return array.astype(dtype)
        except (ValueError, TypeError, OverflowError, RuntimeError):  # the last: long dates as text
            return np.zeros(array.shape, dtype=dtype)


def _change_shape(array: np.ndarray, rng: Rng) -> np.ndarray:
    options: tuple[Callable[[], np.ndarray], ...] = (
        lambda: array.reshape(-1),
        lambda: array.T,
        lambda: array[:-1],
        lambda: array[:0],
        lambda: array[None],
        lambda: array[..., None],
        lambda: array[..., :1],
        lambda: np.concatenate([array, array]),
        lambda: np.concatenate([array, array[:1]]),
        lambda: np.array(array.flat[0] if array.size else 0),
        lambda: array[::-1],
        lambda: np.zeros((0, 0), dtype=array.dtype),
        lambda: np.zeros((0, *array.shape[1:]), dtype=array.dtype),
        lambda: np.zeros((*array.shape[:1], 0), dtype=array.dtype),
    )
    try:
        return pick(rng, options)()
    except (IndexError, ValueError):
        return array.reshape(-1)


def _change_entries(array: np.ndarray, rng: Rng) -> np.ndarray:
    array = array.copy()
    if not array.size or array.dtype.kind not in "iufbUS":
        return array
    flat = array.reshape(-1)
    where = rng.integers(len(flat), size=int(rng.integers(1, 4)))
    if array.dtype.kind in "US":
        texts: tuple[Any, ...] = ("", "x" * 50, "\x00", "nan", flat[0], "é")
        flat[where] = pick(rng, texts[:-1] if flat.dtype.kind == "S" else texts)
        return array
    value = pick(rng, (-1, -2, 0, 1, 3, len(flat), 10**6, 2**30, 2**31 - 1, -(2**31), 2**40, 2**62,
                       np.nan, np.inf, -np.inf, 1e30, 1e-30))  # fmt: skip
    with np.errstate(all="ignore"):
        new = np.array([value]).astype(array.dtype)[0]
    if chance(rng, 0.2):
        flat[:] = new
    elif chance(rng, 0.2):
        rng.shuffle(flat)
    else:
        flat[where] = new
    return array


def npy_bytes(array: np.ndarray) -> bytes:
    """Return the content of an npy file; one with objects is a pickle of harmless texts."""
    content = io.BytesIO()
    np.lib.format.write_array(content, array, allow_pickle=True)
    return content.getvalue()


HEADER_EDITS: tuple[tuple[str, Sequence[str]], ...] = (
    (r"\([^)]*\)", ("(1000000000, 2)", "(8589934592,)", "(-1,)", "()", "(0,)", "(3, 3", "(1.5,)",
                    "(99999999999999999999,)", "(None,)", "(2, 'a')", "[3]", "(2,)")),
    (r"'descr': '[^']*'", ("'descr': '<U0'", "'descr': '|O'", "'descr': '<i8'", "'descr': '<f2'",
                           "'descr': 'zzz'", "'descr': ''", "'descr': '|V0'", "'descr': '<U999999'",
                           "'descr': [('a', '<i4')]", "'descr': 5", "'descr': '<c16'")),
    (r"False", ("True", "None", "7", "Fal", "0")),
    (r"'shape'", ("'shap'", "shape", "'shape\\", "'''", "(" * 40)),
    (r"\{", ("", "{{", "[", "\x00", "{'a': 1, ", "__import__('os')")),
)  # fmt: skip


def change_npy(content: bytes, rng: Rng) -> bytes:
    """Change an npy file: its header, its bytes or its array."""
    match int(rng.integers(4)):
        case 0:
            return change_bytes(content, rng)
        case 1 if b"'|O'" not in content[:128]:  # objects are not read back
            array = np.load(io.BytesIO(content), allow_pickle=False)
            return npy_bytes(change_array(array, rng))
        case _:
            return change_npy_header(content, rng)


def change_npy_header(content: bytes, rng: Rng) -> bytes:
    """Change the text, the version or the length of the header of an npy file."""
    length = int.from_bytes(content[8:10], "little")
    text, data = content[10 : 10 + length].decode("latin-1"), content[10 + length :]
    version = content[6:8]
    pattern, choices = pick(rng, HEADER_EDITS)
    new = pick(rng, choices)
    text = re.sub(pattern, lambda match: new, text, count=1)
    if "<U0" in text and chance(rng, 0.5):
        text = re.sub(r"\([^)]*\)", "(8589934592,)", text, count=1)
    if chance(rng, 0.2):
        version = pick(rng, (b"\x00\x00", b"\x02\x00", b"\x03\x00", b"\x09\x01"))
    body = text.encode("latin-1")
    size = len(body) if chance(rng, 0.8) else int(rng.integers(65536))
    if chance(rng, 0.2):
        data = data[: int(rng.integers(len(data) + 1))]
    return content[:6] + version + size.to_bytes(2, "little") + body + data


def zip_bytes(members: Mapping[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    """Return a zip archive with these members."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", compression) as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data, compress_type=compression)
    return content.getvalue()


def npz_bytes(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return the content of an npz file."""
    return zip_bytes({f"{name}.npy": npy_bytes(array) for name, array in arrays.items()})


def change_npz(arrays: Mapping[str, np.ndarray], rng: Rng) -> bytes:
    """Change an npz file: its arrays, their headers, its members, its directory, its bytes."""
    kind = int(rng.integers(10))
    arrays = dict(arrays)
    if kind < 4:
        for _ in range(int(rng.integers(1, 4))):
            name = pick(rng, sorted(arrays))
            arrays[name] = change_array(np.asarray(arrays[name]), rng)
        return npz_bytes(arrays)
    members = {f"{name}.npy": npy_bytes(np.asarray(array)) for name, array in arrays.items()}
    name = pick(rng, sorted(members))
    if kind < 7:
        members[name] = change_npy(members[name], rng)
    elif kind == 7:
        _change_members(members, name, rng)
    elif kind == 8:
        return _change_directory(zip_bytes(members), rng)
    else:
        return change_bytes(zip_bytes(members, zipfile.ZIP_DEFLATED), rng)
    return zip_bytes(members, pick(rng, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


def _change_members(members: dict[str, bytes], name: str, rng: Rng) -> None:
    match int(rng.integers(7)):
        case 0:
            del members[name]
        case 1:
            members[name.removesuffix(".npy")] = members.pop(name)
        case 2:
            members["extra.npy"] = members[name]
        case 3:
            members[name] = b""
        case 4:
            other = pick(rng, sorted(members))
            members[name], members[other] = members[other], members[name]
        case 5:
            members[name.removesuffix(".npy")] = b"plain bytes"
            del members[name]
        case _:
            members[pick(rng, ("../up.npy", "/abs.npy", "a/b.npy", ".npy"))] = members.pop(name)


def _change_directory(content: bytes, rng: Rng) -> bytes:
    """Make the directory of a zip archive lie about sizes, offsets, checksums or compression."""
    data = bytearray(content)
    entries = [m.start() for m in re.finditer(rb"PK\x01\x02", content)]
    entry = pick(rng, entries)
    offset, size = pick(rng, ((8, 2), (10, 2), (16, 4), (20, 4), (24, 4), (28, 2), (42, 4)))
    number = int(pick(rng, (0, 1, 2, 8, 12, 99, 2**15, 2**16 - 1, 2**31, 2**32 - 1)))
    data[entry + offset : entry + offset + size] = struct.pack("<Q", number)[:size]
    return bytes(data)


# Tables


def change_rows(rows: Sequence[Mapping[str, Any]], rng: Rng) -> Rows:
    """Change records: cells, whole columns, their names, rows, their order."""
    return _change_records([dict(row) for row in rows], rng)


def _change_records(rows: Rows, rng: Rng) -> Rows:
    for _ in range(int(rng.integers(1, 4))):
        if not rows or not rows[0]:
            return rows
        column, row = pick(rng, sorted(rows[0])), rows[int(rng.integers(len(rows)))]
        match int(rng.integers(11)):
            case 0 | 1 | 2:
                row[column] = pick(rng, (*ODD_TEXTS, *ODD_NUMBERS, None))
            case 3:
                row[column] = pick(rng, ([], {}, [1, 2], {"a": 1}, [[]], True, ["a", None], [0.5]))
            case 4:
                value = pick(rng, (*ODD_TEXTS[:8], *ODD_NUMBERS, None))
                for one in rows:
                    one[column] = value
            case 5:
                for one in rows:
                    one.pop(column, None)
            case 6:
                name = pick(rng, (*ODD_TEXTS[:10], "id", "label", "source", "target", "weight"))
                rows = [{name if key == column else key: v for key, v in r.items()} for r in rows]
            case 7:
                rows = rows[: int(rng.integers(len(rows) + 1))]
            case 8:
                rows = [*rows, *rows[: int(rng.integers(len(rows) + 1))]]
            case 9:
                rows = [rows[i] for i in rng.permutation(len(rows))]
            case _:
                for one in rows:
                    one[pick(rng, ("more", "x" * 500, "0"))] = pick(rng, (1, 2.5, "a b", None))
    return rows


TABLE_FORMS = ("csv", "tsv", "json", "jsonl", "parquet")


def write_table(rows: Sequence[Mapping[str, Any]], form: str) -> bytes:
    """Write records as csv, tsv, json, jsonl or parquet."""
    if form == "json":
        return json_bytes(list(rows))
    if form == "jsonl":
        return b"".join(json_bytes(row) + b"\n" for row in rows)
    if form == "parquet":
        return _parquet(rows)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter="\t" if form == "tsv" else ",", lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow(["" if row.get(c) is None else row[c] for c in columns])
    return text.getvalue().encode("utf-8", errors="surrogatepass")


def _parquet(rows: Sequence[Mapping[str, Any]]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = list(dict.fromkeys(key for row in rows for key in row))
    arrays = []
    for column in columns:
        values = [row.get(column) for row in rows]
        try:
            arrays.append(pa.array(values))
        except (pa.ArrowException, OverflowError, UnicodeError, TypeError, ValueError):
            # Bytes, as some writers store texts; they need not be UTF-8.
            texts = [str(v).encode("utf-8", errors="surrogatepass") for v in values]
            arrays.append(pa.array(texts, type=pa.binary()))
    names = [column.encode("utf-8", errors="replace").decode() for column in columns]
    content = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, names=names), content)
    return content.getvalue()


def change_table(rows: Sequence[Mapping[str, Any]], form: str, rng: Rng) -> tuple[bytes, str]:
    """Change a table and write it; return its content and the ending of its name."""
    structural = chance(rng, 0.65)
    content = write_table(change_rows(rows, rng) if structural else rows, form)
    if form != "parquet" and chance(rng, 0.15):
        content = reencode(content.decode("utf-8", errors="replace"), rng)
    if not structural:
        content = _change_text(content, rng) if form != "parquet" else change_bytes(content, rng)
    ending = f".{form}"
    if form != "parquet" and chance(rng, 0.1):
        ending += ".gz"
        content = gzip.compress(content, mtime=0)
        if chance(rng, 0.5):
            content = change_bytes(content, rng)
    return content, ending


def _change_text(content: bytes, rng: Rng) -> bytes:
    """Change a text table as text: its lines, quotes, delimiters and ends of lines."""
    lines = content.split(b"\n")
    match int(rng.integers(8)):
        case 0:
            return content.replace(
                b"\n", pick(rng, (b"\r\n", b"\r", b"\n\n", b"\x0b", b"\xe2\x80\xa8"))
            )
        case 1:
            return content.replace(b",", pick(rng, (b";", b"|", b"\t", b" ", b",,")))
        case 2:
            at = int(rng.integers(len(lines)))
            lines[at] = pick(rng, (b'"', b"", b",", b"a", b"\x00", lines[at] + b",extra", b"#"))
            return b"\n".join(lines)
        case 3:
            return pick(rng, (b"", b"\n", b"\x00", b"\xef\xbb\xbf", b"a", b'"', lines[0], b"id\n"))
        case 4:
            return lines[0] + b"\n" + content
        case 5:
            lines[0] = pick(rng, (b"", b",".join([b"id"] * 3), lines[0] + b"," + lines[0], b'"id'))
            return b"\n".join(lines)
        case _:
            return change_bytes(content, rng)
