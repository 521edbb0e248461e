"""Graphs in npz files: nodenova's own form, and raw files of PyTorch Geometric."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.datasets import Amazon, CitationFull, Coauthor

from nodenova.errors import DatasetError, GraphError
from nodenova.io import datasets
from nodenova.io.dataset_table import DATASETS, is_on_disk
from nodenova.io.datasets import load_dataset
from nodenova.io.npz import load_graph
from tests.refusals import one_sentence

X = np.zeros((6, 20), dtype=np.float32)
X[range(6), [0, 3, 5, 19, 7, 7]] = [1, 2, 3, 4, 5, 6]
CSR = sp.csr_array(X)
CSR_PARTS = {
    "x_data": CSR.data,
    "x_indices": CSR.indices,
    "x_indptr": CSR.indptr,
    "x_shape": np.array(CSR.shape),
}
EDGES = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
Y = np.array([0, 0, 1, 1, 2, -1])


def write(folder: Path, name: str = "mine.npz", **arrays: object) -> Path:
    path = folder / name
    np.savez_compressed(path, **{"edge_index": EDGES, "y": Y, **arrays})  # type: ignore[arg-type]
    return path


def test_dense_and_csr_forms_give_equal_graphs(tmp_path: Path) -> None:
    dense, sparse = load_graph(write(tmp_path, x=X)), load_graph(write(tmp_path, **CSR_PARTS))
    assert (dense.graph.x.toarray() == X).all()
    assert (sparse.graph.x.toarray() == X).all()
    assert (dense.graph.edge_index == sparse.graph.edge_index).all()
    assert dense.fingerprint() == sparse.fingerprint()
    narrow = {
        **CSR_PARTS,
        "x_data": CSR.data.astype(np.uint8),
        "x_indices": CSR.indices.astype(np.uint16),
    }
    assert load_graph(write(tmp_path, **narrow)).fingerprint() == dense.fingerprint()


def test_everything_optional(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        x=X,
        train_mask=np.array([1, 0, 0, 0, 0, 0]),
        val_mask=np.array([0, 1, 0, 0, 0, 0], dtype=np.uint8),
        test_mask=np.array([False, False, True, True, True, False]),
        node_ids=np.array(list("abcdef")),
        feature_names=np.array([f"w{i}" for i in range(20)]),
        class_names=np.array(["red", "green", "blue", "empty"]),
    )
    labelled = load_graph(path)
    assert labelled.name == "mine.npz"
    assert labelled.train.dtype == bool
    assert labelled.train.tolist() == [True] + [False] * 5
    assert labelled.val.tolist() == [False, True] + [False] * 4
    assert labelled.test.sum() == 3
    assert labelled.graph.node_ids.tolist() == list("abcdef")
    assert labelled.graph.feature_names[19] == "w19"
    assert labelled.class_names == ("red", "green", "blue", "empty")
    assert labelled.has_split


def test_classes_are_named_by_their_numbers_unless_they_have_names(tmp_path: Path) -> None:
    labelled = load_graph(write(tmp_path, x=X))
    assert labelled.class_names == ("0", "1", "2")
    assert labelled.y.tolist() == Y.tolist()
    assert not labelled.has_split


def test_float_y_that_holds_whole_numbers(tmp_path: Path) -> None:
    labelled = load_graph(write(tmp_path, x=X, y=Y.astype(np.float64)))
    assert labelled.y.dtype == np.int64
    assert labelled.y.tolist() == Y.tolist()


def test_without_y_all_classes_are_unknown(tmp_path: Path) -> None:
    path = tmp_path / "plain.npz"
    np.savez(path, x=X, edge_index=EDGES)
    assert load_graph(path).y.tolist() == [-1] * 6
    assert load_graph(path).num_classes == 0


def test_arrays_of_other_names_are_not_read(tmp_path: Path) -> None:
    assert load_graph(write(tmp_path, x=X, secret=np.array([object()]))).graph.num_nodes == 6


NAN = X.copy()
NAN[0, 0] = np.nan


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"x": X, "edge_index": None}, "edge_index is missing"),
        ({}, "x is missing"),
        ({"x_data": CSR.data}, "x_indices, x_indptr, x_shape"),
        ({"x": X, "edge_index": np.array([[0], [6]])}, "names a node not in"),
        ({"x": X, "edge_index": np.array([[0.5], [1]])}, "whole numbers"),
        ({"x": X, "edge_index": np.array([0, 1])}, "shape"),
        ({"x": NAN}, "not finite"),
        ({"x": np.array([["a"] * 3] * 6)}, "not a table of numbers"),
        ({"x": np.array([[object()] * 3] * 6)}, "Python objects"),
        ({"x": X, "y": np.array([object()] * 6)}, "Python objects"),
        ({**CSR_PARTS, "x_indptr": CSR.indptr[:-1]}, "do not fit together"),
        ({**CSR_PARTS, "x_indices": CSR.indices + 15}, "do not fit together"),
        ({**CSR_PARTS, "x_indices": CSR.indices[:-1]}, "do not fit together"),
        ({**CSR_PARTS, "x_data": np.array(["a"] * 6)}, "numbers|do not fit"),
        ({**CSR_PARTS, "x_shape": np.array([7, 20])}, "do not fit together"),
        ({**CSR_PARTS, "x_shape": np.array([-6, 20])}, "do not fit together"),
        ({**CSR_PARTS, "x_shape": np.array([6])}, "two numbers"),
        ({**CSR_PARTS, "x_data": CSR.data * np.inf}, "not finite"),
        ({"x": X, "y": Y[:-1]}, r"y has shape \(5,\), but x has 6 nodes"),
        ({"x": X, "y": Y + 0.5}, "whole numbers"),
        ({"x": X, "y": Y * np.nan}, "whole numbers"),
        ({"x": X, "y": np.array(list("aabbcc"))}, "whole numbers"),
        ({"x": X, "y": Y - 1}, "y holds -2"),
        ({"x": X, "class_names": np.array(["only"])}, "y holds 1, but there are 1 classes"),
        ({"x": X, "class_names": np.array("abc")}, "class_names"),
        ({"x": X, "feature_names": np.array("abc")}, "feature_names"),
        (
            {"x": X, "train_mask": np.ones(5, dtype=bool), "test_mask": np.ones(6, dtype=bool)},
            "train_mask must be 6 booleans",
        ),
        ({"x": X, "test_mask": np.array([0, 1, 2, 0, 0, 0])}, "test_mask must be 6 booleans"),
        ({"x": X, "val_mask": np.array([0.0] * 6)}, "val_mask must be 6 booleans"),
        ({"x": X, "node_ids": np.array(list("abcdea"))}, "unique"),
        ({"x": X, "node_ids": np.arange(5)}, "node_ids"),
        (
            {"x": X, "feature_names": np.array(["a", "b"])},
            "feature_names has 2 names for 20 features",
        ),
    ],
)
def test_every_bad_array_gives_an_error_that_names_the_file(
    tmp_path: Path, arrays: dict[str, object], sentence: str
) -> None:
    given = {"edge_index": EDGES, "y": Y, **arrays}
    path = tmp_path / "mine.npz"
    np.savez(path, **{key: value for key, value in given.items() if value is not None})  # type: ignore[arg-type]
    with pytest.raises(GraphError, match=f"mine.npz: .*{sentence}"):
        load_graph(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match=r"nowhere.npz: no such file"):
        load_graph(tmp_path / "nowhere.npz")


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match=tmp_path.name):
        load_graph(tmp_path)


@pytest.mark.parametrize(
    "content", [b"", b"hello, I am no archive\n", b"PK\x03\x04 and then nothing", b"\x93NUMPY"]
)
def test_not_an_archive(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "mine.npz"
    path.write_bytes(content)
    with pytest.raises(GraphError, match=r"mine\.npz"):
        load_graph(path)


def test_a_truncated_archive(tmp_path: Path) -> None:
    path = write(tmp_path, x=X)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(GraphError, match=r"mine\.npz: not a readable npz file"):
        load_graph(path)


def test_a_damaged_byte_anywhere_gives_nothing_worse_than_an_error_that_names_the_file(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, x=np.random.default_rng(0).random((6, 20)))
    whole = path.read_bytes()
    sentences = []
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            load_graph(path)
        except GraphError as error:
            sentences.append(str(error))
    assert len(sentences) > 50
    assert all("mine.npz" in sentence for sentence in sentences)


def test_a_single_array(tmp_path: Path) -> None:
    path = tmp_path / "single.npy"
    np.save(path, X)
    with pytest.raises(GraphError, match=r"single\.npy: a single array"):
        load_graph(path)


# name: where its one file lies below the data root, as PyTorch Geometric's own class has it.
PLACES = {
    "photo": "Amazon/Photo/raw/amazon_electronics_photo.npz",
    "computers": "Amazon/Computers/raw/amazon_electronics_computers.npz",
    "cs": "Coauthor/CS/raw/ms_academic_cs.npz",
    "physics": "Coauthor/Physics/raw/ms_academic_phy.npz",
    "dblp": "CitationFull/dblp/raw/dblp.npz",
    "cora_full": "CitationFull/cora/raw/cora.npz",
    "cora_ml": "CitationFull/cora_ml/raw/cora_ml.npz",
    "citeseer_full": "CitationFull/citeseer/raw/citeseer.npz",
    "pubmed_full": "CitationFull/pubmed/raw/pubmed.npz",
}
NODES, FEATURES = 12, 7


@pytest.fixture(autouse=True)
def no_data_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(datasets.DATA_ROOT, raising=False)


def arrays(classes: int = 3) -> dict[str, np.ndarray]:
    """Word counts, a directed graph with a self-loop and an edge twice, labels, pickled names."""
    rng = np.random.default_rng(1)
    x = sp.csr_matrix(
        rng.integers(0, 3, size=(NODES, FEATURES)) * (rng.random((NODES, FEATURES)) < 0.4)
    )
    source, target = [0, 1, 2, 2, 3, 3, 5, 0], [1, 0, 3, 2, 4, 11, 6, 7]
    adjacency = sp.csr_matrix((np.ones(8), (source, target)), shape=(NODES, NODES))
    parts = {"attr": x.astype(np.float32), "adj": adjacency}
    made = {
        f"{what}_{part}": np.asarray(getattr(matrix, part))
        for what, matrix in parts.items()
        for part in ("data", "indices", "indptr", "shape")
    }
    names = np.array(["one", None], dtype=object)
    return made | {"labels": np.arange(NODES) % classes, "idx_to_attr": names}


def write_raw(path: Path, content: Mapping[str, np.ndarray]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **content)


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("collection", [True, False])
def test_a_graph_is_read_from_where_pyg_keeps_it(
    tmp_path: Path, name: str, collection: bool
) -> None:
    place = PLACES[name] if collection else PLACES[name].partition("/")[2]
    write_raw(tmp_path / place, arrays())
    labelled = load_dataset(name, tmp_path)
    assert is_on_disk(DATASETS[name], tmp_path)
    assert labelled.name == name
    assert labelled.y.tolist() == [i % 3 for i in range(NODES)]
    assert labelled.num_classes == DATASETS[name].classes
    assert not labelled.has_split
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")] == [place]


@pytest.mark.parametrize(
    ("kind", "name", "ours"),
    [(Amazon, "Photo", "photo"), (Coauthor, "CS", "cs"), (CitationFull, "DBLP", "dblp")],
)
def test_it_is_the_graph_that_pygs_own_loader_reads(
    tmp_path: Path, kind: type, name: str, ours: str
) -> None:
    write_raw(tmp_path / PLACES[ours], arrays())
    graph = load_dataset(ours, tmp_path).graph
    data = kind(root=str(tmp_path / PLACES[ours].partition("/")[0]), name=name)[0]
    assert sp.issparse(graph.x)
    assert (graph.x.toarray() == data.x.numpy()).all()
    theirs = {tuple(edge) for edge in data.edge_index.t().tolist()}
    assert {tuple(edge) for edge in graph.edge_index.T.tolist()} == theirs
    assert graph.num_edges == len(theirs) == 12  # 0-1, 2-3, 3-4, 3-11, 5-6, 0-7, in both directions


def test_a_missing_file_is_said_with_the_place_where_it_should_be(tmp_path: Path) -> None:
    where = re.escape(str(tmp_path / PLACES["photo"]))
    bare = re.escape(str(tmp_path / "Photo/raw/amazon_electronics_photo.npz"))
    with pytest.raises(
        DatasetError, match=rf"photo: the raw file is not there; it should be {where} \(or {bare}\)"
    ):
        load_dataset("photo", tmp_path)
    assert not is_on_disk(DATASETS["photo"], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_without_a_data_root() -> None:
    with pytest.raises(DatasetError, match="physics needs a data root"):
        load_dataset("physics")


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"adj_indices": np.full(8, NODES)}, "indices"),
        ({"labels": np.full(NODES, 8)}, "labels hold 8, but there are 8 classes"),
        ({"labels": np.zeros(NODES - 1)}, "y has shape"),
        ({"attr_data": np.array(["a", None], dtype=object)}, "holds Python objects"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, broken: dict[str, np.ndarray], said: str) -> None:
    write_raw(tmp_path / PLACES["photo"], arrays() | broken)
    with pytest.raises(
        DatasetError, match=rf"photo: the raw file .*_photo\.npz cannot be read .*({said})"
    ):
        load_dataset("photo", tmp_path)


def test_a_file_without_features_or_that_is_no_npz_is_named(tmp_path: Path) -> None:
    content = arrays()
    del content["attr_indptr"]
    write_raw(tmp_path / PLACES["cs"], content)
    with pytest.raises(DatasetError, match=r"cs: the raw file .*attr_indptr"):
        load_dataset("cs", tmp_path)
    (tmp_path / PLACES["cs"]).write_bytes(b"PK\x03\x04 torn")
    with pytest.raises(DatasetError, match=r"cs: the raw file .* cannot be read"):
        load_dataset("cs", tmp_path)


def test_half_of_the_classes_are_old_and_halves_go_to_the_even_number() -> None:
    wanted = {
        "photo": (8, 4),
        "computers": (10, 5),
        "cs": (15, 8),
        "physics": (5, 2),
        "dblp": (4, 2),
    }
    assert {name: (DATASETS[name].classes, DATASETS[name].num_old) for name in wanted} == wanted


HOSTILE: dict[str, dict[str, object]] = {
    # This one ended the interpreter: SciPy checks nothing where the last row start is 0.
    "indptr goes from 0 to 0": {
        "x_data": np.ones(3, "f4"),
        "x_indices": np.arange(3, dtype="i4"),
        "x_indptr": np.array([0, 2**30, 0], "i4"),
        "x_shape": [2, 3],
        "edge_index": [[0], [1]],
    },
    "x_shape must hold two numbers": {**CSR_PARTS, "x_shape": [6.0, 20.0]},
    "columns for 6 entries": {**CSR_PARTS, "x_shape": [6, 2**40]},
    "y holds 1099511627776, but there are 6 nodes": {"x": X, "y": [0, 2**40, 0, 0, 0, 0]},
    "y must hold whole numbers": {"x": X, "y": [0, 1e300, 0, 0, 0, 0]},
    "holds complex numbers": {"x": X * 1j},
    "x is not a table of numbers": {"x": X.astype(str)},
    "feature_names has 3 names": {"x": X, "feature_names": ["a", "b", "c"]},
    "class_names has 200,000 names": {"x": X, "class_names": np.zeros(200_000, "U1")},
    "that of node 5 is not": {"x": X, "node_ids": [0, 1, 2, 3, 4, np.nan]},
    "edge_index must hold whole numbers": {"x": X, "edge_index": [["0"], ["1"]]},
    "names a node not in the graph": {"x": X, "edge_index": np.array([[0], [2**64 - 1]], "u8")},
    "edge_weight must be positive": {"x": X, "edge_weight": [1, np.nan, 1, 1]},
    "is not finite": {"x": X, "vectors": np.full((6, 2), np.inf)},
    "train_mask must be 6 booleans": {"x": X, "train_mask": [0, 1, 2, 0, 0, 0]},
}


@pytest.mark.parametrize("expected", HOSTILE)
def test_arrays_that_do_not_make_a_graph(tmp_path: Path, expected: str) -> None:
    arrays = {"y": np.full(6, -1), **HOSTILE[expected]}
    with pytest.raises(GraphError) as caught:
        load_graph(write(tmp_path, **arrays))
    assert expected in str(caught.value)
    assert str(caught.value).startswith("mine.npz: ")
    assert len(str(caught.value)) < 300


def test_named_classes_may_be_more_than_nodes(tmp_path: Path) -> None:
    path = write(tmp_path, x=X, class_names=np.array([f"kind {i}" for i in range(40)]))
    assert load_graph(path).num_classes == 40


PARTS = {**CSR_PARTS, "edge_index": EDGES, "y": Y, "node_ids": np.array(list("abcdef"))}


@settings(max_examples=80, derandomize=True, deadline=None)
@given(
    part=st.sampled_from(sorted(PARTS)),
    place=st.integers(0, 50),
    value=st.sampled_from([-1, 0, 1, 7, 2**15, 2**30, 2**31 - 1, -(2**31), 2**62, -(2**63)]),
    dtype=st.sampled_from(["i1", "i4", "i8", "u8", "f4", "f8", "U3", "S2", "?", "c8"]),
    shape=st.sampled_from(["same", "shorter", "flat", "column"]),
)
def test_changed_arrays_of_a_graph(
    tmp_path_factory: pytest.TempPathFactory,
    part: str,
    place: int,
    value: int,
    dtype: str,
    shape: str,
) -> None:
    array = np.array(PARTS[part])
    if array.dtype.kind != "U" and dtype not in ("U3", "S2"):
        with np.errstate(all="ignore"):
            array = array.astype(np.int64 if dtype == "u8" else "f8")
            array.reshape(-1)[place % array.size] = value
            array = array.astype(dtype)
    else:
        array = array.astype(dtype if dtype in ("U3", "S2") else "U1")
    forms = {"shorter": array[:-1], "flat": array.reshape(-1), "column": array.reshape(-1, 1)}
    path = tmp_path_factory.getbasetemp() / "changed.npz"
    np.savez(path, **{**PARTS, part: forms.get(shape, array)})
    try:
        found = load_graph(path)
    except GraphError as error:
        one_sentence(error)
    else:
        assert found.graph.num_nodes == 6
        assert np.isfinite(found.graph.adjacency.sum())


def test_a_link_is_followed_like_any_file(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    path = write(tmp_path / "elsewhere", x=X)
    (tmp_path / "link.npz").symlink_to(path)
    assert load_graph(tmp_path / "link.npz").graph.num_nodes == 6
