from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from nodenova.errors import GraphError
from nodenova.io.npz import load_graph

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
        ({"x": X, "edge_index": np.array([[0], [6]])}, "not there"),
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
