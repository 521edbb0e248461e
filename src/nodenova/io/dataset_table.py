"""The named datasets: their sizes and where their files belong. No graph is read here."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path

DATA_ROOT = "NODENOVA_DATA"
OGB = "OGB"  # collection of the Open Graph Benchmark's graphs


@dataclass(frozen=True)
class Dataset:
    """A named dataset; the counts of the paper's datasets are as published."""

    title: str  # name on pages and in tables
    nodes: int
    edges: int  # Planetoid's in both directions, as PyTorch Geometric counts
    features: int
    classes: int
    num_old: int  # number of old classes, which come first
    folder: str = ""  # of the raw files, below the data root; "" for a dataset that only ships
    raw_files: tuple[str, ...] = ()
    ships: bool = False  # whether it ships with the package
    hidden: int = 16  # size of trained representations, as in the paper
    collection: str = ""  # of raw files that are not downloaded


def _planetoid(
    title: str, nodes: int, edges: int, features: int, classes: int, num_old: int, hidden: int
) -> Dataset:
    names = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    files = tuple(f"ind.{title.lower()}.{name}" for name in names)
    folder = f"Planetoid/{title}/raw"
    return Dataset(title, nodes, edges, features, classes, num_old, folder, files, hidden=hidden)


def _raw(
    collection: str, title: str, place: str, nodes: int, edges: int, features: int, classes: int
) -> Dataset:
    """A graph without a published split; half of its classes are old, rounded as OpenIMA does."""
    folder, _, file = place.partition("/")
    return Dataset(
        title, nodes, edges, features, classes, round(classes / 2), f"{collection}/{folder}/raw",
        raw_files=(f"{file}.npz",), collection=collection,
    )  # fmt: skip


HETEROPHILOUS = "heterophilous"  # files of Platonov et al. (ICLR 2023)


def _own(title: str, folder: str, file: str, nodes: int, edges: int, features: int) -> Dataset:
    """A graph of five classes of which no neighbor need be alike, from one npz file."""
    return Dataset(
        title, nodes, edges, features, 5, 4, folder, raw_files=(f"{file}.npz",), collection=folder
    )


def _ogb(title: str, split: str, nodes: int, edges: int, features: int, classes: int) -> Dataset:
    """A graph of the Open Graph Benchmark, whose folder has raw/ and split/."""
    raw = tuple(f"raw/{name}.csv.gz" for name in ("edge", "node-feat", "node-label"))
    parts = tuple(f"split/{split}/{name}.csv.gz" for name in ("train", "valid", "test"))
    return Dataset(
        title, nodes, edges, features, classes, round(classes / 2),
        f"{OGB}/{title.replace('-', '_')}", raw + parts, hidden=128, collection=OGB,
    )  # fmt: skip


_COMPUTERS = "Computers/amazon_electronics_computers"
_CITESEER = "citeseer/citeseer"
DATASETS: dict[str, Dataset] = {
    "cora": _planetoid("Cora", 2708, 10556, 1433, 7, 4, hidden=16),
    "citeseer": replace(_planetoid("CiteSeer", 3327, 9104, 3703, 6, 4, hidden=32), ships=True),
    "pubmed": _planetoid("PubMed", 19717, 88648, 500, 3, 2, hidden=32),
    "wikics": Dataset(
        "Wiki-CS", 11701, 216123, 300, 10, 7, "WikiCS/raw", ("data.json",), hidden=128
    ),
    "wordnet": Dataset("WordNet", 9997, 24042, 4421, 10, 7, ships=True),
    "photo": _raw("Amazon", "Photo", "Photo/amazon_electronics_photo", 7650, 238162, 745, 8),
    "computers": _raw("Amazon", "Computers", _COMPUTERS, 13752, 491722, 767, 10),
    "cs": _raw("Coauthor", "CS", "CS/ms_academic_cs", 18333, 163788, 6805, 15),
    "physics": _raw("Coauthor", "Physics", "Physics/ms_academic_phy", 34493, 495924, 8415, 5),
    "dblp": _raw("CitationFull", "DBLP", "dblp/dblp", 17716, 105734, 1639, 4),
    "cora_full": _raw("CitationFull", "Cora, full", "cora/cora", 19793, 126842, 8710, 70),
    "cora_ml": _raw("CitationFull", "Cora ML", "cora_ml/cora_ml", 2995, 16316, 2879, 7),
    "citeseer_full": _raw("CitationFull", "CiteSeer, full", _CITESEER, 4230, 10674, 602, 6),
    "actor": _own("Actor", "graphs", "actor", 7600, 53504, 932),
    "wisconsin": _own("Wisconsin", HETEROPHILOUS, "wisconsin", 251, 900, 1703),
    "chameleon_filtered": _own(
        "Chameleon, filtered", HETEROPHILOUS, "chameleon_filtered", 890, 17708, 2325
    ),
    "squirrel_filtered": _own(
        "Squirrel, filtered", HETEROPHILOUS, "squirrel_filtered", 2223, 93996, 2089
    ),
    "pubmed_full": _raw("CitationFull", "PubMed, full", "pubmed/pubmed", 19717, 88648, 500, 3),
    "ogbn-arxiv": _ogb("ogbn-arxiv", "time", 169343, 2315598, 128, 40),
    "ogbn-products": _ogb("ogbn-products", "sales_ranking", 2449029, 123718280, 100, 47),
}
PAPER = ("cora", "citeseer", "pubmed", "wikics")  # in the order of the paper's tables


def find_root(data_root: str | PathLike[str] | None) -> Path | None:
    """Return the data root: the given one, else the one in NODENOVA_DATA, else None."""
    chosen = data_root if data_root is not None else os.environ.get(DATA_ROOT)
    return Path(chosen) if chosen else None


def is_on_disk(dataset: Dataset, root: Path) -> bool:
    """Whether all raw files of the dataset are below the data root."""
    folders = raw_folders(dataset, root)
    return any(all((folder / name).is_file() for name in dataset.raw_files) for folder in folders)


def raw_folders(dataset: Dataset, root: Path) -> list[Path]:
    """Folders where raw files may be; the data root may also be a collection's own folder."""
    if not dataset.raw_files:
        return []
    bare = dataset.folder.removeprefix(f"{dataset.collection}/")
    return [root / folder for folder in dict.fromkeys((dataset.folder, bare))]
