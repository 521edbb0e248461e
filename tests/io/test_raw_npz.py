"""Raw files of PyTorch Geometric's Amazon, Coauthor and CitationFull, in the same form, small."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from torch_geometric.datasets import Amazon, CitationFull, Coauthor

from nodenova.errors import DatasetError
from nodenova.io import datasets
from nodenova.io.dataset_table import DATASETS, is_on_disk
from nodenova.io.datasets import load_dataset

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


def write(path: Path, content: Mapping[str, np.ndarray]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **content)


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("collection", [True, False])
def test_a_graph_is_read_from_where_pyg_keeps_it(
    tmp_path: Path, name: str, collection: bool
) -> None:
    place = PLACES[name] if collection else PLACES[name].partition("/")[2]
    write(tmp_path / place, arrays())
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
    write(tmp_path / PLACES[ours], arrays())
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
        ({"attr_data": np.array(["a", None], dtype=object)}, "Object arrays|allow_pickle"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, broken: dict[str, np.ndarray], said: str) -> None:
    write(tmp_path / PLACES["photo"], arrays() | broken)
    with pytest.raises(
        DatasetError, match=rf"photo: the raw file .*_photo\.npz cannot be read .*({said})"
    ):
        load_dataset("photo", tmp_path)


def test_a_file_without_features_or_that_is_no_npz_is_named(tmp_path: Path) -> None:
    content = arrays()
    del content["attr_indptr"]
    write(tmp_path / PLACES["cs"], content)
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
