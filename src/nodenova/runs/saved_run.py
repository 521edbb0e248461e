"""nova.open_run: the folder of a discovery, opened in Python.

Nodes and edges that came, added to the graph of a run: only they need be given.

A graph given to a model after it was made: its features, and what is known of its nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from nodenova.data.labels import UNKNOWN, UserGraph
from nodenova.display import html_table
from nodenova.errors import GraphError, SettingError
from nodenova.graph import Graph
from nodenova.io.load import load_graph
from nodenova.io.recipe import TableEncoder
from nodenova.model.info import ClassInfos
from nodenova.model.model import Model
from nodenova.model.saving import weights_digest
from nodenova.review.review_file import REVIEW_FORMAT, REVIEW_VERSION, Review
from nodenova.review.suggestions import Suggestions
from nodenova.review.user_labels import UserLabels, labels_for_graph
from nodenova.runs.folder import DiscoveryFolder
from nodenova.runs.predictions import Predictions, with_known_features
from nodenova.runs.run import DiscoveryRun
from nodenova.runs.tables import prediction_frame


def with_added(
    graph: Graph, nodes: Any, edges: Any, recipe: TableEncoder | None, **reading: Any
) -> tuple[UserGraph, np.ndarray]:
    """The graph with further nodes and edges. A node that it has already is replaced.

    Args:
        graph: That of a run.
        nodes: A table of the nodes that came, as in `load_graph`.
        edges: A table of their edges, to each other and to nodes of the graph; None for none.
        recipe: By which a table becomes the features of the graph.
        **reading: Options of `load_graph`.

    Returns:
        The graph, with the labels that the table brings and notes on what was repaired, and (n,)
        the numbers of the nodes of the table in it.

    Raises:
        SettingError: The features of the graph were not made from a table's columns.
        GraphError: An edge names a node that neither has; or a file cannot be used.
    """
    if recipe is None or recipe.neighbors:
        raise SettingError(
            "nodes can be added where features were made from columns of a table; "
            "give the whole graph"
        )
    of_edges = ("source_column", "target_column", "weight_column", "min_weight", "weights",
                "edge_type_column", "edge_types", "drop_unknown_edges")  # fmt: skip
    shared = {key: reading[key] for key in ("delimiter", "encoding") if key in reading}
    about_edges = {key: reading[key] for key in of_edges if key in reading} | shared
    about_nodes = {key: value for key, value in reading.items() if key not in of_edges}
    came = load_graph(nodes=nodes, recipe=recipe, **about_nodes)
    notes = [note for note in came.notes if "no edges were given" not in note]
    place = {str(name): number for number, name in enumerate(graph.node_ids.tolist())}
    row = np.arange(graph.num_nodes + came.graph.num_nodes)
    numbers = []
    for number, name in enumerate(map(str, came.graph.node_ids.tolist()), graph.num_nodes):
        if name in place:
            row[place[name]] = number
        else:
            place[name] = len(place)
            row[place[name]] = number
        numbers.append(place[name])
    row = row[: len(place)]
    ends, weight = graph.edge_index, graph.edge_weight
    if edges is not None:
        drop = bool(about_edges.pop("drop_unknown_edges", False))
        linked = load_graph(edges=edges, **about_edges)
        notes += [note for note in linked.notes if "no column" not in note]
        more, more_weight = _renumbered(linked.graph, place, linked.name, drop)
        ends = np.concatenate([ends, more], axis=1)
        if weight is not None:
            alike = np.ones(more.shape[1], dtype=np.float32)
            weight = np.concatenate([weight, alike if more_weight is None else more_weight])
    dense = isinstance(graph.x, np.ndarray)
    parts = [graph.x, came.graph.x]
    stacked: Any = np.concatenate(parts) if dense else sp.csr_array(sp.vstack(parts, "csr"))
    vectors = graph.vectors
    if vectors is not None:
        if came.graph.vectors is None:
            raise GraphError(f"{came.name}: the graph has vectors of texts: give text_vectors")
        vectors = np.concatenate([vectors, came.graph.vectors])[row]
    whole = Graph.of(
        stacked[row],
        ends,
        node_ids=list(place),
        feature_names=graph.feature_names,
        dense=dense,
        source=came.name,
        edge_weight=weight,
        vectors=vectors,
    )
    y = np.full(whole.num_nodes, UNKNOWN)
    y[numbers] = came.y
    joined = UserGraph(whole, y, came.class_names, name=came.name, notes=tuple(notes))
    return joined, np.array(numbers, dtype=np.int64)


def _renumbered(
    linked: Graph, place: dict[str, int], source: str, drop: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Edges by the numbers of the nodes that they name, and their weights."""
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


@dataclass(frozen=True, eq=False)
class LaterGraph:
    """A graph, and what was said of its nodes.

    Attributes:
        graph: With the features that the model knows.
        labels: What the user said: in the graph, or before of nodes of the same ids.
        notes: What did not match, a sentence each.
        asked: (n,) numbers of the nodes that are asked for; None for all.
    """

    graph: Graph
    labels: UserLabels | None = None
    notes: Sequence[str] = ()
    asked: np.ndarray | None = None


def later_graph(
    model: Model,
    names: Sequence[str],
    loaded: UserGraph,
    *,
    features: Sequence[str] | None = None,
    earlier: DiscoveryRun | None = None,
    relabel: bool = False,
    is_told: bool = True,
) -> LaterGraph:
    """What a graph brings, as a model knows it.

    Args:
        model: Which.
        names: What its classes are called.
        loaded: The graph as it was read.
        features: Names of those that the model knows, where it does not know them itself.
        earlier: The run of the model, if that keeps its graph.
        relabel: Whether labelled nodes are put where the model does.
        is_told: Whether labels of the graph are a user's word.
    """
    data, unmatched = with_known_features(loaded.graph, features)
    if earlier is not None and (earlier.graph.edge_weight is None) != (data.edge_weight is None):
        now, then = ("do not count", "did") if data.edge_weight is None else ("count", "did not")
        unmatched.append(f"weights of edges {now} here; when the model was made they {then}")
    before, keep = None, not relabel
    if earlier is not None and earlier.labels is not None:
        before = (earlier.graph.node_ids.tolist(), earlier.labels)
        keep = keep and earlier.keep_labels
    said = ["" if c < 0 or not is_told else loaded.class_names[c] for c in loaded.y.tolist()]
    labels, strange = labels_for_graph(model, names, data.node_ids.tolist(), said, before, keep)
    return LaterGraph(data, labels, [*unmatched, *strange])


def same_graph(run: DiscoveryRun, relabel: bool = False) -> LaterGraph:
    """The graph that a run keeps, as a later one."""
    kept = run.labels
    if kept is not None and relabel:
        kept = replace(kept, keep=False)
    return LaterGraph(run.graph, kept)


Backend = Literal["pandas", "polars", "pyarrow"]


class SavedRun:
    """A run that `nodenova discover`, `nodenova demo` or `NodeDiscoverer.report` wrote.

    Parts are read when they are first asked for. Made by `nova.open_run`.

    Args:
        path: Of its folder.

    Raises:
        StorageError: It is not of a discovery, or not there.

    Examples:
        >>> import tempfile
        >>> import nodenova as nova
        >>> data = nova.synthetic(nodes=60, classes=3, words=40)
        >>> y = [c if c < 2 else -1 for c in data.y.tolist()]
        >>> found = nova.NodeDiscoverer(num_new=1).fit(data.graph, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = found.report(f"{folder}/run")
        ...     run = nova.open_run(f"{folder}/run")
        ...     run.model, len(run.predictions), run.predict(only=[3, 5])["node"].tolist()
        (Model(prism, 3 classes, 1 of them discovered), 60, [3, 5])
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.folder = DiscoveryFolder(Path(path))

    @property
    def path(self) -> Path:
        """Of the folder."""
        return self.folder.path

    @cached_property
    def run(self) -> DiscoveryRun:
        """All of it as a value: what `NodeDiscoverer.run_` is.

        Raises:
            StorageError: It keeps no graph.
        """
        return self.folder.run()

    @cached_property
    def model(self) -> Model:
        """The model, with all reviews that became part of it."""
        return self.run.model if self.folder.keeps_graph else self.folder.model()

    @property
    def graph(self) -> Graph:
        """The graph that it keeps."""
        return self.run.graph

    @property
    def recipe(self) -> TableEncoder | None:
        """How columns of a table become features; None where they were ready made."""
        return self.folder.features()[1]

    @property
    def predictions(self) -> Any:
        """A pandas data frame of what it says of every node; see `nova.prediction_frame`."""
        return prediction_frame(self.run)

    @property
    def classes(self) -> ClassInfos:
        """What is in each class."""
        return self.run.classes

    @property
    def suggestions(self) -> Suggestions:
        """What to decide."""
        return self.run.suggestions

    @property
    def labels(self) -> dict[object, str]:
        """The user's own labels, by the ids of the nodes that have one."""
        if self.run.labels is None:
            return {}
        texts = self.run.labels.texts(self.model, self.run.names)
        return {
            node: text
            for node, text in zip(self.graph.node_ids.tolist(), texts, strict=True)
            if text
        }

    def predict(
        self,
        graph: Any = None,
        *,
        nodes: Any = None,
        edges: Any = None,
        only: Iterable[object] | None = None,
        add: bool = False,
        relabel: bool = False,
        min_confidence: float | None = None,
        backend: Backend = "pandas",
        **reading: Any,
    ) -> Any:
        """Classify the nodes of its graph, or of a later one, by its recipe.

        Args:
            graph: A later graph, as `load_graph` takes it; that of the run unless given.
            nodes: Or tables of a later graph.
            edges: Of the same.
            only: Ids of the nodes that are asked for: a few take milliseconds.
            add: The tables hold only nodes and edges that came, or changed; they are added to the
                graph of the run, and they alone are asked for unless `only` says otherwise.
            relabel: Whether labelled nodes are put where the model does.
            min_confidence: Nodes whose class is less probable are unsure; as in the run by default.
            backend: Whose data frame it gives.
            **reading: Options of `load_graph`; those of the run unless given.

        Returns:
            A data frame with the columns of predictions.csv.

        Raises:
            NodenovaError: An option, a table or a node is wrong.
        """
        later = self.later(graph, nodes, edges, add, relabel, **reading)
        asked = later.asked if only is None else later.graph.numbers_of(only)
        low = self.folder.document["unsure_below"] if min_confidence is None else min_confidence
        kept = None
        if later.graph is self.run.graph and asked is None:
            kept = self.run.probabilities
        found = Predictions.of(
            self.model, later.graph, low, names=self._names, p=kept, labels=later.labels, only=asked
        )
        return prediction_frame(found, backend)

    def later(
        self, graph: Any, nodes: Any, edges: Any, add: bool, relabel: bool, **reading: Any
    ) -> LaterGraph:
        """A later graph as the run reads it; `predict` says what the arguments are."""
        options = {**self.folder.document.get("reading", {}), **reading}
        features, recipe = self.folder.features()
        came = None
        if add:
            if nodes is None or graph is not None:
                raise SettingError("nodes are added from a table: give nodes, and their edges")
            loaded, came = with_added(self.graph, nodes, edges, recipe, **_told(options, reading))
        elif nodes is not None or edges is not None:
            tables = {"nodes": nodes, "edges": edges, "recipe": recipe}
            loaded = load_graph(graph, **tables, **_told(options, reading))
        elif graph is not None:
            loaded = load_graph(graph, **reading)
        else:
            return same_graph(self.run, relabel)
        earlier = self.run if self.folder.keeps_graph else None
        later = later_graph(
            self.model, self._names, loaded, features=features, earlier=earlier, relabel=relabel
        )
        return replace(later, notes=[*loaded.notes, *later.notes], asked=came)

    def apply(self, decisions: Any) -> Model:
        """Make decisions part of the run: its model, tables and page.

        Args:
            decisions: What `widget.decisions` or a review.json holds: a list of decisions, or a
                whole review, which is refused if another was saved since it was made.

        Returns:
            The model with the decisions taken.

        Raises:
            SettingError: A decision cannot be taken; nothing was changed.

        Examples:
            `nova.open_run("runs/mine").apply([{"do": "rename", "class": 7, "name": "plants"}])`
        """
        if isinstance(decisions, Sequence) and not isinstance(decisions, str):
            document = {"format": REVIEW_FORMAT, "version": REVIEW_VERSION}
            decisions = {**document, "model": weights_digest(self.model), "decisions": [*decisions]}
        self.folder.apply(
            decisions if isinstance(decisions, Review) else Review.from_json(decisions)
        )
        self._forget()
        return self.model

    def undo(self, count: int = 1) -> Model:
        """Take back the last decisions.

        Raises:
            SettingError: There are not so many.
        """
        self.folder.undo(count)
        self._forget()
        return self.model

    @property
    def _names(self) -> Sequence[str]:
        return self.folder.names(self.model)

    def _forget(self) -> None:
        for part in ("run", "model"):
            self.__dict__.pop(part, None)

    def __repr__(self) -> str:
        return f"SavedRun({str(self.path)!r}, {len(self.model.classes)} classes)"

    def _repr_html_(self) -> str:
        facts = [(name, value) for name, value in self.folder.document["facts"].items()]
        shown = html_table(("", ""), facts, str(self.folder.document["title"]))
        return shown + (self.classes._repr_html_() if self.folder.keeps_graph else "")


def open_run(path: str | PathLike[str]) -> SavedRun:
    """Open the folder of a discovery: its model, graph, predictions, classes and labels.

    Args:
        path: A folder of `nodenova discover`, `nodenova demo` or `NodeDiscoverer.report`.

    Returns:
        A `SavedRun`.

    Raises:
        StorageError: It is not of a discovery, or not there.

    Examples:
        >>> import nodenova as nova
        >>> nova.open_run("nowhere")
        Traceback (most recent call last):
        nodenova.errors.StorageError: nowhere is not a run of `nodenova discover`: it does not exist
    """
    return SavedRun(path)


def _told(options: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """How to read later tables: they need no labels unless somebody says where these are."""
    return {
        name: value for name, value in options.items() if name != "label_column" or name in said
    }
