"""The model: one classifier for all classes known so far, as an immutable value.

First what is recorded about its making (FitSignature, Refresh, Stage), then Model itself: its
parts, its outputs, how methods get copies of the parts and return a bigger model, and how classes
are edited. The functions at the end hand trained parts to methods.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nodenova.display import html_table
from nodenova.encoders.prism.encoder import PrismEncoder
from nodenova.encoders.prism.lda import LDASettings
from nodenova.encoders.prism.local_inference import encode_few
from nodenova.errors import GraphError, SettingError, needs_training
from nodenova.graph import Graph
from nodenova.model import edits, info
from nodenova.model.classes import NodeClass, make_unique
from nodenova.model.decisions import Create, Decision
from nodenova.model.saving import save_model
from nodenova.nn.class_memory import Memory
from nodenova.nn.distributed import split_of
from nodenova.nn.encode_cache import encode, last_pass, shared_passes
from nodenova.nn.encoder import Encoder, TrainedEncoder
from nodenova.nn.heads import Head, LinearHead, UnitLinearHead, read_split
from nodenova.nn.numerics import all_finite, check_finite, numerics_error
from nodenova.nn.seeding import fixed_threads, pick_device
from nodenova.nn.training import History, freeze
from nodenova.open_world.count import ClassCountEstimate
from nodenova.open_world.novelty import Partition
from nodenova.settings import check_arguments, check_probability

UNSURE = -1  # the id that `predict` returns for nodes below `min_confidence`
MAX_FEW = 32  # nodes above which one pass over the graph costs less than their neighborhoods


@dataclass(frozen=True)
class FitSignature:
    """Size and features of the graph that an encoder was fitted on, without its nodes.

    Attributes:
        nodes: Number of nodes.
        edges: Number of edges, each counted in both directions.
        feature_names: Feature names in the encoder's order; None where they had no names.
        recipe: Encoding of the columns of a table as these features, as JSON values; None where
            they did not come from a table. `load_graph(..., recipe=model.recipe)` reads later
            tables the same way.

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
        """Return the signature of a graph."""
        recipe = None if graph.recipe is None else dict(graph.recipe)
        return cls(graph.num_nodes, graph.num_edges, graph.feature_names, recipe)

    def to_json(self) -> dict[str, Any]:
        """Return JSON values; there is no key "recipe" without a recipe, as in the first models."""
        document = {"nodes": self.nodes, "edges": self.edges, "feature_names": self.feature_names}
        return document if self.recipe is None else document | {"recipe": dict(self.recipe)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> FitSignature:
        """Return the signature that `to_json` wrote."""
        names = document["feature_names"]
        known = None if names is None else tuple(names)
        return cls(document["nodes"], document["edges"], known, document.get("recipe"))


@dataclass(frozen=True)
class Refresh:
    """How the representation was refitted on a grown graph before a phase.

    Attributes:
        why: Reason, as a clause.
        carried: Id of each class, and the number of nodes of the grown graph that stand for it:
            nodes that the model was sure of before, and labelled ones.
        told: Number of these nodes that the user labelled.
        notes: One sentence per class that hardly any node stands for.

    Examples:
        >>> Refresh("9% of the features were not known", ((0, 75), (4, 60)), 30).sentence()
        'The representation was refitted: 9% of the features were not known. 2 existing classes \
kept, using 135 earlier nodes as examples (60–75 per class; 30 labelled).'
    """

    why: str
    carried: tuple[tuple[int, int], ...]
    told: int = 0
    notes: tuple[str, ...] = ()

    def sentence(self) -> str:
        """Return what was done, for a reader."""
        counts = [count for _, count in self.carried]
        most, least = max(counts), min(counts)
        each = f"{least:,}–{most:,}" if least < most else f"{least:,}"
        labelled = f"; {self.told:,} labelled" if self.told else ""
        return (
            f"The representation was refitted: {self.why}. {len(counts)} existing classes kept, "
            f"using {sum(counts):,} earlier nodes as examples ({each} per class{labelled})."
        )

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Refresh:
        """Return the value that `dataclasses.asdict` took apart."""
        carried = tuple((int(c), int(count)) for c, count in document["carried"])
        return cls(document["why"], carried, document["told"], tuple(document["notes"]))


@dataclass(frozen=True)
class Stage:
    """The record of one phase: what ran, and what came of it.

    Attributes:
        method: "fit", or the short name of the method.
        settings: Settings of the encoder or method.
        seed: Seed of all its random numbers.
        sees: Names of what it was given.
        history: Each loss in each epoch.
        count: The estimated number of new classes, where none was given.
        mixed: Whether the given nodes could belong to known classes too.
        refresh: Record of a refit of the representation before it; None where there was none.
        found_in: For each class that was found, by id: in how many groupings of resampled nodes it
            was found again, and the number of groupings; empty for methods that group once.
        revised: Ids of earlier discovered classes that it searched again: classes it found that
            are the same keep these ids, the other ids are not used again.
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
    revised: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Model:
    """One classifier for all classes known so far.

    `fit` returns one, `discover` a bigger one. Its parts are private and handed out as copies, so
    that a method cannot damage the model it starts from.

    Attributes:
        classes: The classes, by stage and then by id.
        column_class_ids: For every column of the joint head the id of its class. A discovered
            class is one column; a merged class has several, and its probability is their sum.
        stages: The record of each phase.
        edits: Renames, merges, splits, rejections and created classes since, in order: values of
            `nodenova.model.decisions`.
        fit_signature: Size and features of the graph that the encoder was fitted on; None in
            models saved before it was kept.

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

    _encoder: Encoder
    _head: Head
    _novel_head: nn.Linear | None
    _memory: Memory
    _cells: Partition | None  # of the views of `prism`; trained encoders have none
    classes: tuple[NodeClass, ...]
    column_class_ids: tuple[int, ...] = ()
    stages: tuple[Stage, ...] = ()
    edits: tuple[Decision, ...] = ()
    fit_signature: FitSignature | None = None

    def __post_init__(self) -> None:
        if not self.column_class_ids:
            object.__setattr__(self, "column_class_ids", tuple(c.id for c in self.classes))

    def __repr__(self) -> str:
        name, new = self._encoder.spec.name, sum(c.is_new for c in self.classes)
        return f"Model({name}, {len(self.classes)} classes, {new} of them discovered)"

    def _repr_html_(self) -> str:
        rows = [(c.id, c.name, c.kind, c.stage) for c in self.classes]
        return html_table(("id", "name", "kind", "stage"), rows, repr(self))

    # Its classes.

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names, in the order of `classes`."""
        return tuple(c.name for c in self.classes)

    @property
    def classes_per_stage(self) -> tuple[int, ...]:
        """Number of classes from each phase: (labelled, found by the first discover, ...)."""
        stages = [c.stage for c in self.classes]
        return tuple(stages.count(stage) for stage in range(max(stages) + 1))

    @property
    def num_old(self) -> int:
        """Number of classes before the newest stage; all of them if nothing was discovered."""
        return sum(self.classes_per_stage[:-1]) or len(self.classes)

    @property
    def num_columns(self) -> int:
        """Number of columns of the joint head, and of remembered classes: what a method counts."""
        return len(self.column_class_ids)

    @property
    def next_id(self) -> int:
        """Id of the next class that is found: above all ids that were ever used."""
        edited = [class_id for edit in self.edits for class_id in edit.ids]
        revised = [class_id for stage in self.stages for class_id in stage.revised]
        return 1 + max([c.id for c in self.classes] + edited + revised)

    def class_of(self, class_id: int) -> NodeClass:
        """Return the class with this id.

        Raises:
            SettingError: If there is no such class.
        """
        check_arguments(Model.class_of, locals())
        for c in self.classes:
            if c.id == class_id:
                return c
        known = ", ".join(str(c.id) for c in self.classes)
        raise SettingError(f"there is no class {class_id}; the model has {known}")

    # Its parts, as copies: for methods.

    def encoder(self) -> Encoder:
        """Return a copy of g, to be trained further."""
        return copy.deepcopy(self._encoder).requires_grad_(True)

    def frozen_encoder(self) -> Encoder:
        """Return a copy of g for distillation: no gradient, no dropout."""
        return copy.deepcopy(self._encoder)

    def head(self) -> Head:
        """Return a copy of the joint head h^a, to be trained further."""
        return copy.deepcopy(self._head).requires_grad_(True)

    def novel_head(self) -> nn.Linear | None:
        """Return a copy of h^u, the head for the newest classes only; None without one."""
        h = copy.deepcopy(self._novel_head)
        return None if h is None else h.requires_grad_(True)

    @property
    def memory(self) -> Memory:
        """A copy of the statistics of each class."""
        return self._memory.copy()

    @property
    def cells(self) -> Partition | None:
        """A copy of where labelled nodes were, which separates known from new nodes, or None."""
        return None if self._cells is None else self._cells.map(Tensor.clone)

    @property
    def lda(self) -> LDASettings:
        """How classes are compared, as calibrated in phase 1."""
        return LDASettings.of_stages(stage.settings for stage in self.stages)

    @property
    def recipe(self) -> Mapping[str, Any] | None:
        """How columns of a table become its features, for `load_graph`; None if unknown."""
        return None if self.fit_signature is None else self.fit_signature.recipe

    @property
    def device(self) -> torch.device:
        """The device that it is stored and runs on."""
        return self._head.linear.weight.device

    def to(self, device: str | torch.device) -> Model:
        """Return the same model on another device."""
        check_arguments(Model.to, locals())
        place = pick_device(str(device))
        novel = copy.deepcopy(self._novel_head)
        return replace(
            self,
            _encoder=copy.deepcopy(self._encoder).to(place),
            _head=copy.deepcopy(self._head).to(place),
            _novel_head=None if novel is None else novel.to(place),
            _memory=self._memory.to(place),
            _cells=None if self._cells is None else self._cells.to(place),
        )

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
        """Return the model of a method: these classes, and one more per further row of `head`.

        Args:
            encoder: The encoder g as it is now.
            head: The joint head h^a: a row for each column of this model, in that order, followed
                by those of the new classes.
            memory: Statistics of all these classes.
            novel_head: The head h^u, if the method has one.
            history: Each loss in each epoch.
            cells: Partition with the nodes of these classes; unchanged by default. A trained
                encoder has none.
            times_found: For each new class the number of groupings that it was found in, and the
                number of groupings.
        """
        if cells is None and not encoder.spec.trainable:
            cells = self._cells
        stage = max(len(self.stages), 1 + max(c.stage for c in self.classes))
        ids = range(self.next_id, self.next_id + head.num_classes - self.num_columns)
        names = make_unique([f"new-{i}" for i in ids], self.class_names)
        found_in = dict(zip(ids, times_found, strict=False))  # empty for some methods
        found = tuple(NodeClass(i, name, stage) for i, name in zip(ids, names, strict=True))
        return Model(
            _encoder=freeze(encoder),
            _head=freeze(head),
            _novel_head=None if novel_head is None else freeze(novel_head),
            _memory=memory,
            _cells=cells,
            classes=self.classes + found,
            column_class_ids=self.column_class_ids + tuple(ids),
            # `discover` knows the method, its settings and the seed; it replaces this placeholder.
            stages=(*self.stages, Stage("", {}, 0, (), history or {}, found_in=found_in)),
            edits=self.edits,
            fit_signature=self.fit_signature,
        )

    def with_last_stage(self, stage: Stage) -> Model:
        """Return the model with another newest stage, which keeps its history and `found_in`."""
        last = self.stages[-1]
        stage = replace(stage, history=last.history, found_in=last.found_in)
        return replace(self, stages=(*self.stages[:-1], stage))

    def check_numbers(self) -> Model:
        """Return the model; raise a NumericsError if a part that a phase made is not finite.

        A computed encoder checks itself when it is fitted.
        """
        parts: list[tuple[str, Mapping[str, Tensor]]] = [
            ("the head", self._head.state_dict()),
            ("the class statistics", self._memory.tensors()),
        ]
        if self._novel_head is not None:
            parts.append(("the head of new classes", self._novel_head.state_dict()))
        if self._encoder.spec.trainable:
            parts.append(("the encoder", self._encoder.state_dict()))
        for name, tensors in parts:
            for tensor in tensors.values():
                check_finite(tensor, name)
        return self

    # Its outputs.

    def embed(self, graph: Graph) -> np.ndarray:
        """Return (N, hidden) representations z of all nodes."""
        return self._run(graph, lambda z: z)

    def predict_proba(self, graph: Graph, *, only: Iterable[object] | None = None) -> np.ndarray:
        """Return (N, classes) probabilities of the classes for each node, or for `only` some nodes.

        The columns are in the order of `classes`; for `only` see `predict`.
        """
        check_arguments(Model.predict_proba, locals())
        return self._run_head(graph, lambda h: self._by_class(h).softmax(dim=1), only)

    def embed_and_predict(self, graph: Graph) -> tuple[np.ndarray, np.ndarray]:
        """Return `embed` and `predict_proba` for the price of one."""
        with shared_passes():
            return self.embed(graph), self.predict_proba(graph)

    def predict(
        self,
        graph: Graph,
        min_confidence: float = 0.0,
        *,
        only: Iterable[object] | None = None,
    ) -> np.ndarray:
        """Return the most likely class of each node.

        Args:
            graph: Graph with the features that the model was trained on, matched by name where
                they have names.
            min_confidence: Nodes whose most likely class is less probable get UNSURE (-1).
            only: Names (`graph.node_ids`) of the nodes to predict; all by default. A few nodes take
                milliseconds, as only their surroundings are read; the result differs by rounding.

        Returns:
            (N,) ids of classes, or (n,) those of `only`; `class_of(id)` returns the class.

        Raises:
            GraphError: If the graph has other features, or there is no such node.
            NumericsError: If a number is not finite, as for all outputs of a model.
            SettingError: If `min_confidence` is not a probability.
        """
        check_arguments(Model.predict, locals())
        check_probability(min_confidence)
        ids = np.array([c.id for c in self.classes])
        if min_confidence <= 0:
            return ids[self._run_head(graph, lambda h: self._by_class(h).argmax(dim=1), only)]
        probabilities = self.predict_proba(graph, only=only)
        unsure = probabilities.max(axis=1) < min_confidence
        return np.where(unsure, UNSURE, ids[probabilities.argmax(axis=1)])

    def predict_new(self, graph: Graph) -> np.ndarray:
        """Return (N,) ids of the most likely class of the newest stage, by h^u if there is one.

        Raises:
            GraphError: If nothing was discovered yet, or the graph has other features.
        """
        n_old = self.num_old
        if n_old == len(self.classes):
            raise GraphError("the model has no discovered classes yet: call discover first")
        new_ids = np.array([c.id for c in self.classes[n_old:]])
        if self._novel_head is not None:
            novel_head = self._novel_head
            return new_ids[self._run(graph, lambda z: novel_head(z).argmax(dim=1))]
        return new_ids[self._run_head(graph, lambda h: self._by_class(h)[:, n_old:].argmax(dim=1))]

    def class_info(self, graph: Graph | None = None, **settings: Any) -> info.ClassInfos:
        """Describe each class; `.to_frame()` makes a data frame of it.

        Args:
            graph: Graph whose nodes are described. Without one, only what the model itself knows.
            **settings: Keyword arguments of `nodenova.class_info`.
        """
        return info.class_info(self, graph, **settings)

    def aligned(self, graph: Graph) -> Graph:
        """Return the graph with the features that this model knows, in the model's order.

        Features are matched by name where both have names: unknown ones are dropped, missing ones
        are zero. Without names their number must be the same.

        Args:
            graph: Any graph.

        Raises:
            GraphError: If it has none of the features, or no names and another number of them.
        """
        check_arguments(Model.aligned, locals())
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
        """Raise a GraphError unless the graph has the features this model was trained on."""
        self.aligned(graph)

    def _run(self, graph: Graph, read: Callable[[Tensor], Tensor]) -> np.ndarray:
        """`read` of z of all nodes."""
        graph = self.aligned(graph)
        with torch.no_grad(), fixed_threads():
            return read(_finite(encode(self._encoder, graph), "the embedding")).cpu().numpy()

    def _run_head(
        self, graph: Graph, read: Callable[[Tensor], Tensor], only: Iterable[object] | None = None
    ) -> np.ndarray:
        """`read` of the joint head's logits (N, columns) of all nodes, or of some."""
        read = _Finite(read)
        graph = self.aligned(graph)
        g, h = self._encoder, self._head
        with torch.no_grad(), fixed_threads():
            if only is not None:
                return read(h(self._rows(graph, graph.numbers_of(only)))).cpu().numpy()
            if not isinstance(g, PrismEncoder) or not isinstance(h, UnitLinearHead):
                return read(h(encode(g, graph))).cpu().numpy()
            # One view is held at a time, cut to the ranks that the head reads.
            views: Any = g.each_view(graph, max(h.multirank.ranks))
            if split_of(graph) is not None:
                return read_split(h, views, read)
            z = last_pass(g, graph)
            return read(h.from_views(views if z is None else g.places(z))).cpu().numpy()

    def _rows(self, graph: Graph, ids: np.ndarray) -> Tensor:
        """z (n, hidden) of the nodes `ids`; for few nodes, from their surroundings only."""
        g, hops = self._encoder, self._encoder.spec.receptive_field
        if len(ids) > MAX_FEW or split_of(graph) is not None:
            return encode(g, graph)[torch.from_numpy(ids)]
        if isinstance(g, PrismEncoder):
            return encode_few(g, graph, ids)
        if hops is None:
            return g.rows(graph, torch.from_numpy(ids))
        nodes, place = np.unique(ids, return_inverse=True)
        near, places = graph.k_hop_subgraph(nodes, hops + 1)
        return g.rows(near, torch.from_numpy(places[place]))

    def _by_class(self, logits: Tensor) -> Tensor:
        """(N, classes) logits; the probabilities of a merged class's columns are added."""
        if self.column_class_ids == tuple(c.id for c in self.classes):
            return logits
        of = torch.tensor(self.column_class_ids, device=logits.device)
        return torch.stack([logits[:, of == c.id].logsumexp(dim=1) for c in self.classes], dim=1)

    # Its edits: see `nodenova.model.edits`.

    def rename(self, class_id: int, name: str) -> Model:
        """Return the model with another name for one class.

        Raises:
            SettingError: If there is no such class, or another class has this name.
        """
        return edits.rename(self, class_id, name)

    def merge(self, class_ids: Sequence[int], name: str | None = None) -> Model:
        """Return a model in which several classes are one, their probabilities added up.

        Args:
            class_ids: Two or more ids; the class keeps that of the oldest.
            name: Name of the class; by default that of the oldest that is known or was named,
                else that of the oldest.

        Raises:
            SettingError: If there is no such class, or another class has this name.
        """
        return edits.merge(self, class_ids, name)

    def reject(self, class_id: int, graph: Graph | None = None) -> Model:
        """Return a model without a discovered class; its nodes go to the next likely class.

        Args:
            class_id: Id of the class.
            graph: Graph of the model, to record the classes that get its nodes: `nova.suggest`
                suggests no split of these, which would find the rejected class again.

        Raises:
            SettingError: If there is no such class, or it was learned from labels.
        """
        return edits.reject(self, class_id, graph)

    def split(self, class_id: int, graph: Graph, into: int = 2, seed: int = 0) -> Model:
        """Return a model in which one class is several, by k-means on the nodes assigned to it.

        Every part has a new id; the old id is not used again. No label is used.

        Args:
            class_id: Id of the class.
            graph: Graph whose nodes define the parts.
            into: Number of parts.
            seed: Seed of k-means.

        Raises:
            SettingError: If there is no such class, or its nodes are too few or too alike.
        """
        return edits.split(self, class_id, graph, into, seed)

    def create_class(
        self, nodes: Sequence[str | int], graph: Graph, name: str | None = None
    ) -> Model:
        """Return a model with one more class, made of chosen nodes.

        The class has a new id, and about as many nodes of the graph as were chosen. The model keeps
        mean and variance of the nodes, not the nodes.

        Args:
            nodes: Names (`graph.node_ids`) of three nodes or more.
            graph: Graph with these nodes.
            name: Name of the class; by default "new-" and its id.

        Raises:
            SettingError: If there is no such node, there are fewer than three, or another class has
                this name.
        """
        return edits.create(self, Create(tuple(nodes), name), graph)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the model into `folder` (safetensors and JSON, no pickle), for `load_model`.

        The folder holds no graph, no node id and no label of a node. It holds the names of the
        classes, mean and variance of each class (of one node: its embedding; see
        `min_class_size` of `fit`), and words and category values of a table's columns.

        Args:
            folder: Path of a folder that is new, empty, or holds an earlier save of a model.

        Raises:
            StorageError: If the folder holds something else; nothing is written then.
        """
        check_arguments(Model.save, locals())
        save_model(self, folder)


@dataclass(frozen=True)
class _Finite:
    """Read logits after a check that they are finite; a class, as other machines may run it."""

    read: Callable[[Tensor], Tensor]

    def __call__(self, logits: Tensor) -> Tensor:
        return self.read(_finite(logits, "the logits"))


def _finite(rows: Tensor, name: str) -> Tensor:
    """Return rows (n, columns) of nodes; a NumericsError if a number is not finite."""
    if all_finite(rows):
        return rows
    bad = int((~torch.isfinite(rows)).any(dim=1).sum())
    raise numerics_error(
        f"{bad:,} of {len(rows):,} nodes have NaN or infinity in {name}",
        "check the features of these nodes, or fit the model again",
    )


def with_features(graph: Graph, names: tuple[str, ...]) -> Graph:
    """The graph with the features `names`, in this order, missing ones zero; computed once."""
    if graph.feature_names is None or graph.feature_names == names:
        return graph
    if not set(names) & set(graph.feature_names):
        theirs, ours = (", ".join(map(repr, some[:3])) for some in (graph.feature_names, names))
        raise GraphError(
            f"the graph has no feature that the model knows: the graph's begin with {theirs}, "
            f"the model's with {ours}"
        )
    return graph.cached(("features", names), lambda: graph.aligned(names)[0])


def trained_encoder(model: Model, method: str) -> TrainedEncoder:
    """A copy of the encoder, to be trained further; a SettingError if it was computed."""
    g = model.encoder()
    if not isinstance(g, TrainedEncoder):
        raise needs_training(method, g.spec.name)
    return g


def linear_head(model: Model, method: str) -> Head:
    """A copy of the joint head as it was trained; a SettingError if the encoder was computed."""
    trained_encoder(model, method)
    return model.head()


def trained_head(model: Model, method: str) -> UnitLinearHead:
    """A copy of the joint head on z/|z|, as phase 2 trains it, whatever head phase 1 trained."""
    head = linear_head(model, method)
    return head.on_sphere() if isinstance(head, LinearHead) else head
