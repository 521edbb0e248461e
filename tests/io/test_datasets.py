from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch_geometric.datasets

from nodenova.errors import DatasetError, GraphError, NodenovaError
from nodenova.io import dataset_table, datasets
from nodenova.io.dataset_table import DATASETS
from nodenova.io.datasets import load_dataset

SHIPPED = resources.files("nodenova.data") / "shipped"


@pytest.fixture(autouse=True)
def no_data_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(datasets.DATA_ROOT, raising=False)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def download(self: object) -> None:
        raise OSError("the network is unreachable")

    monkeypatch.setattr(torch_geometric.datasets.Planetoid, "download", download)
    monkeypatch.setattr(torch_geometric.datasets.WikiCS, "download", download)


def everything_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


def test_the_shipped_citeseer_has_its_published_counts() -> None:
    labelled = load_dataset("citeseer")
    assert labelled.graph.num_nodes == 3327
    assert labelled.graph.num_edges == 9104
    assert labelled.graph.num_features == 3703
    assert labelled.num_classes == 6
    masks = (labelled.train, labelled.val, labelled.test)
    assert [int(mask.sum()) for mask in masks] == [120, 500, 1000]
    assert np.bincount(labelled.y[labelled.train]).tolist() == [20] * 6
    assert sp.issparse(labelled.graph.x)
    assert labelled.name == "citeseer"
    assert not (labelled.train & labelled.val).any()
    assert not (labelled.test & (labelled.train | labelled.val)).any()


def test_the_shipped_citeseer_is_the_file_its_source_note_names() -> None:
    note = (SHIPPED / "SOURCE.md").read_text()
    (recorded,) = set(re.findall(r"citeseer\.npz\W.*?\b([0-9a-f]{64})\b", note, re.DOTALL))
    assert hashlib.sha256((SHIPPED / "citeseer.npz").read_bytes()).hexdigest() == recorded


def test_the_shipped_citeseer_needs_no_data_root_even_where_one_is_set(tmp_path: Path) -> None:
    assert load_dataset("citeseer", tmp_path).graph.num_nodes == 3327
    assert everything_below(tmp_path) == set()


def test_unknown_datasets_list_the_known_ones() -> None:
    for name in ("coar", "cora:nodes=5", ""):
        known = "actor, chameleon_filtered, citeseer, citeseer_full, computers, cora, .*, wordnet"
        with pytest.raises(NodenovaError, match=rf"unknown dataset '.*'; known: {known}"):
            load_dataset(name)


@pytest.mark.parametrize("name", ["cora", "pubmed", "wikics"])
def test_without_a_data_root(name: str) -> None:
    with pytest.raises(DatasetError, match=f"{name} needs a data root: .*NODENOVA_DATA"):
        load_dataset(name)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("name", ["cora", "pubmed", "wikics"])
@pytest.mark.parametrize("root", ["", "new", "new/deep"])
def test_a_failed_download_names_the_folder_and_leaves_nothing_behind(
    tmp_path: Path, name: str, root: str
) -> None:
    where = tmp_path / root / DATASETS[name].folder
    said = rf"{name}: .*are not in {re.escape(str(where))}.*the network is unreachable"
    with pytest.raises(DatasetError, match=said):
        load_dataset(name, tmp_path / root)
    assert everything_below(tmp_path) == set()


@pytest.mark.usefixtures("offline")
def test_a_failed_download_keeps_what_was_there(tmp_path: Path) -> None:
    raw = tmp_path / DATASETS["cora"].folder
    raw.mkdir(parents=True)
    (raw / "ind.cora.x").write_bytes(b"mine")
    (tmp_path / "Planetoid/PubMed").mkdir()
    before = everything_below(tmp_path)
    with pytest.raises(DatasetError, match="cora"):
        load_dataset("cora", tmp_path)
    assert everything_below(tmp_path) == before
    assert (raw / "ind.cora.x").read_bytes() == b"mine"


@pytest.mark.usefixtures("offline")
def test_the_data_root_may_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(datasets.DATA_ROOT, str(tmp_path))
    with pytest.raises(DatasetError, match=re.escape(str(tmp_path))):
        load_dataset("cora")


def test_a_data_root_that_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("hello")
    said = rf"cora: the data root {re.escape(str(path))} is not a folder"
    with pytest.raises(DatasetError, match=said):
        load_dataset("cora", path)


# Planetoid: 6 training nodes, 500 for validation (as PyG's public split has it), 9 for the test.
PLANETOID = {"nodes": 515, "features": 5, "classes": 3}


@pytest.fixture
def planetoid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data root with a small Planetoid dataset, Tiny, in the raw form of the published ones."""
    nodes, features, classes = PLANETOID.values()
    raw = tmp_path / "Planetoid/Tiny/raw"
    raw.mkdir(parents=True)
    rng = np.random.default_rng(0)
    x = (rng.random((nodes, features)) < 0.2).astype(np.float32)
    one_hot = np.eye(classes, dtype=np.int32)[np.arange(nodes) % classes]
    test = np.arange(506, nodes)
    shuffled = rng.permutation(test)
    parts = {
        "x": sp.csr_matrix(x[:6]),
        "allx": sp.csr_matrix(x[:506]),
        "tx": sp.csr_matrix(x[shuffled]),
        "y": one_hot[:6],
        "ally": one_hot[:506],
        "ty": one_hot[shuffled],
        "graph": {i: [(i + 1) % nodes, (i - 1) % nodes] for i in range(nodes)},
    }
    for name, part in parts.items():
        (raw / f"ind.tiny.{name}").write_bytes(pickle.dumps(part))
    (raw / "ind.tiny.test.index").write_text("".join(f"{i}\n" for i in shuffled))
    np.save(tmp_path / "x.npy", x)
    tiny = dataset_table._planetoid("Tiny", nodes, 2 * nodes, features, classes, 2, hidden=16)
    monkeypatch.setitem(DATASETS, "tiny", tiny)
    return tmp_path


def test_planetoid_files_are_read_and_nothing_is_written_beside_them(planetoid: Path) -> None:
    before = {name: (planetoid / name).stat().st_mtime_ns for name in everything_below(planetoid)}
    labelled = load_dataset("tiny", planetoid)
    x = labelled.graph.x.toarray() if sp.issparse(labelled.graph.x) else labelled.graph.x
    assert (x == np.load(planetoid / "x.npy")).all()
    assert labelled.y.tolist() == [i % 3 for i in range(515)]
    assert labelled.graph.num_edges == 2 * 515
    assert np.flatnonzero(labelled.train).tolist() == list(range(6))
    assert labelled.val.sum() == 500
    assert np.flatnonzero(labelled.test).tolist() == list(range(506, 515))
    assert labelled.class_names == ("0", "1", "2")
    after = {name: (planetoid / name).stat().st_mtime_ns for name in everything_below(planetoid)}
    assert after == before


def test_planetoid_files_can_be_read_where_nothing_may_be_written(planetoid: Path) -> None:
    folders = [planetoid, *(path for path in planetoid.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o555)
    try:
        assert load_dataset("tiny", planetoid).graph.num_nodes == 515
    finally:
        for folder in folders:
            folder.chmod(0o755)


def test_damaged_planetoid_files_are_named(planetoid: Path) -> None:
    (planetoid / "Planetoid/Tiny/raw/ind.tiny.allx").write_bytes(b"damaged")
    said = rf"tiny: the raw files in .*{re.escape('Planetoid/Tiny/raw')} cannot be read"
    with pytest.raises(DatasetError, match=said):
        load_dataset("tiny", planetoid)


@pytest.fixture
def wikics(tmp_path: Path) -> Path:
    """A data root with six nodes in the form of Wiki-CS's data.json, with two published splits."""

    def mask(*ids: int) -> list[bool]:
        return [i in ids for i in range(6)]

    raw = tmp_path / "WikiCS/raw"
    raw.mkdir(parents=True)
    document = {
        "features": [[0.1 * i, -0.2, 1.0] for i in range(6)],
        "labels": [0, 1, 2, 0, 1, 2],
        "links": [[1, 2], [2], [], [4], [3], [0]],
        "train_masks": [mask(0, 1), mask(2, 3)],
        "val_masks": [mask(2), mask(0)],
        "stopping_masks": [mask(3), mask(1)],
        "test_mask": mask(4, 5),
    }
    (raw / "data.json").write_text(json.dumps(document))
    return tmp_path


def test_wikics_is_read_through_pygs_loader(wikics: Path) -> None:
    before = everything_below(wikics)
    labelled = load_dataset("wikics", wikics, split=1)
    assert labelled.graph.num_nodes == 6
    assert labelled.graph.num_edges == 10  # 0-1, 0-2, 1-2, 3-4, 0-5, in both directions
    assert labelled.y.tolist() == [0, 1, 2, 0, 1, 2]
    assert np.flatnonzero(labelled.train).tolist() == [2, 3]
    # Its stopping mask, not its validation mask.
    assert np.flatnonzero(labelled.val).tolist() == [1]
    assert np.flatnonzero(labelled.test).tolist() == [4, 5]
    assert np.allclose(labelled.graph.x[3], [0.3, -0.2, 1.0])
    assert everything_below(wikics) == before
    assert np.flatnonzero(load_dataset("wikics", wikics).train).tolist() == [0, 1]


def test_a_split_of_wikics_that_is_not_there(wikics: Path) -> None:
    with pytest.raises(GraphError, match=r"wikics: split 2 is not there, splits are 0..1"):
        load_dataset("wikics", wikics, split=2)


def test_a_damaged_data_json_is_named(wikics: Path) -> None:
    (wikics / "WikiCS/raw/data.json").write_text('{"features": [')
    with pytest.raises(DatasetError, match=r"wikics: the raw files in .*WikiCS/raw cannot be read"):
        load_dataset("wikics", wikics)


def write_gz(path: Path, table: np.ndarray) -> None:
    """A table as the Open Graph Benchmark writes it: pandas, without a header, gzipped."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(table).to_csv(path, index=False, header=False, compression="gzip")


@pytest.fixture(params=["OGB/ogbn_arxiv", "ogbn_arxiv"])
def arxiv(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Folder of a small graph in the form of ogbn-arxiv, with the files that are not read, too."""
    folder = tmp_path / request.param
    edges = np.array([[0, 1], [1, 0], [1, 2], [1, 2], [3, 3], [4, 2]])  # node 5 has none
    raw = {
        "edge": edges,
        "node-feat": np.arange(12, dtype=np.float32).reshape(6, 2) / 7 - 0.5,
        "node-label": np.array([[0], [39], [1], [0], [39], [1]]),
        "node_year": np.array([[2013]] * 6),
        "num-edge-list": np.array([[6]]),
        "num-node-list": np.array([[6]]),
    }
    for name, table in raw.items():
        write_gz(folder / f"raw/{name}.csv.gz", table)
    for name, ids in {"train": [0, 1, 2], "valid": [3], "test": [5, 4]}.items():
        write_gz(folder / f"split/time/{name}.csv.gz", np.array(ids)[:, None])
    return folder


def test_an_ogb_graph_is_read_from_its_raw_files(arxiv: Path, tmp_path: Path) -> None:
    labelled = load_dataset("ogbn-arxiv", tmp_path)
    x = np.arange(12, dtype=np.float32).reshape(6, 2) / 7 - 0.5
    np.testing.assert_allclose(labelled.graph.x, x, rtol=1e-6)
    both = [[0, 1], [1, 0], [1, 2], [2, 1], [2, 4], [4, 2]]  # once each, without the loop
    assert labelled.graph.edge_index.T.tolist() == both
    assert labelled.y.tolist() == [0, 39, 1, 0, 39, 1]
    assert labelled.num_classes == 40
    masks = [np.flatnonzero(m).tolist() for m in (labelled.train, labelled.val, labelled.test)]
    assert masks == [[0, 1, 2], [3], [4, 5]]
    assert labelled.has_split


def test_products_has_the_form_of_arxiv_and_a_split_of_its_own(arxiv: Path, tmp_path: Path) -> None:
    products = arxiv.rename(arxiv.with_name("ogbn_products"))
    with pytest.raises(DatasetError, match=r"ogbn-products: split/sales_ranking/train.csv.gz, "):
        load_dataset("ogbn-products", tmp_path)
    (products / "split/time").rename(products / "split/sales_ranking")
    assert load_dataset("ogbn-products", tmp_path).num_classes == 47


def test_ogb_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"OGB/ogbn_arxiv or .*ogbn_arxiv is not there; it sho"):
        load_dataset("ogbn-arxiv", tmp_path)


@pytest.mark.parametrize(
    ("name", "table", "words"),
    [
        ("raw/edge", [[0, 6]], "edge.csv.gz: 1 edge names a node not in the graph"),
        ("raw/edge", [[0, 1, 2]], "edge.csv.gz: has 3 columns, not 2"),
        ("raw/node-feat", [[1, "nan"]] * 6, "not finite|NaN"),
        ("raw/node-label", [[40]] * 6, "node-label.csv.gz: holds classes 40 to 40, not 0 to 39"),
        ("raw/node-label", [["a"]] * 6, "node-label.csv.gz: could not convert"),
        ("raw/node-label", [[0]] * 5, "5"),
        ("split/time/valid", [[6]], "valid.csv.gz: names node 6, nodes are 0 to 5"),
        ("split/time/valid", [[-1]], "valid.csv.gz: names node -1, nodes are 0 to 5"),
    ],
)
def test_a_bad_ogb_file_is_named(
    arxiv: Path, tmp_path: Path, name: str, table: list[list[object]], words: str
) -> None:
    write_gz(arxiv / f"{name}.csv.gz", np.array(table, dtype=object))
    with pytest.raises(DatasetError, match=f"^ogbn-arxiv: the raw files in .*{words}"):
        load_dataset("ogbn-arxiv", tmp_path)


def test_an_ogb_file_that_is_cut_off_is_named(arxiv: Path, tmp_path: Path) -> None:
    path = arxiv / "raw/edge.csv.gz"
    path.write_bytes(path.read_bytes()[:-12])
    with pytest.raises(DatasetError, match=r"^ogbn-arxiv: the raw files in .*edge\.csv\.gz"):
        load_dataset("ogbn-arxiv", tmp_path)
    write_gz(path, np.zeros((0, 2)))
    with pytest.raises(DatasetError, match=r"^ogbn-arxiv: the raw files in .*edge\.csv\.gz"):
        load_dataset("ogbn-arxiv", tmp_path)


ROOT = os.environ.get(datasets.DATA_ROOT)


@pytest.mark.skipif(not ROOT, reason="NODENOVA_DATA is not set")
@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_published_counts_of_the_raw_files(name: str) -> None:
    labelled, published = load_dataset(name, ROOT), DATASETS[name]
    assert labelled.graph.num_nodes == published.nodes
    assert labelled.graph.num_edges == published.edges
    assert labelled.graph.num_features == published.features
    assert labelled.num_classes == published.classes
    assert np.unique(labelled.y).tolist() == list(range(published.classes))
    assert labelled.train.sum() == 20 * published.classes
    assert labelled.val.sum() == 500
    assert labelled.test.sum() == 1000


@pytest.mark.skipif(not ROOT, reason="NODENOVA_DATA is not set")
def test_the_shipped_citeseer_is_the_published_one() -> None:
    assert load_dataset("citeseer").fingerprint() == load_dataset("citeseer", ROOT).fingerprint()


def test_a_raw_file_that_would_run_code_is_refused(planetoid: Path) -> None:
    before = load_dataset("tiny", planetoid).fingerprint()
    path = planetoid / "Planetoid/Tiny/raw/ind.tiny.graph"
    content = path.read_bytes()
    path.write_bytes(b"cos\nmkdir\n(V" + str(planetoid / "made").encode() + b"\ntR.")
    with pytest.raises(DatasetError, match=r"a pickle that would use os\.mkdir"):
        load_dataset("tiny", planetoid)
    assert not (planetoid / "made").exists()
    path.write_bytes(content)
    assert load_dataset("tiny", planetoid).fingerprint() == before
