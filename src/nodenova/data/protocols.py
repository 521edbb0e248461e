"""Protocols of the open world: which nodes are labelled, unlabelled and graded.

A protocol is a value with a name and `world(labelled, seed)`; the paper's split is the first.
POWN: Hoffmann, Galke, Scherp, CoLLAs 2024 (Bobowner/POWN at 3063f91). OpenIMA: Wang et al., ICDE
2024 (RUCKBReasoning/OpenIMA at 7bdc277). GNNSafe: Wu et al., ICLR 2023 (qitianwu/GraphOOD-GNNSafe
at ba73d8f). CFC: AAAI 2026 (sihuo-design/CFC). HOPE: arXiv:2609.08685. Stages: the scheme of Happy
(Ma et al., NeurIPS 2024), which is about images.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from sklearn.model_selection import train_test_split

from nodenova.data.labels import LabelledGraph, LabelledNewTask
from nodenova.data.mixed_splits import OpenWorld, open_world, split_mixed
from nodenova.data.splits import labelled_new_task, resample_training_nodes, split, with_split
from nodenova.errors import SettingError, SplitError, one_of

# Classes (PyTorch Geometric's ids) in folds; each fold is the set of new classes once.
POWN_FOLDS: dict[str, tuple[tuple[int, ...], ...]] = {
    "cora": ((5, 3), (2, 0), (4, 1, 6)),
    "citeseer": ((0, 5), (4, 1), (2, 3)),
    "photo": ((0, 4), (1, 2), (7, 3), (5, 6)),
    "computers": ((2, 5), (3, 8), (6, 1), (4, 9), (7, 0)),
}
POWN_TRAIN, POWN_VAL = 20, 30  # nodes per class where a graph has no published split
OPENIMA_SEEDS = (
    2406525885, 1660347731, 3164031153, 1454191016, 1583215992,
    765984986, 258270452, 3808600642, 292690791, 2492579272,
)  # fmt: skip
OPENIMA_TRAIN, OPENIMA_VAL = 50, 50  # nodes per seen class
# The class that GNNSafe++ trains on as an example of novelty: it is neither labelled nor graded
# here. Classes above it are known, classes below it new.
GNNSAFE_EXPOSED = {"cora": 3, "photo": 4, "cs": 4}
GNNSAFE_TRAIN, GNNSAFE_VAL = 0.1, 0.1  # shares of the known nodes where there is no published split
CFC_OLD = {"cora": (0, 2, 3, 5)}
CFC_TRAIN, CFC_TEST, CFC_SEED = 0.5, 0.6, 100  # of the known nodes; of all others; of every draw
HOPE_TRAIN, HOPE_VAL = 0.6, 0.2  # shares of a known class; HOPE does not state its own
# Number of labelled classes, then number of classes that each session brings.
STAGES: dict[str, tuple[int, ...]] = {
    "cora": (3, 2, 2),
    "citeseer": (2, 2, 2),
    "wordnet": (5, 1, 1, 1, 1, 1),
}
SESSIONS = 5  # of other graphs, after half of the classes
STAGE_TRAIN = 20  # labelled nodes per class, at most half of those outside the exam
STAGE_EXAM, STAGE_FIRST = 0.3, 0.6  # share of a class in the exam; of the rest, in its session
MAX_NEW = 8  # new classes of a counting draw
MIN_CLASSES = 3  # of a graph for counting: two old classes and a new one
SHARES_MIXED = (30, 50, 70, 95)  # percent of the mixture that belongs to old classes
SHARES_COUNTED = (0, 30, 50, 70, 90, 100)  # 0: all new; 100: nothing new
TRANSDUCTIVE = "transductive"


class WorldProtocol(Protocol):
    """Decides from a graph and a seed which nodes are labelled, unlabelled and graded."""

    @property
    def name(self) -> str:
        """Name in rows; "" for the paper's split."""

    def world(self, labelled: LabelledGraph, seed: int) -> OpenWorld:
        """Return the tasks and exams of the protocol."""


@dataclass(frozen=True)
class PaperSplit:
    """The paper's protocol: classes `old` are labelled, the others are one session of new nodes."""

    name: ClassVar[str] = ""

    old: tuple[int, ...]
    num_new: int | None = None
    draw: str = "published"
    per_class: int = 20
    setting: str = TRANSDUCTIVE

    def world(self, labelled: LabelledGraph, seed: int) -> OpenWorld:
        """Return one session in which every unlabelled node is of a new class."""
        ready = self._with_training_nodes(labelled, seed)
        old, new, exam = split(ready, self.old, num_new=self.num_new, setting=self.setting)
        rest = tuple(c for c in range(labelled.num_classes) if c not in self.old)
        return OpenWorld(old, (new,), (exam,), (new.ids,), (self.old, rest))

    def labelled_task(self, labelled: LabelledGraph, seed: int) -> LabelledNewTask:
        """Return the session with its labels, for supervised methods."""
        ready = self._with_training_nodes(labelled, seed)
        return labelled_new_task(ready, self.old, num_new=self.num_new, setting=self.setting)

    def _with_training_nodes(self, labelled: LabelledGraph, seed: int) -> LabelledGraph:
        if self.draw == "published":
            return with_split(labelled, self.per_class, seed)
        balanced = self.draw == "balanced"
        return resample_training_nodes(labelled, self.old, self.per_class, seed, balanced=balanced)


@dataclass(frozen=True)
class Pown:
    """POWN's task for one test fold, whose classes are the new ones.

    Known are the classes outside the test fold and the fold before it (cyclic), whose nodes are in
    the graph, unlabelled and not graded. Labelled: training nodes of known classes. Unlabelled:
    everything else. Graded: test nodes of known classes and of the test fold. The number of all
    classes is given. Labels of validation nodes, by which POWN chooses its epoch, are not used.
    """

    name: ClassVar[str] = "pown"

    number: int

    def world(self, labelled: LabelledGraph, seed: int) -> OpenWorld:
        """Return one session; nothing is drawn by the seed."""
        fold, count = self.number, num_folds(labelled.name)
        if not 0 <= fold < count:
            raise SettingError(f"{labelled.name}: POWN's folds are 0..{count - 1}, not {fold}")
        folds = POWN_FOLDS[labelled.name]
        new, aside = set(folds[fold]), set(folds[fold - 1])
        old = [c for each in folds for c in each if c not in new | aside]
        train, test = _pown_masks(labelled)
        is_old = np.isin(labelled.y, old)
        return open_world(
            labelled,
            [old, sorted(new)],
            train_ids=np.flatnonzero(train & is_old),
            unlabelled=[np.flatnonzero(~(train & is_old))],
            exam_ids=np.flatnonzero(test & (is_old | np.isin(labelled.y, list(new)))),
            num_new=[len(new) + len(aside)],
        )


def num_folds(dataset: str) -> int:
    """Number of POWN's folds of a graph."""
    if dataset not in POWN_FOLDS:
        raise SettingError(f"POWN's graphs are {', '.join(POWN_FOLDS)}, not {dataset}")
    return len(POWN_FOLDS[dataset])


def _pown_masks(labelled: LabelledGraph) -> tuple[np.ndarray, np.ndarray]:
    """Training and test nodes: the published split, or a draw as POWN makes it."""
    if labelled.train is not None and labelled.test is not None:
        return labelled.train, labelled.test
    rng = np.random.default_rng(0)
    train, test = (np.zeros(labelled.graph.num_nodes, dtype=bool) for _ in range(2))
    for c in range(labelled.num_classes):
        members = np.argwhere(labelled.y == c)
        rng.shuffle(members)
        train[members[:POWN_TRAIN, 0]] = True
        test[members[POWN_TRAIN + POWN_VAL :, 0]] = True
    return train, test


@dataclass(frozen=True)
class OpenIMA:
    """OpenIMA's split with a number: half of the classes seen, 50 + 50 nodes of each labelled.

    Graded are all unlabelled nodes. The number of classes is given; a published split is not used.
    """

    name: ClassVar[str] = "openima"

    number: int

    def world(self, labelled: LabelledGraph, seed: int) -> OpenWorld:
        """Return one session; the split's own seed decides what is drawn."""
        if not 0 <= self.number < len(OPENIMA_SEEDS):
            last = len(OPENIMA_SEEDS) - 1
            raise SettingError(f"OpenIMA's splits are 0..{last}, not {self.number}")
        draw = random.Random(OPENIMA_SEEDS[self.number])
        classes = list(range(labelled.num_classes))
        draw.shuffle(classes)
        seen = classes[: round(labelled.num_classes / 2)]
        train, val, taken = [], [], OPENIMA_TRAIN + OPENIMA_VAL
        for c in seen:
            members = np.where(labelled.y == c)[0]
            draw.shuffle(members)  # type: ignore[arg-type]
            if len(members) <= taken:
                raise SplitError(
                    f"{labelled.name}: class {labelled.class_names[c]!r} has {len(members)} nodes; "
                    f"OpenIMA takes {taken} of each seen class and grades the others"
                )
            train.append(members[:OPENIMA_TRAIN])
            val.append(members[OPENIMA_TRAIN:taken])
        labelled_ids = np.concatenate([*train, *val])
        rest = np.setdiff1d(np.flatnonzero(labelled.y >= 0), labelled_ids)
        return open_world(
            labelled,
            [seen, classes[len(seen) :]],
            train_ids=np.concatenate(train),
            val_ids=np.concatenate(val),
            unlabelled=[rest],
            exam_ids=rest,
        )


@dataclass(frozen=True)
class GNNSafe:
    """GNNSafe's split by label: is a node of a known class or of a new one?

    Graded: test nodes of the known classes and all nodes of the new ones. Cora has its public
    split; elsewhere 10% of the known nodes are labelled and 10% are left out, drawn by the seed.
    Unlabelled: every node that is not labelled; the number of all classes is given.
    """

    name: ClassVar[str] = "gnnsafe"

    number: int = 0

    def world(self, labelled: LabelledGraph, seed: int) -> OpenWorld:
        """Return one session; where there is a published split, nothing is drawn."""
        if labelled.name not in GNNSAFE_EXPOSED:
            known = ", ".join(GNNSAFE_EXPOSED)
            raise SettingError(f"GNNSafe's splits by label are of {known}, not of {labelled.name}")
        exposure = GNNSAFE_EXPOSED[labelled.name]
        is_old, is_new = labelled.y > exposure, (labelled.y >= 0) & (labelled.y < exposure)
        if labelled.train is not None and labelled.test is not None:
            train, test = labelled.train & is_old, labelled.test & is_old
        else:
            ids = np.random.default_rng([seed, 31415]).permutation(np.flatnonzero(is_old))
            ends = [
                round(GNNSAFE_TRAIN * len(ids)),
                round((GNNSAFE_TRAIN + GNNSAFE_VAL) * len(ids)),
            ]
            train, _, test = (np.isin(np.arange(len(is_old)), part) for part in np.split(ids, ends))
        return open_world(
            labelled,
            [range(exposure + 1, labelled.num_classes), range(exposure)],
            train_ids=np.flatnonzero(train),
            unlabelled=[np.flatnonzero(~train)],
            exam_ids=np.flatnonzero(test | is_new),
            num_new=[exposure + 1],
        )


@dataclass(frozen=True)
class CFC:
    """CFC's split: half of the nodes of known classes are labelled; 60% of all others are graded.

    It is the same for every seed, as in its code. New classes are one class, "unknown", and their
    number is not given.
    """

    name: ClassVar[str] = "cfc"

    def world(self, labelled: LabelledGraph, seed: int) -> OpenWorld:
        """Return one session; nothing is drawn by the seed."""
        if labelled.name not in CFC_OLD:
            raise SettingError(f"CFC's split is of {', '.join(CFC_OLD)}, not of {labelled.name}")
        old = CFC_OLD[labelled.name]
        is_old = np.isin(labelled.y, old)
        new = [c for c in range(labelled.num_classes) if c not in old]
        # Classes in ascending order, then the rest, as CFC concatenates them.
        unknown = np.concatenate([np.flatnonzero(labelled.y == c) for c in new])
        known = np.flatnonzero(is_old)
        train, rest = train_test_split(known, test_size=1 - CFC_TRAIN, random_state=CFC_SEED)
        rest = np.concatenate([rest, unknown])
        _, test = train_test_split(rest, test_size=CFC_TEST, random_state=CFC_SEED)
        return open_world(
            labelled,
            [old, new],
            train_ids=np.sort(train),
            unlabelled=[np.sort(rest)],
            exam_ids=np.sort(test),
            num_new=[None],
        )


@dataclass(frozen=True)
class Hope:
    """HOPE's task: the smallest class is new. 60% of each known class labelled, 20% left out.

    HOPE does not state its shares; these are ours. Graded: 20% of every class. The number of new
    classes, one, is given.
    """

    name: ClassVar[str] = "hope"

    def world(self, labelled: LabelledGraph, seed: int) -> OpenWorld:
        """Return one session; the seed draws the nodes."""
        rng, size = np.random.default_rng([seed, 14142]), np.bincount(labelled.y[labelled.y >= 0])
        new = int(size.argmin())
        train, test = list[np.ndarray](), list[np.ndarray]()
        for c in range(labelled.num_classes):
            members = rng.permutation(np.flatnonzero(labelled.y == c))
            ends = np.round(np.cumsum((HOPE_TRAIN, HOPE_VAL)) * len(members)).astype(int)
            first, _, last = np.split(members, ends)
            train += [first] if c != new else []
            test.append(last)
        train_ids = np.concatenate(train)
        return open_world(
            labelled,
            [[c for c in range(labelled.num_classes) if c != new], [new]],
            train_ids=train_ids,
            unlabelled=[np.setdiff1d(np.flatnonzero(labelled.y >= 0), train_ids)],
            exam_ids=np.concatenate(test),
        )


@dataclass(frozen=True)
class ClosedSet:
    """The published split with every class known: nothing is new, and nothing is discovered."""

    name: ClassVar[str] = "closed"

    def world(self, labelled: LabelledGraph, seed: int) -> OpenWorld:
        """Return one session that brings no class; nothing is drawn."""
        if labelled.train is None or labelled.test is None:
            raise SettingError(f"{labelled.name} has no published split to be graded on")
        return open_world(
            labelled,
            [range(labelled.num_classes), ()],
            train_ids=np.flatnonzero(labelled.train),
            unlabelled=[np.flatnonzero(~labelled.train & (labelled.y >= 0))],
            exam_ids=np.flatnonzero(labelled.test),
            num_new=[None],
        )


@dataclass(frozen=True)
class Clusters:
    """Half of the classes known, 20 nodes of each labelled; the number of the others is not given.

    Classes are drawn by `number` and nodes by the seed. Every other node is unlabelled and graded.
    """

    name: ClassVar[str] = "clusters"

    number: int = 0

    def world(self, labelled: LabelledGraph, seed: int) -> OpenWorld:
        """Return one session; a published split is not used."""
        order = np.random.default_rng([self.number, 42]).permutation(labelled.num_classes)
        old = sorted(order[: round(labelled.num_classes / 2)].tolist())
        rng, train = np.random.default_rng([seed, 17320]), list[np.ndarray]()
        for c in old:
            members = rng.permutation(np.flatnonzero(labelled.y == c))
            train.append(members[: min(STAGE_TRAIN, len(members) // 2)])
        train_ids = np.concatenate(train)
        rest = np.setdiff1d(np.flatnonzero(labelled.y >= 0), train_ids)
        return open_world(
            labelled,
            [old, [c for c in range(labelled.num_classes) if c not in old]],
            train_ids=train_ids,
            unlabelled=[rest],
            exam_ids=rest,
            num_new=[None],
        )


@dataclass(frozen=True)
class Stages:
    """Classes that come session by session, unlabelled, among nodes of every class met before.

    The order of the classes is drawn. 30% of each class is graded; the exam after a session covers
    all classes met so far. Labelled classes have 20 labels each; their other nodes come to the
    sessions in equal parts. A later class brings 60% of its nodes in its first session (all of them
    in the last session), the rest in equal parts to the sessions after it. No node comes twice.
    """

    name: ClassVar[str] = "stages"

    number: int = 0
    setting: str = TRANSDUCTIVE

    def world(self, labelled: LabelledGraph, seed: int) -> OpenWorld:
        """Return the sessions of `stage_sizes`; a published split is not used."""
        sizes = stage_sizes(labelled.name.partition(":")[0], labelled.num_classes)
        rng, last = np.random.default_rng([seed, 16180]), len(sizes) - 1
        order = rng.permutation(labelled.num_classes)
        groups = [part.tolist() for part in np.split(order, np.cumsum(sizes)[:-1])]
        train, exam = list[np.ndarray](), list[np.ndarray]()
        comes = [list[np.ndarray]() for _ in range(last)]
        for home, group in enumerate(groups):
            for c in group:
                members = rng.permutation(np.flatnonzero(labelled.y == c))
                held, rest = np.split(members, [round(STAGE_EXAM * len(members))])
                exam.append(held)
                if home == 0:
                    here, rest = np.split(rest, [min(STAGE_TRAIN, len(rest) // 2)])
                    train.append(here)
                else:
                    share = STAGE_FIRST if home < last else 1.0
                    here, rest = np.split(rest, [round(share * len(rest))])
                    comes[home - 1].append(here)
                later = np.array_split(rest, max(last - home, 1))
                for session, part in enumerate(later, start=home):
                    if session < last:
                        comes[session].append(part)
        return open_world(
            labelled,
            groups,
            train_ids=np.concatenate(train),
            unlabelled=[np.concatenate(parts) for parts in comes],
            exam_ids=np.concatenate(exam),
            setting=self.setting,
        )


def stage_sizes(name: str, num_classes: int) -> tuple[int, ...]:
    """Return the number of labelled classes, then that of each session.

    Examples:
        >>> stage_sizes("cora", 7), stage_sizes("synthetic", 40), stage_sizes("mine", 5)
        ((3, 2, 2), (20, 4, 4, 4, 4, 4), (2, 1, 1, 1))
    """
    if name in STAGES:
        return STAGES[name]
    first = num_classes // 2
    later = [len(part) for part in np.array_split(np.arange(num_classes - first), SESSIONS)]
    return (first, *(size for size in later if size))


@dataclass(frozen=True)
class Mixed:
    """Half of the classes old, drawn by `number`; `share` percent of the unlabelled are old.

    Examples:
        >>> import nodenova as nova
        >>> Mixed(95).world(nova.synthetic(nodes=400, classes=4), seed=0).classes
        ((0, 2), (1, 3))
    """

    share: int
    number: int = 0
    setting: str = TRANSDUCTIVE

    @property
    def name(self) -> str:
        """Name in rows."""
        return f"mixed-{self.share}"

    def world(self, labelled: LabelledGraph, seed: int) -> OpenWorld:
        """Return one session of `split_mixed`."""
        classes = labelled.num_classes
        order = np.random.default_rng([self.number, 42]).permutation(classes)
        half = order[: round(classes / 2)].tolist()
        share = self.share / 100
        return split_mixed(labelled, half, share_old=share, setting=self.setting, seed=seed)


@dataclass(frozen=True)
class Count:
    """Old and new classes drawn by `number`; `share` percent of the unlabelled are old."""

    share: int
    number: int = 0

    @property
    def name(self) -> str:
        """Name in rows."""
        return f"count-{self.share}"

    def world(self, labelled: LabelledGraph, seed: int) -> OpenWorld:
        """Return one session of `split_mixed`; classes may be left over."""
        classes = labelled.num_classes
        if classes < MIN_CLASSES:
            needs = f"counting needs at least {MIN_CLASSES}"
            raise SplitError(f"{labelled.name}: {classes} classes; {needs}")
        old, new = classes_to_count(classes, self.number)
        return split_mixed(labelled, old, new, share_old=self.share / 100, seed=seed)


def classes_to_count(num_classes: int, seed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Draw at least two old classes and one to eight new ones."""
    rng = np.random.default_rng([seed, 43])
    order = rng.permutation(num_classes).tolist()
    num_old = int(rng.integers(2, num_classes))
    num_new = int(rng.integers(1, min(num_classes - num_old, MAX_NEW) + 1))
    return tuple(sorted(order[:num_old])), tuple(sorted(order[num_old : num_old + num_new]))


PROTOCOLS = (
    "pown",
    "openima",
    "gnnsafe",
    "cfc",
    "hope",
    "closed",
    "clusters",
    "stages",
    *(f"mixed-{share}" for share in SHARES_MIXED),
    *(f"count-{share}" for share in SHARES_COUNTED),
)
# Protocols with a number (of a fold, a split, a draw of classes), and those without one.
NUMBERED: dict[str, Callable[[int], WorldProtocol]] = {
    "pown": Pown, "openima": OpenIMA, "gnnsafe": GNNSafe, "clusters": Clusters,
}  # fmt: skip
FIXED: dict[str, Callable[[], WorldProtocol]] = {"cfc": CFC, "hope": Hope, "closed": ClosedSet}
INDUCTIVE = ("mixed", "stages")  # may hide unlabelled nodes from phase 1


def protocol_of(name: str, number: int = 0, setting: str = TRANSDUCTIVE) -> WorldProtocol:
    """Return the protocol of a row: `number` is its fold, split or draw of classes.

    Examples:
        >>> protocol_of("mixed-95", number=2)
        Mixed(share=95, number=2, setting='transductive')
    """
    if name not in PROTOCOLS:
        raise one_of("protocol", name, PROTOCOLS)
    kind, _, share = name.partition("-")
    if setting != TRANSDUCTIVE and kind not in INDUCTIVE:
        raise SettingError(f"{kind} shows every phase the whole graph, so it cannot be {setting}")
    if kind == "mixed":
        return Mixed(int(share), number, setting)
    if kind == "count":
        return Count(int(share), number)
    if kind == "stages":
        return Stages(number, setting)
    if kind in NUMBERED:
        return NUMBERED[kind](number)
    return FIXED[kind]()
