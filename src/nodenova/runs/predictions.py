"""The class of every node: a table of its own, or columns beside a user's table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import narwhals as nw
import numpy as np

from nodenova.errors import GraphError, SettingError
from nodenova.files.content import table_content
from nodenova.graph import Graph
from nodenova.io.column_guessing import ID_NAMES, guess_id, pick_column
from nodenova.io.frames import is_frame
from nodenova.io.nodes import EXPORT_COLUMNS, PREFIX, find_export_columns
from nodenova.io.tables import Table, read_table
from nodenova.model.model import Model
from nodenova.review.trust import calibrate_first
from nodenova.review.user_labels import NO_LABEL, UserLabels
from nodenova.settings import check_arguments, check_probability

Backend: TypeAlias = 'Literal["pandas", "polars", "pyarrow"]'
FRAMES = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}


@dataclass(frozen=True, eq=False)
class Predictions:
    """Class (a row of `model.classes`), probability and label of each of N nodes.

    `label` is "" without a label; `agrees`, whether the model predicts it, is yes, no or "".
    """

    model: Model
    names: tuple[str, ...]
    node_ids: np.ndarray
    row: np.ndarray
    probability: np.ndarray
    unsure: np.ndarray
    label: Sequence[str]
    agrees: Sequence[str]
    fits_none: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        model: Model,
        graph: Graph,
        min_confidence: float = 0.0,
        *,
        names: Sequence[str] | None = None,
        p: np.ndarray | None = None,
        labels: UserLabels | None = None,
        fits_none: np.ndarray | None = None,
        only: np.ndarray | None = None,
    ) -> Predictions:
        """Predict the nodes of a graph, or the n nodes `only`; p (n, classes) if it is known.

        All nodes come in the order of the user's table.
        """
        check_probability(min_confidence)
        node_ids = graph.node_ids if only is None else graph.node_ids[only]
        if p is None:
            p = model.predict_proba(graph, only=None if only is None else node_ids)
        if only is not None:
            labels = None if labels is None else labels.of_nodes(only)
            fits_none = None if fits_none is None else fits_none[only]
        if labels is None:
            labels = UserLabels(np.full(len(p), NO_LABEL), ())
        if only is None and graph.given_order is not None:
            given = graph.given_order
            node_ids, p, labels = node_ids[given], p[given], labels.of_nodes(given)
            fits_none = None if fits_none is None else fits_none[given]
        row = labels.rows(model, p)
        probability = np.take_along_axis(p, row[:, None], axis=1)[:, 0]
        names = tuple(model.class_names if names is None else names)
        return cls(
            model,
            names=names,
            node_ids=node_ids,
            row=row,
            probability=probability,
            unsure=probability < min_confidence,
            label=labels.texts(model, names),
            agrees=labels.agrees(model, p),
            fits_none=fits_none,
        )

    def calibrated(self, shifts: Sequence[float | None], min_confidence: float) -> Predictions:
        """The same with calibrated probabilities; `shifts` are those of `DiscoveryRun`."""
        if not shifts:
            return self
        shift = np.array([np.nan if s is None else s for s in shifts])[self.row]
        first = calibrate_first(self.probability, shift, len(shifts))
        probability = np.where(np.isnan(shift), self.probability, first)
        return replace(self, probability=probability, unsure=probability < min_confidence)

    @property
    def counts(self) -> np.ndarray:
        """(classes,) number of nodes in each class."""
        return np.bincount(self.row, minlength=len(self.model.classes))

    def columns(self) -> dict[str, list[object]]:
        """The columns of predictions.csv; `fits_none` only where it was computed."""
        classes = [self.model.classes[row] for row in self.row]
        table: dict[str, list[object]] = {
            "node": self.node_ids.tolist(),
            "class": [c.id for c in classes],
            "name": [self.names[row] for row in self.row],
            "kind": [c.kind for c in classes],
            "probability": [round(p, 4) for p in self.probability.tolist()],
            "unsure": ["yes" if unsure else "no" for unsure in self.unsure],
            "label": list(self.label),
            "agrees": list(self.agrees),
        }
        if self.fits_none is not None:
            table["fits_none"] = ["yes" if none else "no" for none in self.fits_none]
        return table

    def content(self, path: Path, safe_csv: bool = False) -> bytes:
        """The table as the content of a file, Parquet or CSV by its name."""
        return table_content(self.columns(), path, safe_csv)


def predictions_of(source: Any) -> Predictions:
    """Predictions of a fitted `NodeDiscoverer`, an opened run, or a `DiscoveryRun`."""
    source = getattr(source, "run_", getattr(source, "run", source))
    source = getattr(source, "predictions", source)
    if not isinstance(source, Predictions):
        raise SettingError(
            "classes come from a fitted NodeDiscoverer, an opened run or Predictions, "
            f"not from {type(source).__name__}"
        )
    return source


def prediction_frame(found: Any, backend: Backend = "pandas") -> Any:
    """Return the predictions as a data frame with the columns of predictions.csv.

    Args:
        found: A fitted `NodeDiscoverer`, a run that `nova.open_run` opened, or a `DiscoveryRun`.
        backend: Library of the data frame.

    Returns:
        A data frame with one row per node.

    Raises:
        SettingError: If the backend is unknown or not installed.

    Examples:
        >>> import nodenova as nova
        >>> data = nova.synthetic(nodes=60, classes=3, words=40)
        >>> y = [c if c < 2 else -1 for c in data.y.tolist()]
        >>> found = nova.NodeDiscoverer(num_new=1).fit(data.graph, y)
        >>> list(nova.prediction_frame(found).columns[:5])
        ['node', 'class', 'name', 'kind', 'probability']
    """
    check_arguments(prediction_frame, locals())
    if backend not in FRAMES:
        known = ", ".join(FRAMES)
        raise SettingError(f"prediction_frame() knows the backends {known}, not {backend!r}")
    try:
        return nw.from_dict(predictions_of(found).columns(), backend=backend).to_native()
    except ImportError:
        raise SettingError(
            f"prediction_frame() makes a {backend} {FRAMES[backend]} and needs {backend}: "
            f"pip install {backend}"
        ) from None


def with_classes(
    table: Any, found: Any, *, id_column: str | None = None, settled: float = 0.0
) -> Any:
    """Return a table of nodes with columns class, name, kind and probability beside it.

    `load_graph` can read the result: `class` becomes the label, and none of the four columns is
    used as a feature.

    Args:
        table: A data frame of pandas, polars or Arrow whose rows are nodes that were predicted.
        found: A fitted `NodeDiscoverer`, a run that `nova.open_run` opened, or a `DiscoveryRun`.
        id_column: Column with the ids of the nodes; found by its name or content by default.
        settled: Lowest probability of a class. A less probable node that has no label of the
            user's gets no class, so that it is unlabelled when the table is read again.

    Returns:
        A data frame of the same library. If the table has one of these columns already, the four
        are called nodenova_class, …; those of an earlier call are replaced.

    Raises:
        SettingError: If the table is no data frame.
        GraphError: If a row belongs to no node that was predicted.

    Examples:
        >>> import nodenova as nova
        >>> import pandas as pd
        >>> data = nova.synthetic(nodes=60, classes=3, words=40)
        >>> nodes = pd.DataFrame({"id": range(60), "size": [i % 7 for i in range(60)]})
        >>> y = [c if c < 2 else -1 for c in data.y.tolist()]
        >>> found = nova.NodeDiscoverer(num_new=1).fit(data.graph, y)
        >>> list(nova.with_classes(nodes, found).columns)
        ['id', 'size', 'class', 'name', 'kind', 'probability']
    """
    check_arguments(with_classes, locals())
    if not is_frame(table):
        raise SettingError(
            f"a table is a data frame (pandas, polars, Arrow), not {type(table).__name__}"
        )
    content = read_table(table, source="table")
    replaced, added, _ = class_columns(content, predictions_of(found), id_column, settled)
    frame = nw.from_native(table, eager_only=True)
    names = {str(name).strip(): name for name in frame.columns}  # tables have no outer spaces
    frame = frame.drop([names[name] for name in replaced])
    series = [
        nw.new_series(name, values, backend=frame.implementation) for name, values in added.items()
    ]
    return frame.with_columns(*series).to_native()


def class_columns(
    table: Table, found: Predictions, id_column: str | None, settled: float
) -> tuple[tuple[str, ...], dict[str, list[object]], list[str]]:
    """Columns of an earlier call that go, columns to add, and notes on what was assumed."""
    check_probability(settled, "settled")
    notes: list[str] = []
    earlier = find_export_columns(table)
    replaced = () if earlier is None else earlier.all
    nodes = [str(node) for node in found.node_ids.tolist()]
    column = pick_column(table, id_column, ID_NAMES, "id_column", notes)
    column = guess_id(table, replaced, nodes, notes) if column is None else column
    ids = [cell.strip() for cell in table.columns[column]]
    place = {node: row for row, node in enumerate(nodes)}
    unknown = [node for node in ids if node not in place]
    if unknown:
        raise GraphError(
            f"{table.source}: {len(unknown):,} of {len(ids):,} rows are of no node of the run, "
            f"first: {unknown[0]!r} in column {column!r}"
        )
    predicted = found.columns()
    rows = [place[node] for node in ids]
    sure = found.probability >= settled
    if settled and found.fits_none is not None:
        sure &= ~found.fits_none
    has_class = [bool(predicted["label"][row] or sure[row]) for row in rows]
    own = [name for name in table.columns if name not in replaced]
    taken = [role for role in EXPORT_COLUMNS if role in own]
    prefix = PREFIX if taken else ""
    if taken:
        names = ", ".join(f"{PREFIX}{role}" for role in EXPORT_COLUMNS)
        notes.append(f"{table.source}: has a column {taken[0]!r} of its own; added: {names}")
    added: dict[str, list[object]] = {}
    for role in EXPORT_COLUMNS:
        cells = zip(rows, has_class, strict=True)
        always = role == "probability"
        added[prefix + role] = [
            predicted[role][row] if filled or always else None for row, filled in cells
        ]
    return replaced, added, notes
