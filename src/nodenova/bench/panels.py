"""Which figures the bench has: curves out of tables, confusion matrices and maps out of rows."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from markupsafe import Markup

from nodenova.bench.cells import Table
from nodenova.bench.row import Row
from nodenova.bench.sweeps import confusions, panels
from nodenova.bench.tables import layers, sensitivity
from nodenova.bench.text import blocks
from nodenova.bench.titles import dataset_title, encoder_title, score_title
from nodenova.drawing.confusion import confusion
from nodenova.drawing.curves import score_curves
from nodenova.drawing.layout import differ, positions
from nodenova.drawing.node_map import node_map
from nodenova.errors import StorageError


@dataclass(frozen=True)
class Figure:
    group: str  # what it shares with others: a dataset
    title: str
    svg: Markup


def _curves(
    rows: Sequence[Row], which: Callable[[Sequence[Row]], list[Table]], x_title: Callable[[str], str]
) -> list[Figure]:
    """One figure a dataset and block of lines."""
    (table,) = which(rows)
    found = []
    for dataset in dict.fromkeys(column.group for column in table.columns):
        mine = [(j, column.score) for j, column in enumerate(table.columns) if column.group == dataset]
        for block, lines in blocks(table):
            shown = [line for line in lines if any(line.cells[j].n for j, _ in mine)]
            series = {score_title(score): [line.cells[j] for line in shown] for j, score in mine}
            if len(shown) > 1:
                title = f"{dataset_title(dataset)}: {block}"
                counts = sorted({cell.n for cells in series.values() for cell in cells})
                over = f"mean over {'–'.join(map(str, dict.fromkeys([counts[0], counts[-1]])))} seeds"
                ticks = [line.labels[0] for line in shown]
                drawn = score_curves(f"{title}, {over}", x_title(block), ticks, series)
                found.append(Figure(dataset_title(dataset), f"{block}; {over}", drawn))
    return found


def sensitivity_figures(rows: Sequence[Row], maps_folder: Path) -> list[Figure]:
    return _curves(rows, sensitivity, lambda block: block.split(",")[0])


def layers_figures(rows: Sequence[Row], maps_folder: Path) -> list[Figure]:
    return _curves(rows, layers, lambda block: "layers")


def confusion_figures(rows: Sequence[Row], maps_folder: Path) -> list[Figure]:
    found = []
    for (dataset, encoder, title), each in panels(rows).items():
        counts = confusions(each)
        share = (100 * counts / np.maximum(counts.sum(axis=2, keepdims=True), 1)).mean(axis=0)  # (true, predicted + 1)
        shown = share if counts[:, :, -1].any() else share[:, :-1]
        group = f"{dataset_title(dataset)}, {encoder_title(encoder)}"
        what = f"Confusion matrix: {group}, {title}, mean over {len(each)} runs"
        drawn = confusion(what, shown, each[0].class_names, each[0].num_old)
        found.append(Figure(group, f"{title}; {len(each)} {'run' if len(each) == 1 else 'runs'}", drawn))
    return found


def tsne_figures(rows: Sequence[Row], maps_folder: Path) -> list[Figure]:
    """The features of the graph itself, then one map a method, of the first seed that has kept one."""
    found: list[Figure] = []
    for (dataset, encoder, title), each in panels(rows).items():
        kept = [(row, maps_folder / Path(row.map).name) for row in each if row.map]
        row, path = next(((row, path) for row, path in kept if path.is_file()), (None, None))
        if row is None or path is None:
            continue
        try:
            with np.load(path, allow_pickle=False) as arrays:
                shown = {f"{title}; seed {row.seed}": arrays["z"].astype(np.float64)}
                y, features = arrays["y"], arrays.get("features")
        except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
            raise StorageError(f"{path}: damaged, not readable as a map ({error})") from error
        group = f"{dataset_title(dataset)}, {encoder_title(encoder)}"
        if features is not None and all(figure.group != group for figure in found):
            shown = {"original features; as the graph has them": features.astype(np.float64), **shown}
        for name, z in shown.items():
            xy = _layout(z.shape, z.tobytes())
            if xy is not None:
                what = f"Map of {len(y)} test nodes: {group}, {name}"
                drawn = node_map(what, xy.astype(float), y, row.class_names, row.num_old)
                found.append(Figure(group, name, drawn))
    return found


@cache
def _layout(shape: tuple[int, ...], z: bytes) -> np.ndarray | None:
    """The t-SNE of float64 embeddings, once: it takes seconds, and both the page and the files want it."""
    embeddings = np.frombuffer(z).reshape(shape)
    return positions(embeddings) if differ(embeddings) else None


FIGURES: Mapping[str, Callable[[Sequence[Row], Path], list[Figure]]] = {
    "sensitivity": sensitivity_figures,
    "layers": layers_figures,
    "confusion": confusion_figures,
    "tsne": tsne_figures,
}


def figures_of(table_name: str, rows: Sequence[Row], maps_folder: Path) -> list[Figure]:
    return FIGURES[table_name](rows, maps_folder) if table_name in FIGURES else []
