"""nova.open_run: the folder of a discovery, opened in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal

from nodenova.errors import SettingError
from nodenova.graph import Graph
from nodenova.io.load import load_graph
from nodenova.io.table_encoder import TableEncoder
from nodenova.model.info import ClassInfos
from nodenova.model.model import Model
from nodenova.model.saving import weights_digest
from nodenova.notebook.tables import html_table
from nodenova.review.added import with_added
from nodenova.review.document import FORMAT, VERSION, Review
from nodenova.review.folder import DiscoveryFolder
from nodenova.review.later import LaterGraph, later_graph, same_graph
from nodenova.review.predictions import Predictions
from nodenova.review.run import DiscoveryRun
from nodenova.review.suggestions import Suggestions
from nodenova.review.table import prediction_frame

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
            document = {"format": FORMAT, "version": VERSION}
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
