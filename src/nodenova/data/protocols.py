"""Whose nodes are labelled, unlabelled and graded in published protocols of the open world.

POWN: Hoffmann, Galke, Scherp, CoLLAs 2024 (Bobowner/POWN at 3063f91). OpenIMA: Wang et al., ICDE
2024 (RUCKBReasoning/OpenIMA at 7bdc277). GNNSafe: Wu et al., ICLR 2023 (qitianwu/GraphOOD-GNNSafe
at ba73d8f). Many stages: the scheme of Happy (Ma et al., NeurIPS 2024), which is about images.
"""

from __future__ import annotations

import random

import numpy as np

from nodenova.data.labels import LabelledGraph
from nodenova.data.mixed_splits import OpenWorld, open_world
from nodenova.errors import SettingError, SplitError

# Classes (PyTorch Geometric's ids) in folds; each fold is to be found once.
POWN_FOLDS: dict[str, tuple[tuple[int, ...], ...]] = {
    "cora": ((5, 3), (2, 0), (4, 1, 6)),
    "citeseer": ((0, 5), (4, 1), (2, 3)),
    "photo": ((0, 4), (1, 2), (7, 3), (5, 6)),
    "computers": ((2, 5), (3, 8), (6, 1), (4, 9), (7, 0)),
}
POWN_TRAIN, POWN_VAL = 20, 30  # nodes of a class, where a graph has no published split
OPENIMA_SEEDS = (
    2406525885, 1660347731, 3164031153, 1454191016, 1583215992,
    765984986, 258270452, 3808600642, 292690791, 2492579272,
)  # fmt: skip
OPENIMA_TRAIN, OPENIMA_VAL = 50, 50  # nodes of a seen class
GNNSAFE_OLD, GNNSAFE_NEW = (4, 5, 6), (0, 1, 2)  # of Cora; nobody is asked about class 3
# How many classes are labelled, and how many each session brings.
STAGES: dict[str, tuple[int, ...]] = {
    "cora": (3, 2, 2),
    "citeseer": (2, 2, 2),
    "wordnet": (5, 1, 1, 1, 1, 1),
}
SESSIONS = 5  # of other graphs, after half of the classes
STAGE_TRAIN = 20  # labelled nodes of a class, at most half of those that are not in the exam
STAGE_EXAM, STAGE_FIRST = 0.3, 0.6  # of a class: in the exam; of the rest, in its first session
MAX_NEW = 8  # classes to be counted


def pown(labelled: LabelledGraph, fold: int) -> OpenWorld:
    """POWN's task for one test fold.

    Known are the classes outside the test fold and the fold before it (cyclic), whose nodes are in
    the graph, unlabelled and not graded. Labelled: training nodes of known classes. Unlabelled:
    everything else. Graded: test nodes of known classes and of the test fold. The number of all
    classes is given. Labels of validation nodes, which POWN chooses its epoch by, are not used.

    Args:
        labelled: Cora or CiteSeer with the published split, Photo or Computers without one.
        fold: Which of its folds is to be found, from 0.

    Returns:
        One session.

    Raises:
        SettingError: POWN has no such graph or fold.

    Examples:
        >>> from dataclasses import replace
        >>> import nodenova as nova
        >>> graph = replace(nova.synthetic(nodes=800, classes=8), name="photo")
        >>> world = pown(graph, fold=0)
        >>> world.classes, world.tasks[0].num_new
        (((1, 2, 3, 7), (0, 4)), 4)
    """
    folds = POWN_FOLDS.get(labelled.name, ())
    if not folds:
        raise SettingError(f"POWN's graphs are {', '.join(POWN_FOLDS)}, not {labelled.name}")
    if not 0 <= fold < len(folds):
        raise SettingError(f"{labelled.name}: POWN's folds are 0..{len(folds) - 1}, not {fold}")
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


def _pown_masks(labelled: LabelledGraph) -> tuple[np.ndarray, np.ndarray]:
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


def openima(labelled: LabelledGraph, number: int) -> OpenWorld:
    """OpenIMA's split with this number: half of the classes seen, 50 + 50 nodes of each labelled.

    Graded are all unlabelled nodes. The number of classes is given.

    Args:
        labelled: Any graph; a published split is not used.
        number: Which of the ten seeds, from 0.

    Returns:
        One session.

    Raises:
        SettingError: There is no such number.
        SplitError: A seen class has no node left after its 100.

    Examples:
        >>> import nodenova as nova
        >>> openima(nova.synthetic(nodes=800, classes=4), number=0).exams[0].sizes
        (2, 2)
    """
    if not 0 <= number < len(OPENIMA_SEEDS):
        raise SettingError(f"OpenIMA's splits are 0..{len(OPENIMA_SEEDS) - 1}, not {number}")
    draw = random.Random(OPENIMA_SEEDS[number])
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


def gnnsafe(labelled: LabelledGraph) -> OpenWorld:
    """GNNSafe's split of Cora by label: is a node of classes 4, 5, 6 or of 0, 1, 2?

    Graded: test nodes of the known classes and all nodes of the new ones. Unlabelled, for a method
    that discovers: every node that is not labelled, and the number of all classes is given.

    Args:
        labelled: Cora with the published split.

    Returns:
        One session.

    Raises:
        SettingError: It is another graph.

    Examples:
        >>> from dataclasses import replace
        >>> import nodenova as nova
        >>> from nodenova.data.splits import with_split
        >>> graph = replace(with_split(nova.synthetic(nodes=400, classes=7)), name="cora")
        >>> gnnsafe(graph).classes
        ((4, 5, 6), (0, 1, 2))
    """
    if labelled.name != "cora" or labelled.train is None or labelled.test is None:
        raise SettingError(f"GNNSafe's split by label is of cora, not of {labelled.name}")
    is_old, is_new = (np.isin(labelled.y, group) for group in (GNNSAFE_OLD, GNNSAFE_NEW))
    return open_world(
        labelled,
        [GNNSAFE_OLD, GNNSAFE_NEW],
        train_ids=np.flatnonzero(labelled.train & is_old),
        unlabelled=[np.flatnonzero(~(labelled.train & is_old))],
        exam_ids=np.flatnonzero((labelled.test & is_old) | is_new),
        num_new=[labelled.num_classes - len(GNNSAFE_OLD)],
    )


def stage_sizes(name: str, num_classes: int) -> tuple[int, ...]:
    """How many classes are labelled, and how many each session brings.

    Args:
        name: A dataset; those of `STAGES` have sizes of their own.
        num_classes: How many classes the graph has.

    Returns:
        For other graphs half of the classes, then five sessions as even as can be.

    Examples:
        >>> stage_sizes("cora", 7), stage_sizes("synthetic", 40), stage_sizes("mine", 5)
        ((3, 2, 2), (20, 4, 4, 4, 4, 4), (2, 1, 1, 1))
    """
    if name in STAGES:
        return STAGES[name]
    first = num_classes // 2
    later = [len(part) for part in np.array_split(np.arange(num_classes - first), SESSIONS)]
    return (first, *(size for size in later if size))


def stages(labelled: LabelledGraph, seed: int, setting: str = "transductive") -> OpenWorld:
    """Classes that come session by session, unlabelled, among nodes of every class met before.

    The order of the classes is drawn. Of every class 30 % of the nodes are for the exam, which asks
    after each session for all classes met so far. Of labelled classes 20 nodes have labels, the
    others come in equal parts to the sessions. Of a class that comes later 60 % of the nodes come
    in its first session (in the last session all), the others in equal parts to those after it.
    No node comes twice.

    Args:
        labelled: Any graph; a published split is not used.
        seed: Of everything that is drawn.
        setting: What phases see of the graph; see `open_world`.

    Returns:
        As many sessions as `stage_sizes` says.

    Examples:
        >>> import nodenova as nova
        >>> [exam.sizes for exam in stages(nova.synthetic(nodes=400, classes=5), seed=0).exams]
        [(2, 1), (2, 1, 1), (2, 1, 1, 1)]
    """
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
            for session, part in enumerate(np.array_split(rest, max(last - home, 1)), start=home):
                if session < last:
                    comes[session].append(part)
    return open_world(
        labelled,
        groups,
        train_ids=np.concatenate(train),
        unlabelled=[np.concatenate(parts) for parts in comes],
        exam_ids=np.concatenate(exam),
        setting=setting,
    )


def classes_to_count(num_classes: int, seed: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which classes are old and which are to be counted: drawn, and so is how many there are.

    Args:
        num_classes: How many classes the graph has, at least 3.
        seed: Of what is drawn.

    Returns:
        At least two old classes, and one to eight new ones; classes may be left over.

    Examples:
        >>> old, new = classes_to_count(7, seed=0)
        >>> len(old) >= 2, 1 <= len(new) <= 7 - len(old), set(old) & set(new)
        (True, True, set())
    """
    rng = np.random.default_rng([seed, 43])
    order = rng.permutation(num_classes).tolist()
    num_old = int(rng.integers(2, num_classes))
    num_new = int(rng.integers(1, min(num_classes - num_old, MAX_NEW) + 1))
    return tuple(sorted(order[:num_old])), tuple(sorted(order[num_old : num_old + num_new]))
