"""Discovery in scikit-learn's shape: fit, predict, transform, over `nova.fit`, `nova.discover`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import TransformerTags, check_random_state
from sklearn.utils.validation import check_is_fitted

from nodenova.data.labels import UNKNOWN, UserGraph
from nodenova.data.tasks import drop_empty_classes, number_labels, tasks_from_labels
from nodenova.discovery import check_countable, check_mixed, discover, method_name
from nodenova.encoders.registry import encoder_kind, unused_edge_weights
from nodenova.errors import SettingError, StorageError
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
from nodenova.progress import Progress, no_progress
from nodenova.review.cross_validation import check_none_share
from nodenova.review.suggestions import Suggestions
from nodenova.runs.folder import DiscoveryFolder
from nodenova.runs.predictions import as_known
from nodenova.runs.run import DiscoveryRun


class NodeDiscoverer(BaseEstimator):  # type: ignore[misc]
    """Discovery in scikit-learn's shape: finds classes that nobody has labelled on a graph.

    Args:
        num_new: How many new classes to find; None for as many as there seem to be, maybe none.
        method: How: a name of `nova.METHODS` or a method, `nova.Prism(n_resamples=0)`.
        encoder: `prism`, `gcn`, `gat` or `sage`; what the method prefers unless given.
        fit_settings: Of phase 1, as `nova.fit` takes them: `{"hidden": 64}`.
        random_state: A whole number: the same each time. A NumPy RandomState. None: a new draw.
        min_confidence: Nodes whose class is less probable than this count as unsure.
        mixed: Whether unlabelled nodes may be of known classes too. None: they may, unless
            `load_graph` was told which nodes are new. False: all of them are new.
        keep_labels: Whether a labelled node keeps its label in `labels_`, whatever the model says.
        none_share: About so many nodes of the known classes may be said to fit none of the classes
            (`fits_none` in `run_.predictions`); 0 asks for none.
        device: `auto`, `cpu`, `cuda`, …
        progress: Function `progress(phase, done, total, **losses)`, called after every epoch.

    Attributes:
        labels_: (N,) the class of every node: labels of the known classes as they were given, names
            of discovered ones. This and all that follows is there after `fit`.
        classes_: (C,) the same of every class, in the order of the columns of `predict_proba`.
        model_: The `Model`.
        count_: The `ClassCountEstimate`, or None if `num_new` was given.
        run_: Everything together, as `report` writes it.
        grade_: The `Grade` where `load_graph` knows labels of new nodes, else None.
        notes_: What was repaired or assumed of the graph, a sentence each.
        n_features_in_: How many features a node has.

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
        encoder: str | None = None,
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
                of DataFrames, a path, or what `load_graph` gave. An array (N, d) alone is a graph
                without edges.
            y: (N,) a label for every node, of any kind; None, NaN, pandas.NA, -1 or "" where it is
                unknown. May be left out where the graph brings labels. Nodes without a label may
                be of known or of new classes; see `mixed`.

        Raises:
            NodenovaError: A setting, the graph or its labels cannot be used; it says which.
        """
        method, encoder, seed = self._checked()
        loaded, labels = self._loaded(graph, y)
        mixed, notes = self._mixed(method, loaded)
        notes = (*notes, *unused_edge_weights(encoder, loaded.graph))
        old, new, exam = tasks_from_labels(loaded, self.num_new, mixed=mixed, seed=seed)
        progress = self.progress or no_progress
        given = self.fit_settings or {}
        with shared_passes():  # phase 2, the exam and all that is told of the nodes read the same z
            known = fit(old, encoder, seed=seed, device=self.device, progress=progress, **given)
            self.model_ = discover(known, new, method, seed=seed, progress=progress)
            self.run_ = DiscoveryRun(
                title=loaded.name,
                model=self.model_,
                graph=loaded.graph,
                facts={
                    "Nodes": f"{loaded.graph.num_nodes:,}",
                    "Unlabelled nodes" if mixed else "New nodes": f"{len(new.ids):,}",
                    "Known classes": ", ".join(old.class_names),
                    "Method": f"{method_name(method)} on {encoder}",
                    "Seed": seed,
                    **{f"Note {number}": note for number, note in enumerate(notes, start=1)},
                },
                recipe=loaded.recipe,
                answers=None if exam is None else (exam.answers, exam.class_names),
                given=np.where(loaded.is_new, UNKNOWN, loaded.y),
                given_names=old.class_names,
                keep_labels=self.keep_labels,
                min_confidence=self.min_confidence,
                none_share=self.none_share,
            )
            names = self.run_.names
            self.grade_ = None if exam is None else grade(self.model_, exam)
        self.classes_ = np.empty(len(names), dtype=object)
        self.classes_[:] = [*labels[: len(old.class_names)], *names[len(old.class_names) :]]
        self.labels_ = self.classes_[self.run_.predictions.row]
        self.n_features_in_ = loaded.graph.num_features
        self.notes_ = notes
        self.count_ = self.model_.stages[-1].count
        return self

    def predict(self, graph: Any = None) -> np.ndarray:
        """(N,) the class of every node: of the graph that `fit` was given, or of another one."""
        check_is_fitted(self, "model_")
        if graph is None:
            return self.labels_.copy()
        return self.classes_[self.predict_proba(graph).argmax(axis=1)]

    def predict_proba(self, graph: Any = None) -> np.ndarray:
        """(N, C) the probability of every class for every node; the columns are `classes_`."""
        check_is_fitted(self, "model_")
        if graph is None:
            return self.run_.probabilities.copy()
        return self.model_.predict_proba(self._known(graph))

    def transform(self, graph: Any = None) -> np.ndarray:
        """(N, hidden) the embedding of every node: what the encoder says of it."""
        check_is_fitted(self, "model_")
        if graph is None:
            return self.run_.embeddings.copy()
        return self.model_.embed(self._known(graph))

    def fit_predict(self, graph: Any, y: Any = None) -> np.ndarray:
        """`fit`, and then the class of every node."""
        return self.fit(graph, y).predict()

    def fit_transform(self, graph: Any, y: Any = None) -> np.ndarray:
        """`fit`, and then the embedding of every node."""
        return self.fit(graph, y).transform()

    def class_info(self) -> ClassInfos:
        """What is in each class: size, confidence, typical nodes; `.to_frame()` makes a table."""
        check_is_fitted(self, "model_")
        return self.run_.classes

    def suggestions(self) -> Suggestions:
        """What to decide: classes that look like one or two, labels that look wrong."""
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
        progress: Progress = no_progress,
    ) -> Path:
        """Write what `nodenova discover` writes: model, tables and a page to review the classes on.

        Args:
            folder: Where to.
            keep_graph: Whether the graph, without labels, is kept for later commands.
            overwrite: Whether an earlier report may be there.
            title: Of the page; the name of the folder unless given.
            shown: What the page shows of nodes: (N,) texts by the name of a column; their words
                unless given.
            progress: Function `progress(phase, done, total)`, called while the page is made.

        Returns:
            The path of the page.
        """
        check_is_fitted(self, "model_")
        run = self.run_.presented(title or Path(folder).resolve().name, shown or {})
        written = DiscoveryFolder.write(
            Path(folder), run, keep_graph=keep_graph, overwrite=overwrite, progress=progress
        )
        return written.path / "report.html"

    def _checked(self) -> tuple[Method, str, int]:
        """Method, encoder and seed, before anything is computed."""
        method = self.method
        if isinstance(method, str):
            method = get_method(method, {})
        if not isinstance(method, Method) or isinstance(method, type):
            raise SettingError(f"method is a name or a method like nova.Prism(), not {method!r}")
        num, low = self.num_new, self.min_confidence
        if num is not None and (isinstance(num, bool) or not isinstance(num, Integral) or num < 1):
            raise SettingError(f"num_new must be a whole number from 1 on, it is {num!r}")
        if self.mixed not in (None, True, False):
            raise SettingError(f"mixed is True, False or None, not {self.mixed!r}")
        if self.mixed:
            check_mixed(method)
        if not 0 <= low <= 1:
            raise SettingError(f"min_confidence is a probability from 0 to 1, not {low}")
        check_none_share(self.none_share)
        name = method_name(method)
        seed = self.random_state
        if not isinstance(seed, Integral):
            seed = check_random_state(seed).randint(2**31 - 1)
        encoder = choose_encoder(name, self.encoder, {name: type(method)})
        if num is None:
            check_countable(encoder, encoder_kind(encoder).trainable)
        return method, encoder, int(seed)

    def _mixed(self, method: Method, loaded: UserGraph) -> tuple[bool, tuple[str, ...]]:
        """Whether known classes may be among the unlabelled nodes, and all notes."""
        if self.mixed is not None or loaded.new_named:
            return bool(self.mixed), loaded.notes
        if getattr(method, "mixed", False):
            return True, loaded.notes
        said = "takes every unlabelled node for new; prism tells those of known classes apart"
        return False, (*loaded.notes, f"{method_name(method)} {said}")

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

    def _known(self, source: Any) -> Graph:
        """A later graph with the features that the model knows."""
        source = to_source(self, source, reset=False, labels=False)
        graph = load_graph(source, recipe=self.run_.recipe if is_table(source) else None).graph
        return as_known(graph, self.run_.graph)

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
