"""Knowledge as a value: encoder, joint head, memory of each class, and where it all came from.

What a model keeps of the graph that its encoder was fitted on: size and features, no node.

What one phase did to a model.

What a model is made of: private, and handed out as copies.

The trained parts of a model, for methods that train them further.

What a model says of the nodes of a graph.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from nodenova.display import html_table
from nodenova.encoders.gnn import GNN
from nodenova.encoders.prism.encoder import PrismEncoder
from nodenova.encoders.prism.lda import LDASettings
from nodenova.encoders.prism.local_inference import few_rows
from nodenova.errors import GraphError, SettingError, needs_training
from nodenova.graph import Graph
from nodenova.model import edits, info
from nodenova.model.classes import NodeClass, make_unique
from nodenova.model.decisions import Decision
from nodenova.model.saving import save_model
from nodenova.nn.class_memory import Memory
from nodenova.nn.distributed import split_of
from nodenova.nn.encode_cache import encode, last_pass, shared_passes
from nodenova.nn.encoder import Encoder
from nodenova.nn.heads import Head, LinearHead, UnitLinearHead, read_split
from nodenova.nn.seeding import fixed_threads
from nodenova.nn.training import History, freeze
from nodenova.open_world.count import ClassCountEstimate
from nodenova.open_world.novelty import Partition

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class FitSignature:
    """The graph that an encoder was fitted on, without its nodes.

    Attributes:
        nodes: How many nodes it had.
        edges: How many edges, each in both directions.
        feature_names: Its features in the encoder's order; None where they had no names.
        recipe: How the columns of a table became these features, as plain values; None where they
            were ready made. `load_graph(..., recipe=model.recipe)` reads later tables by it.

    Examples:
        >>> import numpy as np
        >>> FitSignature.of(Graph.of(np.eye(2), [[0], [1]], feature_names=["oak", "elm"]))
        FitSignature(nodes=2, edges=2, feature_names=('oak', 'elm'))
    """

    nodes: int
    edges: int
    feature_names: tuple[str, ...] | None = None
    recipe: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, graph: Graph) -> FitSignature:
        """What is kept of a graph."""
        known = None if graph.recipe is None else dict(graph.recipe)
        return cls(graph.num_nodes, graph.num_edges, graph.feature_names, known)

    def to_json(self) -> dict[str, Any]:
        """JSON values; no key "recipe" where there is none, as in the first models."""
        document = {"nodes": self.nodes, "edges": self.edges, "feature_names": self.feature_names}
        return document if self.recipe is None else document | {"recipe": dict(self.recipe)}

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> FitSignature:
        """From what `to_json` made of one."""
        names, recipe = saved["feature_names"], saved.get("recipe")
        known = None if names is None else tuple(names)
        return cls(saved["nodes"], saved["edges"], known, recipe)


def with_features(graph: Graph, names: tuple[str, ...]) -> Graph:
    """The graph with the features of these names, in this order: what it lacks is zero.

    It is made once for a graph, so that whoever asks next gets the same object.

    Raises:
        GraphError: It has none of them.

    Examples:
        >>> import numpy as np
        >>> graph = Graph.of(np.array([[1, 2], [3, 4]]), [[0], [1]], feature_names=["a", "b"])
        >>> with_features(graph, ("b", "c", "a")).x.tolist()
        [[2.0, 0.0, 1.0], [4.0, 0.0, 3.0]]
    """
    if graph.feature_names is None or graph.feature_names == names:
        return graph
    if not set(names) & set(graph.feature_names):
        theirs, ours = (", ".join(map(repr, some[:3])) for some in (graph.feature_names, names))
        raise GraphError(
            f"the graph has no feature that the model knows: the graph's begin with {theirs}, "
            f"the model's with {ours}"
        )
    return graph.cached(("features", names), lambda: graph.aligned(names)[0])


@dataclass(frozen=True)
class Refresh:
    """How the representation was fitted anew on a grown graph, before a phase.

    Attributes:
        why: What had changed, in words.
        carried: For each class its id, and by how many nodes of the grown graph it was carried
            over: those that the model was sure of before, and labelled ones.
        told: How many of these nodes the user had labelled.
        notes: A sentence on each class that hardly any node could carry over.

    Examples:
        >>> Refresh("9% of the features were not known", ((0, 75), (4, 60)), 30).sentence()
        'The representation was fitted anew: 9% of the features were not known. 2 classes were \
carried over by 135 nodes, 60 to 75 each; 30 of them are labelled.'
    """

    why: str
    carried: tuple[tuple[int, int], ...]
    told: int = 0
    notes: tuple[str, ...] = ()

    def sentence(self) -> str:
        """What was done, for a person."""
        counts = [count for _, count in self.carried]
        most, least = max(counts), min(counts)
        each = f"{least:,} to {most:,}" if least < most else f"{least:,}"
        told = f"; {self.told:,} of them are labelled" if self.told else ""
        return (
            f"The representation was fitted anew: {self.why}. {len(counts)} classes were carried "
            f"over by {sum(counts):,} nodes, {each} each{told}."
        )

    @classmethod
    def from_json(cls, saved: Mapping[str, Any]) -> Refresh:
        """From what `dataclasses.asdict` made of one."""
        carried = tuple((int(c), int(count)) for c, count in saved["carried"])
        return cls(saved["why"], carried, saved["told"], tuple(saved["notes"]))


@dataclass(frozen=True)
class Stage:
    """What one phase did: written by the entrances of both phases, read by reports.

    Attributes:
        method: "fit", or the short name of the method.
        settings: With which it ran.
        seed: From which all its random numbers come.
        sees: What it was given, in words.
        history: Each loss in each epoch.
        count: How many new classes there seemed to be, where nobody had said it.
        mixed: Whether the nodes given could be of known classes too.
        refresh: How the representation was fitted anew before it, where it was.
        found_in: For each class that was found, by its id, in how many groupings of resampled nodes
            it was met again, and how many there were; of methods that group more than once.
    """

    method: str
    settings: Mapping[str, object]
    seed: int
    sees: tuple[str, ...]
    history: History = field(default_factory=dict)
    count: ClassCountEstimate | None = None
    mixed: bool = False
    refresh: Refresh | None = None
    found_in: Mapping[int, tuple[int, int]] = field(default_factory=dict)


MAX_FEW = 32  # nodes beyond which a pass over all costs less than their own neighborhoods


@dataclass(frozen=True, eq=False)
class ModelParts:
    """An encoder, a joint head and a memory of classes: what a method takes from a model.

    All of them are copies, so that a method cannot damage the model it starts from.

    Attributes:
        fit_signature: Size and features of the graph that the encoder was fitted on; None in models
            saved before it was kept.
    """

    _encoder: Encoder
    _head: Head
    _novel_head: nn.Linear | None
    _memory: Memory
    _cells: Partition | None  # of the views of `prism`; trained encoders have none
    fit_signature: FitSignature | None = field(default=None, kw_only=True)

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
        """A copy of h^u, the head for the newest classes only, when the last method has one."""
        h = copy.deepcopy(self._novel_head)
        return None if h is None else h.requires_grad_(True)

    @property
    def memory(self) -> Memory:
        """A copy of what is remembered of each class."""
        return self._memory.copy()

    @property
    def cells(self) -> Partition | None:
        """A copy of where labelled nodes were, by which known and new nodes are told apart.

        None if it was not kept.
        """
        return None if self._cells is None else self._cells.map(Tensor.clone)

    @property
    def recipe(self) -> Mapping[str, Any] | None:
        """How columns of a table become its features, for `load_graph`; None if nobody knows."""
        return None if self.fit_signature is None else self.fit_signature.recipe

    @property
    def device(self) -> torch.device:
        """Where it is kept, and runs."""
        return self._head.linear.weight.device

    def to(self, device: str | torch.device) -> Self:
        """The same model on another device."""
        place = torch.device(device)
        novel = copy.deepcopy(self._novel_head)
        return replace(
            self,
            _encoder=copy.deepcopy(self._encoder).to(place),
            _head=copy.deepcopy(self._head).to(place),
            _novel_head=None if novel is None else novel.to(place),
            _memory=self._memory.to(place),
            _cells=None if self._cells is None else self._cells.to(place),
        )

    def aligned(self, graph: Graph) -> Graph:
        """The graph with the features that this model knows, in the model's order.

        Features are matched by name where both have names: those that the model does not know are
        left out, those that the graph lacks are zero. Without names there must be as many.

        Args:
            graph: Any.

        Raises:
            GraphError: It has none of the features, or no names and another number of them.
        """
        names = None if self.fit_signature is None else self.fit_signature.feature_names
        if names is not None:
            graph = with_features(graph, names)
        expected = self._encoder.spec.num_features
        if graph.num_features != expected:
            raise GraphError(
                f"the graph has {graph.num_features} features, the model was trained on {expected}"
            )
        return graph

    def check(self, graph: Graph) -> None:
        """Raise a GraphError unless the graph has features this model was trained on."""
        self.aligned(graph)

    def _rows(self, graph: Graph, ids: np.ndarray) -> Tensor:
        """(n, hidden) z of some nodes: of few of them, by those near them alone."""
        g, field = self._encoder, self._encoder.spec.receptive_field
        if len(ids) > MAX_FEW or split_of(graph) is not None:
            return encode(g, graph)[torch.from_numpy(ids)]
        if isinstance(g, PrismEncoder):
            return few_rows(g, graph, ids)
        if field is None:
            return g.rows(graph, torch.from_numpy(ids))
        asked, place = np.unique(ids, return_inverse=True)
        near, places = graph.k_hop_subgraph(asked, field + 1)
        return g.rows(near, torch.from_numpy(places[place]))

    def _run(self, graph: Graph, read: Callable[[Tensor], Tensor]) -> np.ndarray:
        """What `read` makes of z of all nodes."""
        graph = self.aligned(graph)
        with torch.no_grad(), fixed_threads():
            return read(encode(self._encoder, graph)).cpu().numpy()

    def _run_head(
        self, graph: Graph, read: Callable[[Tensor], Tensor], only: Iterable[object] | None = None
    ) -> np.ndarray:
        """What `read` makes of (N, columns) what the joint head says of all nodes, or of some.

        Of many views no more than one is held, cut to the ranks that the head reads.
        """
        graph = self.aligned(graph)
        g, h = self._encoder, self._head
        with torch.no_grad(), fixed_threads():
            if only is not None:
                return read(h(self._rows(graph, graph.numbers_of(only)))).cpu().numpy()
            if not isinstance(g, PrismEncoder) or not isinstance(h, UnitLinearHead):
                return read(h(encode(g, graph))).cpu().numpy()
            views: Any = g.each_view(graph, max(h.multirank.ranks))
            if split_of(graph) is not None:
                return read_split(h, views, read)
            kept = last_pass(g, graph)
            return read(h.from_views(views if kept is None else g.places(kept))).cpu().numpy()


def trained_encoder(model: Model, method: str) -> GNN:
    """A copy of a trained encoder, to be trained further.

    Args:
        model: Whose encoder.
        method: The name of the method that needs it, for the error.

    Raises:
        SettingError: The encoder was computed, not trained.
    """
    g = model.encoder()
    if not isinstance(g, GNN):
        raise needs_training(method, g.spec.name)
    return g


def trained_head(model: Model, method: str) -> UnitLinearHead:
    """The joint head of a model as phase 2 trains it further, on z/|z|.

    Phase 1's plain linear rows are read on z/|z| from here on.

    Args:
        model: Whose head.
        method: The name of the method that needs it, for the error.

    Raises:
        SettingError: The encoder was computed, not trained; it has no such head.
    """
    head = linear_head(model, method)
    return head.on_sphere() if isinstance(head, LinearHead) else head


def linear_head(model: Model, method: str) -> Head:
    """The joint head of a model read as it was trained.

    Args:
        model: Whose head.
        method: The name of the method that needs it, for the error.

    Raises:
        SettingError: The encoder was computed, not trained; it has no such head.
    """
    trained_encoder(model, method)
    return model.head()


UNSURE = -1


@dataclass(frozen=True, eq=False)
class ModelOutputs(ModelParts):
    """The parts of a model with classes to put nodes into.

    Attributes:
        classes: In the order of stages, and by id within one.
        column_class_ids: For every column of the joint head the id of the class it belongs to.
    """

    classes: tuple[NodeClass, ...]
    column_class_ids: tuple[int, ...] = ()

    @property
    def classes_per_stage(self) -> tuple[int, ...]:
        """How many classes each phase brought: (labelled, found by the first discover, ...)."""
        stages = [c.stage for c in self.classes]
        return tuple(stages.count(stage) for stage in range(max(stages) + 1))

    @property
    def num_old(self) -> int:
        """How many classes were known before the newest stage; all when nothing was discovered."""
        return sum(self.classes_per_stage[:-1]) or len(self.classes)

    def embed(self, graph: Graph) -> np.ndarray:
        """(N, hidden) representations z of all nodes."""
        return self._run(graph, lambda z: z)

    def predict_proba(self, graph: Graph, *, only: Iterable[object] | None = None) -> np.ndarray:
        """(N, classes) probability of each class for each node, or `only` for some: see `predict`.

        The columns are in the order of `classes`.
        """
        return self._run_head(graph, lambda h: self._by_class(h).softmax(dim=1), only)

    def embed_and_predict(self, graph: Graph) -> tuple[np.ndarray, np.ndarray]:
        """`embed` and `predict_proba` for the price of one."""
        with shared_passes():
            return self.embed(graph), self.predict_proba(graph)

    def predict(
        self,
        graph: Graph,
        min_confidence: float = 0.0,
        *,
        only: Iterable[object] | None = None,
    ) -> np.ndarray:
        """The most likely class of each node.

        Args:
            graph: With features the model was trained on, matched by name where they have names.
            min_confidence: Nodes whose most likely class is less probable get UNSURE (-1) instead.
            only: Names (`graph.node_ids`) of the nodes that are asked for; all unless given. A few
                take milliseconds: what is near them is looked at, and rounding alone differs.

        Returns:
            (N,) ids of classes, or (n,) of those asked for; `class_of(id)` says what each is.

        Raises:
            GraphError: The graph has other features, or no such node.
        """
        ids = np.array([c.id for c in self.classes])
        if min_confidence <= 0:
            return ids[self._run_head(graph, lambda h: self._by_class(h).argmax(dim=1), only)]
        probabilities = self.predict_proba(graph, only=only)
        unsure = probabilities.max(axis=1) < min_confidence
        return np.where(unsure, UNSURE, ids[probabilities.argmax(axis=1)])

    def predict_new(self, graph: Graph) -> np.ndarray:
        """(N,) id of the most likely of the newest stage's classes, by h^u if there is one (New-N).

        Raises:
            GraphError: Nothing was discovered yet, or the graph has other features.
        """
        n_old = self.num_old
        if n_old == len(self.classes):
            raise GraphError("the model has no discovered classes yet: call discover first")
        new_ids = np.array([c.id for c in self.classes[n_old:]])
        if self._novel_head is not None:
            novel_head = self._novel_head
            return new_ids[self._run(graph, lambda z: novel_head(z).argmax(dim=1))]
        return new_ids[self._run_head(graph, lambda h: self._by_class(h)[:, n_old:].argmax(dim=1))]

    def _by_class(self, logits: Tensor) -> Tensor:
        """(N, classes) the head's columns, those of a merged class added as probabilities are."""
        if self.column_class_ids == tuple(c.id for c in self.classes):
            return logits
        of = torch.tensor(self.column_class_ids, device=logits.device)
        return torch.stack([logits[:, of == c.id].logsumexp(dim=1) for c in self.classes], dim=1)


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

    def grown(
        self,
        *,
        encoder: Encoder,
        head: Head,
        memory: Memory,
        novel_head: nn.Linear | None = None,
        history: History | None = None,
        cells: Partition | None = None,
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
        names = make_unique([f"new-{i}" for i in ids], self.class_names)
        found_in = dict(zip(ids, times_found, strict=False))  # some methods do not tell
        found = tuple(NodeClass(i, name, stage) for i, name in zip(ids, names, strict=True))
        return Model(
            _encoder=freeze(encoder),
            _head=freeze(head),
            _novel_head=None if novel_head is None else freeze(novel_head),
            _memory=memory,
            classes=self.classes + found,
            # `discover` knows the method, its settings and the seed; it replaces this placeholder.
            stages=(*self.stages, Stage("", {}, 0, (), history or {}, found_in=found_in)),
            column_class_ids=self.column_class_ids + tuple(ids),
            edits=self.edits,
            _cells=cells,
            fit_signature=self.fit_signature,
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
