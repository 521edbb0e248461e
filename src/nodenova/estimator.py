"""`NodeDiscoverer`: discovery as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import TransformerTags, check_random_state
from sklearn.utils.validation import check_is_fitted

from nodenova.data.labels import UNKNOWN, UserGraph
from nodenova.data.tasks import (
    drop_empty_classes,
    number_labels,
    small_classes,
    tasks_from_labels,
    unlabel_small_classes,
)
from nodenova.discovery import check_countable, check_mixed, discover, method_name
from nodenova.encoders.registry import encoder_kind, unused_edge_weights
from nodenova.errors import SettingError, StorageError, brief
from nodenova.evaluation.grade import grade
from nodenova.fitting import fit
from nodenova.graph import Graph
from nodenova.io.estimator_input import replace_labels, to_source
from nodenova.io.load import load_graph
from nodenova.io.networkx_scipy import is_table
from nodenova.methods import Method, choose_encoder, get_method
from nodenova.model.classes import make_unique
from nodenova.model.info import ClassInfos
from nodenova.nn.encode_cache import shared_passes
from nodenova.nn.sampling import check_batches
from nodenova.progress import Progress, no_progress
from nodenova.review.cross_validation import check_none_share
from nodenova.review.suggestions import Suggestions
from nodenova.review.trust import calibrate
from nodenova.runs.folder import RunFolder
from nodenova.runs.new_graph import as_known
from nodenova.runs.numbers import preview_numbers
from nodenova.runs.run import DiscoveryRun
from nodenova.settings import check_arguments, check_probability

DISCLOSING = 3  # nodes of a class below which its mean and variance show each of them
FEW_NODES = (
    "fewer than {number} training nodes, which a saved model discloses "
    "(min_class_size treats them as unlabelled): {names}"
)


class NodeDiscoverer(BaseEstimator):  # type: ignore[misc]
    """Discover new classes of nodes on a graph: a scikit-learn estimator.

    Args:
        num_new: Number of new classes; None to estimate it, and maybe find none.
        method: A name of `nova.METHODS`, or a method such as `nova.Prism(n_resamples=0)`.
        encoder: `prism`, `gcn`, `gat` or `sage`; or an encoder of your own: its class, or
            path/to/mine.py:Net, whose file is run. The method's own by default.
        fit_settings: Settings of phase 1, as `nova.fit` takes them: `{"hidden": 64}`. With
            `{"min_class_size": 5}`, classes with fewer training nodes are treated as unlabelled.
        random_state: A whole number for the same result each time, a NumPy RandomState, or None
            for a new draw.
        min_confidence: Probability below which a node is unsure.
        mixed: Whether unlabelled nodes may belong to known classes. None: they may, unless
            `load_graph` was given the new nodes. False: all of them are new.
        keep_labels: Whether labelled nodes keep their labels in `labels_`.
        none_share: Share of known-class nodes that may be flagged as fitting no class
            (`fits_none` in `run_.predictions`); 0 flags no node.
        device: `auto`, `cpu`, `cuda`, …
        progress: Function `progress(phase, done, total, **losses)`, called after every epoch.

    Attributes:
        labels_: (N,) class of every node: the given labels of known classes, names of discovered
            ones. All attributes exist after `fit`.
        classes_: (C,) the same for every class, in the order of the columns of `predict_proba`.
        model_: The `Model`.
        count_: The `ClassCountEstimate`, or None if `num_new` was given.
        run_: The whole run, as `report` writes it.
        grade_: The `Grade` if `load_graph` found labels of new nodes, else None.
        notes_: Repairs and assumptions about the graph, one sentence each.
        n_features_in_: Number of features of a node.

    Examples:
        >>> import nodenova as nova
        >>> labelled = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> y = np.where(labelled.y < 2, labelled.y, -1)  # two classes are known
        >>> found = nova.NodeDiscoverer(num_new=2).fit(labelled.graph, y)
        >>> len(found.labels_), len(found.classes_)
        (200, 4)
    """

    def __init__(
        self,
        num_new: int | None = None,
        *,
        method: str | Method = "prism",
        encoder: str | type[Any] | None = None,
        fit_settings: Mapping[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = 0,
        min_confidence: float = 0.5,
        mixed: bool | None = None,
        keep_labels: bool = True,
        none_share: float = 0.0,
        device: str = "auto",
        progress: Progress | None = None,
    ) -> None:
        self.num_new = num_new
        self.method = method
        self.encoder = encoder
        self.fit_settings = fit_settings
        self.random_state = random_state
        self.min_confidence = min_confidence
        self.mixed = mixed
        self.keep_labels = keep_labels
        self.none_share = none_share
        self.device = device
        self.progress = progress

    def fit(self, graph: Any, y: Any = None) -> NodeDiscoverer:
        """Learn the known classes from labelled nodes, and discover new ones among the others.

        Args:
            graph: A Graph, a PyG `Data`, (x, edge_index), (x, adjacency), a NetworkX graph, a pair
                of DataFrames, a path, or what `load_graph` returned. An array (N, d) alone is a
                graph without edges.
            y: (N,) label of every node, of any type; None, NaN, pandas.NA, -1 or "" for unknown.
                May be left out if the graph has labels. Nodes without a label may belong to known
                or to new classes; see `mixed`.

        Returns:
            The fitted estimator.

        Raises:
            NodenovaError: If a setting, the graph or its labels cannot be used.
        """
        method, encoder, seed = self._checked()
        loaded, labels = self._large_classes(*self._loaded(graph, y))
        loaded = loaded.canonical()
        mixed, notes = self._mixed(method, loaded)
        notes = (*notes, *unused_edge_weights(encoder, loaded.graph))
        old, new, exam = tasks_from_labels(loaded, self.num_new, mixed=mixed, seed=seed)
        progress = self.progress or no_progress
        settings = self.fit_settings or {}
        with shared_passes():  # phase 2, the exam and the run use one pass
            known = fit(old, encoder, seed=seed, device=self.device, progress=progress, **settings)
            model = discover(known, new, method, seed=seed, progress=progress)
            numbers = preview_numbers(known, model, new, method, seed=seed, progress=progress)
            facts = {
                "Nodes": f"{loaded.graph.num_nodes:,}",
                "Unlabelled nodes" if mixed else "New nodes": f"{len(new.ids):,}",
                "Known classes": ", ".join(old.class_names),
                "Method": f"{method_name(method)} on {encoder_kind(encoder).name}",
                "Seed": seed,
            }
            run = DiscoveryRun.of_graph(
                loaded,
                model,
                facts,
                notes,
                answers=None if exam is None else (exam.answers, exam.class_names),
                label_ids=np.where(loaded.is_new, UNKNOWN, loaded.y),
                label_names=old.class_names,
                keep_labels=self.keep_labels,
                min_confidence=self.min_confidence,
                none_share=self.none_share,
                numbers=numbers,
            )
            self._exam, self._labels = exam, labels[: len(old.class_names)]
            self._set_run(run)
        self.n_features_in_ = loaded.graph.num_features
        self.notes_ = notes
        self.count_ = model.stages[-1].count
        return self

    def _set_run(self, run: DiscoveryRun) -> None:
        """Set what follows from a run."""
        self.run_, self.model_ = run, run.model
        names = [*self._labels, *run.names[len(self._labels) :]]
        self.classes_ = np.empty(len(names), dtype=object)
        self.classes_[:] = names
        self.labels_ = self.classes_[run.predictions.row]
        self.grade_ = None if self._exam is None else grade(run.model, self._exam)

    def at(self, num_new: int) -> NodeDiscoverer:
        """Return the estimator with another number of new classes, where the number was estimated.

        Nothing is learned again from labels. A class that has more than half of its nodes in
        common with one of the counted number keeps its id. `run_.numbers.previews` are the numbers
        that the page shows; others are possible.

        Args:
            num_new: Number of new classes.

        Returns:
            Another fitted estimator; this one is not changed.

        Raises:
            SettingError: If the number was given, the method is not prism, or there are fewer
                nodes.

        Examples:
            >>> import nodenova as nova
            >>> labelled = nova.synthetic(nodes=200, classes=4, words=80)
            >>> y = np.where(labelled.y < 2, labelled.y, -1)  # two classes are known
            >>> found = nova.NodeDiscoverer().fit(labelled.graph, y)
            >>> len(found.at(3).classes_)
            5
        """
        check_is_fitted(self, "model_")
        run = self.run_.at(num_new, progress=self.progress or no_progress)
        other = NodeDiscoverer(**self.get_params(deep=False))
        other.__dict__ |= self.__dict__
        with shared_passes():
            other._set_run(run)
        return other

    def predict(self, graph: Any = None) -> np.ndarray:
        """Return (N,) the class of every node of the fitted graph, or of another one."""
        check_is_fitted(self, "model_")
        if graph is None:
            return self.labels_.copy()
        return self.classes_[self.predict_proba(graph).argmax(axis=1)]

    def predict_proba(self, graph: Any = None) -> np.ndarray:
        """Return (N, C) probabilities of the classes `classes_` for every node.

        Those of discovered classes are calibrated; `model_.predict_proba` gives the model's own.
        """
        check_is_fitted(self, "model_")
        if graph is None:
            return self._as_given(self.run_.probabilities)
        known = self._known(graph)
        p = calibrate(self.model_.predict_proba(known), self.run_.shifts)
        return known.in_given_order(p)

    def transform(self, graph: Any = None) -> np.ndarray:
        """Return (N, hidden) the embedding of every node."""
        check_is_fitted(self, "model_")
        if graph is None:
            return self._as_given(self.run_.embeddings)
        known = self._known(graph)
        return known.in_given_order(self.model_.embed(known))

    def fit_predict(self, graph: Any, y: Any = None) -> np.ndarray:
        """Fit, and return the class of every node."""
        return self.fit(graph, y).predict()

    def fit_transform(self, graph: Any, y: Any = None) -> np.ndarray:
        """Fit, and return the embedding of every node."""
        return self.fit(graph, y).transform()

    def class_info(self) -> ClassInfos:
        """Return size, confidence and typical nodes of each class; `.to_frame()` makes a table."""
        check_is_fitted(self, "model_")
        return self.run_.classes

    def suggestions(self) -> Suggestions:
        """Return suggested decisions: classes that may be one or two, labels that may be wrong."""
        check_is_fitted(self, "model_")
        return self.run_.suggestions

    def report(
        self,
        folder: str | PathLike[str],
        *,
        keep_graph: bool = True,
        overwrite: bool = False,
        title: str | None = None,
        shown: Mapping[str, Sequence[str]] | None = None,
        safe_csv: bool = False,
        progress: Progress = no_progress,
    ) -> Path:
        """Write a run folder as `nodenova discover` does: model, tables and a page for a review.

        The folder holds the graph, its ids and the labels; `model_.save` writes the model alone.

        Args:
            folder: Path of the folder.
            keep_graph: Whether the graph and the labels of phase 1 are stored for later commands.
                Tables and page have ids and labels all the same.
            overwrite: Whether an earlier run there may be replaced.
            title: Title of the page; the name of the folder by default.
            shown: (N,) texts of the nodes that the page shows, by column; their words by default.
            safe_csv: Whether CSV cells that look like formulas get an apostrophe; see
                `RunFolder.write`.
            progress: Function `progress(phase, done, total)`, called while the page is made.

        Returns:
            The path of the page.

        Raises:
            StorageError: If the folder may not be written.
        """
        check_is_fitted(self, "model_")
        run = self.run_.with_page(title or Path(folder).resolve().name, shown or {})
        written = RunFolder.write(
            Path(folder),
            run,
            keep_graph=keep_graph,
            overwrite=overwrite,
            safe_csv=safe_csv,
            progress=progress,
        )
        return written.path / "report.html"

    def _checked(self) -> tuple[Method, str | type[Any], int]:
        """Method, encoder and seed, validated before anything is computed."""
        others = self.get_params(deep=False).keys() - {"num_new", "method", "mixed"}
        check_arguments(NodeDiscoverer.__init__, {name: getattr(self, name) for name in others})
        method = self.method
        if isinstance(method, str):
            method = get_method(method, {})
        if not isinstance(method, Method) or isinstance(method, type):
            raise SettingError(
                f"method is a name or a method like nova.Prism(), not {brief(method)}"
            )
        num, low = self.num_new, self.min_confidence
        if num is not None and (isinstance(num, bool) or not isinstance(num, Integral) or num < 1):
            raise SettingError(f"num_new must be a whole number from 1 on, it is {brief(num)}")
        if not isinstance(self.mixed, bool | np.bool_ | None):
            raise SettingError(f"mixed is True, False or None, not {brief(self.mixed)}")
        if self.mixed:
            check_mixed(method)
        check_probability(low)
        check_none_share(self.none_share)
        name = method_name(method)
        check_batches((self.fit_settings or {}).get("batch"), method, name)
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(2**31 - 1)
        encoder = choose_encoder(name, self.encoder, {name: type(method)})
        if num is None:
            kind = encoder_kind(encoder)
            check_countable(kind.name, kind.trainable)
        return method, encoder, int(seed)

    def _mixed(self, method: Method, loaded: UserGraph) -> tuple[bool, tuple[str, ...]]:
        """Whether unlabelled nodes may belong to known classes, and all notes."""
        if self.mixed is not None or loaded.new_named:
            return bool(self.mixed), loaded.notes
        if getattr(method, "mixed", False):
            return True, loaded.notes
        note = f"{method_name(method)} assumes that all unlabelled nodes are new; prism does not"
        return False, (*loaded.notes, note)

    def _loaded(self, source: Any, y: Any) -> tuple[UserGraph, tuple[Any, ...]]:
        """The graph with its labels, and the known ones as the user wrote them."""
        source = to_source(self, source, reset=True, labels=y is None)
        loaded = source if isinstance(source, UserGraph) else load_graph(source)
        if y is None:
            loaded = drop_empty_classes(loaded)
            return loaded, loaded.class_names
        numbers, labels = number_labels(y, loaded.graph.num_nodes)
        names = make_unique([str(label) for label in labels], ())
        marked = replace_labels(loaded, numbers, names)
        as_given = dict(zip(names, labels, strict=True))
        return marked, tuple(as_given[name] for name in marked.class_names)

    def _large_classes(
        self, user_graph: UserGraph, labels: tuple[Any, ...]
    ) -> tuple[UserGraph, tuple[Any, ...]]:
        """The graph and its labels without classes that are too small, or with a note on them."""
        as_given = dict(zip(user_graph.class_names, labels, strict=True))
        user_graph = unlabel_small_classes(
            user_graph, (self.fit_settings or {}).get("min_class_size", 1)
        )
        small = [user_graph.class_names[c] for c in small_classes(user_graph, DISCLOSING)]
        if small:
            note = FEW_NODES.format(number=DISCLOSING, names=", ".join(map(repr, small)))
            user_graph = replace(user_graph, notes=(*user_graph.notes, note))
        return user_graph, tuple(as_given[name] for name in user_graph.class_names)

    def _as_given(self, values: np.ndarray) -> np.ndarray:
        """A copy of (N, ...) values of the nodes of the run, in the order that was given."""
        return np.array(self.run_.graph.in_given_order(values))

    def _known(self, source: Any) -> Graph:
        """A later graph, in canonical order, with the features that the model knows."""
        source = to_source(self, source, reset=False, labels=False)
        loaded = load_graph(source, recipe=self.run_.recipe if is_table(source) else None)
        return as_known(loaded.canonical().graph, self.run_.graph)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags = TransformerTags(preserves_dtype=["float32"])
        return tags

    def __getstate__(self) -> dict[str, Any]:
        if hasattr(self, "model_"):
            raise StorageError(
                "a fitted NodeDiscoverer is not pickled, as reading a pickle may run anything: "
                "save its model with model_.save(folder), or all of it with report(folder)"
            )
        return super().__getstate__()
