"""The folder of a discovery on a user's graph, and everything that is done with it later.

runs/mine/run.json         settings and facts; replaced last by every change
runs/mine/model/           the model; a review becomes part of it
runs/mine/graph.npz        the graph, without labels (left out with keep_graph=False)
runs/mine/features.json    names of the features, and how columns of a table become them
runs/mine/labels.npz       the labels of phase 1, for page and tables (left out with the graph)
runs/mine/before.npz       class of each node in the run that this one continues
runs/mine/numbers.npz      classes of the nodes at other numbers of new classes, if it was estimated
runs/mine/answers.npz      the answer key, if there was one: for grading and for the page only
runs/mine/predictions.csv  every node: class, name, probability, the user's own label
runs/mine/classes.csv      every class: size, confidence, typical features, representatives
runs/mine/suggestions.json suggested decisions: see `nodenova.Suggestions.load`
runs/mine/report.html      the page
runs/mine/map.npz          places of the nodes on its map
runs/mine/shown.csv        texts of the nodes that it shows, if there are any
runs/mine/review.json      the last review, if there was one
runs/mine/decisions.json   all decisions that are part of the model
runs/mine/labels.csv       the labels that follow from them, for `nodenova discover --labels`
runs/mine/origin/          the model and the labels before the first review
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from nodenova.data.labels import UserGraph
from nodenova.display import html_table, plural
from nodenova.errors import SettingError, StorageError
from nodenova.evaluation.graded import GradedRun
from nodenova.files.arrays import read_npz
from nodenova.files.atomic import write_atomically
from nodenova.files.content import table_content, to_json
from nodenova.files.documents import (
    list_of,
    map_of,
    nullable,
    plain,
    read_columns,
    read_json,
    record,
    text,
    to_whole,
)
from nodenova.files.folders import (
    PATIENCE,
    Change,
    FolderState,
    change_folder,
    files_below,
    is_empty,
    lock_folder,
)
from nodenova.graph import Graph
from nodenova.io.npz import graph_npz, load_graph
from nodenova.io.recipe import TableEncoder
from nodenova.io.table_options import TableOptions
from nodenova.methods import Method
from nodenova.model import decisions
from nodenova.model.classes import display_names
from nodenova.model.decisions import Relabel, Unlabel
from nodenova.model.info import ClassInfo, ClassInfos
from nodenova.model.loading import load_model
from nodenova.model.model import Model, Refresh
from nodenova.model.saving import WEIGHTS, read_document, weights_digest, write_model
from nodenova.progress import Progress, no_progress
from nodenova.report.tsne import positions
from nodenova.review.node_text import read_shown, write_shown
from nodenova.review.page import review_page
from nodenova.review.page_data import without_private
from nodenova.review.review_file import REVIEW_FORMAT, REVIEW_VERSION, History, Review
from nodenova.review.suggestions import Suggestions
from nodenova.runs.apply import (
    LABELS,
    ORIGIN,
    apply_review,
    next_labels,
    read_arrays,
    read_labels,
    relabel_all,
    undo_decisions,
    with_ids,
    write_arrays,
)
from nodenova.runs.continue_run import continue_run
from nodenova.runs.diff import RunDiff, Snapshot, diff
from nodenova.runs.export import OF_MODEL, export_input, export_model
from nodenova.runs.hub import push_to_hub
from nodenova.runs.naming import Namer, name_after_discovery, suggest_names, suggested_note
from nodenova.runs.new_graph import PredictInput, TableReader
from nodenova.runs.numbers import NUMBERS, OtherNumbers
from nodenova.runs.predictions import Backend, prediction_frame
from nodenova.runs.run import DiscoveryRun
from nodenova.runs.run_dir import FORMAT, read_predictions, reserve, run_document
from nodenova.settings import check_arguments

REPORT = "report.html"
MAP = "map.npz"
# All files of a run: those that an overwriting run does not have are removed, others stay.
FILES = (
    "run.json", "model/model.json", f"model/{WEIGHTS}", "graph.npz", "features.json", "labels.npz",
    "before.npz", NUMBERS, "answers.npz", "predictions.csv", "classes.csv", "suggestions.json",
    REPORT, MAP, "shown.csv", "review.json", "decisions.json", "labels.csv",
    f"{ORIGIN}/labels.npz", f"{ORIGIN}/model/model.json", f"{ORIGIN}/model/{WEIGHTS}",
)  # fmt: skip
CLASS_COLUMNS = (
    "id", "name", "auto_name", "kind", "stage", "size", "size_by_model", "share", "confidence",
    "unsure", "labelled", "cohesion", "nearest", "same_as", "same_as_probability", "two",
)  # fmt: skip
FEATURES = record({"names": nullable(list_of(text))}, {"recipe": nullable(map_of(plain))})


class RunFolder:
    """A run that `nodenova discover`, `nodenova demo` or `NodeDiscoverer.report` wrote.

    `nova.open_run` opens one. Its parts are read when they are first used, and once.

    Args:
        path: Path of the folder.

    Raises:
        StorageError: If it is not the folder of a discovery.

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
        self.path = Path(path)
        self._state = FolderState(self.path, "run.json")
        with self._state.reading():
            self.document = run_document(self.path)

    @classmethod
    def write(
        cls,
        path: Path,
        run: DiscoveryRun,
        *,
        keep_graph: bool = True,
        overwrite: bool = False,
        reading: Mapping[str, object] | None = None,
        report: bool = True,
        safe_csv: bool = False,
        progress: Progress = no_progress,
    ) -> RunFolder:
        """Write a run to a folder, whole or not at all.

        Args:
            path: Path of the folder.
            run: Run to write.
            keep_graph: Whether the graph and the labels of phase 1 are stored too.
            overwrite: Whether an earlier run there may be replaced.
            reading: Options by which its tables were read, for later ones
                (`TableOptions.to_json`).
            report: Whether the page is made now, or when it is needed.
            safe_csv: Whether an apostrophe is put before text of CSV cells that a spreadsheet
                would take for a formula (it begins with =, +, -, @, tab or carriage return). The
                run remembers it.
            progress: Function `progress(phase, done, total)`, called while the page is made.

        Returns:
            The opened folder.

        Raises:
            StorageError: If a run may not be written there.
        """
        check_arguments(RunFolder.write, locals())
        with reserve(path, overwrite), change_folder(path, fresh=is_empty(path)) as change:
            _write_inputs(change.new, run, keep_graph, reading or {}, safe_csv)
            _write_outputs(change, run, progress, report, safe_csv)
            change.remove(*FILES)
        return cls(path)

    @property
    def safe_csv(self) -> bool:
        """Whether CSV cells that look like formulas are written with an apostrophe."""
        return self.document.get("safe_csv") is True

    @property
    def keeps_graph(self) -> bool:
        """Whether the folder has the graph of the run."""
        return (self.path / "graph.npz").is_file()

    @cached_property
    def graph(self) -> Graph:
        """The graph of the run, with its nodes in the order of `predictions`."""
        return self.stored_graph.as_given()

    @cached_property
    def stored_graph(self) -> Graph:
        """The graph with its nodes in the order of all arrays of the folder."""
        if not self.keeps_graph:
            raise StorageError(
                f"{self.path} keeps no graph: give it with --graph, or --nodes and --edges"
            )
        with self.reading():
            return load_graph(self.path / "graph.npz", as_stored=True).graph

    @cached_property
    def model(self) -> Model:
        """The model, with all reviews that are part of it."""
        with self.reading():
            model = load_model(self.path / "model")
            _check_decisions(self.path, self.history, model)
        return model

    @cached_property
    def _features(self) -> dict[str, Any]:
        with self.reading():
            document: dict[str, Any] = read_json(self.path / "features.json", FEATURES)
        return document

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the features that the model knows, if they have names."""
        names = self._features["names"]
        return None if names is None else tuple(names)

    @cached_property
    def recipe(self) -> TableEncoder | None:
        """How columns of a table become features; None if the graph had features already."""
        recipe = self._features.get("recipe") or self.model.recipe
        encoder = None if recipe is None else TableEncoder.from_json(recipe)
        if encoder is not None and self.feature_names not in (None, encoder.feature_names):
            raise StorageError(
                f"{self.path / 'features.json'}: damaged, its names are not those of its recipe"
            )
        return encoder

    @cached_property
    def run(self) -> DiscoveryRun:
        """The whole run as a value, as `NodeDiscoverer.run_` is one."""
        with self.reading():
            labels, history = read_arrays(self.path / LABELS, self.stored_graph), self.history
            return self._run(self.model, labels, history)

    def _run(
        self, model: Model, labels: Mapping[str, np.ndarray] | None, history: History
    ) -> DiscoveryRun:
        """The run with this model, content of labels.npz, and decisions."""
        document, labels = self.document, labels or {}
        with self.reading():
            answers = read_arrays(self.path / "answers.npz", self.stored_graph)
            before = read_arrays(self.path / "before.npz", self.stored_graph, model.next_id)
            node_texts = read_shown(self.path, self.stored_graph)
            numbers = OtherNumbers.read(self.path, self.stored_graph, model)
        if answers is not None and "names" not in answers:
            raise StorageError(f"{self.path / 'answers.npz'}: damaged, the array names is missing")
        if answers and answers["y"].size and answers["y"].max() >= len(answers["names"]):
            raise StorageError(f"{self.path / 'answers.npz'}: damaged, a class has no name")
        return DiscoveryRun(
            title=document["title"],
            model=model,
            graph=self.stored_graph,
            facts=document["facts"],
            recipe=self.recipe,
            answers=None if answers is None else (answers["y"], answers["names"].tolist()),
            label_ids=labels.get("y"),
            label_names=[str(name) for name in labels.get("names", ())],
            keep_labels=document.get("keep_labels", True),
            none_share=document.get("none_share", 0.0),
            earlier_ids=None if before is None else before["y"],
            lineage=document.get("lineage", ()),
            rows=[GradedRun.from_json(row) for row in document["rows"]],
            min_confidence=document["unsure_below"],
            versions=document["versions"],
            node_texts=node_texts,
            history=history,
            earlier_moves=self.earlier_moves,
            numbers=numbers,
            suggested_names=self.suggested_names,
        )

    @property
    def suggested_names(self) -> dict[int, str]:
        """Names by class id that a namer suggested."""
        stored = self.document.get("suggested_names", {})
        return {int(c): name for c, name in stored.items() if c.isdecimal() and len(c) < 10}

    @property
    def shifts(self) -> list[float | None]:
        """Stored shift of each class, as in `DiscoveryRun`; none in a run of an earlier version."""
        stored = self.document.get("calibration", {})
        return [stored.get(str(c.id)) for c in self.model.classes]

    @property
    def earlier_moves(self) -> tuple[Relabel, ...]:
        """Labels that reviews of the runs that it continues corrected."""
        where = f"{self.path / 'run.json'}: move"
        moves = [decisions.from_json(one, where=where) for one in self.document.get("moves", ())]
        return tuple(one for one in moves if isinstance(one, Relabel))

    @property
    def history(self) -> History:
        """Decisions that are part of the run."""
        return History.read(self.path)

    @property
    def predictions(self) -> Any:
        """A pandas data frame with the class of every node; see `nova.prediction_frame`."""
        return prediction_frame(self.run)

    @property
    def classes(self) -> ClassInfos:
        """What is in each class."""
        return self.run.classes

    @property
    def suggestions(self) -> Suggestions:
        """Decisions that the run suggests."""
        return self.run.suggestions

    @property
    def labels(self) -> dict[object, str]:
        """The user's own labels, by the ids of the nodes that have one."""
        if self.run.labels is None:
            return {}
        texts = self.run.labels.texts(self.model, self.run.names)
        pairs = zip(self.stored_graph.node_ids.tolist(), texts, strict=True)
        return {node: text for node, text in pairs if text}

    @property
    def class_names(self) -> list[str]:
        """Names of the model's classes; where a review gave none, those of classes.csv."""
        automatic: dict[int, str] = {}
        with self.reading():
            if (self.path / "classes.csv").is_file():  # a run may be without its tables
                table = read_columns(self.path / "classes.csv", {"id": to_whole, "auto_name": str})
                automatic = dict(zip(table["id"], table["auto_name"], strict=True))
            return display_names(self.model.classes, automatic)

    def class_of_nodes(self) -> dict[str, int]:
        """Class id of each node in predictions.csv, by the node's id as text."""
        table = read_predictions(self.path)
        return dict(zip(table["node"], table["class"], strict=True))

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
        none_share: float | None = None,
        backend: Backend = "pandas",
        **options: Any,
    ) -> Any:
        """Predict the nodes of the run's graph, or of a later one that is read by its recipe.

        Args:
            graph: A later graph, as `load_graph` takes it; the run's own by default.
            nodes: Table of nodes of a later graph, instead of `graph`.
            edges: Table of edges of a later graph.
            only: Ids of the nodes to predict; a few take milliseconds.
            add: Whether the tables hold only nodes and edges that came or changed. They are added
                to the graph of the run, and only they are predicted unless `only` is given.
            relabel: Whether labelled nodes get the class that the model predicts.
            min_confidence: Probability below which a node is unsure; that of the run by default.
            none_share: Share of known-class nodes that may be flagged as fitting no class; that
                of the run by default.
            backend: Library of the data frame.
            **options: Options of `load_graph` for tables. Options that the run was made with apply
                unless they are given again; a remembered column that new tables lack is skipped.

        Returns:
            A data frame with the columns of predictions.csv.

        Raises:
            NodenovaError: If an option, a table or a node cannot be used.
        """
        check_arguments(RunFolder.predict, locals())
        tables = TableOptions(**options)
        what = self.predict_input(graph, nodes, edges, tables, add=add, relabel=relabel)
        low = self.document["unsure_below"] if min_confidence is None else min_confidence
        numbers = None if only is None else what.graph.numbers_of(only)
        found = what.predict(low, fits_none=what.fits_none(none_share), only=numbers)
        return prediction_frame(found, backend)

    def predict_input(
        self,
        graph: Any,
        nodes: Any,
        edges: Any,
        options: TableOptions,
        *,
        add: bool = False,
        relabel: bool = False,
        progress: Progress = no_progress,
    ) -> PredictInput:
        """The model with its own graph, a later graph, or its graph with added nodes."""
        with self.reading():  # recipe, model and names of one state of the folder
            reader = self.reader(options, progress)
            numbers = None
            if add:
                if nodes is None or graph is not None:
                    raise SettingError("nodes are added from a table: give nodes, and their edges")
                loaded, numbers = reader.append(self.graph, nodes, edges)
            elif graph is None and nodes is None and edges is None:
                return self._own_input(relabel)
            else:
                loaded = reader.read(graph, nodes, edges)
            found = PredictInput.of_graph(
                self.model,
                self.class_names,
                loaded,
                features=self.feature_names,
                run=self.run if self.keeps_graph else None,
                relabel=relabel,
                nodes=numbers,
            )
            return replace(found, shifts=self.shifts)

    def _own_input(self, relabel: bool) -> PredictInput:
        """The model with its own graph, and the map of the page."""
        layout = stored_layout(self.path, self.path)
        return PredictInput.of_run(self.run, self.class_names, relabel, self.shifts, layout)

    def reader(self, options: TableOptions, progress: Progress = no_progress) -> TableReader:
        """A reader of later tables with the recipe and the remembered options of the run."""
        return TableReader(self.recipe, self.document.get("reading", {}), options, progress)

    def continue_with(
        self,
        graph: Any = None,
        *,
        nodes: Any = None,
        edges: Any = None,
        num_new: int | None = None,
        labels: Mapping[str, str] | None = None,
        method: Method | None = None,
        mixed: bool | None = None,
        refresh: bool | str = "auto",
        revise: bool = False,
        seed: int = 0,
        min_confidence: float = 0.5,
        keep_labels: bool = True,
        none_share: float = 0.0,
        namer: Namer | None = None,
        progress: Progress = no_progress,
        **options: Any,
    ) -> ContinuedRun:
        """Discover new classes in the graph of this run after it has grown or changed.

        This is what `nodenova discover --from` does. The reviewed model continues: its classes
        keep their ids, names and decisions. New classes are searched among the unlabelled nodes
        that came since, or among all unlabelled nodes if none came.

        Args:
            graph: The graph as it is now, as `load_graph` takes it. What `load_graph` returned is
                used as it is; anything else is read by the recipe of the run.
            nodes: Table of nodes, instead of `graph`.
            edges: Table of edges.
            num_new: Number of new classes; estimated by default, and maybe 0.
            labels: Further labels, by the ids of their nodes. A label that no class has becomes a
                known class. Nodes that the run had keep the labels they had.
            method: Method that discovers; `Prism()` by default.
            mixed: Whether the searched nodes may belong to classes of the run. By default they
                may, unless new nodes are named.
            refresh: Whether the representation is refitted: True, False, or "auto" if the graph
                has changed much or labels name a class that the model does not know.
            revise: Whether discovered classes that were never named, edited or labelled are
                searched again, with all unlabelled nodes. A class that is found again keeps its id
                and name; `num_new` is then the number of all classes to find.
            seed: Random seed; the same seed gives the same result.
            min_confidence: Probability below which a node is unsure.
            keep_labels: Whether labelled nodes keep their labels, and nodes of this run their
                class unless it has become unlikely.
            none_share: Share of known-class nodes that may be flagged as fitting no class; 0 flags
                no node.
            namer: Function that suggests names for the classes that are found, as for
                `name_classes`; where it fails, a note has the reason.
            progress: Function `progress(phase, done, total, **losses)`, called after every epoch.
            **options: Options of `load_graph` for tables. Options that the run was made with apply
                unless they are given again; a remembered column that new tables lack is skipped.

        Returns:
            The new run, which `write` stores in a folder of its own.

        Raises:
            NodenovaError: If the graph, a label or a setting cannot be used.

        Examples:
            >>> import tempfile
            >>> import nodenova as nova
            >>> data = nova.synthetic(nodes=90, classes=3, words=60)
            >>> y = [c if c < 2 and i % 2 else -1 for i, c in enumerate(data.y.tolist())]
            >>> spring = data.graph.subgraph(range(60))
            >>> found = nova.NodeDiscoverer(num_new=1).fit(spring, y[:60])
            >>> with tempfile.TemporaryDirectory() as folder:
            ...     page = found.report(f"{folder}/spring")
            ...     later = nova.open_run(f"{folder}/spring").continue_with(data.graph, num_new=1)
            ...     later.write(f"{folder}/autumn").model
            Model(prism, 4 classes, 2 of them discovered)
        """
        check_arguments(RunFolder.continue_with, locals())
        reader = self.reader(TableOptions(**options), progress)
        loaded = graph if isinstance(graph, UserGraph) else reader.read_grown(graph, nodes, edges)
        run, refreshed, notes = continue_run(
            self,
            loaded,
            num_new,
            method=method,
            mixed=mixed,
            refresh=refresh,
            revise=revise,
            labels=labels,
            seed=seed,
            min_confidence=min_confidence,
            keep_labels=keep_labels,
            none_share=none_share,
            progress=progress,
        )
        run, named = name_after_discovery(run, namer)
        read = reader.options.to_json()
        return ContinuedRun(run, refreshed, (*notes, *named), read, safe_csv=self.safe_csv)

    def apply(self, decisions: Any, *, progress: Progress = no_progress) -> Model:
        """Make decisions part of the run: model, labels, tables and page change together.

        Args:
            decisions: A list of decisions as `widget.decisions` has them, or a whole review: the
                content of review.json. A review that was made before another one was saved is
                refused.
            progress: Function `progress(phase, done, total)`, called while the page is made.

        Returns:
            The model with the decisions applied.

        Raises:
            SettingError: If a decision cannot be applied; nothing was changed.
            StorageError: If another process is changing the run; nothing was changed.

        Examples:
            `nova.open_run("runs/mine").apply([{"do": "rename", "class": 7, "name": "plants"}])`
        """
        check_arguments(RunFolder.apply, locals())
        with lock_folder(self.path, PATIENCE):
            self._refresh()
            if isinstance(decisions, Sequence) and not isinstance(decisions, str):
                header: dict[str, Any] = {"format": REVIEW_FORMAT, "version": REVIEW_VERSION}
                header |= {"model": weights_digest(self.model)}
                decisions = {**header, "decisions": [*decisions]}
            review = decisions if isinstance(decisions, Review) else Review.from_json(decisions)
            history = self.history
            history.check(review)
            graph = self.stored_graph if self.keeps_graph else None
            model = apply_review(self.model, review, graph)
            stored = read_labels(self.path, graph)
            decided = with_ids(review.decisions, self.model, model)
            labels = relabel_all(decided, graph, stored) or stored
            if decided:
                history = history.and_then(decided)
                self._change(model, labels, history, progress, review)
        return self.model

    def undo(self, count: int = 1, *, progress: Progress = no_progress) -> Model:
        """Take back the last decisions: model, labels, tables and page change together.

        Args:
            count: Number of decisions.
            progress: Function `progress(phase, done, total)`, called while the page is made.

        Returns:
            The model without these decisions.

        Raises:
            SettingError: If the run has fewer decisions.
            StorageError: If another process is changing the run; nothing was changed.
        """
        check_arguments(RunFolder.undo, locals())
        with lock_folder(self.path, PATIENCE):
            self._refresh()
            history = self.history.without_last(count)
            graph = self.stored_graph if self.keeps_graph else None
            model = undo_decisions(self.path, history, graph)
            original = read_labels(self.path / ORIGIN, graph)
            labels = relabel_all(history.decisions, graph, original) or original
            self._change(model, labels, history, progress)
        return self.model

    def at(self, num_new: int, *, progress: Progress = no_progress) -> DiscoveryRun:
        """Return the run with another number of new classes; the folder is not changed.

        Args:
            num_new: Number of new classes.
            progress: Function `progress(phase, done, total)`, called while classes are discovered.

        Returns:
            The run, as `DiscoveryRun.at` returns it; `use_number` stores it.

        Raises:
            SettingError: If the run keeps no other numbers, or has decisions.
        """
        check_arguments(RunFolder.at, locals())
        if not self.keeps_graph:
            raise SettingError(
                f"{self.path} keeps no graph, and no other number of new classes: discover again "
                f"with num_new={num_new} (--num-new {num_new})"
            )
        return self.run.at(num_new, progress=progress)

    def use_number(self, num_new: int, *, progress: Progress = no_progress) -> Model:
        """Give the run another number of new classes: model, tables and page change together.

        Any other number, also the counted one, can be given later: what it needs stays in the
        folder.

        Args:
            num_new: Number of new classes.
            progress: Function `progress(phase, done, total)`, called while classes are discovered.

        Returns:
            The model with this number of new classes.

        Raises:
            SettingError: If the run keeps no other numbers, or has decisions; nothing was changed.
            StorageError: If another process is changing the run; nothing was changed.
        """
        check_arguments(RunFolder.use_number, locals())
        with lock_folder(self.path, PATIENCE):
            self._refresh()
            run = self.at(num_new, progress=progress)
            if run is self.run:
                return self.model
            with change_folder(self.path) as change:
                places = ["model", f"{ORIGIN}/model"]  # decisions that were undone leave an origin
                for place in places if (self.path / ORIGIN).is_dir() else places[:1]:
                    write_model(run.model, change.new / place)
                    change.remove(f"{place}/{WEIGHTS}")
                document = self.document | run.evidence | {"facts": run.facts}
                document |= _names_document(run)
                if not run.suggested_names:
                    document.pop("suggested_names", None)
                write_atomically(change.new / "run.json", to_json(document))
                _write_outputs(change, run, progress, safe_csv=self.safe_csv)
            self._refresh()
            self.__dict__ |= {"model": run.model, "run": run}
        return self.model

    def name_classes(self, namer: Namer, *, progress: Progress = no_progress) -> list[str]:
        """Let a namer suggest names for the discovered classes that have none of yours.

        A name takes the place of the automatic one in tables and page, where you accept it or give
        another one. A name that you gave always goes first, and a class that has a suggested name
        keeps it.

        Args:
            namer: Function from a sequence of `ClassCard` to names: a mapping from class ids, or a
                sequence in the order of the cards; None keeps an automatic name. `CommandNamer`
                runs a command.
            progress: Function `progress(phase, done, total)`, called while the page is made.

        Returns:
            Notes: names that were not accepted, and the number of those that were.

        Raises:
            NamerError: If the namer fails or gives no names; nothing was changed.
            StorageError: If another process is changing the run; nothing was changed.

        Examples:
            `nova.open_run("runs/mine").name_classes(lambda cards: [c.keywords[0] for c in cards])`
        """
        check_arguments(RunFolder.name_classes, locals())
        names, notes = suggest_names(self.run, namer)  # not under the lock: it may take minutes
        if names:
            with lock_folder(self.path, PATIENCE):
                self._refresh()
                ids = {c.id for c in self.model.classes} - {*self.suggested_names}
                run = self.run.with_names({c: name for c, name in names.items() if c in ids})
                with change_folder(self.path) as change:
                    stored = self.document.get("suggested_names", {})  # of rejected classes, too
                    stored = {**stored, **_names_document(run).get("suggested_names", {})}
                    document = self.document | {"suggested_names": stored}
                    write_atomically(change.new / "run.json", to_json(document))
                    _write_outputs(change, run, progress, safe_csv=self.safe_csv)
                self._refresh()
                self.__dict__["run"] = run
        return [*notes, suggested_note(names)]

    def _change(
        self,
        model: Model,
        labels: Mapping[str, np.ndarray] | None,
        history: History,
        progress: Progress,
        review: Review | None = None,
    ) -> None:
        """Store a decided model with its labels, and the tables and the page that follow."""
        with change_folder(self.path) as change:
            if not (self.path / ORIGIN).is_dir():
                _keep_origin(change)
            if review is not None:
                write_atomically(change.new / "review.json", to_json(review.to_json()))
            history.write(change.new)
            write_model(model, change.new / "model")
            if labels is not None:
                write_arrays(change.new / LABELS, **labels)
            change.remove(f"model/{WEIGHTS}", LABELS)
            run = self._run(model, labels, history) if self.keeps_graph else None
            if run is not None:
                _write_outputs(change, run, progress, safe_csv=self.safe_csv)
            document = self.document if run is None else self.document | run.evidence
            write_atomically(change.new / "run.json", to_json(document))
        self._refresh()
        self.__dict__["model"] = model
        if run is not None:
            self.__dict__["run"] = run

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read parts of the folder as it is now; raise if it changes meanwhile."""
        self._refresh()
        with self._state.reading():
            yield

    def _refresh(self) -> None:
        """Forget what was read if the folder has changed since."""
        if not self._state.is_current:
            self.__dict__ = RunFolder(self.path).__dict__

    @property
    def is_current(self) -> bool:
        """Whether no process has changed the folder since it was opened."""
        return self._state.is_current

    def diff(self, later: RunFolder | str | PathLike[str]) -> RunDiff:
        """Compare this run with a later one.

        Args:
            later: The later run, or the path of its folder.

        Returns:
            Changes of the classes, and the nodes that moved; nodes are matched by their ids.

        Raises:
            SettingError: If the runs have no node in common.
            StorageError: If one of them has no predictions.csv.
        """
        check_arguments(RunFolder.diff, locals())
        later = later if isinstance(later, RunFolder) else RunFolder(later)
        return diff(self._snapshot(), later._snapshot())

    def _snapshot(self) -> Snapshot:
        with self.reading():
            class_of = self.class_of_nodes()
            names = zip(self.model.classes, self.class_names, strict=True)
            return Snapshot(
                names={c.id: name for c, name in names},
                kinds={c.id: c.kind for c in self.model.classes},
                class_of=class_of,
                edits=self.model.edits,
                digest=read_document(self.path / "model")["sha256"],
                lineage=tuple(self.document.get("lineage", ())),
                title=str(self.path),
            )

    def export(
        self,
        to: str,
        path: str | PathLike[str],
        *,
        table: str | PathLike[str] | None = None,
        settled: float = 0.0,
        relabel: bool = False,
        none_share: float | None = None,
        safe_csv: bool | None = None,
    ) -> list[str]:
        """Write the graph with its classes for other tools, as `nodenova export` does.

        Args:
            to: "table" (a table of nodes with the classes beside it), "networkx" (GraphML), "pyg"
                (tensors), "csv" (nodes.csv and edges.csv), "embeddings", "atlas" (Parquet for
                Embedding Atlas), "datamapplot" (npz), "gephi" (GEXF), "onnx" (embeddings in,
                classes out), or "model" (the model alone, without graph, ids and labels).
            path: Path of the file, or of the folder for "csv" and "model".
            table: For "table": path of the user's table of nodes.
            settled: For "table": lowest probability of a class; see `nova.with_classes`.
            relabel: Whether labelled nodes get the class that the model predicts.
            none_share: Share of known-class nodes to flag, as in `predict`.
            safe_csv: Whether CSV cells that look like formulas get an apostrophe; as in the run by
                default.

        Returns:
            Notes on what was assumed.

        Raises:
            NodenovaError: If a form, a table or a path cannot be used.
        """
        check_arguments(RunFolder.export, locals())
        if to in OF_MODEL:
            names = self.class_names if to == "onnx" else None
            return export_model(load_model(self.path), Path(path), to, names, self.shifts)
        with self.reading():
            what = self._own_input(relabel)
        safe = self.safe_csv if safe_csv is None else safe_csv
        return export_input(what, to, Path(path), what.fits_none(none_share), table, settled, safe)

    def report(self, *, safe_csv: bool | None = None, progress: Progress = no_progress) -> Path:
        """Write the page, the tables and the suggestions again; return the path of the page.

        Args:
            safe_csv: Whether CSV cells that look like formulas get an apostrophe, from now on; as
                in the run by default.
            progress: Function `progress(phase, done, total)`, called while the page is made.
        """
        with change_folder(self.path, patience=PATIENCE) as change:
            self._refresh()
            run = self.run
            if safe_csv is not None and safe_csv != self.safe_csv:
                self.document["safe_csv"] = safe_csv
                write_shown(change.new, run.graph.node_ids, run.node_texts, safe_csv)
            self.document |= run.evidence
            # Written again in any case, so that other processes see that the folder has changed.
            write_atomically(change.new / "run.json", to_json(self.document))
            _write_outputs(change, run, progress, safe_csv=self.safe_csv)
        self._state = FolderState(self.path, "run.json")
        return self.path / REPORT

    def public_report(
        self, path: str | PathLike[str], *, progress: Progress = no_progress
    ) -> list[str]:
        """Write the page without ids, texts, labels and edges of nodes, to pass it on.

        Args:
            path: Path of the HTML file.
            progress: Function `progress(phase, done, total)`, called while the page is made.

        Returns:
            Notes on what the page still discloses.

        Raises:
            StorageError: If the run keeps no graph, or the path is a folder.
        """
        check_arguments(RunFolder.public_report, locals())
        if Path(path).is_dir():
            raise StorageError(f"{path} is a folder, and the page is a file")
        with self.reading():
            run = self.run
        data = without_private(run.page_data(stored_layout(self.path, self.path, progress)))
        write_atomically(Path(path), review_page(data, read_only=True).encode())
        return [
            "the page has no ids, texts, labels and edges of nodes",
            "it has names, typical words and sizes of the classes, and the map of numbered nodes",
        ]

    def page(self, *, progress: Progress = no_progress) -> str:
        """The page as the review server serves it."""
        layout = stored_layout(self.path, self.path, progress)
        return review_page(self.run.page_data(layout), served=True)

    def push_to_hub(self, repo_id: str, **options: Any) -> str:
        """Push the model, without graph, ids and labels, to a hub; see `nova.push_to_hub`.

        Args:
            repo_id: Name of the repository, such as me/shop-classes.
            **options: Options of `nova.push_to_hub`.

        Returns:
            The address of the repository.

        Raises:
            StorageError: If the hub cannot be reached or refuses.
        """
        with self.reading():
            return push_to_hub(self.run if self.keeps_graph else self.model, repo_id, **options)

    def __repr__(self) -> str:
        return f"RunFolder({str(self.path)!r}, {len(self.model.classes)} classes)"

    def _repr_html_(self) -> str:
        facts = html_table(("", ""), [*self.document["facts"].items()], self.document["title"])
        return facts + (self.classes._repr_html_() if self.keeps_graph else "")


@dataclass(frozen=True, eq=False)
class ContinuedRun:
    """The result of `continue_with`: a run that continues an earlier one.

    Attributes:
        run: The new run: its model, predictions and classes.
        refresh: Record of the refit of the representation; None if there was none.
        notes: Sentences on what was assumed or skipped.
        options: Options by which tables were read, for the next run.
        safe_csv: Whether the earlier run guards CSV cells that look like formulas, as `write`
            does by default.
    """

    run: DiscoveryRun
    refresh: Refresh | None
    notes: tuple[str, ...]
    options: Mapping[str, Any]
    safe_csv: bool = False

    def write(self, folder: str | PathLike[str], **options: Any) -> RunFolder:
        """Write the run to a folder of its own.

        Args:
            folder: Path of the new folder.
            **options: Options of `RunFolder.write`: keep_graph, overwrite, report, safe_csv,
                progress.

        Returns:
            The opened folder, as `nova.open_run` returns it.

        Raises:
            StorageError: If the folder may not be written.
        """
        options = {"safe_csv": self.safe_csv} | options
        return RunFolder.write(Path(folder), self.run, reading=self.options, **options)


def open_run(path: str | PathLike[str]) -> RunFolder:
    """Open the folder of a discovery: its model, graph, predictions, classes and labels.

    Args:
        path: Folder that `nodenova discover`, `nodenova demo` or `NodeDiscoverer.report` wrote.

    Returns:
        A `RunFolder`.

    Raises:
        StorageError: If it is not the folder of a discovery.

    Examples:
        >>> import nodenova as nova
        >>> nova.open_run("nowhere")
        Traceback (most recent call last):
        nodenova.errors.StorageError: nowhere is not a run of `nodenova discover`: it does not exist
    """
    check_arguments(open_run, locals())
    return RunFolder(path)


def _write_inputs(
    folder: Path,
    run: DiscoveryRun,
    keep_graph: bool,
    reading: Mapping[str, object],
    safe_csv: bool,
) -> None:
    """Write what a run is made of: model, graph, features, labels and run.json."""
    write_model(run.model, folder / "model")
    if keep_graph:
        write_atomically(folder / "graph.npz", graph_npz(run.graph))
        if run.label_ids is not None:
            names = [] if run.labels is None else list(run.labels.names)
            write_arrays(folder / "labels.npz", y=run.label_ids, names=np.array(names, str))
        if run.earlier_ids is not None:
            write_arrays(folder / "before.npz", y=run.earlier_ids)
        if run.numbers is not None:
            write_arrays(folder / NUMBERS, **run.numbers.arrays())
    recipe = None if run.recipe is None else run.recipe.as_json()
    features = {"names": run.graph.feature_names, "recipe": recipe}
    write_atomically(folder / "features.json", to_json(features))
    if run.answers is not None:
        y, true_names = run.answers
        write_arrays(folder / "answers.npz", y=y, names=np.array(true_names))
    document = {
        "format": FORMAT,
        "version": 1,
        "title": run.title,
        "facts": run.facts,
        "unsure_below": run.min_confidence,
        "keep_labels": run.keep_labels,
        "none_share": run.none_share,
        "lineage": list(run.lineage),
        "moves": [decisions.to_json(one) for one in run.earlier_moves],
        "reading": dict(reading),
        "safe_csv": safe_csv,
        "rows": [row.to_json() for row in run.rows],
        "versions": run.versions,
        **_names_document(run),
        **run.evidence,
    }
    write_atomically(folder / "run.json", to_json(document))
    write_shown(folder, run.graph.node_ids, run.node_texts, safe_csv)


def _names_document(run: DiscoveryRun) -> dict[str, dict[str, str]]:
    """Suggested names as run.json stores them; runs without a namer stay as they were."""
    names = {str(class_id): name for class_id, name in run.suggested_names.items()}
    return {"suggested_names": names} if names else {}


def _write_outputs(
    change: Change,
    run: DiscoveryRun,
    progress: Progress = no_progress,
    report: bool = True,
    safe_csv: bool = False,
) -> None:
    """Write what follows from a run: tables, suggestions and, unless it is postponed, the page."""
    folder = change.new
    table = folder / "predictions.csv"
    write_atomically(table, run.predictions.content(table, safe_csv))
    if report:
        progress("describing the classes", 0)
        page = review_page(run.page_data(stored_layout(change.folder, folder, progress)))
        write_atomically(folder / REPORT, page.encode())
    write_atomically(folder / "classes.csv", _classes_csv(run.classes, safe_csv))
    write_atomically(folder / "suggestions.json", to_json(run.suggestions.to_json()))
    labels = folder / "labels.csv"
    if run.history.decisions:
        write_atomically(labels, table_content(next_labels(run), labels, safe_csv))
    change.remove(REPORT, labels.name)  # those of another state


def _keep_origin(change: Change) -> None:
    """Copy the model and the labels before the first review to `origin/`."""
    for name, path in files_below(change.folder / "model"):
        write_atomically(change.new / ORIGIN / "model" / name, path.read_bytes())
    if (change.folder / LABELS).is_file():
        labels = (change.folder / LABELS).read_bytes()
        write_atomically(change.new / ORIGIN / LABELS, labels)


def _check_decisions(folder: Path, history: History, model: Model) -> None:
    """Raise if the model lacks decisions that are recorded: a review of 0.1 was killed."""
    edits = [one for one in history.decisions if not isinstance(one, Relabel | Unlabel)]
    if len(edits) > len(model.edits):
        raise StorageError(
            f"{folder}: a review was interrupted, its model has {len(model.edits)} of "
            f"{plural(len(edits), 'decision')}; "
            f"nodenova undo {folder} --last {len(edits) - len(model.edits)} mends it"
        )


def _classes_csv(classes: Sequence[ClassInfo], safe_csv: bool) -> bytes:
    """Content of classes.csv: one class per line."""

    def cell(info: ClassInfo, name: str) -> object:
        value = getattr(info, name)
        return round(value, 4) if isinstance(value, float) else value

    columns: dict[str, list[object]] = {
        name: [cell(info, name) for info in classes] for name in CLASS_COLUMNS
    }
    columns["features"] = [" ".join(f.name for f in info.features) for info in classes]
    columns["representatives"] = [
        " | ".join(str(node) for node in info.representatives) for info in classes
    ]
    return table_content(columns, Path("classes.csv"), safe_csv)


def stored_layout(
    source: Path, target: Path, progress: Progress = no_progress
) -> Callable[[np.ndarray], np.ndarray]:
    """A layout, (n, d) embeddings to (n, 2) places: that of map.npz in one folder, if there is one.

    It is stored in the other. A review does not change embeddings, and needs no new layout.
    """

    def layout(z: np.ndarray) -> np.ndarray:
        key = hashlib.sha256(f"{z.shape} {z.dtype}".encode())
        key.update(np.ascontiguousarray(z).data)
        digest = key.hexdigest()
        xy = None
        with suppress(StorageError):  # a damaged file, or one of other embeddings, is replaced
            stored = read_npz(source / MAP, ("key", "xy"), error=StorageError)
            if {*stored} == {"key", "xy"} and str(stored["key"]) == digest:
                kept = stored["xy"]
                fits = kept.shape == (len(z), 2) and kept.dtype.kind == "f"
                if fits and ((kept >= 0) & (kept <= 1)).all():
                    xy = kept
        if xy is None or source != target:
            xy = positions(z, progress) if xy is None else xy
            with suppress(OSError):  # in a read-only folder the next page computes it again
                write_arrays(target / MAP, key=np.array(digest), xy=xy)
        return xy

    return layout
