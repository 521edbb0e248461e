"""A graph that a model meets after it was made: read like the run's own, with its labels.

`TableReader` is the one place where later tables are read: with the run's recipe, and with the
options that the run remembers unless they are given again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from nodenova.data.labels import UNKNOWN, UserGraph
from nodenova.errors import GraphError, MissingColumnError, SettingError
from nodenova.graph import Graph
from nodenova.io.edges import NO_EDGES
from nodenova.io.load import notes_on_files, read_graph
from nodenova.io.networkx_scipy import is_table
from nodenova.io.recipe import NO_FEATURES, TableEncoder
from nodenova.io.table_options import TableOptions
from nodenova.model.model import Model
from nodenova.progress import Progress, no_progress
from nodenova.report.tsne import positions
from nodenova.review.cross_validation import check_none_share, spare_fit
from nodenova.review.page_data import Layout
from nodenova.review.user_labels import UserLabels, labels_for_graph
from nodenova.runs.predictions import Predictions
from nodenova.runs.run import DiscoveryRun

# Options that depend on a column, and what holds where new tables lack a remembered column.
BY_NAME = "it is found by its name"
COLUMN_OPTIONS = {
    "id_column": ((), BY_NAME),
    "label_column": ((), "only labels of the earlier run are known"),
    "source_column": ((), BY_NAME),
    "target_column": ((), BY_NAME),
    "weight_column": (("min_weight", "weights"), "its edges count alike"),
    "edge_type_column": (("edge_types",), "its edges count as one type"),
}
EDGE_OPTIONS = (
    "source_column", "target_column", "weight_column", "min_weight", "weights",
    "edge_type_column", "edge_types", "drop_unknown_edges",
)  # fmt: skip


class TableReader:
    """Reads later graphs with a recipe, and with `options` in place of the `defaults` of a run."""

    def __init__(
        self,
        recipe: TableEncoder | None,
        defaults: Mapping[str, Any],
        options: TableOptions,
        progress: Progress = no_progress,
    ) -> None:
        self.recipe = recipe
        self.changes = options
        self.options = TableOptions.from_json(defaults).merged_with(options)
        self.notes: list[str] = []
        self._progress = progress

    def read(self, source: Any = None, nodes: Any = None, edges: Any = None) -> UserGraph:
        """Read a graph with exactly the features of the recipe."""
        if source is not None and not is_table(source):
            loaded = read_graph(source, self.changes, progress=self._progress)
            return self._with_notes(_without_search_note(loaded))
        return self._with_notes(self._read(source, nodes, edges, recipe=self.recipe))

    def read_grown(self, source: Any = None, nodes: Any = None, edges: Any = None) -> UserGraph:
        """Read a graph with the features of the recipe and those that came since."""
        if self.recipe is None or (source is not None and not is_table(source)):
            return self.read(source, nodes, edges)
        loaded = self._read(source, nodes, edges, recipe=self.recipe, extend=True)
        assert loaded.recipe is not None
        num_came = len(loaded.recipe.feature_names) - len(self.recipe.feature_names)
        if num_came:
            self.notes.append(f"{num_came:,} features came that the earlier run did not have")
        return self._with_notes(loaded)

    def append(self, graph: Graph, nodes: Any, edges: Any) -> tuple[UserGraph, np.ndarray]:
        """`graph` with further nodes and edges, and (n,) the numbers of these nodes in it.

        A node that the graph has already is replaced.
        """
        if self.recipe is None or self.recipe.neighbors:
            raise SettingError(
                "nodes can be added only if features were made from columns of a table; "
                "give the whole graph"
            )
        graph = graph.as_given()
        defaults = TableOptions()
        of_nodes = {name: getattr(defaults, name) for name in EDGE_OPTIONS}
        came = self._read(nodes=nodes, recipe=self.recipe, changes=of_nodes)
        notes = [note for note in came.notes if NO_EDGES not in note]
        place = {str(name): number for number, name in enumerate(graph.node_ids.tolist())}
        row = np.arange(graph.num_nodes + came.graph.num_nodes)
        numbers = []
        for number, name in enumerate(map(str, came.graph.node_ids.tolist()), graph.num_nodes):
            place.setdefault(name, len(place))
            row[place[name]] = number
            numbers.append(place[name])
        row = row[: len(place)]
        ends, weight = graph.edge_index, graph.edge_weight
        if edges is not None:
            kept = {*EDGE_OPTIONS, "delimiter", "encoding"} - {"drop_unknown_edges"}
            of_edges = {name: value for name, value in vars(defaults).items() if name not in kept}
            linked = self._read(edges=edges, changes=of_edges)
            notes += [note for note in linked.notes if NO_FEATURES not in note]
            drop = self.options.drop_unknown_edges
            more, more_weight = _renumber(linked.graph, place, linked.name, drop)
            ends = np.concatenate([ends, more], axis=1)
            if weight is not None:
                alike = np.ones(more.shape[1], dtype=np.float32)
                weight = np.concatenate([weight, alike if more_weight is None else more_weight])
        whole = self._stack(graph, came, row, list(place), ends, weight)
        y = np.full(whole.num_nodes, UNKNOWN)
        y[numbers] = came.y
        joined = UserGraph(
            whole, y, came.class_names, name=came.name, notes=tuple(notes), recipe=self.recipe
        )
        return self._with_notes(joined), np.array(numbers, dtype=np.int64)

    def _stack(
        self,
        graph: Graph,
        came: UserGraph,
        row: np.ndarray,
        node_ids: list[str],
        ends: np.ndarray,
        weight: np.ndarray | None,
    ) -> Graph:
        """The rows `row` of both graphs' features below each other, with these edges."""
        dense = isinstance(graph.x, np.ndarray)
        parts = [graph.x, as_known(came.graph, graph).x]
        stacked: Any = np.concatenate(parts) if dense else sp.csr_array(sp.vstack(parts, "csr"))
        vectors = graph.vectors
        if vectors is not None:
            if came.graph.vectors is None:
                raise GraphError(f"{came.name}: the graph has vectors of texts: give text_vectors")
            vectors = np.concatenate([vectors, came.graph.vectors])[row]
        return Graph.of(
            stacked[row],
            ends,
            node_ids=node_ids,
            feature_names=graph.feature_names,
            dense=dense,
            source=came.name,
            edge_weight=weight,
            vectors=vectors,
        )

    def _read(
        self,
        source: Any = None,
        nodes: Any = None,
        edges: Any = None,
        *,
        recipe: TableEncoder | None = None,
        extend: bool = False,
        changes: Mapping[str, Any] | None = None,
    ) -> UserGraph:
        """Read tables; a remembered column that they do not have is dropped with a note."""
        while True:
            options = replace(self.options, **(changes or {}))
            try:
                loaded = read_graph(
                    source, options, nodes=nodes, edges=edges, recipe=recipe, extend=extend,
                    progress=self._progress,
                )  # fmt: skip
                return _without_search_note(loaded)
            except MissingColumnError as error:
                missing = [
                    name
                    for name in COLUMN_OPTIONS
                    if getattr(options, name) == error.column
                    and getattr(self.changes, name) is None
                ]
                if not missing:
                    raise
                dependent, effect = COLUMN_OPTIONS[missing[0]]
                self.notes.append(f"{str(error).partition(';')[0]}: {effect}")
                dropped = {name: getattr(self.changes, name) for name in (missing[0], *dependent)}
                self.options = replace(self.options, **dropped)

    def _with_notes(self, loaded: UserGraph) -> UserGraph:
        return replace(loaded, notes=(*loaded.notes, *self.notes))


def _without_search_note(graph: UserGraph) -> UserGraph:
    """The graph without the note on the nodes that a first discovery would search."""
    return replace(graph, notes=tuple(notes_on_files(graph)))


def _renumber(
    linked: Graph, place: Mapping[str, int], source: str, drop: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """(2, E) edges by the numbers in `place` of the nodes that they name, and their weights."""
    number = np.array([place.get(str(name), -1) for name in linked.node_ids.tolist()])
    ends = number[linked.edge_index]
    known = (ends >= 0).all(axis=0)
    if not drop and not known.all():
        name = str(linked.node_ids[int(np.flatnonzero(number < 0)[0])])
        raise GraphError(
            f"{source}: node {name!r} is neither among the nodes given nor in the run; "
            "drop_unknown_edges (--drop-unknown-edges) leaves such edges out"
        )
    weight = None if linked.edge_weight is None else linked.edge_weight[known]
    return ends[:, known], weight


def with_known_features(graph: Graph, names: Sequence[str] | None) -> tuple[Graph, list[str]]:
    """The graph with the features `names` in their order, and notes on what did not match."""
    if names is None or graph.feature_names is None or graph.feature_names == tuple(names):
        return graph, []
    matched, ignored, missing = graph.aligned(names)
    return matched, [
        f"{ignored:,} features are not known to the model and are ignored, "
        f"{missing:,} that it knows are missing and count as zero"
    ]


def as_known(graph: Graph, known: Graph) -> Graph:
    """A later graph with the features of `known`, dense or sparse as they are there."""
    # Words and measurements are encoded differently: a few nodes do not decide which they are.
    graph, _ = with_known_features(graph, known.feature_names)
    dense = isinstance(known.x, np.ndarray)
    if isinstance(graph.x, np.ndarray) == dense:
        return graph
    x = Graph.of(graph.x, np.zeros((2, 0), dtype=np.int64), dense=dense).x
    return graph.with_features(x, graph.feature_names)


@dataclass(frozen=True, eq=False)
class PredictInput:
    """A model and a graph to predict.

    Attributes:
        model: Model that predicts.
        graph: Graph with the features that the model knows.
        names: Names of the model's classes.
        labels: Labels of the graph's user, and those of the same nodes in the run.
        notes: Sentences on what did not match.
        run: Run of the model, if it keeps its graph.
        nodes: (n,) numbers of the nodes to predict; None for all.
        shifts: Shift of each class by which probabilities are calibrated; see `DiscoveryRun`.
        layout: Function that places embeddings on a map.
    """

    model: Model
    graph: Graph
    names: Sequence[str] | None = None
    labels: UserLabels | None = None
    notes: Sequence[str] = ()
    run: DiscoveryRun | None = None
    nodes: np.ndarray | None = None
    shifts: Sequence[float | None] = ()
    layout: Layout = positions

    @classmethod
    def of_run(
        cls,
        run: DiscoveryRun,
        names: Sequence[str],
        relabel: bool,
        shifts: Sequence[float | None] = (),
        layout: Layout = positions,
    ) -> PredictInput:
        """The graph of a run itself."""
        labels = run.labels
        if labels is not None and relabel:
            labels = replace(labels, keep=False)
        return cls(run.model, run.graph, names, labels, run=run, shifts=shifts, layout=layout)

    @classmethod
    def of_graph(
        cls,
        model: Model,
        names: Sequence[str],
        loaded: UserGraph,
        *,
        features: Sequence[str] | None = None,
        run: DiscoveryRun | None = None,
        relabel: bool = False,
        use_labels: bool = True,
        nodes: np.ndarray | None = None,
    ) -> PredictInput:
        """A graph that was read, with the labels in it and those that its nodes had in the run.

        `nodes` are numbers in `loaded`.
        """
        loaded = loaded.canonical()
        if nodes is not None and loaded.graph.given_order is not None:
            nodes = loaded.graph.given_order[nodes]
        graph, notes = with_known_features(loaded.graph, features)
        if run is not None and run.graph.edge_weight is not None and graph.edge_weight is None:
            notes.append("the model was trained with edge weights, this graph is read without them")
        if run is not None and run.graph.edge_weight is None and graph.edge_weight is not None:
            notes.append("the model was trained without edge weights, this graph is read with them")
        earlier, keep = None, not relabel
        if run is not None and run.labels is not None:
            earlier = (run.graph.node_ids.tolist(), run.labels)
            keep = keep and run.keep_labels
        y = loaded.y.tolist()
        texts = ["" if c < 0 or not use_labels else loaded.class_names[c] for c in y]
        node_ids = graph.node_ids.tolist()
        labels, unknown = labels_for_graph(model, names, node_ids, texts, earlier, keep)
        notes = [*loaded.notes, *notes, *unknown]
        return cls(model, graph, names, labels, notes, run, nodes)

    def fits_none(self, none_share: float | None = None) -> np.ndarray | None:
        """(N,) which nodes without a label fit no class, by the run's share unless given."""
        if none_share is None:
            none_share = 0.0 if self.run is None else self.run.none_share
        check_none_share(none_share)
        if none_share == 0:
            return None
        held_out = None if self.run is None else self.run.held_out
        fit = spare_fit(self.model, self.model.embed(self.graph), held_out, none_share)
        assert fit is not None
        return fit < 0 if self.labels is None else (fit < 0) & ~self.labels.labelled

    def predict(
        self,
        min_confidence: float = 0.0,
        *,
        fits_none: np.ndarray | None = None,
        only: np.ndarray | None = None,
    ) -> Predictions:
        """Predict all nodes, or `nodes`, or the nodes `only`."""
        only = self.nodes if only is None else only
        is_own = self.run is not None and self.graph is self.run.graph and only is None
        p = self.run.outputs[1] if self.run is not None and is_own else None
        found = Predictions.of(
            self.model, self.graph, min_confidence, names=self.names, p=p, labels=self.labels,
            fits_none=fits_none, only=only,
        )  # fmt: skip
        return found.calibrated(self.shifts, min_confidence)
