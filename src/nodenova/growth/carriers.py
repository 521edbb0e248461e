"""By which nodes of a grown graph what is known of classes is carried into a new representation.

Those that the model is sure of, by the representation it had. A node of a class that nobody has met
lies somewhere in it too, and with confidence as often as not; so nodes that are new, look new or
have unusually many features the model does not know carry nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from nodenova.graph import Graph
from nodenova.growth.change import unknown_shares
from nodenova.model.model import Model
from nodenova.nn.passes import encode
from nodenova.prism.coverage import chance_of_new, coverages

SURE = 0.7  # the probability from which on the model is sure of a node
LOOKS_NEW = 0.5  # the chance from which on a node looks new, where nobody knows which nodes are
MIN_CARRIERS = 5  # of a class; where fewer are sure, the likeliest others help
MIN_MEAN = 2  # nodes that can stand for a class


@dataclass(frozen=True, eq=False)
class Carriers:
    """Nodes of a grown graph, and the column of the joint head that each stands for.

    Attributes:
        ids: (n,) ascending: those that statistics of classes are taken from.
        columns: (n,) of each. Columns that a user's labels bring come behind the model's.
        sample: (m,) ascending: a fair sample of the known classes, sure or not, by which it is told
            where known nodes lie.
        sample_columns: (m,) of each.
        num_columns: The model's, and those that labels bring.
        notes: A sentence on each class that hardly any node stands for.
    """

    ids: np.ndarray
    columns: np.ndarray
    sample: np.ndarray
    sample_columns: np.ndarray
    num_columns: int
    notes: tuple[str, ...]

    @property
    def counts(self) -> np.ndarray:
        """(columns,) nodes that stand for each."""
        return np.bincount(self.columns, minlength=self.num_columns)


@torch.no_grad()
def find_carriers(
    model: Model,
    graph: Graph,
    *,
    met: np.ndarray | None = None,
    all_new: np.ndarray | None = None,
    told: np.ndarray | None = None,
) -> Carriers:
    """The nodes of a grown graph that carry what a model knows of its classes.

    Args:
        model: As it is, in the representation it has.
        graph: The grown graph with all its features.
        met: (N,) which nodes it met before; None where nobody knows. Then nodes that look new, by
            how few labelled nodes lie around them, carry nothing.
        all_new: Numbers of nodes that are said to be new, which carry nothing.
        told: (N,) ids of classes that the user says nodes are of, -1 for none. An id that the model
            does not have is of a class that comes with its labels.

    Returns:
        At least the labelled nodes.
    """
    class_ids = [c.id for c in model.classes]
    logits = torch.from_numpy(model._run_head(graph, lambda columns: columns))
    p = model._by_class(logits).softmax(dim=1).numpy()
    best = p.argmax(axis=1)
    column = _columns(model, logits, np.array(class_ids)[best])
    may = _may_carry(model, graph, met)
    if all_new is not None:
        may[all_new] = False
    num_columns = model.num_columns
    if told is not None:
        labelled = told >= 0
        further = sorted(set(told[labelled].tolist()) - set(class_ids))
        known = labelled & np.isin(told, class_ids)
        column[known] = _columns(model, logits[torch.from_numpy(known)], told[known])
        for number, class_id in enumerate(further):
            column[told == class_id] = num_columns + number
        num_columns += len(further)
        may |= labelled
    probability = p.max(axis=1)
    sure = may & (probability >= SURE)
    if told is not None:
        sure |= told >= 0
    notes = []
    for c in model.classes:
        mine = [j for j, of in enumerate(model.column_class_ids) if of == c.id]
        of_class = np.isin(column, mine)
        if (sure & of_class).sum() < MIN_CARRIERS:
            others = np.flatnonzero(may & of_class & ~sure)
            likely = others[np.argsort(-probability[others], kind="stable")]
            lacking = MIN_CARRIERS - int((sure & of_class).sum())
            sure[likely[:lacking]] = True
            notes.append(_note(c.id, c.name, int((sure & of_class).sum())))
    ids, sample = np.flatnonzero(sure), np.flatnonzero(may)
    return Carriers(ids, column[ids], sample, column[sample], num_columns, tuple(notes))


def _note(class_id: int, name: str, count: int) -> str:
    called = f"class {class_id} ({name})"
    if count < MIN_MEAN:
        return f"{called}: no node of the grown graph stands for it; it would hardly be known again"
    return f"{called}: only {count} nodes of the grown graph stand for it, not all of them sure"


def _columns(model: Model, logits: Tensor, of: np.ndarray) -> np.ndarray:
    """(n,) the likeliest column among those of each node's class."""
    owner = np.array(model.column_class_ids)
    allowed = torch.from_numpy(owner[None] == of[:, None]).to(logits.device)
    return logits.masked_fill(~allowed, -torch.inf).argmax(dim=1).cpu().numpy()


def _may_carry(model: Model, graph: Graph, met: np.ndarray | None) -> np.ndarray:
    """(N,) nodes that are of a known class, as far as that can be told without a label."""
    may = np.ones(graph.num_nodes, dtype=bool) if met is None else met.copy()
    if model.fitted_on is not None:
        unknown = unknown_shares(model.fitted_on, graph)
        may &= unknown <= unknown.mean() + 1e-9
    cells, known = model.cells, model.memory.classes
    if met is None and cells is not None:
        multirank = model.frozen_encoder().spec.multirank
        z = encode(model.frozen_encoder(), model.aligned(graph))
        chance = chance_of_new(coverages(multirank, known, cells, model.lda, z))
        may &= chance < LOOKS_NEW
    return may
