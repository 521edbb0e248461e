"""Rename, merge, reject, split and create classes: a Model in, a new Model out.

Ids of other classes stay. The joint head is linear, and a class is a set of its columns. Merging
unites the sets: probabilities add up. Rejecting removes columns: a softmax over the rest is the
rest renormalized. Splitting replaces the columns of the class by those of its parts. A created
class is one more column, at the mean of its nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from nodenova.encoders.prism.lda import scaled_features
from nodenova.errors import SettingError, brief
from nodenova.files.documents import check_encodable
from nodenova.graph import Graph
from nodenova.model.classes import NodeClass, make_unique
from nodenova.model.decisions import (
    Create,
    Decision,
    Edit,
    Merge,
    Reject,
    Relabel,
    Rename,
    Split,
    Unlabel,
    own_classes,
)
from nodenova.nn.class_memory import Memory
from nodenova.nn.heads import Head, LinearHead, as_nearest_mean
from nodenova.nn.kmeans import cluster
from nodenova.nn.numerics import solve
from nodenova.nn.seeding import repeatable, sample
from nodenova.nn.training import freeze

if TYPE_CHECKING:
    from nodenova.model.model import Model

MIN_RECEIVED = 5  # nodes of a rejected class from which on another class has got some of them
SPLIT_NODES = 2000  # nodes of a class that its parts are found on, at most
MIN_CHOSEN = 3  # nodes of a created class: of fewer, the model would keep nearly the nodes


def apply_decision(model: Model, decision: Decision, graph: Graph | None = None) -> Model:
    """The model after a decision; a Relabel or Unlabel leaves it as it is.

    A split and a created class need the graph; a rejection records where the nodes of the graph go.
    """
    match decision:
        case Rename():
            return rename(model, decision.class_id, decision.name)
        case Merge():
            return merge(model, decision.class_ids, decision.name)
        case Reject():
            return reject(model, decision.class_id, graph)
        case Split():
            if graph is None:
                raise SettingError("a class cannot be split without the graph: pass graph")
            return split(model, decision.class_id, graph, decision.into)
        case Create():
            if graph is None:
                raise SettingError("a class cannot be created without the graph: pass graph")
            return create(model, decision, graph)
        case Relabel():
            model.class_of(decision.class_id)
            return model
        case Unlabel():
            return model


def places_of(nodes: Sequence[str | int], graph: Graph) -> np.ndarray:
    """Numbers of nodes in the graph, by ids as JSON has them."""
    place = {str(node): i for i, node in enumerate(graph.node_ids.tolist())}
    missing = next((node for node in nodes if str(node) not in place), None)
    if missing is not None:
        raise SettingError(f"there is no node {brief(missing)} in the graph of the run")
    return np.array([place[str(node)] for node in nodes], dtype=np.int64)


def rename(model: Model, class_id: int, name: str) -> Model:
    """See `nodenova.Model.rename`."""
    old = model.class_of(class_id)
    renamed = replace(old, name=_check_name(model, name, but_for=(class_id,)))
    classes = tuple(renamed if c == old else c for c in model.classes)
    return _record(model, Rename(old.id, renamed.name, was=old.name), classes=classes)


def merge(model: Model, class_ids: Sequence[int], name: str | None = None) -> Model:
    """See `nodenova.Model.merge`."""
    ids = list(class_ids)
    if len(ids) < 2 or len(set(ids)) < len(ids):
        raise SettingError(f"a merge needs two or more different classes, not {ids}")
    members = sorted((model.class_of(c) for c in ids), key=lambda c: (c.stage, c.id))
    oldest = members[0]
    own = own_classes(model.edits)  # a name that a person gave is not lost to an automatic one
    named = [c for c in members if c.id in own or not c.is_new]
    called = (named or members)[0].name if name is None else _check_name(model, name, but_for=ids)
    one = replace(oldest, name=called)
    gone = [c.id for c in members[1:]]
    return _record(
        model,
        Merge(tuple(c.id for c in members), one.name, kept=one.id),
        classes=tuple(one if c == oldest else c for c in model.classes if c.id not in gone),
        column_class_ids=tuple(one.id if c in gone else c for c in model.column_class_ids),
        _novel_head=None,  # h^u still separates the merged classes
    )


def reject(model: Model, class_id: int, graph: Graph | None = None) -> Model:
    """See `nodenova.Model.reject`."""
    bad = model.class_of(class_id)
    if not bad.is_new:
        raise SettingError(
            f"class {bad.id} ({bad.name}) was learned from labels; "
            "only discovered classes can be rejected: merge it instead"
        )
    to = () if graph is None else _receivers(model, bad, graph)
    return _record(without_classes(model, [bad.id]), Reject(bad.id, name=bad.name, to=to))


def without_classes(model: Model, class_ids: Collection[int]) -> Model:
    """The model without the columns of some classes; no decision is recorded."""
    if not class_ids:
        return model
    keep = [i for i, c in enumerate(model.column_class_ids) if c not in class_ids]
    with repeatable(0, "edit"):
        head = _with_rows(model.head(), keep)
    return replace(
        model,
        classes=tuple(c for c in model.classes if c.id not in class_ids),
        column_class_ids=tuple(model.column_class_ids[i] for i in keep),
        _head=head,
        _novel_head=None,
        _memory=model.memory.select(keep),
        _cells=None if model.cells is None else model.cells.select(keep),
    )


def _receivers(model: Model, bad: NodeClass, graph: Graph) -> tuple[int, ...]:
    """Ids of the classes that get several nodes of a class when it is rejected."""
    p = model.predict_proba(graph)
    row = model.classes.index(bad)
    mine = p[p.argmax(axis=1) == row]
    mine[:, row] = -1.0
    count = np.bincount(mine.argmax(axis=1), minlength=len(model.classes))
    return tuple(c.id for c, n in zip(model.classes, count, strict=True) if n >= MIN_RECEIVED)


def split(model: Model, class_id: int, graph: Graph, into: int = 2, seed: int = 0) -> Model:
    """See `nodenova.Model.split`.

    The nodes are grouped where Prism groups them, and the column of the class is moved to the mean
    of each part. One number is added to all these columns so that the parts together have as many
    nodes of `graph` as the class had; some nodes at the borders still change sides.
    """
    whole = model.class_of(class_id)
    if isinstance(into, bool) or not isinstance(into, int) or into < 2:
        raise SettingError(f"a class is split into two or more parts, not {brief(into)}")
    graph = model.aligned(graph)
    g = model.frozen_encoder()
    keep = [i for i, c in enumerate(model.column_class_ids) if c != whole.id]
    with repeatable(seed, f"split-{whole.id}"), torch.no_grad():
        z = g(graph)
        logits = model._by_class(model._head(z))  # (N, classes)
        row = logits.argmax(dim=1).cpu().numpy()
        nodes = torch.from_numpy(np.flatnonzero(row == model.classes.index(whole)))
        ids = nodes[sample(len(nodes), SPLIT_NODES, nodes.device)].sort().values.to(z.device)
        multirank = g.spec.multirank
        scale = model.memory.classes.view_scale
        u = scaled_features(multirank, z[ids], model.num_columns + into, scale, model.lda)
        if len(ids) < into or len(torch.unique(u, dim=0)) < into:
            raise SettingError(
                f"class {whole.id} ({whole.name}) cannot be split into {into}: "
                f"it has {len(nodes)} nodes in this graph, too few or too alike"
            )
        groups = cluster(u, into)
        parts = Memory.of(z[ids], groups, into, multirank)
        cells, known = model.cells, model.memory.classes
        if cells is not None:
            cells = cells.select(keep).append(multirank, known, z[ids], groups, into)
        mine = [i for i, c in enumerate(model.column_class_ids) if c == whole.id]
        head = _with_rows(model.head(), keep, *_part_rows(model, z[ids], groups, mine, into))
        others = logits[:, [c != whole for c in model.classes]]
        shift = _shift(head(z)[:, len(keep) :], others, len(nodes))
        head.linear.bias[len(keep) :] += head.temperature * shift
    new = range(model.next_id, model.next_id + into)
    default = whole.name == f"new-{whole.id}"
    wanted = [
        f"new-{i}" if default else f"{whole.name} {number}" for number, i in enumerate(new, start=1)
    ]
    rest = tuple(c for c in model.classes if c != whole)
    names = make_unique(wanted, [c.name for c in rest])
    found = [NodeClass(i, name, whole.stage) for i, name in zip(new, names, strict=True)]
    return _record(
        model,
        Split(whole.id, into, parts=tuple(new), names=tuple(c.name for c in found), was=whole.name),
        classes=tuple(sorted((*rest, *found), key=lambda c: (c.stage, c.id))),
        column_class_ids=(*(model.column_class_ids[i] for i in keep), *new),
        _head=freeze(head),
        _novel_head=None,
        _memory=model.memory.select(keep).with_parts(parts),
        _cells=cells,
    )


def create(model: Model, decision: Create, graph: Graph) -> Model:
    """See `nodenova.Model.create_class`.

    The new row of the head is that of the class which most of the nodes are in, moved from the mean
    of that class to the mean of the nodes. A number is added to it so that the class has as many
    nodes of `graph` as were chosen; some nodes at its border are others than the chosen ones.
    """
    new = model.next_id
    if decision.class_id not in (None, new):
        raise SettingError(
            f"the new class gets the id {new}, not {brief(decision.class_id)}: "
            "the request was made before other decisions"
        )
    places = np.unique(places_of(decision.nodes, graph))
    if len(places) < MIN_CHOSEN:
        raise SettingError(f"a class is made of {MIN_CHOSEN} nodes or more, not of {len(places)}")
    name = f"new-{new}" if decision.name is None else _check_name(model, decision.name, but_for=())
    ids = torch.from_numpy(places)
    graph = model.aligned(graph)
    among = graph.num_nodes if decision.among is None else decision.among
    if not len(ids) <= among <= graph.num_nodes:
        raise SettingError(
            f"{len(ids):,} of {among:,} shown nodes cannot be of a graph of {graph.num_nodes:,}"
        )
    g = model.frozen_encoder()
    with repeatable(0, f"create-{new}"), torch.no_grad():
        z = g(graph)
        ids = ids.to(z.device)
        head = model.head()
        columns = head(z)
        logits = model._by_class(columns)  # (N, classes)
        nearest = columns.argmax(dim=1)
        column = int(nearest[ids].mode().values)
        rest = (nearest == column).nonzero()[:, 0]
        rest = rest[sample(len(rest), SPLIT_NODES, rest.device).sort().values]
        none = torch.zeros(len(ids), dtype=torch.long, device=z.device)
        part = Memory.of(z[ids], none, 1, g.spec.multirank)
        cells, known = model.cells, model.memory.classes
        if cells is not None:
            cells = cells.append(g.spec.multirank, known, z[ids], none, 1)
        here, there = (head.features(z[some]).mean(dim=0) for some in (ids, rest))
        weight, bias = _moved_row(model, column, here, there, _metric(model))
        head = _with_rows(head, list(range(model.num_columns)), weight[None], bias[None])
        size = round(len(ids) * graph.num_nodes / among)
        shift = _shift(head(z)[:, model.num_columns :], logits, size)
        head.linear.bias[model.num_columns :] += head.temperature * shift
        was = np.unique(logits[ids].argmax(dim=1).cpu().numpy()).tolist()
    made = NodeClass(new, name, max(len(model.stages) - 1, 1))
    sources = tuple(model.classes[row].id for row in was)
    return _record(
        model,
        replace(decision, nodes=(), among=None, name=name, class_id=new, sources=sources,
                size=len(ids)),
        classes=tuple(sorted((*model.classes, made), key=lambda c: (c.stage, c.id))),
        column_class_ids=(*model.column_class_ids, new),
        _head=freeze(head),
        _novel_head=None,
        _memory=model.memory.with_parts(part),
        _cells=cells,
    )  # fmt: skip


def drop_last_stage(model: Model, scatter: Mapping[str, Tensor]) -> Model:
    """The model before its last discovery, with the `scatter` that its classes had then.

    For an encoder that discovery does not train, and a model that was not edited since.
    """
    last = len(model.stages) - 1
    gone = {c.id for c in model.classes if c.stage >= last}
    keep = [i for i, c in enumerate(model.column_class_ids) if c not in gone]
    with repeatable(0, "edit"):
        head = _with_rows(model.head(), keep)
    memory = model.memory.select(keep)
    return replace(
        model,
        classes=tuple(c for c in model.classes if c.id not in gone),
        column_class_ids=tuple(model.column_class_ids[i] for i in keep),
        stages=model.stages[:last],
        _head=head,
        _novel_head=None,
        _memory=Memory(memory.replay, replace(memory.classes, **scatter)),
        _cells=None if model.cells is None else model.cells.select(keep),
    )


def renumber(model: Model, ids: Sequence[int]) -> Model:
    """The model with other ids of the classes of its last stage, in the order of their columns."""
    last = model.stages[-1]
    found = [c for c in model.classes if c.stage >= len(model.stages) - 1]
    others = [c for c in model.classes if c not in found]
    names = make_unique([f"new-{i}" for i in ids], [c.name for c in others])
    id_of = {c.id: new for c, new in zip(found, ids, strict=True)}
    renamed = [
        NodeClass(new, name, c.stage) for c, new, name in zip(found, ids, names, strict=True)
    ]
    found_in = {id_of[c]: times for c, times in last.found_in.items()}
    return replace(
        model,
        classes=(*others, *sorted(renamed, key=lambda c: c.id)),
        column_class_ids=tuple(id_of.get(c, c) for c in model.column_class_ids),
        stages=(*model.stages[:-1], replace(last, found_in=found_in)),
    )


def _record(model: Model, decision: Edit, **changes: Any) -> Model:
    """The model with these changes and the decision among its edits."""
    done = replace(decision, after=len(model.stages))
    return replace(model, edits=(*model.edits, done), **changes)


def _check_name(model: Model, name: str, but_for: Sequence[int]) -> str:
    if not isinstance(name, str) or not name.strip():
        raise SettingError(f"the name of a class must be a non-empty text, not {brief(name)}")
    stripped = name.strip()
    check_encodable([stripped], "the name", SettingError)
    for c in model.classes:
        if c.name == stripped and c.id not in but_for:
            raise SettingError(
                f"class {c.id} already has the name {brief(stripped)}: "
                "merge the two, or choose another name"
            )
    return stripped


def _with_rows(
    head: Head, keep: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None
) -> Head:
    """The head with the rows `keep`, followed by the given ones."""
    w, b = head.linear.weight[keep], head.linear.bias[keep]
    if weight is not None and bias is not None:
        w, b = torch.cat([w, weight.to(w.dtype)]), torch.cat([b, bias.to(b.dtype)])
    changed = head.with_num_classes(len(w)).to(w.device)
    with torch.no_grad():
        changed.linear.weight.copy_(w)
        changed.linear.bias.copy_(b)
    return freeze(changed)


def _part_rows(
    model: Model, z: Tensor, groups: Tensor, mine: Sequence[int], into: int
) -> tuple[Tensor, Tensor]:
    """(into, D) weight and (into,) bias of the parts of a class.

    The row of a part is the row that was nearest to its nodes, moved from the mean of that row's
    nodes to the mean of the part. `mine` are the columns of the class, z (n, hidden) its nodes.
    """
    head = model.head()
    u = head.features(z)  # (n, D)
    nearest = head(z)[:, mine].argmax(dim=1)  # column of each node
    metric = _metric(model)
    weight, bias = [], []
    for part in range(into):
        column = int(nearest[groups == part].mode().values)
        here, there = u[groups == part].mean(dim=0), u[nearest == column].mean(dim=0)
        moved = _moved_row(model, mine[column], here, there, metric)
        weight.append(moved[0])
        bias.append(moved[1])
    return torch.stack(weight), torch.stack(bias)


def _moved_row(
    model: Model, column: int, here: Tensor, there: Tensor, metric: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor]:
    """(D,) weight and () bias of a column, moved from the mean `there` to the mean `here`.

    A nearest-mean classifier in a metric A has w = A m + v and b = beta - m A m / 2.
    """
    linear = model.head().linear
    a_here, a_there = metric(torch.stack([here, there]))
    return (
        linear.weight[column] + a_here - a_there,
        linear.bias[column] - 0.5 * (here @ a_here - there @ a_there),
    )


def _metric(model: Model) -> Callable[[Tensor], Tensor]:
    """m -> A m for rows m (n, D), at the scale of the head.

    A is the inverse covariance where the head was computed from it, else a multiple of the
    identity.
    """
    head, known, spec = model.head(), model.memory, model.frozen_encoder().spec
    if isinstance(head, LinearHead) or spec.trainable:
        means = known.replay.mean if isinstance(head, LinearHead) else known.classes.center
        kappa = as_nearest_mean(head.linear.weight, head.linear.bias, means)[0]
        return lambda m: kappa * m
    columns = spec.multirank.columns_of(head.multirank).to(model.device)
    scale = head.multirank.per_column(known.classes.view_scale)
    covariance = known.classes.covariance(columns, model.lda.prior, scale)

    def plain(m: Tensor) -> Tensor:
        right = (m * scale).t().double()
        return scale * solve(covariance, right, "the covariance within classes").t().to(m.dtype)

    # 1 unless the head was refitted.
    center = plain(known.classes.center[:, columns])
    kappa = as_nearest_mean(head.linear.weight, head.linear.bias, center)[0]
    return lambda m: (kappa if model.num_columns > 1 else 1.0) * plain(m)


def _shift(parts: Tensor, others: Tensor, size: int) -> float:
    """What to add to the logits of the parts (N, into) so that they win for `size` of the nodes."""
    if not others.shape[1]:
        return 0.0
    lead = parts.max(dim=1).values - others.max(dim=1).values  # (N,)
    lead = lead.double().sort(descending=True).values
    border = (lead[size - 1] + lead[size]) / 2 if size < len(lead) else lead[-1] - 1.0
    return -float(border)
