"""The types that hold labels."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self

import numpy as np

from nodenova.errors import GraphError
from nodenova.files.documents import check_encodable
from nodenova.graph import Graph, NewTask, invert
from nodenova.settings import check_arguments

if TYPE_CHECKING:
    from nodenova.io.recipe import TableEncoder

UNKNOWN = -1


def number_classes(y: np.ndarray, n: int, source: str) -> tuple[str, ...]:
    """Names "0", "1", ... for the classes of a graph of `n` nodes that has no names for them.

    There are at most as many classes as nodes: else one number would ask for any amount of memory.
    """
    if not y.size or y.dtype.kind not in "iu":  # NumPy counts differences of times as integers
        return ()
    highest = int(y.max())
    if highest >= n:
        raise GraphError(
            f"{source}: y holds {highest}, but there are {n:,} nodes; number the classes "
            "0, 1, ..., or name them in class_names"
        )
    return tuple(map(str, range(highest + 1)))


@dataclass(frozen=True, eq=False)
class LabelledGraph:
    """A graph and the known classes of its nodes.

    Attributes:
        graph: Graph of N nodes.
        y: (N,) class numbers 0..C-1, or -1 where the class is unknown.
        class_names: Names of the C classes.
        train: (N,) mask of the training nodes of the published split, or None without one.
        val: (N,) mask of its validation nodes, or None.
        test: (N,) mask of its test nodes, or None without a split.
        name: Name of the graph in messages and results.

    Raises:
        GraphError: If `y` or a mask does not fit the graph, or training and test nodes overlap.

    Examples:
        >>> import numpy as np
        >>> import nodenova as nova
        >>> graph = nova.Graph.of(np.eye(3), [[0, 1], [1, 2]])
        >>> labelled = nova.LabelledGraph(graph, np.array([0, 1, -1]), ("cell", "gene"))
        >>> labelled.num_classes, labelled.has_split
        (2, False)
    """

    graph: Graph
    y: np.ndarray
    class_names: tuple[str, ...]
    train: np.ndarray | None = None
    val: np.ndarray | None = None
    test: np.ndarray | None = None
    name: str = "graph"

    def __post_init__(self) -> None:
        check_arguments(LabelledGraph, vars(self))
        n = self.graph.num_nodes
        y = np.asarray(self.y)
        if y.shape != (n,):
            raise GraphError(f"{self.name}: y has shape {y.shape}, but x has {n} nodes")
        if y.dtype.kind not in "iu":
            raise GraphError(
                f"{self.name}: y must hold whole numbers (-1 = unknown), it holds {y.dtype}"
            )
        object.__setattr__(self, "y", y.astype(np.int64))
        check_encodable((self.name, *self.class_names), "the name", GraphError)
        if y.min() < UNKNOWN or y.max() >= len(self.class_names):
            bad = y[(y < UNKNOWN) | (y >= len(self.class_names))][0]
            raise GraphError(
                f"{self.name}: y holds {bad}, but there are {len(self.class_names)} classes"
            )
        for mask_name in ("train", "val", "test"):
            mask = getattr(self, mask_name)
            if mask is not None and (mask.shape != (n,) or mask.dtype != bool):
                raise GraphError(
                    f"{self.name}: {mask_name}_mask must be {n} booleans, "
                    f"it is {mask.dtype} of shape {mask.shape}"
                )

        if (self.train is None) != (self.test is None):
            raise GraphError(f"{self.name}: train_mask and test_mask come together or not at all")
        if self.train is not None and self.test is not None:
            both = self.train & self.test & (y != UNKNOWN)
            if both.any():
                raise GraphError(
                    f"{self.name}: node {both.argmax()} is in train_mask and in test_mask"
                )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {self.graph!r}, {self.num_classes} classes)"

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def has_split(self) -> bool:
        """Whether the graph comes with a published split."""
        return self.train is not None and self.test is not None

    def _reorder(self, graph: Graph, order: np.ndarray) -> Self:
        """The same labels on `graph`, whose nodes are those with the numbers `order` here."""
        masks = {name: getattr(self, name) for name in ("train", "val", "test")}
        moved = {name: mask[order] for name, mask in masks.items() if mask is not None}
        return replace(self, graph=graph, y=self.y[order], **moved)

    def as_given(self) -> Self:
        """Return the labelled graph with its nodes in the order of the user's table."""
        order = self.graph.given_order
        return self if order is None else self._reorder(self.graph.as_given(), order)

    def fingerprint(self) -> str:
        """Return a short hash of features, edges, labels and masks, to identify the data.

        Returns:
            16 hexadecimal digits, the first ones of `sha256`.
        """
        return self.sha256()[:16]

    def sha256(self) -> str:
        """Return the SHA-256 of features, edges, labels and masks.

        Returns:
            64 hexadecimal digits.
        """
        digest = hashlib.sha256()
        x = self.graph.x
        parts = [x] if isinstance(x, np.ndarray) else [x.data, x.indices, x.indptr]
        parts += [self.graph.edge_index, self.y]
        optional = (self.graph.edge_weight, self.graph.vectors, self.train, self.val, self.test)
        parts += [part for part in optional if part is not None]
        for part in parts:
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class UserGraph(LabelledGraph):
    """A user's own graph: a labelled graph that also knows which nodes are new.

    It works wherever a `LabelledGraph` does, as in `split(load_graph("mine.npz"), old=[0, 1])`.
    Classes with a labelled node that is not new come first; classes of new nodes only (an answer
    key) come last.

    Attributes:
        new_ids: Ascending numbers of the new nodes; none by default. If `y` has labels for some of
            them, these are used for grading only.
        notes: Repairs, dropped parts and assumptions about the files, one sentence each.
        recipe: How columns become features, for later files; None if the features were ready made.
        new_named: Whether the user named the new nodes. If not, all unlabelled nodes are new, and
            nodes of known classes may be among them.

    Examples:
        >>> import numpy as np
        >>> import nodenova as nova
        >>> graph = nova.Graph.of(np.eye(4), [[0, 1, 2], [1, 2, 3]])
        >>> y, new_ids = np.array([0, 1, -1, -1]), np.array([2, 3])
        >>> mine = nova.UserGraph(graph, y, ("cell", "gene"), new_ids=new_ids)
        >>> mine.num_old, mine.is_new.tolist()
        (2, [False, False, True, True])
    """

    new_ids: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    notes: tuple[str, ...] = ()
    recipe: TableEncoder | None = None
    new_named: bool = True

    def _reorder(self, graph: Graph, order: np.ndarray) -> Self:
        moved = super()._reorder(graph, order)
        return replace(moved, new_ids=np.flatnonzero(self.is_new[order]))

    def canonical(self) -> UserGraph:
        """Return the graph with its nodes in canonical order if it was read from tables.

        Ids name the nodes of a table, so that the order of its rows means nothing: whatever draws
        or adds up numbers works on this graph, and `graph.given_order` leads back to the rows. The
        order of arrays is part of the input; a graph that was made from arrays is returned as it
        is.

        Examples:
            >>> import pandas as pd
            >>> import nodenova as nova
            >>> nodes = pd.DataFrame({"id": [3, 1, 2], "label": ["a", "b", None], "w": [5, 7, 9]})
            >>> loaded = nova.load_graph(nodes=nodes)
            >>> loaded.canonical().graph.node_ids.tolist(), loaded.canonical().y.tolist()
            (['1', '2', '3'], [1, -1, 0])
        """
        if self.recipe is None and self.graph.recipe is None:
            return self
        graph = self.graph.canonical()
        if graph is self.graph or graph.given_order is None:
            return self
        return self._reorder(graph, invert(graph.given_order))

    @property
    def is_new(self) -> np.ndarray:
        """(N,) which nodes are new."""
        mask = np.zeros(self.graph.num_nodes, dtype=bool)
        mask[self.new_ids] = True
        return mask

    @property
    def num_old(self) -> int:
        """Number of known classes: those with a labelled node that is not new."""
        return len(np.unique(self.y[(self.y != UNKNOWN) & ~self.is_new]))


@dataclass(frozen=True, eq=False)
class OldTask:
    """The task of phase 1: a graph and labelled nodes of the old classes.

    Classes are numbered 0..n_old-1.

    Attributes:
        graph: Graph of phase 1.
        train_ids: Labelled training nodes, ascending.
        train_y: Classes of the training nodes.
        val_ids: Validation nodes, ascending; may be empty.
        val_y: Classes of the validation nodes.
        class_names: Names of the n_old classes.

    Examples:
        >>> import nodenova as nova
        >>> old, _, _ = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), old=[0, 1])
        >>> old.class_names, len(old.train_ids), len(old.val_ids)
        (('class-0', 'class-1'), 40, 12)
    """

    graph: Graph
    train_ids: np.ndarray
    train_y: np.ndarray
    val_ids: np.ndarray
    val_y: np.ndarray
    class_names: tuple[str, ...]

    def __repr__(self) -> str:
        labelled = f"{len(self.train_ids):,} labelled nodes of {len(self.class_names)} classes"
        return f"OldTask({labelled}, {self.graph!r})"


@dataclass(frozen=True, eq=False)
class LabelledNewTask:
    """The task of phase 2 for methods that need labels.

    `discover_supervised` removes what a method does not declare to need; that is None.

    Attributes:
        graph: Graph of phase 2.
        ids: New training nodes, ascending.
        num_new: Number of new classes to find among them.
        y: Classes of the new nodes, 0..num_new-1.
        old_ids: Labelled nodes of earlier phases, ascending.
        old_y: Classes of the old nodes, as the model numbers them.
        val_ids: Validation nodes of all classes, ascending.
        val_y: Classes of the validation nodes, as the joint head will number them.

    Raises:
        GraphError: If labels and nodes do not fit together, or nodes are not ascending.

    Examples:
        >>> import nodenova as nova
        >>> labelled = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> task = nova.labelled_new_task(labelled, old=[0, 1])
        >>> sorted(set(task.y.tolist())), sorted(set(task.old_y.tolist()))
        ([0, 1], [0, 1])
    """

    graph: Graph
    ids: np.ndarray
    num_new: int
    y: np.ndarray | None = None
    old_ids: np.ndarray | None = None
    old_y: np.ndarray | None = None
    val_ids: np.ndarray | None = None
    val_y: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"LabelledNewTask({len(self.ids):,} nodes, {self.num_new} new, {self.graph!r})"

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", NewTask(self.graph, self.ids, self.num_new).ids)
        for which, name in (("old", "old"), ("validation", "val")):
            ids, y = getattr(self, f"{name}_ids"), getattr(self, f"{name}_y")
            if ids is not None and len(ids):
                object.__setattr__(self, f"{name}_ids", NewTask(self.graph, ids, 1).ids)
            elif ids is None and y is not None:
                raise GraphError(f"labels of {which} nodes are given without the nodes")
        pairs = (
            ("new", self.ids, self.y),
            ("old", self.old_ids, self.old_y),
            ("validation", self.val_ids, self.val_y),
        )
        for which, ids, y in pairs:
            if ids is not None and y is not None and (y.shape != ids.shape or y.min(initial=0) < 0):
                raise GraphError(
                    f"{len(ids)} {which} nodes need as many labels, numbered from 0; "
                    f"there are {len(y)}"
                )


@dataclass(frozen=True, eq=False)
class Exam:
    """The true classes of the test nodes, held back until grading.

    Classes are numbered as the model numbers them: old ones first, then by stage.

    Attributes:
        graph: Graph that a model classifies.
        ids: Test nodes, ascending.
        y: True classes of the test nodes.
        sizes: Number of classes of each phase: (n_old, n_new of stage 1, ...).
        class_names: Names of the true classes.

    Examples:
        >>> import nodenova as nova
        >>> _, _, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), old=[0, 1])
        >>> exam.sizes, len(exam.ids)
        ((2, 2), 90)
    """

    graph: Graph
    ids: np.ndarray
    y: np.ndarray
    sizes: tuple[int, ...]
    class_names: tuple[str, ...]

    def __repr__(self) -> str:  # without the answers
        return f"Exam({len(self.ids):,} nodes of {sum(self.sizes)} classes, {self.graph!r})"

    @property
    def answers(self) -> np.ndarray:
        """(N,) true classes of the test nodes, -1 for all others."""
        y = np.full(self.graph.num_nodes, UNKNOWN)
        y[self.ids] = self.y
        return y
