"""Figures of the bench: curves from tables, confusion matrices and maps from rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from markupsafe import Markup

from nodenova.bench.embeddings import layout_of, read_map
from nodenova.bench.render import blocks
from nodenova.bench.row import Row
from nodenova.bench.row_filters import confusions, once, panels
from nodenova.bench.table import Table
from nodenova.bench.tables import layers, sensitivity
from nodenova.bench.titles import dataset_title, encoder_title
from nodenova.evaluation.scores import score_title
from nodenova.report.charts import confusion, score_curves
from nodenova.report.node_map import node_map


@dataclass(frozen=True)
class Figure:
    """A drawing with a title, in a group of figures: a dataset, or a dataset and an encoder."""

    group: str
    title: str
    svg: Markup


def _curves(
    rows: Sequence[Row],
    which: Callable[[Sequence[Row]], list[Table]],
    x_title: Callable[[str], str],
) -> list[Figure]:
    """One figure per dataset and block of lines."""
    (table,) = which(rows)
    found = []
    for dataset in dict.fromkeys(column.group for column in table.columns):
        own = [(j, c.score) for j, c in enumerate(table.columns) if c.group == dataset]
        for block, lines in blocks(table):
            measured = [line for line in lines if any(line.cells[j].n for j, _ in own)]
            series = {score_title(score): [line.cells[j] for line in measured] for j, score in own}
            if len(measured) > 1:
                title = f"{dataset_title(dataset)}: {block}"
                counts = sorted({cell.n for cells in series.values() for cell in cells})
                ends = dict.fromkeys([counts[0], counts[-1]])
                over = f"mean over {'–'.join(map(str, ends))} seeds"
                ticks = [line.labels[0] for line in measured]
                svg = score_curves(f"{title}, {over}", x_title(block), ticks, series)
                found.append(Figure(dataset_title(dataset), f"{block}; {over}", svg))
    return found


def sensitivity_figures(rows: Sequence[Row], maps_folder: Path) -> list[Figure]:
    """Scores of SWORD by the value of one parameter."""
    return _curves(rows, sensitivity, lambda block: block.split(",")[0])


def layers_figures(rows: Sequence[Row], maps_folder: Path) -> list[Figure]:
    """Scores by the depth of the encoder."""
    return _curves(rows, layers, lambda block: "layers")


def confusion_figures(rows: Sequence[Row], maps_folder: Path) -> list[Figure]:
    """Confusion matrices, in percent of each true class, mean over runs."""
    found = []
    for (dataset, encoder, title), each in panels(rows).items():
        each = once(each)
        counts = confusions(each)
        nodes = np.maximum(counts.sum(axis=2, keepdims=True), 1)
        share = (100 * counts / nodes).mean(axis=0)  # (true, predicted + 1)
        share = share if counts[:, :, -1].any() else share[:, :-1]
        group = f"{dataset_title(dataset)}, {encoder_title(encoder)}"
        what = f"Confusion matrix: {group}, {title}, mean over {len(each)} runs"
        svg = confusion(what, share, each[0].class_names, each[0].num_old)
        runs = f"{len(each)} {'run' if len(each) == 1 else 'runs'}"
        found.append(Figure(group, f"{title}; {runs}", svg))
    return found


def tsne_figures(rows: Sequence[Row], maps_folder: Path) -> list[Figure]:
    """Map of the graph's features, then one per method, of the first seed with a map file."""
    found: list[Figure] = []
    for (dataset, encoder, title), each in panels(rows).items():
        stored = [(row, maps_folder / Path(row.map).name) for row in each if row.map]
        row, path = next(((row, path) for row, path in stored if path.is_file()), (None, None))
        if row is None or path is None:
            continue
        arrays = read_map(path)
        panels_of = {"z": f"{title}; seed {row.seed}"}
        group = f"{dataset_title(dataset)}, {encoder_title(encoder)}"
        if "features" in arrays and all(figure.group != group for figure in found):
            panels_of = {"features": "original features; as the graph has them", **panels_of}
        for name, panel in panels_of.items():
            xy = layout_of(path, arrays[name], name)
            if xy is not None:
                what = f"Map of {len(arrays['y'])} test nodes: {group}, {panel}"
                svg = node_map(what, xy, arrays["y"], row.class_names, row.num_old)
                found.append(Figure(group, panel, svg))
    return found


FIGURES: Mapping[str, Callable[[Sequence[Row], Path], list[Figure]]] = {
    "sensitivity": sensitivity_figures,
    "layers": layers_figures,
    "confusion": confusion_figures,
    "tsne": tsne_figures,
}


def figures_of(table_name: str, rows: Sequence[Row], maps_folder: Path) -> list[Figure]:
    """Return the figures of a table; most have none. Maps are read from `maps_folder`."""
    return FIGURES[table_name](rows, maps_folder) if table_name in FIGURES else []
