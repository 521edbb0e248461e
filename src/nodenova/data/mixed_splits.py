"""Open-world tasks: sessions of unlabelled nodes in which old and new classes are mixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nodenova.data.division import Division, check_groups
from nodenova.data.labels import UNKNOWN, Exam, LabelledGraph, OldTask
from nodenova.data.splits import SETTINGS, check_per_class
from nodenova.errors import SettingError, SplitError, one_of
from nodenova.graph import NewTask
from nodenova.settings import check_arguments

# How unlabelled nodes are given to a method: without saying which are new; the new ones alone (an
# upper bound); all of them, taken for new.
HANDED = ("mixed", "told", "all-new")
MAX_UNLABELLED = 2000  # nodes of a mixture


@dataclass(frozen=True, eq=False)
class OpenWorld:
    """Phase 1, the sessions of phase 2 and their exams; classes are numbered as in the model.

    Attributes:
        old: Task of phase 1.
        tasks: Task of each session: unlabelled nodes of old and new classes.
        exams: Exam after each session.
        new_ids: Nodes of new classes in each session. This is an answer: only
            `handed(..., "told")` gives it to a method.
        classes: Old classes of the graph, then the classes that each session brings.
    """

    old: OldTask
    tasks: tuple[NewTask, ...]
    exams: tuple[Exam, ...]
    new_ids: tuple[np.ndarray, ...]
    classes: tuple[tuple[int, ...], ...]

    def handed(self, session: int = 0, how: str = "mixed") -> NewTask:
        """Return the task of a session as a method gets it.

        Args:
            session: Number of the session, from 0.
            how: "mixed" (nothing says which nodes are new), "told" (the new nodes alone) or
                "all-new" (all nodes, taken for new).

        Returns:
            The task. The number of new classes is the same in all three.

        Raises:
            SettingError: If `how` is unknown.

        Examples:
            >>> from nodenova.data.synthetic import synthetic
            >>> world = split_mixed(synthetic(nodes=400, classes=4), old=[0, 1])
            >>> [len(world.handed(0, how).ids) for how in HANDED]
            [146, 73, 146]
        """
        if how not in HANDED:
            raise one_of("way to hand over unlabelled nodes", how, HANDED)
        task = self.tasks[session]
        if how == "mixed":
            return task
        ids = self.new_ids[session] if how == "told" else task.ids
        return NewTask(task.graph, ids, task.num_new)


def open_world(
    labelled: LabelledGraph,
    groups: Sequence[Sequence[int]],
    *,
    train_ids: np.ndarray,
    unlabelled: Sequence[np.ndarray],
    exam_ids: np.ndarray,
    val_ids: np.ndarray | None = None,
    num_new: Sequence[int | None] | None = None,
    setting: str = "transductive",
) -> OpenWorld:
    """Build the tasks and exams of nodes that were chosen; nothing is drawn here.

    `groups` holds the old classes, then those that each session brings; classes in no group may be
    among the unlabelled nodes and are not graded. A node of `exam_ids` is graded from the session
    on that brings its class. `num_new` is the number of classes to find in each session (default:
    the size of its group; None: not given). In the setting "inductive" a phase sees the nodes of
    classes met so far and of its own and earlier sessions.

    Examples:
        >>> from nodenova.data.synthetic import synthetic
        >>> labelled = synthetic(nodes=200, classes=4, seed=0)
        >>> ids = [np.flatnonzero(labelled.y == c) for c in range(4)]
        >>> mixture = np.concatenate([ids[0][5:10], ids[1][:9]])
        >>> world = open_world(labelled, [[0], [1]], train_ids=ids[0][:5], unlabelled=[mixture],
        ...                    exam_ids=ids[1][9:])
        >>> len(world.tasks[0].ids), len(world.new_ids[0])
        (14, 9)
    """
    if setting not in SETTINGS:
        raise one_of("setting", setting, SETTINGS)
    groups = [sorted(map(int, group)) for group in groups]
    order = [c for group in groups for c in group]
    number = np.full(labelled.num_classes + 1, UNKNOWN)  # the last entry keeps -1 at -1
    number[order] = np.arange(len(order))
    y = number[labelled.y]
    ends = np.cumsum([len(group) for group in groups])
    train, val = (_mask(labelled, ids) for ids in (train_ids, () if val_ids is None else val_ids))
    test = _mask(labelled, exam_ids)
    new = [_mask(labelled, ids) for ids in unlabelled]
    is_old = (y >= 0) & (y < ends[0])
    _check(labelled, (train | val) & ~is_old, "labelled, but not of an old class")
    _check(labelled, train & np.any(new, axis=0), "both labelled and unlabelled")
    _check(labelled, test & (y < 0), "graded, but its class is in no session")
    met = [np.isin(labelled.y, order[:end]) for end in ends]
    seen = _seen(met, new) if setting == "inductive" else None
    divided = Division(
        graph=labelled.graph,
        y=y,
        class_names=tuple(labelled.class_names[c] for c in order),
        sizes=tuple(len(group) for group in groups),
        train=train,
        val=val,
        new=new,
        test=test,
        seen=seen,
    )
    wanted = [len(group) for group in groups[1:]] if num_new is None else list(num_new)
    sessions = range(1, len(groups))
    tasks = [
        divided.new_task(session, count, mixed=True, counted=count is None)
        for session, count in zip(sessions, wanted, strict=True)
    ]
    visible = [np.ones_like(train)] * len(new) if seen is None else seen[1:]
    sessions_seen = zip(new, met, visible, strict=False)
    return OpenWorld(
        old=divided.old_task(),
        tasks=tuple(tasks),
        exams=tuple(map(divided.exam, sessions)),
        new_ids=tuple(np.flatnonzero((here & ~known)[part]) for here, known, part in sessions_seen),
        classes=tuple(map(tuple, groups)),
    )


def split_mixed(
    labelled: LabelledGraph,
    old: Sequence[int],
    new: Sequence[int] | None = None,
    *,
    share_old: float = 0.5,
    num_new: int | None = None,
    per_class: int = 20,
    max_unlabelled: int = MAX_UNLABELLED,
    setting: str = "transductive",
    seed: int = 0,
) -> OpenWorld:
    """Split a graph into labelled old nodes and a mixture of unlabelled old and new nodes.

    Half of the unlabelled nodes of each class are held out for the exam. The mixture is drawn from
    the other half: as many nodes as the share allows.

    Args:
        labelled: The graph and its classes. A published split is not used.
        old: Classes with labelled nodes.
        new: Classes to discover (default: all others). Nodes of classes in neither list are in the
            graph, but neither labelled, unlabelled nor graded.
        share_old: Share of old classes in the mixture: 0 is all new, 1 is nothing new.
        num_new: Number of classes to find (default: the true number).
        per_class: Labelled nodes per old class, at most half of the class.
        max_unlabelled: Largest number of nodes in the mixture.
        setting: "transductive" shows both phases the whole graph (never a label); "inductive" hides
            the mixture, and all nodes of new classes, from phase 1.
        seed: Seed of all draws.

    Returns:
        One session: `world.old`, `world.tasks[0]`, `world.exams[0]`.

    Raises:
        SettingError: If a share, `per_class` or `max_unlabelled` is out of range.
        SplitError: If classes are unknown, given twice, or too small.

    Examples:
        >>> import nodenova as nova
        >>> world = nova.split_mixed(nova.synthetic(nodes=400, classes=4), [0, 1], share_old=0.75)
        >>> len(world.tasks[0].ids), len(world.new_ids[0])
        (97, 24)
    """
    check_arguments(split_mixed, locals())
    check_per_class(per_class)
    if not 0 <= share_old <= 1:
        raise SettingError(f"share_old must be between 0 and 1, it is {share_old}")
    if max_unlabelled < 1:
        raise SettingError(f"max_unlabelled must be at least 1, it is {max_unlabelled}")
    rest = [c for c in range(labelled.num_classes) if c not in set(old)]
    new_classes = (rest if new is None else new) if share_old < 1 else ()
    groups = [sorted(map(int, old)), sorted(map(int, new_classes))]
    check_groups(groups if share_old < 1 else groups[:1], labelled)
    rng = np.random.default_rng([seed, 27182])
    train, exam = list[np.ndarray](), list[np.ndarray]()
    pools: tuple[list[np.ndarray], list[np.ndarray]] = ([], [])
    for side, group in enumerate(groups):
        for c in group:
            members = rng.permutation(np.flatnonzero(labelled.y == c))
            count = min(per_class, len(members) // 2) if side == 0 else 0
            train.append(members[:count])
            held, pool = np.array_split(members[count:], 2)
            exam.append(held)
            pools[side].append(pool)
    none = np.zeros(0, dtype=np.int64)
    known, unknown = (rng.permutation(np.concatenate([none, *pool])) for pool in pools)
    shares = ((len(known), share_old), (len(unknown), 1 - share_old))
    size = min([max_unlabelled, *(count / share for count, share in shares if share > 0)])
    mixture = [known[: round(size * share_old)], unknown[: round(size * (1 - share_old))]]
    return open_world(
        labelled,
        groups,
        train_ids=np.concatenate(train),
        unlabelled=[np.concatenate(mixture)],
        exam_ids=np.concatenate(exam),
        num_new=[len(groups[1]) or None if num_new is None else num_new],
        setting=setting,
    )


def _seen(met: Sequence[np.ndarray], new: Sequence[np.ndarray]) -> list[np.ndarray]:
    """(N,) masks of the nodes that each phase sees."""
    none = np.zeros_like(met[0])
    later = [np.any([none, *new[phase:]], axis=0) for phase in range(len(met))]
    so_far = [np.any([none, *new[:phase]], axis=0) for phase in range(len(met))]
    return [(m & ~coming) | come for m, coming, come in zip(met, later, so_far, strict=True)]


def _mask(labelled: LabelledGraph, ids: Sequence[int] | np.ndarray) -> np.ndarray:
    mask = np.zeros(labelled.graph.num_nodes, dtype=bool)
    mask[np.asarray(ids, dtype=np.int64)] = True
    return mask


def _check(labelled: LabelledGraph, wrong: np.ndarray, what: str) -> None:
    if wrong.any():
        raise SplitError(f"{labelled.name}: node {wrong.argmax()} is {what}")
