"""Text files in the encodings that people have; packed files that are damaged or unpack to much."""

from __future__ import annotations

import gzip
from pathlib import Path

import hypothesis
import pytest
from hypothesis import strategies as st

import nodenova as nova
from nodenova.errors import GraphError, NodenovaError
from nodenova.files import arrays
from nodenova.io import tables
from tests.refusals import one_sentence

NODES = "id,label,mass\na,é,1\nb,é,2.5\nc,ü,3\nd,ü,9\n"
EDGES = "source,target\na,b\nc,d\n"


def load(
    folder: Path, nodes: bytes, edges: bytes = EDGES.encode(), **options: object
) -> nova.UserGraph:
    (folder / "nodes.csv").write_bytes(nodes)
    (folder / "edges.csv").write_bytes(edges)
    paths = {"nodes": folder / "nodes.csv", "edges": folder / "edges.csv"}
    return nova.load_graph(**paths, **options)  # type: ignore[arg-type]


def refusal(folder: Path, nodes: bytes, edges: bytes = EDGES.encode(), **options: object) -> str:
    with pytest.raises(GraphError) as caught:
        load(folder, nodes, edges, **options)
    return one_sentence(caught.value)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
def test_encodings_that_are_detected(tmp_path: Path, encoding: str) -> None:
    assert load(tmp_path, NODES.encode(encoding)).class_names == ("é", "ü")


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-32-be"])
def test_without_a_mark_the_encoding_is_asked_for(tmp_path: Path, encoding: str) -> None:
    assert "give it (--encoding utf-16-le)" in refusal(tmp_path, NODES.encode(encoding))
    edges = EDGES.encode(encoding)
    found = load(tmp_path, NODES.encode(encoding), edges, encoding=encoding)
    assert found.class_names == ("é", "ü")


@pytest.mark.parametrize(
    "encoding", ["rot13", "zip", "hex", "no-such", "a\0b", "\ud800", "x" * 5000, "mbcs-7"]
)
def test_what_is_no_encoding(tmp_path: Path, encoding: str) -> None:
    expected = "nodes.csv: unknown encoding"
    assert refusal(tmp_path, NODES.encode(), encoding=encoding).startswith(expected)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32"])
def test_text_that_is_cut_within_a_character(tmp_path: Path, encoding: str) -> None:
    assert f"cannot be decoded as {encoding}" in refusal(tmp_path, NODES.encode(encoding)[:-1])


@pytest.mark.parametrize("encoding", [None, "utf-8"])
def test_gzip_files_that_are_damaged(tmp_path: Path, encoding: str | None) -> None:
    packed = gzip.compress(NODES.encode())
    for content in (packed[:-9], packed[:20] + b"\xff" + packed[21:], packed + b"junk"):
        assert "damaged or cut off" in refusal(tmp_path, content, encoding=encoding)
    edges = gzip.compress(EDGES.encode() * 50)[:-9]
    assert "edges.csv: damaged" in refusal(tmp_path, NODES.encode(), edges, encoding=encoding)


def test_a_file_of_new_ids_that_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_bytes("a\nb".encode("utf-16")[:-1])
    what = refusal(tmp_path, NODES.encode(), new_nodes=tmp_path / "ids.txt")
    assert what.startswith("ids.txt: cannot be decoded as utf-16")


def test_a_gzip_file_that_unpacks_to_much_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "SPARE", 1 << 16)
    content = NODES.encode() + b"a" * 3_000_000
    for encoding in (None, "utf-8"):
        what = refusal(tmp_path, gzip.compress(content), encoding=encoding)
        assert what.startswith("nodes.csv: unpacks to more than 100 times its size")


def test_tables_whose_cells_would_need_far_more_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MAX_PADDED", 1000)
    header = ",".join(f"c{i}" for i in range(300))
    rows = "\n".join(f"n{i}" for i in range(2000))
    wide = f"id,{header}\n{rows}\n".encode()
    assert "rows are much shorter than the header" in refusal(tmp_path, wide)
    (tmp_path / "n.jsonl").write_text("\n".join(f'{{"id": {i}, "k{i}": 1}}' for i in range(500)))
    with pytest.raises(GraphError, match="records have few keys in common"):
        nova.load_graph(nodes=tmp_path / "n.jsonl", edges=tmp_path / "edges.csv")


def test_odd_headers_delimiters_and_edges(tmp_path: Path) -> None:
    nodes = NODES.encode()
    assert "not even a header" in refusal(tmp_path, b'""\n')
    for sign in '"\r\n':
        assert "cannot be a delimiter" in refusal(tmp_path, nodes, delimiter=sign)
    edges = b"source,w\na,1\n"
    what = refusal(tmp_path, nodes, edges, weight_column="w")
    assert "no columns are left for the two ends of an edge" in what
    assert "holds a NUL character" in refusal(
        tmp_path, NODES.replace("\na,", "\na\0,").encode(), encoding="utf-8"
    )
    huge = NODES.replace("2.5", "1e300").encode()
    assert "column 'mass', line 3: '1e300' is too large a number" in refusal(tmp_path, huge)


def test_half_of_a_surrogate_pair_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    rows = ['{"id": "a", "label": "\\ud800", "m": 1}', '{"id": "b", "label": "x", "m": 2.5}']
    (tmp_path / "n.jsonl").write_text("\n".join(rows))
    with pytest.raises(GraphError, match=r"line 1: .*half of a surrogate pair") as caught:
        nova.load_graph(nodes=tmp_path / "n.jsonl")
    one_sentence(caught.value).encode()


TEXTS = [NODES.encode(), NODES.encode("utf-16"), gzip.compress(NODES.encode()), EDGES.encode()]


@hypothesis.settings(max_examples=120, derandomize=True, deadline=None)
@hypothesis.given(
    which=st.integers(0, 2),
    place=st.integers(0, 200),
    piece=st.sampled_from(
        [b"", b'"', b"\0", b"\xff", b"\xff\xfe", b"\n", b"\r", b",,,", b";", b"1e999", b"nan",
         b"\xed\xa0\x80", b"\x1f\x8b", b"{", b"\xe2\x80\xa8", b"-1", b"a" * 5000]
    ),
    length=st.integers(0, 8),
    in_edges=st.booleans(),
)  # fmt: skip
def test_changed_bytes_of_tables(
    tmp_path_factory: pytest.TempPathFactory,
    which: int,
    place: int,
    piece: bytes,
    length: int,
    in_edges: bool,
) -> None:
    content = TEXTS[3] if in_edges else TEXTS[which]
    place %= len(content)
    changed = content[:place] + piece + content[place + length :]
    folder = tmp_path_factory.getbasetemp()
    try:
        load(folder, *((NODES.encode(), changed) if in_edges else (changed,)))
    except NodenovaError as error:
        one_sentence(error, 400)
