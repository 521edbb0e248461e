"""Datasets by name: two that ship, the paper's four, others from their raw files, synthetic."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from nodenova.data.labels import LabelledGraph
from nodenova.data.synthetic import synthetic
from nodenova.errors import DatasetError, SettingError, one_of
from nodenova.io.npz import load_graph
from nodenova.io.pyg import from_pyg
from nodenova.io.raw_npz import read_raw_npz

if TYPE_CHECKING:
    from torch_geometric.data import InMemoryDataset

DATA_ROOT = "NODENOVA_DATA"


@dataclass(frozen=True)
class Dataset:
    """A dataset, its counts and how many of its classes are old: for the paper's, as published.

    Attributes:
        title: As pages write it.
        nodes: How many.
        edges: Planetoid's counted in both directions, as PyTorch Geometric does; Wiki-CS's once.
        features: How many.
        classes: How many.
        num_old: Of the classes, the first, which are old.
        folder: Of the raw files, below the data root; none for what only ships.
        raw_files: Their names.
        ships: With the package.
        hidden: Size of trained representations; the paper varies it over 16, 32 and 128 by dataset.
        collection: PyTorch Geometric's class of a raw npz, which is not downloaded; "" for others.
    """

    title: str
    nodes: int
    edges: int
    features: int
    classes: int
    num_old: int
    folder: str = ""
    raw_files: tuple[str, ...] = ()
    ships: bool = False
    hidden: int = 16
    collection: str = ""


def _planetoid(
    title: str,
    nodes: int,
    edges: int,
    features: int,
    classes: int,
    num_old: int,
    hidden: int,
    ships: bool = False,
) -> Dataset:
    names = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    files = tuple(f"ind.{title.lower()}.{name}" for name in names)
    folder = f"Planetoid/{title}/raw"
    return Dataset(title, nodes, edges, features, classes, num_old, folder, files, ships, hidden)


def _raw(
    collection: str, title: str, place: str, nodes: int, edges: int, features: int, classes: int
) -> Dataset:
    """A graph without a published split; half of its classes are old, rounded as OpenIMA does.

    place: its folder and its file, as PyTorch Geometric has them within the collection.
    """
    folder, _, file = place.partition("/")
    return Dataset(
        title=title,
        nodes=nodes,
        edges=edges,
        features=features,
        classes=classes,
        num_old=round(classes / 2),
        folder=f"{collection}/{folder}/raw",
        raw_files=(f"{file}.npz",),
        collection=collection,
    )


_COMPUTERS = "Computers/amazon_electronics_computers"
_CITESEER = "citeseer/citeseer"
DATASETS: dict[str, Dataset] = {
    "cora": _planetoid("Cora", 2708, 10556, 1433, 7, 4, hidden=16),
    "citeseer": _planetoid("CiteSeer", 3327, 9104, 3703, 6, 4, hidden=32, ships=True),
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
    "pubmed_full": _raw("CitationFull", "PubMed, full", "pubmed/pubmed", 19717, 88648, 500, 3),
}
PAPER = ("cora", "citeseer", "pubmed", "wikics")  # in the order of the paper's tables


def load_dataset(
    name: str, data_root: str | PathLike[str] | None = None, *, split: int = 0
) -> LabelledGraph:
    """Load a dataset by its name.

    Raw files below the data root are used as they are, and nothing is written beside them; what is
    not there, PyTorch Geometric downloads. `citeseer` and `wordnet` ship with the package.

    `photo`, `computers`, `cs`, `physics`, `dblp`, `cora_full`, `cora_ml`, `citeseer_full` and
    `pubmed_full` are read from the raw npz files of PyTorch Geometric's `Amazon`, `Coauthor` and
    `CitationFull`, below the collection's own folder (`Amazon/Photo/raw`) or without it
    (`Photo/raw`); they are not downloaded and have no published split.

    Args:
        name: `cora`, `citeseer`, `pubmed`, `wikics`, `wordnet`, one of the raw npz files above, or
            `synthetic`, also with options: `synthetic:nodes=5000,classes=8`.
        data_root: The folder of raw files; by default the one that NODENOVA_DATA names.
        split: Which of Wiki-CS's 20 published splits.

    Returns:
        The graph, its classes and its published split, if it has one.

    Raises:
        DatasetError: Raw files are damaged, or neither there nor to be had.
        SettingError: There is no such dataset or option.

    Examples:
        >>> import nodenova as nova
        >>> nova.load_dataset("synthetic:nodes=200,classes=4").class_names
        ('class-0', 'class-1', 'class-2', 'class-3')
    """
    kind, _, options = name.partition(":")
    if kind == "synthetic":
        return replace(synthetic(**_synthetic_options(options)), name=name)  # type: ignore[arg-type]
    if options or kind not in DATASETS:
        raise one_of("dataset", name, [*DATASETS, "synthetic"])
    dataset = DATASETS[kind]
    root = find_root(data_root)
    if dataset.ships and (root is None or not is_on_disk(dataset, root)):
        return _shipped(kind)
    if root is None:
        raise DatasetError(f"{kind} needs a data root: give --data-root, or set {DATA_ROOT}")
    if dataset.collection:
        return _load_raw(kind, dataset, root)
    return _load_pyg(kind, dataset, root, split)


def find_root(data_root: str | PathLike[str] | None) -> Path | None:
    """The folder of raw files: the one given, else the one that NODENOVA_DATA names, else none."""
    chosen = data_root if data_root is not None else os.environ.get(DATA_ROOT)
    return Path(chosen) if chosen else None


def is_on_disk(dataset: Dataset, root: Path) -> bool:
    """Whether all raw files of the dataset are below the data root."""
    places = [[folder / name for name in dataset.raw_files] for folder in _folders(dataset, root)]
    return any(all(path.is_file() for path in files) for files in places)


def _folders(dataset: Dataset, root: Path) -> list[Path]:
    """Where raw files may be: of a collection, also with the collection as the data root."""
    if not dataset.raw_files:
        return []
    bare = dataset.folder.removeprefix(f"{dataset.collection}/")
    return [root / folder for folder in dict.fromkeys((dataset.folder, bare))]


def _load_raw(name: str, dataset: Dataset, root: Path) -> LabelledGraph:
    (file,) = dataset.raw_files
    places = [folder / file for folder in _folders(dataset, root)]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        here, bare = places
        raise DatasetError(f"{name}: the raw file is not there; it should be {here} (or {bare})")
    return read_raw_npz(path, name, dataset.classes)


def _shipped(name: str) -> LabelledGraph:
    with resources.as_file(resources.files("nodenova.data") / "shipped" / f"{name}.npz") as path:
        return replace(load_graph(path), name=name)


def _load_pyg(name: str, dataset: Dataset, root: Path, split: int) -> LabelledGraph:
    if not is_on_disk(dataset, root) and root.exists() and not root.is_dir():
        raise DatasetError(f"{name}: the data root {root} is not a folder")
    where = root / dataset.folder
    existing = next(folder for folder in (where, *where.parents) if folder.exists())
    with tempfile.TemporaryDirectory() as scratch:
        try:
            # PyG talks on standard error while it works, and warns of what its users cannot change.
            with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                data = _open(name, dataset, root, scratch)[0]
        except Exception as error:
            if is_on_disk(dataset, root):
                raise DatasetError(
                    f"{name}: the raw files in {where} cannot be read ({_short(error)})"
                ) from error
            _remove_empty(where, existing)
            raise DatasetError(
                f"{name}: the raw files ({', '.join(dataset.raw_files)}) are not in {where}, "
                f"and downloading them failed ({_short(error)})"
            ) from error
    names = tuple(str(c) for c in range(dataset.classes))
    return from_pyg(data, class_names=names, split=split, name=name)


def _open(name: str, dataset: Dataset, root: Path, scratch: str) -> InMemoryDataset:
    """PyG's own loader, its processed files in a scratch folder: the data root stays as it was."""
    from torch_geometric.datasets import Planetoid, WikiCS

    def in_scratch(loader: type) -> type:
        return type(loader.__name__, (loader,), {"processed_dir": property(lambda self: scratch)})

    if name == "wikics":
        return in_scratch(WikiCS)(root=str(root / "WikiCS"))
    return in_scratch(Planetoid)(root=str(root / "Planetoid"), name=dataset.title)


def _remove_empty(folder: Path, stop: Path) -> None:
    """Take back the empty folders a failed download made, from `folder` up to below `stop`."""
    while folder != stop and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _short(error: BaseException) -> str:
    text = str(error).splitlines()[0] if str(error) else type(error).__name__
    return text if len(text) <= 120 else text[:117] + "..."


def _synthetic_options(text: str) -> dict[str, float | int]:
    known: dict[str, Callable[[str], float | int]] = {
        key: int if isinstance(parameter.default, int) else float
        for key, parameter in inspect.signature(synthetic).parameters.items()
    }
    values: dict[str, float | int] = {}
    for pair in filter(None, text.split(",")):
        key, _, value = pair.partition("=")
        if key not in known:
            raise one_of("option of synthetic", key, known)
        try:
            values[key] = known[key](value)
        except ValueError:
            raise SettingError(f"synthetic: {key} must be a number, it is {value!r}") from None
    return values
