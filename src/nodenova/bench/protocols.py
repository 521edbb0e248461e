"""A protocol by its name: which nodes are labelled, unlabelled and graded."""

from __future__ import annotations

import numpy as np

from nodenova.data import protocols
from nodenova.data.labels import LabelledGraph
from nodenova.data.mixed_splits import OpenWorld, split_mixed
from nodenova.errors import SettingError, SplitError, one_of

SHARES_MIXED = (30, 50, 70, 95)  # percent of the mixture that are of old classes
SHARES_COUNTED = (0, 30, 50, 70, 90, 100)  # 0: all new; 100: nothing new
PROTOCOLS = (
    "pown",
    "openima",
    "gnnsafe",
    "stages",
    *(f"mixed-{share}" for share in SHARES_MIXED),
    *(f"count-{share}" for share in SHARES_COUNTED),
)
INDUCTIVE = ("mixed", "stages")  # protocols that may hide unlabelled nodes from phase 1
MIN_CLASSES = 3  # of a graph whose classes are to be counted: two old ones and a new one


def world_of(
    labelled: LabelledGraph,
    protocol: str,
    number: int,
    seed: int,
    setting: str = "transductive",
) -> OpenWorld:
    """The tasks of a protocol.

    Args:
        labelled: The graph, called as datasets are.
        protocol: One of `PROTOCOLS`; a number behind it is the percentage of old nodes.
        number: Which fold (`pown`), split (`openima`) or draw of classes (`mixed`, `count`).
        seed: Of the nodes that are drawn, where a protocol draws any.
        setting: "transductive", or "inductive": phase 1 sees no unlabelled node of a session.

    Returns:
        Sessions and exams.

    Raises:
        SettingError: The protocol, or its fold or graph, is unknown.
        SplitError: The graph has too few classes or nodes.

    Examples:
        >>> import nodenova as nova
        >>> world = world_of(nova.synthetic(nodes=400, classes=4), "mixed-95", number=0, seed=0)
        >>> world.classes
        ((0, 2), (1, 3))
    """
    if protocol not in PROTOCOLS:
        raise one_of("protocol", protocol, PROTOCOLS)
    kind, _, percent = protocol.partition("-")
    if setting != "transductive" and kind not in INDUCTIVE:
        raise SettingError(f"{kind} shows all phases the whole graph: it cannot be {setting}")
    if kind == "pown":
        return protocols.pown(labelled, number)
    if kind == "openima":
        return protocols.openima(labelled, number)
    if kind == "gnnsafe":
        return protocols.gnnsafe(labelled)
    if kind == "stages":
        return protocols.stages(labelled, seed, setting)
    share, classes = int(percent) / 100, labelled.num_classes
    if kind == "mixed":
        order = np.random.default_rng([number, 42]).permutation(classes)
        half = order[: round(classes / 2)].tolist()
        return split_mixed(labelled, half, share_old=share, setting=setting, seed=seed)
    if classes < MIN_CLASSES:
        needs = f"counting needs at least {MIN_CLASSES}"
        raise SplitError(f"{labelled.name}: {classes} classes; {needs}")
    old, new = protocols.classes_to_count(classes, number)
    return split_mixed(labelled, old, new, share_old=share, seed=seed)


def num_folds(dataset: str) -> int:
    """How many folds POWN has of a graph.

    Args:
        dataset: Its name.

    Returns:
        The number of folds.

    Raises:
        SettingError: POWN does not use that graph.

    Examples:
        >>> num_folds("cora")
        3
    """
    if dataset not in protocols.POWN_FOLDS:
        raise SettingError(f"POWN's graphs are {', '.join(protocols.POWN_FOLDS)}, not {dataset}")
    return len(protocols.POWN_FOLDS[dataset])
