"""The gate for array files: what is damaged or hostile is one sentence, and takes no memory."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodenova.errors import GraphError, NodenovaError, StorageError
from nodenova.files import arrays as gate
from nodenova.files.arrays import check_csr, is_npz, open_npy, read_npz
from tests.refusals import one_sentence


def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    """An npy file with any header."""
    text = header.encode("latin-1")
    width = 2 if version == 1 else 4
    return b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(width, "little") + text + data


def plain_npy(descr: str, shape: str, data: bytes = b"") -> bytes:
    return npy(f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n", data)


def archive(path: Path, *members: tuple[str, bytes], packed: bool = True) -> Path:
    kind = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(path, "w", kind) as file:
        for name, content in members:
            file.writestr(name, content)
    return path


PLAIN = [
    np.arange(6.0).reshape(2, 3),
    np.asfortranarray(np.arange(6).reshape(2, 3)),
    np.array([1, 2], ">i4"),
    np.array(["oak", "ébène", ""]),
    np.array([b"a", b"bc"]),
    np.array([True, False]),
    np.array(7),
    np.zeros((2, 0), int),
    np.array([], str),
    np.array(["2020-01-01"], "M8[D]"),
    np.array([1, 2], np.float16),
]


@pytest.mark.parametrize("array", PLAIN, ids=lambda array: f"{array.dtype.str}{array.shape}")
def test_plain_arrays_are_read_as_numpy_reads_them(tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", a=array)
    np.savez_compressed(tmp_path / "b.npz", a=array)
    found = [
        open_npy(tmp_path / "a.npy"),
        open_npy(tmp_path / "a.npy", in_memory=False),
        read_npz(tmp_path / "a.npz")["a"],
        read_npz(tmp_path / "b.npz")["a"],
    ]
    for other in found:
        assert other.shape == array.shape
        assert other.dtype.newbyteorder("=") == array.dtype.newbyteorder("=")
        assert (other == array).all()


HUGE = f"({2**33},)"
BAD_ARRAYS = {
    "texts of no length": (plain_npy("<U0", HUGE), "array 'a'"),
    "more than there is": (plain_npy("<f8", "(1000000000, 2)"), "there are 0 bytes"),
    "less than there is": (plain_npy("<f8", "(1,)", bytes(16)), "there are 16 bytes"),
    "a side of 40 digits": (plain_npy("<f8", f"({'9' * 40},)"), "array 'a'"),
    "an empty array of any shape": (plain_npy("<f8", f"({2**62}, 0)"), "has the shape"),
    "many dimensions": (plain_npy("<f8", "(" + "1, " * 40 + ")", bytes(8)), "has the shape"),
    "objects": (plain_npy("|O", "(1,)", bytes(8)), "holds Python objects"),
    "complex numbers": (plain_npy("<c8", "(1,)", bytes(8)), "holds complex numbers"),
    "raw bytes": (plain_npy("|V8", "(1,)", bytes(8)), "only plain arrays"),
    "records": (
        npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }\n", bytes(4)),
        "has records or an odd header",
    ),
    "a subarray": (plain_npy("(2,)<f4", "(1,)", bytes(8)), "only plain arrays"),
    "an unknown type": (plain_npy("<q9", "(1,)", bytes(8)), "unknown type"),
    "a header that is cut off": (npy("{'descr': '<f8', 'shape': ("), "damaged header"),
    "a header with a call": (
        npy("{'descr': __import__('os'), 'fortran_order': False, 'shape': ()}"), "damaged header"
    ),
    "a header of unknown keys": (npy("{'a': 1}"), "damaged header"),
    "a header that says it is long": (
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "damaged header"
    ),
    "another version": (npy("{}", version=9), "not an array as NumPy writes it"),
    "no magic": (b"hello, world", "not an array as NumPy writes it"),
    "nothing": (b"", "not an array as NumPy writes it"),
    "a character that does not exist": (
        plain_npy("<U1", "(1,)", (0x110000).to_bytes(4, "little")), "cannot be written as UTF-8"
    ),
    "half of a surrogate pair": (
        plain_npy("<U1", "(1,)", (0xD800).to_bytes(4, "little")), "cannot be written as UTF-8"
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD_ARRAYS)
def test_a_bad_array_is_one_sentence(tmp_path: Path, kind: str) -> None:
    content, expected = BAD_ARRAYS[kind]
    path = archive(tmp_path / "a.npz", ("a.npy", content))
    with pytest.raises(GraphError) as caught:
        read_npz(path, source="a.npz")
    assert expected in one_sentence(caught.value)
    assert "a.npz: array 'a'" in str(caught.value)
    (tmp_path / "a.npy").write_bytes(content)
    for in_memory in (False, True):
        with pytest.raises(StorageError) as other:
            open_npy(tmp_path / "a.npy", source="a.npy", error=StorageError, in_memory=in_memory)
        assert one_sentence(other.value).startswith("a.npy: ")


def encrypt(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[6] |= 1
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(bytes(content))


def test_headers_of_later_versions_and_texts_beyond_the_first_plane_are_read(
    tmp_path: Path,
) -> None:
    header = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,), }\n"
    for version in (1, 2, 3):
        (tmp_path / "a.npy").write_bytes(npy(header, b"\1\0\0\0\2\0\0\0", version))
        assert open_npy(tmp_path / "a.npy").tolist() == [1, 2]
    np.save(tmp_path / "b.npy", np.array(["oak", "\U0001f333", "\ue000"]))
    assert open_npy(tmp_path / "b.npy").tolist() == ["oak", "\U0001f333", "\ue000"]


def test_archives_that_numpy_does_not_write(tmp_path: Path) -> None:
    array = plain_npy("<f8", "(1,)", bytes(8))
    cases: dict[str, Path] = {}
    with pytest.warns(UserWarning, match="Duplicate name"):
        cases["2 arrays that are called 'a'"] = archive(
            tmp_path / "twice.npz", ("a.npy", array), ("a.npy", array)
        )
    cases["2 arrays that are called 'b'"] = archive(
        tmp_path / "both.npz", ("b.npy", array), ("b", array)
    )
    cases["is encrypted"] = archive(tmp_path / "key.npz", ("a.npy", array))
    encrypt(cases["is encrypted"])
    cases["that NumPy does not use"] = tmp_path / "lzma.npz"
    with zipfile.ZipFile(tmp_path / "lzma.npz", "w", zipfile.ZIP_LZMA) as file:
        file.writestr("a.npy", array)
    cases["a single array"] = tmp_path / "one.npz"
    (tmp_path / "one.npz").write_bytes(array)
    cases["it is no zip archive"] = tmp_path / "text.npz"
    (tmp_path / "text.npz").write_bytes(b"x" * 100)
    cases["not a readable npz file"] = tmp_path / "cut.npz"
    (tmp_path / "cut.npz").write_bytes(cases["2 arrays that are called 'b'"].read_bytes()[:-9])
    cases["no such file"] = tmp_path / "gone.npz"
    for expected, path in cases.items():
        with pytest.raises(GraphError) as caught:
            read_npz(path)
        assert expected in one_sentence(caught.value)
    assert is_npz(cases["is encrypted"])
    assert not is_npz(cases["a single array"])


def test_arrays_that_are_not_asked_for_are_not_looked_at(tmp_path: Path) -> None:
    good, bad = plain_npy("<f8", "(1,)", bytes(8)), plain_npy("|O", "(1,)", bytes(8))
    path = archive(tmp_path / "a.npz", ("a.npy", good), ("b.npy", bad))
    assert list(read_npz(path, ("a", "c"))) == ["a"]
    with pytest.raises(GraphError, match="'b'"):
        read_npz(path)


def test_a_small_archive_cannot_take_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zeros = np.zeros(20_000_000, np.int8)
    np.savez_compressed(tmp_path / "packed.npz", a=zeros)
    np.savez(tmp_path / "plain.npz", a=zeros[:1_000_000])
    monkeypatch.setattr(gate, "SPARE", 1 << 20)
    tracemalloc.start()
    with pytest.raises(GraphError, match="100 times as large as the file; write them"):
        read_npz(tmp_path / "packed.npz")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000
    assert read_npz(tmp_path / "plain.npz")["a"].nbytes == 1_000_000


def test_a_one_hot_matrix_that_packs_a_thousand_times_is_read(tmp_path: Path) -> None:
    x = np.zeros((1000, 4000), np.float32)
    x[:, 0] = 1
    np.savez_compressed(tmp_path / "a.npz", x=x)
    assert x.nbytes > 300 * (tmp_path / "a.npz").stat().st_size
    assert (read_npz(tmp_path / "a.npz")["x"] == x).all()


def test_a_directory_that_lies_about_the_size(tmp_path: Path) -> None:
    array = plain_npy("<f8", "(1000,)", bytes(80))
    path = archive(tmp_path / "a.npz", ("a.npy", array), packed=False)
    content = path.read_bytes()
    lie = (len(array) + 7920).to_bytes(4, "little")
    path.write_bytes(content.replace(len(array).to_bytes(4, "little"), lie))
    with pytest.raises(GraphError) as caught:
        read_npz(path)
    one_sentence(caught.value)


def test_memory_that_is_not_there_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.savez(tmp_path / "a.npz", a=np.zeros(3))

    def no_memory(*arguments: object, **options: object) -> None:
        raise MemoryError

    monkeypatch.setattr(gate, "_read_values", no_memory)
    with pytest.raises(StorageError, match=r"a\.npz: does not fit into the memory"):
        read_npz(tmp_path / "a.npz", error=StorageError)


DATA, INDICES, INDPTR = np.ones(3, np.float32), np.array([0, 2, 1]), np.array([0, 2, 3])
BAD_CSR: dict[str, tuple[Callable[[], tuple[np.ndarray, ...]], tuple[int, int]]] = {
    "fall in row": (lambda: (DATA, INDICES, np.array([0, 2**30, 3])), (2, 3)),
    "indptr goes from 0 to 0": (lambda: (DATA, INDICES, np.array([0, 2**30, 0])), (2, 3)),
    "indptr goes from 1": (lambda: (DATA, INDICES, np.array([1, 2, 3])), (2, 3)),
    "3 indices and 2 entries": (lambda: (DATA[:2], INDICES, INDPTR), (2, 3)),
    "an index is 9": (lambda: (DATA, np.array([0, 9, 1]), INDPTR), (2, 3)),
    "an index is -1": (lambda: (DATA, np.array([0, 2, -1]), INDPTR), (2, 3)),
    "3 entries for 5 rows": (lambda: (DATA, INDICES, INDPTR), (5, 3)),
    "3 entries for -1 rows": (lambda: (DATA, INDICES, INDPTR), (-1, 3)),
    "columns for 3 entries": (lambda: (DATA, INDICES, INDPTR), (2, 2**40)),
    "one dimension": (lambda: (DATA, INDICES.reshape(1, 3), INDPTR), (2, 3)),
    "whole numbers": (lambda: (DATA, INDICES * 1.0, INDPTR), (2, 3)),
    "must be numbers": (lambda: (DATA.astype(str), INDICES, INDPTR), (2, 3)),
    "do not ascend": (lambda: (DATA, np.array([2, 0, 1]), INDPTR), (2, 3)),
}


@pytest.mark.parametrize("expected", BAD_CSR)
def test_parts_that_are_no_csr_matrix(expected: str) -> None:
    make, shape = BAD_CSR[expected]
    with pytest.raises(GraphError) as caught:
        check_csr(*make(), shape, "a.npz: x", is_sorted=True)
    assert expected in one_sentence(caught.value)


def test_a_csr_matrix_is_checked_across_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "BLOCK_ENTRIES", 2)
    indices, indptr = np.array([0, 1, 2, 3, 0, 1]), np.array([0, 4, 4, 6])
    check_csr(np.ones(6), indices, indptr, (3, 4), "x", is_sorted=True)
    for place, value in ((2, 1), (5, 4), (3, 2)):
        broken = indices.copy()
        broken[place] = value
        with pytest.raises(GraphError):
            check_csr(np.ones(6), broken, indptr, (3, 4), "x", is_sorted=True)
    with pytest.raises(GraphError, match="fall in row 1"):
        check_csr(np.ones(6), indices, np.array([0, 4, 3, 6]), (3, 4), "x")


def _archive_bytes(packed: bool) -> bytes:
    content = io.BytesIO()
    save = np.savez_compressed if packed else np.savez
    save(content, a=np.arange(40), b=np.array(["oak", "ash"]))
    return content.getvalue()


@settings(max_examples=150, derandomize=True, deadline=None)
@given(
    packed=st.booleans(),
    changes=st.lists(st.tuples(st.integers(0, 1500), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.none() | st.integers(0, 1500),
)
def test_changed_bytes_of_an_archive(
    tmp_path_factory: pytest.TempPathFactory,
    packed: bool,
    changes: list[tuple[int, int]],
    cut: int | None,
) -> None:
    content = bytearray(_archive_bytes(packed))
    for place, value in changes:
        content[place % len(content)] = value
    path = tmp_path_factory.getbasetemp() / "changed.npz"
    path.write_bytes(bytes(content[:cut]))
    try:
        read_npz(path, source="changed.npz")
    except NodenovaError as error:
        one_sentence(error)


def test_a_changed_value_does_not_pass_the_checksum(tmp_path: Path) -> None:
    array = plain_npy("<f8", "(3,)", np.arange(3.0).tobytes())
    path = archive(tmp_path / "a.npz", ("a.npy", array), packed=False)
    content = path.read_bytes()
    path.write_bytes(content.replace(np.arange(3.0).tobytes(), np.array([0.0, 9, 2]).tobytes()))
    with pytest.raises(GraphError) as caught:
        read_npz(path)
    one_sentence(caught.value)


def test_a_csr_matrix_may_have_no_rows() -> None:
    none = np.zeros(0, dtype=np.int64)
    check_csr(none, none, np.zeros(1, dtype=np.int64), (0, 3), "a")
