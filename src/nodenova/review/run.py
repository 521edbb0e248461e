"""A discovery on a user's graph as one value.

The model, the graph, what one says of the other, and what was told.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from nodenova.drawing.layout import positions
from nodenova.evaluation.graded import GradedRun
from nodenova.evaluation.provenance import versions
from nodenova.files import to_json
from nodenova.graph import Graph
from nodenova.io.table_encoder import TableEncoder
from nodenova.model.info import ClassInfos, class_info
from nodenova.model.model import Model
from nodenova.model.saving import weights_digest
from nodenova.review.page_data import Layout, PageData, collect
from nodenova.review.predictions import Predictions
from nodenova.review.user_labels import UserLabels, labels_in_new_classes
from nodenova.review.verdict import Verdict, verdict

Steps = Callable[[int, int], None]


def silent(done: int, of: int) -> None:
    """No progress."""


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
        versions: Of the packages that made it; those of now unless given.
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
    versions: Mapping[str, str] = field(default_factory=versions)

    def __post_init__(self) -> None:
        # As they come back from run.json, so that the first page is like every later one.
        for name in ("facts", "versions"):
            object.__setattr__(self, name, json.loads(to_json(getattr(self, name))))

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
        return UserLabels(self.given, names, self.keep_labels)

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
        )

    @property
    def verdict(self) -> Verdict | None:
        """What it comes to, where nobody said which nodes are new or how many classes there are."""
        return verdict(self.model.stages, self.classes)

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
        )
