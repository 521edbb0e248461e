"""Protocols as files: node ids for a method, answers apart, and a grader without nodenova.

DIR/protocol.json                          format, data, hashes of all files; written last
DIR/README.md, DIR/grade.py                what a method may read; the grader
DIR/graph.npz                              features and edges, without labels
DIR/splits/SPLIT/split.json                protocol, number, seed, old classes, sessions
DIR/splits/SPLIT/train.csv                 labelled nodes of old classes (validation.csv: of others)
DIR/splits/SPLIT/session-1/unlabelled.csv  nodes to discover in; test.csv: nodes to predict
DIR/answers/SPLIT/session-1.csv            true classes of the test nodes
"""

from __future__ import annotations

import glob
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nodenova.bench import grader
from nodenova.bench.runs import OPEN_WORLD, draw_classes
from nodenova.data.labels import LabelledGraph
from nodenova.data.mixed_splits import OpenWorld
from nodenova.data.protocols import PROTOCOLS, TRANSDUCTIVE, PaperSplit, protocol_of
from nodenova.data.splits import SETTINGS
from nodenova.display import plural
from nodenova.errors import SettingError, StorageError, one_of
from nodenova.evaluation.graded import versions
from nodenova.files.atomic import write_atomically
from nodenova.files.content import table_content, to_json
from nodenova.files.documents import check_header, list_of, map_of, read_json, record, text
from nodenova.files.folders import (
    change_folder,
    files_below,
    has_completed,
    is_empty,
    recover,
)
from nodenova.graph import Graph
from nodenova.io.npz import graph_npz

PAPER = {"paper": ("published",), "class-splits": ("balanced", "as-it-comes")}
# What each name stands for, in the order of the list.
KNOWN: Mapping[str, str] = {
    "paper": "the first classes are labelled, the others new; the published split, or a drawn one",
    "class-splits": "old classes drawn by the seed; training nodes balanced, and as they come",
    "mixed": "30, 50, 70 or 95% of the unlabelled nodes are of old classes",
    "count": "the number of new classes is not given; 0 to 100% of the unlabelled nodes are old",
    "stages": "classes come session by session, among nodes of classes met before",
    "pown": "POWN's folds",
    "openima": "OpenIMA's ten splits; the seed is the number of the split",
    "gnnsafe": "GNNSafe's splits by label: old or new?",
    "cfc": "CFC's split of Cora; the number of new classes is not given",
    "hope": "HOPE's task: the smallest class is new",
    "closed": "the published split with every class known: nothing is new",
    "clusters": "half of the classes are known; the number of the others is not given",
}
NAMES = (*KNOWN, *(name for name in PROTOCOLS if name not in KNOWN))
ANSWERS, SPLITS, INDEX = "answers", "splits", "protocol.json"
EXPORT = record(
    {"files": map_of(text), "splits": list_of(record({"name": text, ANSWERS: map_of(text)}))}
)


@dataclass(frozen=True, eq=False)
class ExportedSplit:
    """One split: what a method may read, and the answers.

    Attributes:
        name: Name of its folders.
        seeds: Seeds of which it is the split; where nothing is drawn, all of them.
        files: Content by path below `splits/name`.
        answers: Content by path below `answers/name`.
    """

    name: str
    seeds: tuple[int, ...]
    files: Mapping[str, bytes]
    answers: Mapping[str, bytes] = field(repr=False)


def splits_of(
    name: str,
    labelled: LabelledGraph,
    seeds: Sequence[int],
    num_old: int,
    setting: str = TRANSDUCTIVE,
) -> list[ExportedSplit]:
    """Return the splits of a protocol on a graph.

    Args:
        name: Name in `NAMES`: a benchmark with all its splits, or one protocol.
        labelled: Graph with all its labels.
        seeds: Seeds of the draws. Seeds that give the same split share it.
        num_old: Number of old classes where the protocol does not decide it.
        setting: "transductive", or "inductive" for paper, class-splits, mixed and stages.

    Returns:
        The splits, each once.

    Raises:
        SettingError: If the protocol is unknown, or does not have this setting.
        SplitError: If the graph does not fit the protocol.

    Examples:
        >>> import nodenova as nova
        >>> graph = nova.synthetic(nodes=400, classes=4)
        >>> splits = splits_of("mixed-50", graph, seeds=[0, 1], num_old=2)
        >>> [split.name for split in splits]
        ['mixed-50-0-seed-0', 'mixed-50-1-seed-1']
        >>> sorted(splits[0].files)
        ['session-1/test.csv', 'session-1/unlabelled.csv', 'split.json', 'train.csv']
    """
    if name not in NAMES:
        raise one_of("protocol", name, NAMES)
    if setting not in SETTINGS:
        raise one_of("setting", setting, SETTINGS)
    found: dict[str, ExportedSplit] = {}
    for seed in seeds:
        for protocol, number, world in _worlds(name, labelled, seed, num_old, setting):
            about = {"protocol": protocol, "number": number, "setting": setting}
            files, answers = _files(labelled.graph, world, protocol, setting)
            digest = _sha256(b"".join([*files.values(), *answers.values()]) + protocol.encode())
            if digest in found:
                known = found[digest]
                more = (*known.seeds, seed)
                found[digest] = ExportedSplit(known.name, more, known.files, known.answers)
                continue
            parts = [protocol, *([] if number is None else [str(number)]), f"seed-{seed}"]
            document = {**about, "seed": seed, **_description(world, protocol)}
            files = {"split.json": to_json(document), **files}
            found[digest] = ExportedSplit("-".join(parts), (seed,), files, answers)
    return list(found.values())


def _worlds(
    name: str, labelled: LabelledGraph, seed: int, num_old: int, setting: str
) -> Iterator[tuple[str, int | None, OpenWorld]]:
    """Yield (protocol, number, tasks and exams) of every split of a seed."""
    for draw in PAPER.get(name, ()):
        drawn = name == "class-splits"
        classes = labelled.num_classes
        old = draw_classes(classes, num_old, seed) if drawn else tuple(range(num_old))
        world = PaperSplit(old, draw=draw, setting=setting).world(labelled, seed)
        yield (f"{name}-{draw}" if drawn else name), None, world
    if name in OPEN_WORLD:
        pairs = OPEN_WORLD[name].protocols(labelled, seed)
    else:
        pairs = [] if name in PAPER else [(name, seed)]
    for protocol, number in pairs:
        yield protocol, number, protocol_of(protocol, number, setting).world(labelled, seed)


def _description(world: OpenWorld, protocol: str) -> dict[str, Any]:
    """Return what a method may know beside the node ids."""
    is_mixed = not protocol.startswith(tuple(PAPER)) and protocol != "count-0"
    is_counted = protocol.startswith("count")
    sessions = [
        {
            "unlabelled": len(task.ids),
            "test": len(exam.ids),
            "mixed": is_mixed,
            "num_new": None if is_counted else task.num_new,
        }
        for task, exam in zip(world.tasks, world.exams, strict=True)
    ]
    return {"old_classes": list(world.old.class_names), "sessions": sessions}


def _files(
    graph: Graph, world: OpenWorld, protocol: str, setting: str
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Return the files of a split that a method may read, and those with answers."""
    old, exams = world.old, world.exams
    files = {"train.csv": _table(old.graph, old.train_ids, old.train_y)}
    if len(old.val_ids):
        files["validation.csv"] = _table(old.graph, old.val_ids, old.val_y)
    names = list(exams[-1].class_names)
    answers = {"classes.json": to_json({"sizes": list(exams[-1].sizes), "class_names": names})}
    if setting != TRANSDUCTIVE:
        files["visible.csv"] = _table(old.graph, np.arange(old.graph.num_nodes))
    for session, (task, exam) in enumerate(zip(world.tasks, exams, strict=True), start=1):
        place = f"session-{session}"
        files[f"{place}/unlabelled.csv"] = _table(task.graph, task.ids)
        files[f"{place}/test.csv"] = _table(exam.graph, exam.ids)
        answers[f"{place}.csv"] = _table(exam.graph, exam.ids, exam.y)
        if setting != TRANSDUCTIVE:
            files[f"{place}/visible.csv"] = _table(exam.graph, np.arange(exam.graph.num_nodes))
    return files, answers


def _table(graph: Graph, ids: np.ndarray, y: np.ndarray | None = None) -> bytes:
    columns: dict[str, list[object]] = {"node": graph.node_ids[ids].tolist()}
    if y is not None:
        columns["class"] = y.tolist()
    return table_content(columns, Path("nodes.csv"))


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def write_protocol(
    folder: Path,
    name: str,
    labelled: LabelledGraph,
    splits: Sequence[ExportedSplit],
    *,
    keep_graph: bool = True,
    overwrite: bool = False,
) -> Path:
    """Write splits, answers, grader and README into a folder, whole or not at all.

    Args:
        folder: New or empty folder, or one with an export to be replaced.
        name: Name of the protocol.
        labelled: Graph of the splits.
        splits: Splits from `splits_of`.
        keep_graph: Whether graph.npz, features and edges without labels, is written.
        overwrite: Whether an export in the folder is replaced; other files stay.

    Returns:
        Path of the README.

    Raises:
        StorageError: If the folder holds anything else.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> import nodenova as nova
        >>> graph = nova.synthetic(nodes=400, classes=4)
        >>> splits = splits_of("paper", graph, seeds=[0], num_old=2)
        >>> with TemporaryDirectory() as place:
        ...     readme = write_protocol(Path(place) / "out", "paper", graph, splits)
        ...     sorted(path.name for path in readme.parent.iterdir())
        ['README.md', 'answers', 'grade.py', 'graph.npz', 'protocol.json', 'splits']
    """
    if folder.is_dir():
        recover(folder)
    content = {f"{SPLITS}/{s.name}/{path}": c for s in splits for path, c in s.files.items()}
    content["grade.py"] = Path(grader.__file__).read_bytes()
    if keep_graph:
        content["graph.npz"] = graph_npz(labelled.graph)
    content["README.md"] = _readme(name, labelled, splits, keep_graph).encode()
    index = {
        "format": grader.FORMAT,
        "version": grader.VERSION,
        "name": name,
        "dataset": labelled.name,
        "data": labelled.fingerprint(),
        "data_sha256": labelled.sha256(),
        "versions": dict(versions()),
        "splits": [
            {
                "name": s.name,
                "seeds": list(s.seeds),
                ANSWERS: {path: _sha256(c) for path, c in s.answers.items()},
            }
            for s in splits
        ],
        "files": {path: _sha256(c) for path, c in sorted(content.items())},
    }
    content |= {f"{ANSWERS}/{s.name}/{path}": c for s in splits for path, c in s.answers.items()}
    # This export was stopped after all was written, and has just been completed.
    if has_completed(folder) and _holds(folder / INDEX, to_json(index)):
        return folder / "README.md"
    old_files = _files_to_replace(folder, overwrite)
    with change_folder(folder, fresh=not old_files) as change:
        for path, each in content.items():
            write_atomically(change.new / path, each)
        write_atomically(change.new / INDEX, to_json(index))
        change.remove(*old_files)
    return folder / "README.md"


def _holds(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


def _files_to_replace(folder: Path, overwrite: bool) -> tuple[str, ...]:
    """Return patterns of the files that the export wrote, or raise if it is not to be replaced."""
    if folder.is_file():
        raise StorageError(f"{folder} is a file, not a folder")
    if not folder.is_dir() or is_empty(folder):
        return ()
    if not (folder / INDEX).is_file():
        raise StorageError(f"{folder} is not empty and holds no {INDEX}; nothing was written")
    document = read_json(folder / INDEX, EXPORT)
    check_header(document, str(folder / INDEX), grader.FORMAT, [grader.VERSION])
    if not overwrite:
        raise StorageError(
            f"{folder} holds an exported protocol; choose another --out, or replace it with "
            "--overwrite"
        )
    named = {INDEX, *document["files"]}
    for split in document["splits"]:
        named |= {f"{ANSWERS}/{split['name']}/{path}" for path in split[ANSWERS]}
    # A file of the user's that lies among them, such as predictions.csv, stays.
    there = [path.as_posix() for path, _ in files_below(folder)]
    return tuple(glob.escape(path) for path in there if path in named)


def _readme(
    name: str, labelled: LabelledGraph, splits: Sequence[ExportedSplit], keep_graph: bool
) -> str:
    """Return the README: what a method may read, the files, and how to grade."""
    if not splits:
        raise SettingError(f"{name}: there is no split to write")
    graph = (
        "- `graph.npz`: features `x` (dense, or the CSR parts `x_data`, `x_indices`, `x_indptr`,\n"
        "  `x_shape`), `edge_index` (2, E), and `node_ids`, by which all tables name nodes.\n"
        "  It has no label.\n"
    )
    lines = "\n".join(
        f"- `{split.name}`, for {plural(len(split.seeds), 'seed')}: "
        f"{', '.join(map(str, split.seeds))}"
        for split in splits
    )
    return f"""# {name} on {labelled.name}

{plural(len(splits), "split")} of the protocol `{name}`: {KNOWN.get(name, f"a split of {name}")}.
Version {grader.VERSION} of the format; data `{labelled.fingerprint()}` (protocol.json has the whole
sha256 and the sha256 of every file).

## What a method may read

{graph if keep_graph else ""}- `splits/SPLIT/train.csv`: labelled nodes with their class, 0, 1,
  ... in the order of `old_classes` in `split.json`. `validation.csv`, where there is one: further
  labelled nodes of old classes, to stop training; they choose no setting.
- `splits/SPLIT/session-1/unlabelled.csv`: nodes to discover classes in. `mixed` in `split.json`:
  whether nodes of old classes are among them. `num_new`: the number of classes to find, null if it
  is not given.
- `splits/SPLIT/session-1/test.csv`: nodes whose classes are predicted. Their features and edges may
  be seen.
- `visible.csv`, where there is one: the nodes that a phase sees (inductive).

Nothing in `answers/`. It can be moved away: `grade.py --answers DIR` names its place. Labelled
nodes may not be kept for later sessions, only statistics of classes. Settings and epochs may not
be chosen on answers.

## How to grade

Write `predictions.csv` with columns `node` and `class`, and a line for every test node. Old classes
keep their numbers; discovered ones follow. A split of several sessions needs a column `session`
(1, 2, ...), and the lines of all its sessions. The column `p_new`, the probability of being of no
old class, is optional.

    python grade.py {splits[0].name} predictions.csv

It needs Python and NumPy alone. `block` is the headline: old classes keep their numbers, discovered
ones are matched one to one to the true new ones so that most nodes are right; an old node called
new, or a new node called old, is wrong. H is the harmonic mean of Old and New.

## Splits

{lines}
"""
