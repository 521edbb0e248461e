"""A discovery on a user's graph as one value.

The model, the graph, what one says of the other, and what was told.

Nodes that an earlier run has classified: they keep their class unless there is good reason.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Self

import numpy as np

from nodenova.display import html_table
from nodenova.evaluation.graded import GradedRun
from nodenova.evaluation.provenance import versions
from nodenova.files import to_json
from nodenova.graph import Graph
from nodenova.io.recipe import TableEncoder
from nodenova.model.info import ClassInfos, class_info
from nodenova.model.model import Model
from nodenova.model.saving import weights_digest
from nodenova.model.similarity import MergeSplit, estimate_merge_split
from nodenova.report.tsne import positions
from nodenova.review.cross_validation import HeldOut, HeldOutScores, cross_validate, spare_fit
from nodenova.review.page_data import Layout, PageData, collect
from nodenova.review.review_file import History
from nodenova.review.suggest import build_suggestions
from nodenova.review.suggestions import Suggestions
from nodenova.review.trust import number_sentence
from nodenova.review.user_labels import NO_LABEL, UserLabels, labels_in_new_classes
from nodenova.runs.predictions import Predictions

MIN_STAY = 0.001  # the probability below which the class of the earlier run is given up


@dataclass(frozen=True, eq=False)
class SettledLabels(UserLabels):
    """The user's labels, and what an earlier run said of the nodes that it had.

    A class that is a little more likely after the graph has grown is no reason to move a node that
    people have seen elsewhere: it moves where the class it was in has become unlikely, or is gone.

    Attributes:
        before: (N,) the id of the class that the earlier run put each node in, -1 for none.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> said = SettledLabels(np.full(3, -1), ("cod", "oak"), before=np.array([0, 0, -1]))
        >>> p = np.array([[0.3, 0.7], [0.0001, 0.9999], [0.3, 0.7]])
        >>> said.rows(nova.fit(old), p).tolist()
        [0, 1, 1]
    """

    before: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def of_nodes(self, numbers: np.ndarray) -> Self:
        """What was said of some nodes, and what the earlier run said of them."""
        return replace(super().of_nodes(numbers), before=self.before[numbers])

    def rows(self, model: Model, p: np.ndarray) -> np.ndarray:
        """(N,) the class of every node, a row of `model.classes`.

        By its label if that is kept, else by the earlier run unless that has become unlikely.
        """
        row = super().rows(model, p)
        if not self.keep:
            return row
        was = np.where(self.class_mask(model)[self.before], p, -np.inf)
        stays = (self.before != NO_LABEL) & ~self.labelled & (was.max(axis=1) >= MIN_STAY)
        return np.where(stays, was.argmax(axis=1), row)


@dataclass(frozen=True, eq=False)
class DiscoveryRun:
    """What a discovery found. One pass of the encoder feeds predictions, classes and page.

    Attributes:
        title: What the page is called.
        model: After phase 2.
        graph: What it was made on.
        facts: Shown on the page as they are.
        recipe: How columns of a table became features, where they did.
        answers: (class of every node or -1, names of these classes), for grading and for the page
            alone.
        given: (N,) the id of the class that phase 1 was told of a node, -1 for none.
        given_names: What the user calls the classes of these ids; unless given, what the model
            calls them.
        keep_labels: Whether a node that was labelled keeps its label in `predictions`.
        rows: Graded seeds, whose scores the page shows.
        min_confidence: A node whose class is less likely is unsure.
        before: (N,) the id of the class that an earlier run put a node in, -1 for none; None where
            this run goes on from no other.
        lineage: The sha256 of the models of the runs before it, the first one first.
        none_share: About so many nodes of the known classes may be called "none of these"; 0 calls
            no node so.
        versions: Of the packages that made it; those of now unless given.
        shown: What the page shows of a node beside its name: (N,) texts by the name of a column.
        history: What people have decided since, and how often.
    """

    title: str
    model: Model
    graph: Graph
    facts: Mapping[str, object] = field(default_factory=dict)
    recipe: TableEncoder | None = None
    answers: tuple[np.ndarray, Sequence[str]] | None = None
    given: np.ndarray | None = None
    given_names: Sequence[str] = ()
    keep_labels: bool = True
    rows: Sequence[GradedRun] = ()
    min_confidence: float = 0.5
    none_share: float = 0.0
    before: np.ndarray | None = None
    lineage: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=versions)
    shown: Mapping[str, Sequence[str]] = field(default_factory=dict)
    history: History = field(default_factory=History)

    def __post_init__(self) -> None:
        # As they come back from run.json, so that the first page is like every later one.
        for name in ("facts", "versions"):
            object.__setattr__(self, name, json.loads(to_json(getattr(self, name))))

    def presented(self, title: str | None, shown: Mapping[str, Sequence[str]]) -> DiscoveryRun:
        """The same run under another title and with texts of its nodes: nothing is computed again.

        Args:
            title: Of the page; None leaves it.
            shown: (N,) texts by column.
        """
        other = copy.copy(self)
        object.__setattr__(other, "title", self.title if title is None else title)
        object.__setattr__(other, "shown", shown)
        return other

    def __repr__(self) -> str:
        return f"DiscoveryRun({self.title!r}, {self.graph!r}, {self.model!r})"

    def _repr_html_(self) -> str:
        facts = html_table(("", ""), list(self.facts.items()), self.title)
        return facts + self.classes._repr_html_()

    @cached_property
    def outputs(self) -> tuple[np.ndarray, np.ndarray]:
        """(N, hidden) z and (N, classes) p of every node: the one pass."""
        return self.model.embed_and_predict(self.graph)

    @property
    def embeddings(self) -> np.ndarray:
        """(N, hidden) what the encoder says of every node."""
        return self.outputs[0]

    @property
    def probabilities(self) -> np.ndarray:
        """(N, classes) in the order of `model.classes`."""
        return self.outputs[1]

    @cached_property
    def classes(self) -> ClassInfos:
        """What is in each class."""
        return class_info(
            self.model,
            self.graph,
            outputs=self.outputs,
            labelled=None if self.labels is None else self.labels.labelled,
            fits_none=self.fits_none,
            merge_split=self.merge_split,
            min_confidence=self.min_confidence,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """What each class is called, in the order of `model.classes`."""
        return tuple(info.name for info in self.classes)

    @cached_property
    def labels(self) -> UserLabels | None:
        """The user's own labels."""
        if self.given is None:
            return None
        names = list(self.given_names)
        if not names:  # a run that kept numbers alone
            called = {c.id: c.name for c in self.model.classes}
            highest = int(self.given.max(initial=-1))
            names = [called.get(c, "") for c in range(highest + 1)]
        if self.before is None:
            return UserLabels(self.given, names, self.keep_labels)
        names += [""] * (self.model.next_id - len(names))
        return SettledLabels(self.given, names, self.keep_labels, self.before)

    @cached_property
    def merge_split(self) -> MergeSplit | None:
        """Which classes look like one, and which like two."""
        return estimate_merge_split(self.model, *self.outputs)

    @cached_property
    def held_out(self) -> HeldOut | None:
        """What is said of labelled nodes without their labels."""
        if self.labels is None:
            return None
        z, p = self.outputs
        return cross_validate(self.model, z, self.labels.label_rows(self.model, p))

    @property
    def held_out_scores(self) -> HeldOutScores | None:
        """How often labelled nodes land in the class of their label when that is not seen."""
        if self.held_out is None or self.labels is None:
            return None
        rows = self.labels.label_rows(self.model, self.probabilities)
        return HeldOutScores.of(self.held_out, rows)

    @cached_property
    def _spare_fit(self) -> np.ndarray | None:
        if not self.none_share:
            return None
        return spare_fit(self.model, self.embeddings, self.held_out, self.none_share)

    @property
    def fits_none(self) -> np.ndarray | None:
        """(N,) which nodes without a label fit none of the classes; None if nobody asked."""
        if self._spare_fit is None or self.labels is None:
            return None
        return (self._spare_fit < 0) & ~self.labels.labelled

    @cached_property
    def suggestions(self) -> Suggestions:
        """What it suggests to the person who decides."""
        node_ids, fit = self.graph.node_ids, self._spare_fit
        return build_suggestions(
            self.model,
            self.merge_split,
            self.held_out,
            self.labels,
            node_ids,
            fit,
            self.none_share,
        )

    @cached_property
    def predictions(self) -> Predictions:
        """The class of every node; that of its label where it has one and keeps it."""
        return Predictions.of(
            self.model,
            self.graph,
            self.min_confidence,
            names=self.names,
            p=self.probabilities,
            labels=self.labels,
            fits_none=self.fits_none,
        )

    @property
    def verdict(self) -> str:
        """Estimated number of new classes in words; "" where it was given with the new nodes."""
        return number_sentence(self.model.stages, self.classes, advice=True)

    @property
    def warning(self) -> str:
        """A sentence where many labelled nodes look like discovered classes, else ""."""
        return labels_in_new_classes(self.classes)

    def page_data(self, layout: Layout = positions) -> PageData:
        """What the page tells. Laying out its map is the long part.

        Args:
            layout: Embeddings to places.
        """
        return collect(
            self.model,
            self.graph,
            title=self.title,
            model_hash=weights_digest(self.model),
            answers=self.answers,
            known=self.given,
            rows=self.rows,
            facts=self.facts,
            versions=self.versions,
            min_confidence=self.min_confidence,
            layout=layout,
            outputs=self.outputs,
            classes=self.classes,
            suggested=self.suggestions,
            num_disagreeing=self._kept,
            held_out=self.held_out_scores,
            shown=self.shown,
            history=self.history,
        )

    @property
    def _kept(self) -> int:
        """How many labelled nodes are in another class than the model would put them in."""
        return int((self.predictions.row != self.probabilities.argmax(axis=1)).sum())
