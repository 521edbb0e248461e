"""Knowledge as a value: an encoder, a joint head, what is remembered of each class, and where it all came from."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nodenova.encoders.gnn import GNN
from nodenova.errors import GraphError, SettingError, needs_training, warn_renamed
from nodenova.graph import Graph
from nodenova.model import edits, info
from nodenova.model.classes import NodeClass as NodeClass
from nodenova.model.classes import unused_names
from nodenova.model.decisions import Decision
from nodenova.model.saving import save_model
from nodenova.nn.encoder import Encoder
from nodenova.nn.heads import Head, LinearHead, UnitLinearHead
from nodenova.nn.memory import Memory
from nodenova.nn.passes import encode
from nodenova.nn.seeding import fixed_threads
from nodenova.nn.training import History, frozen
from nodenova.prism.classifier import LDASettings

UNSURE = -1


@dataclass(frozen=True)
class Stage:
    """What one phase did: written by the two doors, read by reports."""

    method: str
    settings: Mapping[str, object]
    seed: int
    sees: tuple[str, ...]
    history: History = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Model:
    """One classifier for all classes known so far. `fit` makes one, `discover` makes a bigger one of it.

    The parts are kept private and handed out as copies, so that a method cannot damage the model it starts from.

    classes: in the order of stages, and by id within one.
    columns: for every column of the joint head the id of the class it belongs to. As discovered, a class is a column; a
             merged class has several, and its probability is their sum.
    edits:   what was renamed, merged, split and rejected since, in that order: the values of `nodenova.model.decisions`.
    """

    _encoder: Encoder
    _head: Head
    _novel_head: nn.Linear | None  # h^u of the last stage, when its method has one
    _memory: Memory
    classes: tuple[NodeClass, ...]
    stages: tuple[Stage, ...] = ()
    columns: tuple[int, ...] = ()
    edits: tuple[Decision, ...] = ()

    def __post_init__(self) -> None:
        if not self.columns:
            object.__setattr__(self, "columns", tuple(c.id for c in self.classes))

    def encoder(self) -> Encoder:
        """A copy of g, to be trained further."""
        return copy.deepcopy(self._encoder).requires_grad_(True)

    def frozen_encoder(self) -> Encoder:
        """A copy of g as it is, for distillation: no gradient, no dropout."""
        return copy.deepcopy(self._encoder)

    def head(self) -> Head:
        """A copy of the joint head h^a, to be trained further."""
        return copy.deepcopy(self._head).requires_grad_(True)

    def novel_head(self) -> nn.Linear | None:
        """A copy of h^u, the head for the newest classes only, if there is one."""
        return None if self._novel_head is None else copy.deepcopy(self._novel_head).requires_grad_(True)

    @property
    def memory(self) -> Memory:
        """A copy of what is remembered of each class."""
        return self._memory.copy()

    @property
    def prototypes(self) -> Memory:
        """The name that `memory` had."""
        warn_renamed("Model.prototypes", "Model.memory")
        return self.memory

    @property
    def lda(self) -> LDASettings:
        """How classes are compared: as phase 1 was calibrated."""
        return LDASettings.of_stages(stage.settings for stage in self.stages)

    @property
    def device(self) -> torch.device:
        return self._head.linear.weight.device

    @property
    def num_columns(self) -> int:
        """Columns of the joint head, and classes that are remembered: what a method counts."""
        return len(self.columns)

    @property
    def next_id(self) -> int:
        """The id of the next class that is found: above all that were ever given out."""
        return 1 + max([c.id for c in self.classes] + [class_id for edit in self.edits for class_id in edit.ids])

    def class_of(self, class_id: int) -> NodeClass:
        """The class with this id."""
        for c in self.classes:
            if c.id == class_id:
                return c
        known = ", ".join(str(c.id) for c in self.classes)
        raise SettingError(f"there is no class {class_id}; the model has {known}")

    @property
    def class_names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.classes)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many classes each phase brought: (labelled, found by the first discover, ...)."""
        stages = [c.stage for c in self.classes]
        return tuple(stages.count(stage) for stage in range(max(stages) + 1))

    @property
    def num_old(self) -> int:
        """How many classes were known before the newest stage; all of them when nothing was discovered yet."""
        return sum(self.sizes[:-1]) or len(self.classes)

    def grown(
        self,
        *,
        encoder: Encoder,
        head: Head,
        memory: Memory,
        novel_head: nn.Linear | None = None,
        history: History | None = None,
    ) -> Model:
        """The model a method returns: new parts, the old classes, and one more class for every further row of `head`."""
        stage = max(len(self.stages), 1 + max(c.stage for c in self.classes))
        ids = range(self.next_id, self.next_id + head.num_classes - self.num_columns)
        names = unused_names([f"new-{i}" for i in ids], self.class_names)
        found = tuple(NodeClass(i, name, stage) for i, name in zip(ids, names, strict=True))
        return Model(
            _encoder=frozen(encoder),
            _head=frozen(head),
            _novel_head=None if novel_head is None else frozen(novel_head),
            _memory=memory,
            classes=self.classes + found,
            # The door knows the method, its settings and the seed; it replaces this placeholder.
            stages=(*self.stages, Stage("", {}, 0, (), history or {})),
            columns=self.columns + tuple(ids),
            edits=self.edits,
        )

    def with_last_stage(self, stage: Stage) -> Model:
        """The same model with the record of its newest phase replaced; its history is kept."""
        return replace(self, stages=(*self.stages[:-1], replace(stage, history=self.stages[-1].history)))

    def to(self, device: str | torch.device) -> Model:
        """The same model on another device."""
        place = torch.device(device)
        novel = None if self._novel_head is None else copy.deepcopy(self._novel_head).to(place)
        return replace(
            self,
            _encoder=copy.deepcopy(self._encoder).to(place),
            _head=copy.deepcopy(self._head).to(place),
            _novel_head=novel,
            _memory=self._memory.to(place),
        )

    def embed(self, graph: Graph) -> np.ndarray:
        """(N, hidden) representations z of all nodes."""
        return self._run(graph, lambda z: z)

    def predict_proba(self, graph: Graph) -> np.ndarray:
        """(N, classes) probability of each class for each node, from the joint head, in the order of `model.classes`."""
        return self._run(graph, lambda z: self._logits(z).softmax(dim=1))

    def embed_and_predict(self, graph: Graph) -> tuple[np.ndarray, np.ndarray]:
        """`embed` and `predict_proba` for the price of one."""
        z = self.embed(graph)
        with torch.no_grad(), fixed_threads():
            return z, self._logits(torch.from_numpy(z).to(self.device)).softmax(dim=1).cpu().numpy()

    def predict(self, graph: Graph, unsure_below: float = 0.0) -> np.ndarray:
        """(N,) id of the most likely class of each node; `model.class_of(id)` says what it is.

        Nodes whose most likely class has a probability under `unsure_below` get `UNSURE` (-1) instead.
        """
        ids = np.array([c.id for c in self.classes])
        if unsure_below <= 0:
            return ids[self._run(graph, lambda z: self._logits(z).argmax(dim=1))]
        probabilities = self.predict_proba(graph)
        return np.where(probabilities.max(axis=1) < unsure_below, UNSURE, ids[probabilities.argmax(axis=1)])

    def predict_new(self, graph: Graph) -> np.ndarray:
        """(N,) id of the most likely class among the newest stage's only, by h^u when there is one (New-N)."""
        n_old = self.num_old
        if n_old == len(self.classes):
            raise GraphError("the model has no discovered classes yet: call discover first")
        new_ids = np.array([c.id for c in self.classes[n_old:]])
        if self._novel_head is not None:
            novel_head = self._novel_head
            return new_ids[self._run(graph, lambda z: novel_head(z).argmax(dim=1))]
        return new_ids[self._run(graph, lambda z: self._logits(z)[:, n_old:].argmax(dim=1))]

    def rename(self, class_id: int, name: str) -> Model:
        """The same model with another name for one class. No two classes have the same name."""
        return edits.rename(self, class_id, name)

    def merge(self, class_ids: Sequence[int], name: str | None = None) -> Model:
        """A model in which several classes are one: it has the id of the oldest of them, and their probabilities added up.

        Its name is that of the oldest unless `name` says otherwise.
        """
        return edits.merge(self, class_ids, name)

    def reject(self, class_id: int) -> Model:
        """A model without a discovered class: its nodes go to the next likely of the others.

        A class that was learnt from labels cannot be rejected: it is what the user said, not what was found.
        """
        return edits.reject(self, class_id)

    def split(self, class_id: int, graph: Graph, into: int = 2, seed: int = 0) -> Model:
        """A model in which one class is several, by k-means of the nodes of `graph` that the model puts in it.

        Every part has an id of its own; the old id is not used again. No label is asked.
        """
        return edits.split(self, class_id, graph, into, seed)

    def class_info(self, graph: Graph | None = None, **settings: Any) -> info.ClassInfos:
        """What is in each class: see :func:`nodenova.model.info.class_info`; `.to_frame()` makes a pandas table of it.

        Without a graph only what the model itself knows; what asks for nodes is then empty.
        """
        return info.class_info(self, graph, **settings)

    def check(self, graph: Graph) -> None:
        """Raise unless the graph has the features this model was trained on."""
        expected = self._encoder.spec.num_features
        if graph.num_features != expected:
            raise GraphError(f"the graph has {graph.num_features} features, the model was trained on {expected}")

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the model into `folder` (safetensors and JSON, no pickle). See :func:`nodenova.load_model`."""
        save_model(self, folder)

    def _logits(self, z: Tensor) -> Tensor:
        """(N, classes): the joint head's columns, those of a merged class added up as probabilities are."""
        logits: Tensor = self._head(z)  # (N, columns)
        if self.columns == tuple(c.id for c in self.classes):
            return logits
        of = torch.tensor(self.columns, device=z.device)
        return torch.stack([logits[:, of == c.id].logsumexp(dim=1) for c in self.classes], dim=1)

    def _run(self, graph: Graph, read: Callable[[Tensor], Tensor]) -> np.ndarray:
        self.check(graph)
        with torch.no_grad(), fixed_threads():
            return read(encode(self._encoder, graph)).cpu().numpy()

    def __repr__(self) -> str:
        new = sum(c.is_new for c in self.classes)
        return f"Model({self._encoder.spec.name}, {len(self.classes)} classes, {new} of them discovered)"


def trained_encoder(model: Model, method: str) -> GNN:
    """A copy of a trained encoder, to be trained further; or an error that says that `method` needs one."""
    g = model.encoder()
    if not isinstance(g, GNN):
        raise needs_training(method, g.spec.name)
    return g


def trained_head(model: Model, method: str) -> UnitLinearHead:
    """The joint head of a model as phase 2 trains it further: phase 1's plain linear rows are read on z/|z| from here on.

    The closed-form encoder has none.
    """
    head = linear_head(model, method)
    return head.on_sphere() if isinstance(head, LinearHead) else head


def linear_head(model: Model, method: str) -> Head:
    """The same head read as it was trained."""
    trained_encoder(model, method)
    return model.head()
