"""What is in each class, as far as a graph and a model can tell. No label is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.errors import SettingError
from nodenova.graph import Graph
from nodenova.model.classes import shown_names
from nodenova.model.keywords import Feature, characteristic
from nodenova.nn.heads import Head, LinearHead, UnitLinearHead
from nodenova.nn.seeding import fixed_threads

if TYPE_CHECKING:
    from nodenova.model.model import Model

NODES_AT_ONCE = 4096


class Neighbour(NamedTuple):
    """Another class, the share of a class's edges that lead to it, and the share that would if edges fell at random."""

    id: int
    share: float
    expected: float


@dataclass(frozen=True)
class ClassInfo:
    """What is in one class.

    id, stage:        as in :class:`nodenova.NodeClass`; `kind` is "old" (learnt from labels) or "new" (discovered).
    auto_name:        a name made of its features, different from those of the other classes; else its name.
    name:             the one it was given; where nobody has named it, its auto_name. Different from those of the others.
    nearest, nearest_similarity: the id of the class whose mean is most like its own, and the cosine of the two means.

    Only with a graph, None or empty without:

    size, share:      nodes that the model puts in the class, and their share of all nodes.
    confidence:       mean probability of the class over these nodes; None when there are none.
    unsure:           how many of them have a probability below `unsure_below`.
    cohesion:         mean over these nodes of their cosine to the mean of the class, less the highest to the mean of
                      another class. Near 0 or below: hardly apart from its neighbours.
    representatives:  ids of nodes nearest to the mean, among the surer half, no two of them linked, so that they do not
                      all say the same; `representative_nodes` are their numbers.
    features:         the most characteristic features, see `features.log_odds` and `features.mean_difference`.
    own_edges:        share of its nodes' edges that stay in the class.
    neighbours:       the other classes that most of its edges lead to.
    """

    id: int
    name: str
    auto_name: str
    kind: str
    stage: int
    nearest: int | None = None
    nearest_similarity: float | None = None
    size: int | None = None
    share: float | None = None
    confidence: float | None = None
    unsure: int | None = None
    cohesion: float | None = None
    representatives: tuple[str | int, ...] = ()
    representative_nodes: tuple[int, ...] = ()
    features: tuple[Feature, ...] = ()
    own_edges: float | None = None
    neighbours: tuple[Neighbour, ...] = ()


# The columns of a table of classes, in this order; what is drawn on a page alone is not among them.
FRAME = ("id", "name", "auto_name", "kind", "stage", "size", "share", "confidence", "unsure", "cohesion", "nearest",
         "nearest_similarity", "own_edges", "features", "representatives")  # fmt: skip


class ClassInfos(tuple[ClassInfo, ...]):
    """What is in each class, in the order of `model.classes`: a sequence of :class:`ClassInfo`."""

    __slots__ = ()

    def to_frame(self, backend: str = "pandas") -> Any:
        """A data frame, a row a class: the fields of :class:`ClassInfo`, features by their names.

        Args:
            backend: whose data frame: "pandas", "polars" or "pyarrow".

        Raises:
            SettingError: the backend is none of these, or not installed.
        """
        import narwhals as nw

        kinds = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}
        if backend not in kinds:
            raise SettingError(f"to_frame() knows the backends {', '.join(kinds)}, not {backend!r}")
        columns = {name: [getattr(info, name) for info in self] for name in FRAME}
        columns["features"] = [tuple(feature.name for feature in info.features) for info in self]
        try:
            return nw.from_dict(columns, backend=backend).to_native()
        except ImportError:
            made = f"{backend} {kinds[backend]}"
            how = f"pip install {backend}"
            raise SettingError(f"to_frame() makes a {made} and needs {backend}: {how}") from None


def class_info(
    model: Model,
    graph: Graph | None = None,
    *,
    outputs: tuple[np.ndarray, np.ndarray] | None = None,
    unsure_below: float = 0.5,
    representatives: int = 8,
    features: int = 10,
    neighbours: int = 5,
) -> ClassInfos:
    """What is in each class, in the order of `model.classes`. The numbers say how many of each to give.

    outputs: what `model.embed_and_predict(graph)` gave, where that is known already.
    """
    if not 0 <= unsure_below <= 1:
        raise SettingError(f"unsure_below is a probability from 0 to 1, not {unsure_below}")
    with torch.no_grad(), fixed_threads():
        means = _remembered_means(model)  # (C, D)
        known = [ClassInfo(c.id, c.name, c.name, "new" if c.is_new else "old", c.stage) for c in model.classes]
        if graph is None:
            return ClassInfos(_with_nearest(known, means))
        z, p = model.embed_and_predict(graph) if outputs is None else outputs
        groups, sure = p.argmax(axis=1), p.max(axis=1)
        means, cosine = _cosines(model, torch.from_numpy(z), groups, means)
    found, names = characteristic(graph, groups, len(known), features)
    edges = _edge_counts(graph, groups, len(known))
    shown = shown_names(model.classes, {c.id: name for c, name in zip(model.classes, names, strict=True)})
    infos = []
    for i, info in enumerate(_with_nearest(known, means)):
        mine = np.flatnonzero(groups == i)
        best = _medoids(graph, mine, sure, cosine[:, 0], representatives)
        infos.append(
            replace(
                info,
                name=shown[i],
                auto_name=names[i] or info.name,
                size=len(mine),
                share=len(mine) / graph.num_nodes,
                confidence=float(sure[mine].mean(dtype=np.float64)) if len(mine) else None,
                unsure=int((sure[mine] < unsure_below).sum()),
                cohesion=float((cosine[mine, 0] - cosine[mine, 1]).mean()) if len(mine) and len(known) > 1 else None,
                representatives=tuple(graph.node_ids[best].tolist()),
                representative_nodes=tuple(best.tolist()),
                features=found[i] if len(mine) else (),
                own_edges=float(edges[i, i] / edges[i].sum()) if edges[i].any() else None,
                neighbours=_neighbours(edges, i, [c.id for c in known], neighbours),
            )
        )
    return ClassInfos(infos)


def direction(head: Head, z: Tensor) -> Tensor:
    """(n, D): z as the head reads it, without its length."""
    return F.normalize(z, dim=1) if isinstance(head, LinearHead) else head.features(z)


def _remembered_means(model: Model) -> Tensor:
    """(C, D): the mean of each class as the model remembers it, on the columns that its head reads."""
    head, center = model.head(), model.memory.classes.center.cpu()
    if isinstance(head, UnitLinearHead):
        center = center[:, model.frozen_encoder().spec.multirank.columns_of(head.multirank)]
    of = torch.tensor(model.columns)
    return torch.stack([center[of == c.id].mean(dim=0) for c in model.classes])


def _cosines(model: Model, z: Tensor, groups: np.ndarray, means: Tensor) -> tuple[Tensor, np.ndarray]:
    """The means of the groups, as remembered where a group has no nodes, and the cosines of each node.

    (N, 2): to the mean of its group, and the highest to another's.
    """
    head, y = model.head().cpu(), torch.from_numpy(groups)

    def parts() -> Iterator[tuple[Tensor, Tensor]]:  # what the head reads is wide: never of all nodes at once
        yield from (
            (direction(head, some), c)
            for some, c in zip(torch.split(z, NODES_AT_ONCE), torch.split(y, NODES_AT_ONCE), strict=True)
        )

    total = torch.zeros(means.shape, dtype=torch.double)
    for u, c in parts():
        total += F.one_hot(c, len(means)).to(u.dtype).t() @ u
    size = torch.bincount(y, minlength=len(means))[:, None]
    means = torch.where(size > 0, (total / size.clamp_min(1)).float(), means)
    unit, cosine = F.normalize(means, dim=1), []
    for u, c in parts():
        s = u @ unit.t() / u.norm(dim=1, keepdim=True).clamp_min(1e-12)  # (n, C)
        own = s.gather(1, c[:, None])
        other = s.scatter(1, c[:, None], -torch.inf).max(dim=1, keepdim=True).values
        cosine.append(torch.cat([own, other], dim=1))
    return means, torch.cat(cosine).double().numpy()


def _with_nearest(known: Sequence[ClassInfo], means: Tensor) -> list[ClassInfo]:
    if len(known) < 2:
        return list(known)
    unit = F.normalize(means, dim=1)
    best = (unit @ unit.t()).fill_diagonal_(-torch.inf).max(dim=1)
    pairs = zip(known, best.indices.tolist(), best.values.tolist(), strict=True)
    return [replace(info, nearest=known[other].id, nearest_similarity=value) for info, other, value in pairs]


def _medoids(graph: Graph, mine: np.ndarray, sure: np.ndarray, cosine: np.ndarray, count: int) -> np.ndarray:
    """Numbers of the nodes with the highest cosine among the surer half of `mine`, best first, no two of them linked."""
    if not len(mine):
        return mine
    surer = mine[sure[mine] >= np.median(sure[mine])]
    ranked, links = surer[np.argsort(-cosine[surer], kind="stable")].tolist(), graph.adjacency
    best: list[int] = []
    near: set[int] = set()
    for node in ranked:
        if len(best) == count:
            break
        if node not in near:
            best.append(node)
            near.update(links.indices[links.indptr[node] : links.indptr[node + 1]].tolist())
    return np.array(best, dtype=np.int64)


def _edge_counts(graph: Graph, groups: np.ndarray, n: int) -> np.ndarray:
    """(C, C): edges from a class to a class, each counted from both of its ends."""
    a, b = groups[graph.edge_index]
    return np.bincount(a * n + b, minlength=n * n).reshape(n, n)


def _neighbours(edges: np.ndarray, i: int, ids: Sequence[int], count: int) -> tuple[Neighbour, ...]:
    if not edges[i].any():
        return ()
    share, expected = edges[i] / edges[i].sum(), edges.sum(axis=0) / edges.sum()
    others = [j for j in np.argsort(-share, kind="stable").tolist() if j != i and share[j] > 0]
    return tuple(Neighbour(ids[j], float(share[j]), float(expected[j])) for j in others[:count])
