"""A discovery as one value: the model, the graph, the user's labels, and what follows from them."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from nodenova.data.labels import UserGraph
from nodenova.display import html_table
from nodenova.errors import SettingError
from nodenova.evaluation.graded import GradedRun, versions
from nodenova.files.content import to_json
from nodenova.files.documents import check_encodable
from nodenova.graph import Graph, invert
from nodenova.io.recipe import TableEncoder
from nodenova.model.decisions import Edit, Relabel, last_edits
from nodenova.model.info import ClassInfo, ClassInfos, class_info
from nodenova.model.model import Model
from nodenova.model.saving import weights_digest
from nodenova.model.similarity import MergeSplit, estimate_merge_split
from nodenova.nn.encode_cache import shared_passes
from nodenova.progress import Progress, no_progress
from nodenova.report.tsne import positions
from nodenova.review.cross_validation import HeldOut, HeldOutScores, cross_validate, spare_fit
from nodenova.review.page_data import Layout, PageData, collect
from nodenova.review.review_file import History
from nodenova.review.suggest import build_suggestions
from nodenova.review.suggestions import Suggestions
from nodenova.review.trust import (
    calibrate,
    class_evidence,
    log_odds_shifts,
    number_sentence,
    one_class_probability,
)
from nodenova.review.user_labels import NO_LABEL, UserLabels, labels_in_new_classes
from nodenova.runs.numbers import OtherNumbers, check_number, discover_number
from nodenova.runs.predictions import Predictions
from nodenova.settings import check_arguments

CHOSEN = "Number of new classes"  # the fact about a number that was chosen after the discovery
MIN_STAY = 0.001  # probability below which a node leaves its class of the earlier run


@dataclass(frozen=True, eq=False)
class SettledLabels(UserLabels):
    """The user's labels, and (N,) the class ids `before` of an earlier run, -1 for none.

    When a graph grows, a node keeps its class of the earlier run unless that class has become
    unlikely or is gone.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> labels = SettledLabels(np.full(3, -1), ("cod", "oak"), before=np.array([0, 0, -1]))
        >>> p = np.array([[0.3, 0.7], [0.0001, 0.9999], [0.3, 0.7]])
        >>> labels.rows(nova.fit(old), p).tolist()
        [0, 1, 1]
    """

    before: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def of_nodes(self, numbers: np.ndarray) -> Self:
        """The same for some nodes."""
        return replace(super().of_nodes(numbers), before=self.before[numbers])

    def rows(self, model: Model, p: np.ndarray) -> np.ndarray:
        """(N,) class of every node, a row of `model.classes`."""
        row = super().rows(model, p)
        if not self.keep:
            return row
        was = np.where(self.class_mask(model)[self.before], p, -np.inf)
        stays = (self.before != NO_LABEL) & ~self.labelled & (was.max(axis=1) >= MIN_STAY)
        return np.where(stays, was.argmax(axis=1), row)


@dataclass(frozen=True, eq=False)
class DiscoveryRun:
    """A discovery. One pass of the encoder feeds its predictions, classes and page.

    Attributes:
        title: Title of the page.
        model: Model after phase 2.
        graph: Graph that it was made on. Nodes of a table are in canonical order, here and in all
            arrays of the run; `predictions` are in the order of the table.
        facts: Names and values that the page shows as they are.
        recipe: Recipe that made features of a table's columns, if one did.
        answers: True class of every node (-1 for unknown) and names of these classes; used only
            for grading and on the page.
        label_ids: (N,) id of the class of every label of phase 1, -1 for none.
        label_names: The user's names of the classes, by id; the model's names by default.
        keep_labels: Whether labelled nodes keep their labels in `predictions`.
        rows: Graded seeds, whose scores the page shows.
        min_confidence: Probability below which a node is unsure.
        none_share: Share of known-class nodes that may be flagged as fitting no class; 0 flags
            no node.
        earlier_ids: (N,) id of the class of each node in the run that this one continues, -1 for
            none; None if it continues no run.
        lineage: sha256 of the models of the runs that it continues, the first one first.
        versions: Versions of the packages that made it.
        node_texts: (N,) texts of the nodes that the page shows, by column.
        history: Decisions of reviews that are part of the run.
        earlier_moves: Labels that reviews of the runs that it continues corrected.
        numbers: Other numbers of new classes, if the number was estimated.
        suggested_names: Names by class id that a namer suggested; a person's name goes first.
    """

    title: str
    model: Model
    graph: Graph
    facts: Mapping[str, object] = field(default_factory=dict)
    recipe: TableEncoder | None = None
    answers: tuple[np.ndarray, Sequence[str]] | None = None
    label_ids: np.ndarray | None = None
    label_names: Sequence[str] = ()
    keep_labels: bool = True
    rows: Sequence[GradedRun] = ()
    min_confidence: float = 0.5
    none_share: float = 0.0
    earlier_ids: np.ndarray | None = None
    lineage: Sequence[str] = ()
    versions: Mapping[str, str] = field(default_factory=versions)
    node_texts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    history: History = field(default_factory=History)
    earlier_moves: Sequence[Relabel] = ()
    numbers: OtherNumbers | None = None
    suggested_names: Mapping[int, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _check_texts(self)
        # As they come back from run.json, so that the first page is like every later one.
        for name in ("facts", "versions"):
            object.__setattr__(self, name, json.loads(to_json(getattr(self, name))))

    @classmethod
    def of_graph(
        cls,
        loaded: UserGraph,
        model: Model,
        facts: Mapping[str, object],
        notes: Sequence[str],
        **parts: object,
    ) -> DiscoveryRun:
        """The run of a discovery on a user's graph; `notes` are numbered among the facts."""
        numbered = {f"Note {number}": note for number, note in enumerate(notes, start=1)}
        about = {"title": loaded.name, "graph": loaded.graph, "recipe": loaded.recipe}
        return cls(model=model, facts={**facts, **numbered}, **about, **parts)  # type: ignore[arg-type]

    def with_page(self, title: str | None, node_texts: Mapping[str, Sequence[str]]) -> DiscoveryRun:
        """The same run with another title and texts of its nodes; nothing is computed again.

        `node_texts` are in the order of the user's table.
        """
        given = self.graph.given_order
        if given is not None:
            rows = invert(given).tolist()
            node_texts = {name: [cells[row] for row in rows] for name, cells in node_texts.items()}
        other = copy.copy(self)
        object.__setattr__(other, "title", self.title if title is None else title)
        object.__setattr__(other, "node_texts", node_texts)
        _check_texts(other)
        return other

    def with_names(self, names: Mapping[int, str]) -> DiscoveryRun:
        """The same run with further suggested names, by class id; nothing is encoded again."""
        other = replace(self, suggested_names={**self.suggested_names, **names})
        kept = ("outputs", "merge_split", "held_out")
        other.__dict__.update({k: self.__dict__[k] for k in kept if k in self.__dict__})
        return other

    @property
    def num_new(self) -> int:
        """Number of new classes that its discovery found, before any decision."""
        last = len(self.model.stages) - 1
        return sum(c.stage >= last for c in self.model.classes)

    def at(self, num_new: int, *, progress: Progress = no_progress) -> DiscoveryRun:
        """Return the run with another number of new classes.

        It is what a discovery with this number given would be, but for the ids: a class that has
        more than half of its nodes in common with one of the counted number keeps its id.

        Args:
            num_new: Number of new classes. Those of `numbers.previews` are on the page.
            progress: Function `progress(phase, done, total)`, called while classes are discovered.

        Returns:
            Another run; this one is not changed.

        Raises:
            SettingError: If the number was not estimated by prism, if the run has decisions, or if
                there are fewer nodes.

        Examples:
            >>> import nodenova as nova
            >>> labelled = nova.synthetic(nodes=200, classes=4, words=80)
            >>> y = np.where(labelled.y < 2, labelled.y, -1)
            >>> run = nova.NodeDiscoverer().fit(labelled.graph, y).run_
            >>> run.at(3).num_new
            3
        """
        check_arguments(DiscoveryRun.at, locals())
        numbers = check_number(self.numbers, num_new, len(self.history.decisions))
        if num_new == self.num_new:
            return self
        facts = {name: fact for name, fact in self.facts.items() if name != CHOSEN}
        counted = numbers.count.number
        if num_new != counted:
            facts[CHOSEN] = f"{num_new}, chosen; {counted} counted"
        with shared_passes():
            model = discover_number(self.model, self.graph, numbers, num_new, progress=progress)
            # Ids from next_id on are of other classes at every number.
            names = {c: name for c, name in self.suggested_names.items() if c < numbers.next_id}
            run = replace(self, model=model, facts=facts, suggested_names=names)
            _ = run.outputs  # while the pass is shared
        return run

    def __repr__(self) -> str:
        return f"DiscoveryRun({self.title!r}, {self.graph!r}, {self.model!r})"

    def _repr_html_(self) -> str:
        facts = html_table(("", ""), list(self.facts.items()), self.title)
        return facts + self.classes._repr_html_()

    @cached_property
    def outputs(self) -> tuple[np.ndarray, np.ndarray]:
        """(N, hidden) embeddings and (N, classes) probabilities of every node: the one pass."""
        return self.model.embed_and_predict(self.graph)

    @property
    def embeddings(self) -> np.ndarray:
        """(N, hidden) embedding of every node."""
        return self.outputs[0]

    @cached_property
    def probabilities(self) -> np.ndarray:
        """(N, classes) probabilities, in the order of `model.classes`.

        Those of discovered classes are calibrated: the model is too sure of them.
        """
        return calibrate(self.outputs[1], self.shifts)

    @cached_property
    def assigned(self) -> np.ndarray:
        """(N,) class of every node in `predictions`, a row of `model.classes`."""
        p = self.outputs[1]
        return p.argmax(axis=1) if self.labels is None else self.labels.rows(self.model, p)

    @cached_property
    def _infos(self) -> list[ClassInfo]:
        """What is in each class by the model, with held-out labels, before calibration."""
        infos = class_info(
            self.model,
            self.graph,
            outputs=self.outputs,
            labelled=None if self.labels is None else self.labels.labelled,
            fits_none=self.fits_none,
            merge_split=self.merge_split,
            min_confidence=self.min_confidence,
            # A class that was merged or split is another one.
            names={c: n for c, n in self.suggested_names.items() if c not in self.last_edits},
        )
        scores = self.held_out_scores
        if scores is None:
            return list(infos)
        each = zip(infos, scores.landed, scores.by_class, strict=True)
        return [replace(c, held_out=n, held_out_right=right) for c, n, (right, _) in each]

    @cached_property
    def shifts(self) -> list[float | None]:
        """Shift by which the log-odds of each class are calibrated; None for a known class."""
        shifts = log_odds_shifts(self._infos)
        return [shifts.get(c.id) for c in self.model.classes]

    @property
    def evidence(self) -> dict[str, object]:
        """Held-out labels and calibration, as run.json stores them."""
        shifts = zip(self.model.classes, self.shifts, strict=True)
        document: dict[str, object] = {
            "calibration": {str(c.id): shift for c, shift in shifts if shift is not None}
        }
        scores = self.held_out_scores
        if scores is not None:
            document["held_out"] = {
                "labels": sum(scores.landed),
                "right": scores.num_right,
                "in_new": scores.in_new or 0,
            }
        return document

    @cached_property
    def classes(self) -> ClassInfos:
        """What is in each class; `size` counts the nodes of `predictions`."""
        groups, p = self.outputs[1].argmax(axis=1), self.probabilities.max(axis=1)
        sizes = np.bincount(self.assigned, minlength=len(self._infos)).tolist()
        described, evidence = [], class_evidence(self._infos)
        for row, info in enumerate(self._infos):
            mine = p[groups == row]
            described.append(
                replace(
                    info,
                    size=sizes[row],
                    share=sizes[row] / self.graph.num_nodes,
                    size_by_model=info.size,
                    confidence=float(mine.mean(dtype=np.float64)) if len(mine) else None,
                    confidence_by_model=info.confidence,
                    unsure=int((mine < self.min_confidence).sum()),
                    one_class=one_class_probability(evidence[row]) if info.is_new else None,
                )
            )
        return ClassInfos(described)

    @property
    def names(self) -> tuple[str, ...]:
        """Name of each class, in the order of `model.classes`."""
        return tuple(info.name for info in self.classes)

    @cached_property
    def labels(self) -> UserLabels | None:
        """The user's own labels."""
        if self.label_ids is None:
            return None
        names = list(self.label_names)
        if not names:  # a run that stored numbers only
            called = {c.id: c.name for c in self.model.classes}
            highest = int(self.label_ids.max(initial=-1))
            names = [called.get(c, "") for c in range(highest + 1)]
        if self.earlier_ids is None:
            return UserLabels(self.label_ids, names, self.keep_labels)
        names += [""] * (self.model.next_id - len(names))
        return SettledLabels(self.label_ids, names, self.keep_labels, self.earlier_ids)

    @cached_property
    def merge_split(self) -> MergeSplit | None:
        """Probabilities that two classes are one, and that one is two."""
        return estimate_merge_split(self.model, *self.outputs)

    @cached_property
    def held_out(self) -> HeldOut | None:
        """Predictions of labelled nodes without their labels."""
        if self.labels is None:
            return None
        z, p = self.outputs
        return cross_validate(self.model, z, self.labels.label_rows(self.model, p))

    @property
    def held_out_scores(self) -> HeldOutScores | None:
        """How often these predictions are the labels."""
        if self.held_out is None or self.labels is None:
            return None
        rows = self.labels.label_rows(self.model, self.outputs[1])
        is_new = np.array([c.is_new for c in self.model.classes])
        return HeldOutScores.of(self.held_out, rows, is_new)

    @cached_property
    def _spare_fit(self) -> np.ndarray | None:
        if not self.none_share:
            return None
        return spare_fit(self.model, self.embeddings, self.held_out, self.none_share)

    @property
    def fits_none(self) -> np.ndarray | None:
        """(N,) which nodes without a label fit no class; None if `none_share` is 0."""
        if self._spare_fit is None or self.labels is None:
            return None
        return (self._spare_fit < 0) & ~self.labels.labelled

    @cached_property
    def suggestions(self) -> Suggestions:
        """Decisions that the run suggests."""
        return build_suggestions(
            self.model,
            self.merge_split,
            self.held_out,
            self.labels,
            self.graph.node_ids,
            self._spare_fit,
            self.none_share,
            self.moves,
        )

    @cached_property
    def predictions(self) -> Predictions:
        """The class of every node; that of its label where it has one and keeps it."""
        found = Predictions.of(
            self.model,
            self.graph,
            names=self.names,
            p=self.outputs[1],
            labels=self.labels,
            fits_none=self.fits_none,
        )
        return found.calibrated(self.shifts, self.min_confidence)

    @property
    def moves(self) -> tuple[Relabel, ...]:
        """Labels that reviews of this run and of earlier ones corrected, in order."""
        return (*self.earlier_moves, *self.history.moves)

    @property
    def last_edits(self) -> dict[int, Edit]:
        """The last edit about each class that a person decided on, by id."""
        return last_edits(self.model.edits)

    @property
    def verdict(self) -> str:
        """Estimated number of new classes in words; "" if it was given with the new nodes."""
        return number_sentence(self.model.stages, self.classes, advice=True)

    @property
    def warning(self) -> str:
        """A sentence if many labelled nodes look like discovered classes, else ""."""
        return labels_in_new_classes(self.classes, self.last_edits)

    def page_data(self, layout: Layout = positions) -> PageData:
        """What the page shows; `layout` of its map, embeddings to places, takes longest."""
        return collect(
            self.model,
            self.graph,
            title=self.title,
            model_hash=weights_digest(self.model),
            answers=self.answers,
            known=self.label_ids,
            rows=self.rows,
            facts=self.facts,
            versions=self.versions,
            min_confidence=self.min_confidence,
            layout=layout,
            outputs=(self.embeddings, self.probabilities),
            classes=self.classes,
            suggested=self.suggestions,
            # labelled nodes in another class than the model predicts
            num_disagreeing=int((self.assigned != self.outputs[1].argmax(axis=1)).sum()),
            held_out=self.held_out_scores,
            shown=self.node_texts,
            history=self.history,
            moves=self.moves,
            **self._number_fields(),
        )

    def _number_fields(self) -> dict[str, Any]:
        """Fields of the page about other numbers; none where decisions have changed the classes."""
        if self.numbers is None or self.history.decisions:
            return {}
        ids = np.array([c.id for c in self.model.classes])
        own = {self.num_new: ids[self.probabilities.argmax(axis=1)]}
        counted = self.numbers.count.number
        previews = {**self.numbers.class_ids, **own}
        return {"previews": previews, "num_new": self.num_new, "num_counted": counted}


def _check_texts(run: DiscoveryRun) -> None:
    """Raise for a text that could not be written: the title, names, facts and texts of nodes."""
    check_encodable([run.title], "the title", SettingError)
    check_encodable([*run.facts, *run.facts.values()], "the fact", SettingError)
    check_encodable(run.label_names, "the label", SettingError)
    check_encodable(run.suggested_names.values(), "the name", SettingError)
    for name, cells in run.node_texts.items():
        check_encodable([name, *cells], "the text", SettingError)
