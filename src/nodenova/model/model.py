"""Knowledge as a value: encoder, joint head, memory of each class, and where it all came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

from torch import nn

from nodenova.errors import SettingError, renamed_attribute
from nodenova.graph import Graph
from nodenova.model import edits, info
from nodenova.model.classes import NodeClass as NodeClass
from nodenova.model.classes import unused_names
from nodenova.model.decisions import Decision
from nodenova.model.outputs import UNSURE as UNSURE
from nodenova.model.outputs import ModelOutputs
from nodenova.model.saving import save_model
from nodenova.model.stage import Stage as Stage
from nodenova.model.trained import linear_head as linear_head
from nodenova.model.trained import trained_encoder as trained_encoder
from nodenova.model.trained import trained_head as trained_head
from nodenova.nn.encoder import Encoder
from nodenova.nn.heads import Head
from nodenova.nn.memory import Memory
from nodenova.nn.training import History, frozen
from nodenova.notebook.tables import html_table
from nodenova.prism.cells import Cells
from nodenova.prism.classifier import LDASettings


@dataclass(frozen=True, eq=False)
class Model(ModelOutputs):
    """One classifier for all classes known so far.

    `fit` makes one, `discover` makes a bigger one of it. Its parts (see `ModelParts`) are kept
    private and handed out as copies, so that a method cannot damage the model it starts from.

    Attributes:
        classes: In the order of stages, and by id within one.
        column_class_ids: For every column of the joint head the id of the class it belongs to. As
            discovered, a class is a column; a merged class has several, and its probability is
            their sum.
        stages: What each phase did.
        edits: What was renamed, merged, split and rejected since, in that order: the values of
            `nodenova.model.decisions`.

    Examples:
        >>> import nodenova as nova
        >>> labelled = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> old, new, exam = nova.split(labelled, [0, 1])
        >>> model = nova.discover(nova.fit(old), new)
        >>> model.class_names
        ('class-0', 'class-1', 'new-2', 'new-3')
        >>> model.predict_proba(labelled.graph).shape
        (200, 4)
        >>> model.rename(2, "plants").merge([2, 3]).class_names
        ('class-0', 'class-1', 'plants')
    """

    stages: tuple[Stage, ...] = ()
    edits: tuple[Decision, ...] = ()

    def __post_init__(self) -> None:
        if not self.column_class_ids:
            object.__setattr__(self, "column_class_ids", tuple(c.id for c in self.classes))

    @property
    def lda(self) -> LDASettings:
        """How classes are compared: as phase 1 was calibrated."""
        return LDASettings.of_stages(stage.settings for stage in self.stages)

    @property
    def num_columns(self) -> int:
        """Columns of the joint head, and classes that are remembered: what a method counts."""
        return len(self.column_class_ids)

    @property
    def next_id(self) -> int:
        """The id of the next class that is found: above all that were ever given out."""
        edited = [class_id for edit in self.edits for class_id in edit.ids]
        return 1 + max([c.id for c in self.classes] + edited)

    def class_of(self, class_id: int) -> NodeClass:
        """The class with this id.

        Raises:
            SettingError: There is none.
        """
        for c in self.classes:
            if c.id == class_id:
                return c
        known = ", ".join(str(c.id) for c in self.classes)
        raise SettingError(f"there is no class {class_id}; the model has {known}")

    @property
    def class_names(self) -> tuple[str, ...]:
        """In the order of `classes`."""
        return tuple(c.name for c in self.classes)

    sizes = renamed_attribute("Model", "sizes", "classes_per_stage")
    columns = renamed_attribute("Model", "columns", "column_class_ids")

    def grown(
        self,
        *,
        encoder: Encoder,
        head: Head,
        memory: Memory,
        novel_head: nn.Linear | None = None,
        history: History | None = None,
        cells: Cells | None = None,
        times_found: Sequence[tuple[int, int]] = (),
    ) -> Model:
        """The model a method returns: these classes, and one more for every further row of `head`.

        Args:
            encoder: g, as it is now.
            head: h^a: a row for each column of this model's, in that order, and those of the new
                classes behind them.
            memory: Of all these classes.
            novel_head: h^u, when the method has one.
            history: Each loss in each epoch.
            cells: Where nodes of these classes were; as before unless given. An encoder that was
                trained has none.
            times_found: For each new class in how many groupings it was met again, and how many
                there were.
        """
        if cells is None and not encoder.spec.trainable:
            cells = self._cells
        stage = max(len(self.stages), 1 + max(c.stage for c in self.classes))
        ids = range(self.next_id, self.next_id + head.num_classes - self.num_columns)
        names = unused_names([f"new-{i}" for i in ids], self.class_names)
        found_in = dict(zip(ids, times_found, strict=False))  # some methods do not tell
        found = tuple(NodeClass(i, name, stage) for i, name in zip(ids, names, strict=True))
        return Model(
            _encoder=frozen(encoder),
            _head=frozen(head),
            _novel_head=None if novel_head is None else frozen(novel_head),
            _memory=memory,
            classes=self.classes + found,
            # `discover` knows the method, its settings and the seed; it replaces this placeholder.
            stages=(*self.stages, Stage("", {}, 0, (), history or {}, found_in=found_in)),
            column_class_ids=self.column_class_ids + tuple(ids),
            edits=self.edits,
            _cells=cells,
            fitted_on=self.fitted_on,
        )

    def with_last_stage(self, stage: Stage) -> Model:
        """The same model with the record of its newest phase replaced; what a method told of
        itself is kept."""
        told = self.stages[-1]
        last = replace(stage, history=told.history, found_in=told.found_in)
        return replace(self, stages=(*self.stages[:-1], last))

    def rename(self, class_id: int, name: str) -> Model:
        """The same model with another name for one class.

        Raises:
            SettingError: There is no such class, or another one has this name.
        """
        return edits.rename(self, class_id, name)

    def merge(self, class_ids: Sequence[int], name: str | None = None) -> Model:
        """A model in which several classes are one, their probabilities added up.

        Args:
            class_ids: Two or more ids; the class keeps that of the oldest.
            name: Its name; that of the oldest unless given.

        Raises:
            SettingError: There is no such class, or another one has this name.
        """
        return edits.merge(self, class_ids, name)

    def reject(self, class_id: int) -> Model:
        """A model without a discovered class: its nodes go to the next likely of the others.

        Raises:
            SettingError: There is no such class, or it was learned from labels: that is what the
                user said, not what was found.
        """
        return edits.reject(self, class_id)

    def split(self, class_id: int, graph: Graph, into: int = 2, seed: int = 0) -> Model:
        """A model in which one class is several, by k-means of the nodes that it puts in the class.

        Every part has an id of its own; the old id is not used again. No label is asked.

        Args:
            class_id: Which class.
            graph: Whose nodes say what the parts are.
            into: How many parts.
            seed: Of k-means.

        Raises:
            SettingError: There is no such class, or its nodes are too few or too alike.
        """
        return edits.split(self, class_id, graph, into, seed)

    def class_info(self, graph: Graph | None = None, **settings: Any) -> info.ClassInfos:
        """What is in each class; `.to_frame()` makes a data frame of it.

        Args:
            graph: Whose nodes are looked at. Without one, only what the model itself knows.
            **settings: Of `nodenova.class_info`.
        """
        return info.class_info(self, graph, **settings)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the model into `folder` (safetensors and JSON, no pickle), for `load_model`.

        Args:
            folder: New, empty, or with an earlier save of a model.

        Raises:
            StorageError: It holds something else; nothing was written.
        """
        save_model(self, folder)

    def __repr__(self) -> str:
        name, new = self._encoder.spec.name, sum(c.is_new for c in self.classes)
        return f"Model({name}, {len(self.classes)} classes, {new} of them discovered)"

    def _repr_html_(self) -> str:
        rows = [(c.id, c.name, c.kind, c.stage) for c in self.classes]
        return html_table(("id", "name", "kind", "stage"), rows, repr(self))
