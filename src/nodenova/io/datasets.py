"""Datasets by name: shipped with the package, from raw files, downloaded, or synthetic."""

from __future__ import annotations

import contextlib
import inspect
import io
import pickle
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nodenova.data.labels import LabelledGraph
from nodenova.data.synthetic import synthetic
from nodenova.errors import DatasetError, SettingError, first_line, one_of
from nodenova.io.dataset_table import (
    DATA_ROOT,
    DATASETS,
    HETEROPHILOUS,
    OGB,
    Dataset,
    find_root,
    is_on_disk,
    raw_folders,
)
from nodenova.io.npz import load_graph, read_heterophilous_npz, read_raw_npz
from nodenova.io.ogb import load_ogb
from nodenova.io.pyg import from_pyg
from nodenova.settings import check_arguments

# What the published files are made of, by the package and the name of a class or function.
PLAIN_CLASSES = {
    ("numpy", "_reconstruct"), ("numpy", "ndarray"), ("numpy", "dtype"), ("numpy", "scalar"),
    ("numpy", "_frombuffer"), ("scipy", "csr_matrix"), ("scipy", "csr_array"),
    ("collections", "defaultdict"), ("builtins", "list"), ("__builtin__", "list"),
    ("builtins", "object"), ("__builtin__", "object"), ("copy_reg", "_reconstructor"),
    ("copyreg", "_reconstructor"), ("_codecs", "encode"),
}  # fmt: skip

if TYPE_CHECKING:
    from torch_geometric.data import InMemoryDataset


def load_dataset(
    name: str, data_root: str | PathLike[str] | None = None, *, split: int = 0
) -> LabelledGraph:
    """Load a dataset by its name.

    Raw files below the data root are used as they are, and nothing is written beside them; PyTorch
    Geometric downloads missing ones. `citeseer` and `wordnet` ship with the package.

    `photo`, `computers`, `cs`, `physics`, `dblp`, `cora_full`, `cora_ml`, `citeseer_full` and
    `pubmed_full` are read from the raw npz files of PyTorch Geometric's `Amazon`, `Coauthor` and
    `CitationFull`, below the collection's own folder (`Amazon/Photo/raw`) or without it
    (`Photo/raw`); they are not downloaded and have no published split. Nor are
    `heterophilous/wisconsin.npz`, `chameleon_filtered.npz` and `squirrel_filtered.npz` of Platonov
    et al. (ICLR 2023), whose ten splits are not used, and `graphs/actor.npz`, a graph of one's own.

    `ogbn-arxiv` and `ogbn-products` are read from the raw files of the Open Graph Benchmark, below
    `OGB/ogbn_arxiv` or `ogbn_arxiv`; they are not downloaded.

    Args:
        name: `cora`, `citeseer`, `pubmed`, `wikics`, `wordnet`, one of the raw npz files above,
            `ogbn-arxiv`, `ogbn-products`, or `synthetic`, also with options:
            `synthetic:nodes=5000,classes=8`.
        data_root: Folder of the raw files; by default the environment variable NODENOVA_DATA.
        split: Number of the split, of the 20 that Wiki-CS has.

    Returns:
        The graph, its classes and its published split, if it has one.

    Raises:
        DatasetError: If raw files are damaged, or missing and cannot be downloaded.
        SettingError: If there is no such dataset or option.

    Examples:
        >>> import nodenova as nova
        >>> nova.load_dataset("synthetic:nodes=200,classes=4").class_names
        ('class-0', 'class-1', 'class-2', 'class-3')
    """
    check_arguments(load_dataset, locals())
    kind, _, options = name.partition(":")
    if kind == "synthetic":
        return replace(synthetic(**_synthetic_options(options)), name=name)  # type: ignore[arg-type]
    if options or kind not in DATASETS:
        raise one_of("dataset", name, [*DATASETS, "synthetic"])
    dataset = DATASETS[kind]
    root = find_root(data_root)
    if dataset.ships and (root is None or not is_on_disk(dataset, root)):
        shipped = resources.files("nodenova.data") / "shipped" / f"{kind}.npz"
        with resources.as_file(shipped) as path:
            return replace(load_graph(path), name=kind)
    if root is None:
        raise DatasetError(f"{kind} needs a data root: give --data-root, or set {DATA_ROOT}")
    if dataset.collection == OGB:
        return load_ogb(kind, dataset, root)
    if dataset.collection:
        return _load_raw(kind, dataset, root)
    return _load_pyg(kind, dataset, root, split)


def _load_raw(name: str, dataset: Dataset, root: Path) -> LabelledGraph:
    (file,) = dataset.raw_files
    paths = [folder / file for folder in raw_folders(dataset, root)]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        where = f"it should be {paths[0]} (or {paths[1]})"
        raise DatasetError(f"{name}: the raw file is not there; {where}")
    if dataset.folder == HETEROPHILOUS:
        return read_heterophilous_npz(path, name)
    if not dataset.folder.endswith("raw"):
        return replace(load_graph(path), name=name, train=None, val=None, test=None)
    return read_raw_npz(path, name, dataset.classes)


def _load_pyg(name: str, dataset: Dataset, root: Path, split: int) -> LabelledGraph:
    if not is_on_disk(dataset, root) and root.exists() and not root.is_dir():
        raise DatasetError(f"{name}: the data root {root} is not a folder")
    where = root / dataset.folder
    existing = next(folder for folder in (where, *where.parents) if folder.exists())
    with tempfile.TemporaryDirectory() as scratch:
        try:
            # PyG prints to standard error, and warns of what its users cannot change.
            with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                data = _open_pyg(name, dataset, root, scratch)[0]
        except Exception as error:
            if is_on_disk(dataset, root):
                raise DatasetError(
                    f"{name}: the raw files in {where} cannot be read ({first_line(error)})"
                ) from error
            _remove_empty(where, existing)
            raise DatasetError(
                f"{name}: the raw files ({', '.join(dataset.raw_files)}) are not in {where}, "
                f"and downloading them failed ({first_line(error)})"
            ) from error
    names = list(map(str, range(dataset.classes)))
    return from_pyg(data, class_names=names, split=split, name=name)


def _open_pyg(name: str, dataset: Dataset, root: Path, scratch: str) -> InMemoryDataset:
    """Open PyG's own dataset, its processed files in a scratch folder beside the data root."""
    from torch_geometric.datasets import Planetoid, WikiCS

    def process(self: Any) -> None:
        for path in map(Path, self.raw_paths):
            if path.name.startswith("ind.") and path.suffix != ".index":
                _check_pickle(path)
        Planetoid.process(self)

    def in_scratch(loader: type) -> type:
        members: dict[str, Any] = {"processed_dir": property(lambda self: scratch)}
        members |= {"process": process} if loader is Planetoid else {}
        return type(loader.__name__, (loader,), members)

    if name == "wikics":
        return in_scratch(WikiCS)(root=str(root / "WikiCS"))
    return in_scratch(Planetoid)(root=str(root / "Planetoid"), name=dataset.title)


class _PlainUnpickler(pickle.Unpickler):
    """Unpickles arrays, sparse matrices and lists; anything else could run any code."""

    def find_class(self, module: str, name: str) -> Any:
        """Find a class of `PLAIN_CLASSES`."""
        if (module.partition(".")[0], name) not in PLAIN_CLASSES:
            raise pickle.UnpicklingError(f"a pickle that would use {module}.{name}")
        return super().find_class(module, name)


def _check_pickle(path: Path) -> None:
    """Raise unless a raw file of Planetoid, which PyG unpickles, holds nothing but plain data."""
    with path.open("rb") as file:
        _PlainUnpickler(file, encoding="latin1").load()


def _remove_empty(folder: Path, stop: Path) -> None:
    """Remove the empty folders that a failed download made, from `folder` up to below `stop`."""
    while folder != stop and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


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
