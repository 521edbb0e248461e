"""What is in each class, as far as a graph and a model can tell. No label is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from nodenova.errors import SettingError
from nodenova.graph import Graph
from nodenova.model.classes import shown_names
from nodenova.model.cosines import cosines_to_means, remembered_means
from nodenova.model.keywords import Feature, characteristic
from nodenova.model.likeness import Likeness, class_likeness
from nodenova.model.neighbors import Neighbor as Neighbor
from nodenova.model.neighbors import edge_counts, neighbors_of
from nodenova.nn.seeding import fixed_threads, some_of
from nodenova.notebook.tables import html_table, share
from nodenova.settings import accepts_old_arguments

if TYPE_CHECKING:
    from nodenova.model.model import Model

MAX_SEEN = 100_000  # nodes among which typical ones are looked for


@dataclass(frozen=True)
class ClassInfo:
    """What is in one class.

    From `size` on it takes a graph to tell; without one they are None or empty.

    Attributes:
        id: As in `NodeClass`.
        name: The one it was given; where nobody has named it, its `auto_name`. Different from those
            of the other classes.
        auto_name: A name made of its features, different from those of the others; else its name.
        kind: "known" (learned from labels) or "discovered".
        stage: As in `NodeClass`.
        nearest: The id of the class whose mean is most like its own.
        nearest_similarity: The cosine of the two means.
        size: Nodes that the model puts in the class.
        share: Their share of all nodes.
        confidence: Mean probability of the class over these nodes; None when there are none.
        unsure: How many of them have a probability below `min_confidence`.
        labelled: How many of them have a label of the user's, where it is known which nodes have
            one. In a discovered class such a label speaks against the class.
        fits_none: How many of them fit none of the classes, where that was asked.
        same_as: The id of the class that it is likeliest one with; see `same_as_probability`.
        same_as_probability: That a node of the one and a node of the other belong together. Of
            two known classes it is not asked.
        two: The probability that it is two classes.
        cohesion: Mean over these nodes of their cosine to the mean of the class, less the highest
            to the mean of another class. Near 0 or below: hardly apart from its neighbors.
        representatives: Ids of nodes nearest to the mean, among the surer half, no two of them
            linked, so that they do not all say the same.
        representative_nodes: Their numbers.
        features: The most characteristic ones: see `log_odds` and `mean_difference`.
        own_edges: Share of its nodes' edges that stay in the class.
        neighbors: The other classes that most of its edges lead to.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> info = nova.fit(old).class_info()[0]
        >>> info.name, info.kind, info.nearest
        ('class-0', 'known', 1)
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
    labelled: int | None = None
    fits_none: int | None = None
    same_as: int | None = None
    same_as_probability: float | None = None
    two: float | None = None
    cohesion: float | None = None
    representatives: tuple[str | int, ...] = ()
    representative_nodes: tuple[int, ...] = ()
    features: tuple[Feature, ...] = ()
    own_edges: float | None = None
    neighbors: tuple[Neighbor, ...] = ()

    @property
    def is_new(self) -> bool:
        """Whether it was discovered."""
        return self.stage > 0


# The columns of a table of classes, in this order; what is drawn on a page alone is not among them.
FRAME = ("id", "name", "auto_name", "kind", "stage", "size", "share", "confidence", "unsure",
         "labelled", "fits_none", "same_as", "same_as_probability", "two", "cohesion", "nearest",
         "nearest_similarity", "own_edges", "features", "representatives")  # fmt: skip


class ClassInfos(tuple[ClassInfo, ...]):
    """What is in each class, in the order of `model.classes`: a sequence of `ClassInfo`.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> nova.fit(old).class_info().to_frame()["name"].tolist()
        ['class-0', 'class-1']
    """

    __slots__ = ()

    def to_frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """A data frame, a row a class: the fields of `ClassInfo`, features by their names.

        Args:
            backend: Whose data frame.

        Raises:
            SettingError: The backend is none of these, or not installed.
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

    def _repr_html_(self) -> str:
        heads = ("id", "name", "kind", "nodes", "share", "confidence", "what is in it")
        rows = [
            (info.id, info.name, info.kind, info.size,
             share(info.share), share(info.confidence),
             ", ".join(feature.name for feature in info.features[:5]))
            for info in sorted(self, key=lambda info: (not info.is_new, info.id))
        ]  # fmt: skip
        return html_table(heads, rows, f"{len(self)} classes")


@accepts_old_arguments(unsure_below="min_confidence", neighbours="neighbors")
def class_info(
    model: Model,
    graph: Graph | None = None,
    *,
    outputs: tuple[np.ndarray, np.ndarray] | None = None,
    labelled: np.ndarray | None = None,
    fits_none: np.ndarray | None = None,
    likeness: Likeness | None = None,
    min_confidence: float = 0.5,
    representatives: int = 8,
    features: int = 10,
    neighbors: int = 5,
) -> ClassInfos:
    """What is in each class, in the order of `model.classes`. No label is asked.

    Args:
        model: Whose classes.
        graph: Whose nodes are looked at. Without one, only what the model itself knows.
        outputs: What `model.embed_and_predict(graph)` gave, where that is known already.
        labelled: (N,) which nodes the user has labelled, where that is known; not with what.
        fits_none: (N,) which nodes fit none of the classes, where that was asked.
        likeness: What `class_likeness` gave, where that is known already.
        min_confidence: Nodes whose class is less probable count as unsure.
        representatives: How many to give, as are the next two.
        features: The most characteristic ones of each class.
        neighbors: Other classes that edges lead to.

    Raises:
        SettingError: `min_confidence` is no probability.

    Examples:
        >>> import nodenova as nova
        >>> labelled = nova.synthetic(nodes=200, classes=4, seed=0)
        >>> old, new, exam = nova.split(labelled, [0, 1])
        >>> infos = nova.class_info(nova.discover(nova.fit(old), new), labelled.graph)
        >>> [info.kind for info in infos], sum(info.size for info in infos)
        (['known', 'known', 'discovered', 'discovered'], 200)
    """
    if not 0 <= min_confidence <= 1:
        raise SettingError(f"min_confidence is a probability from 0 to 1, not {min_confidence}")
    with torch.no_grad(), fixed_threads():
        means = remembered_means(model)  # (C, D)
        known = [ClassInfo(c.id, c.name, c.name, c.kind, c.stage) for c in model.classes]
        if graph is None:
            return ClassInfos(_with_nearest(known, means))
        z, p = model.embed_and_predict(graph) if outputs is None else outputs
        groups, sure = p.argmax(axis=1), p.max(axis=1)
        seen = np.arange(graph.num_nodes)[some_of(graph.num_nodes, MAX_SEEN)]
        z_seen = torch.from_numpy(z if len(seen) == len(z) else z[seen])
        means, cosine = cosines_to_means(model, z_seen, groups[seen], means)
    likeness = class_likeness(model, z, p) if likeness is None else likeness
    found, names = characteristic(graph, groups, len(known), features)
    edges = edge_counts(graph, groups, len(known))
    automatic = {c.id: name for c, name in zip(model.classes, names, strict=True)}
    shown = shown_names(model.classes, automatic)
    infos = []
    for i, info in enumerate(_with_nearest(known, means)):
        mine = np.flatnonzero(groups == i)
        of_seen = cosine[groups[seen] == i]
        best = _medoids(graph, seen[groups[seen] == i], sure, of_seen[:, 0], representatives)
        apart = (of_seen[:, 0] - of_seen[:, 1]) if len(known) > 1 else mine[:0]
        told = replace(
            info,
            name=shown[i],
            auto_name=names[i] or info.name,
            size=len(mine),
            share=len(mine) / graph.num_nodes,
            confidence=float(sure[mine].mean(dtype=np.float64)) if len(mine) else None,
            unsure=int((sure[mine] < min_confidence).sum()),
            labelled=None if labelled is None else int(labelled[mine].sum()),
            fits_none=None if fits_none is None else int(fits_none[mine].sum()),
            cohesion=float(apart.mean()) if len(apart) else None,
            representatives=tuple(graph.node_ids[best].tolist()),
            representative_nodes=tuple(best.tolist()),
            features=found[i] if len(mine) else (),
            own_edges=float(edges[i, i] / edges[i].sum()) if edges[i].any() else None,
            neighbors=neighbors_of(edges, i, [c.id for c in known], neighbors),
        )
        infos.append(told)
    return ClassInfos(infos if likeness is None else _with_likeness(infos, likeness))


def _with_nearest(known: Sequence[ClassInfo], means: Tensor) -> list[ClassInfo]:
    if len(known) < 2:
        return list(known)
    unit = F.normalize(means, dim=1)
    best = (unit @ unit.t()).fill_diagonal_(-torch.inf).max(dim=1)
    nearest = [known[other].id for other in best.indices.tolist()]
    found = zip(known, nearest, best.values.tolist(), strict=True)
    return [replace(info, nearest=other, nearest_similarity=s) for info, other, s in found]


def _with_likeness(infos: Sequence[ClassInfo], likeness: Likeness) -> list[ClassInfo]:
    told = []
    for info, together, two in zip(infos, likeness.together, likeness.two, strict=True):
        if not np.isnan(together).all():
            best = int(np.nanargmax(together))
            same_as, p = infos[best].id, float(together[best])
            info = replace(info, same_as=same_as, same_as_probability=p)
        told.append(info if np.isnan(two) else replace(info, two=float(two)))
    return told


def _medoids(
    graph: Graph, mine: np.ndarray, sure: np.ndarray, cosine: np.ndarray, count: int
) -> np.ndarray:
    """Numbers of the nodes with the highest cosine (of each) among the surer half of `mine`.

    Best first, no two of them linked.
    """
    if not len(mine):
        return mine
    surer = sure[mine] >= np.median(sure[mine])
    ranked = mine[surer][np.argsort(-cosine[surer], kind="stable")].tolist()
    links = graph.adjacency
    best: list[int] = []
    near: set[int] = set()
    for node in ranked:
        if len(best) == count:
            break
        if node not in near:
            best.append(node)
            near.update(links.indices[links.indptr[node] : links.indptr[node + 1]].tolist())
    return np.array(best, dtype=np.int64)
