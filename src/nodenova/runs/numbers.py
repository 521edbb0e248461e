"""Other numbers of new classes: what a run keeps of them, and discovery at one of them.

Where the number was estimated, a run keeps a preview of its neighbors: the class of every node if
there were one or two classes fewer or more. `discover_number` makes the whole model of a number.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from nodenova.discovery import discover
from nodenova.display import plural
from nodenova.errors import NumericsError, SettingError, StorageError
from nodenova.files.arrays import read_npz
from nodenova.files.documents import check, parse_json
from nodenova.graph import Graph, NewTask
from nodenova.methods import Method
from nodenova.methods.prism import Prism
from nodenova.model.edits import drop_last_stage, renumber
from nodenova.model.loading import check_weights
from nodenova.model.model import Model
from nodenova.model.saving import COUNT
from nodenova.nn.class_memory import ON_DISK
from nodenova.nn.distributed import split_of
from nodenova.nn.encode_cache import MAX_KEPT, encode, shared_passes
from nodenova.nn.seeding import Threads, repeatable
from nodenova.nn.statistics import ClassStatistics
from nodenova.open_world.count import ClassCountEstimate
from nodenova.progress import Progress, no_progress

NEIGHBORS = (-1, 1, -2, 2, 4)  # from the counted number, the nearest first
NUMBERS = "numbers.npz"
PREVIEW = "looking at other numbers"
SCATTER = ("factor", "diag", "dof")  # of `ClassStatistics`: what a discovery changes for good


@dataclass(frozen=True, eq=False)
class OtherNumbers:
    """What a run keeps to show other numbers of new classes than the counted one.

    Attributes:
        count: Estimate of the number.
        ids: (n,) nodes that were searched.
        scatter: Scatter within the classes that were known before.
        class_ids: (N,) class id of every node, by number of new classes. At the counted number it
            is that of the model, at others a preview. A class that stays has the same id.
        known_ids: Ids of the classes that were known before.
    """

    count: ClassCountEstimate
    ids: np.ndarray
    scatter: Mapping[str, Tensor]
    class_ids: Mapping[int, np.ndarray]
    known_ids: tuple[int, ...]

    @property
    def previews(self) -> tuple[int, ...]:
        """Numbers that the run keeps, ascending; the counted one is among them."""
        return tuple(sorted(self.class_ids))

    @property
    def next_id(self) -> int:
        """Lowest id above those of all classes at all numbers."""
        highest = [int(ids.max()) for ids in self.class_ids.values()]
        return 1 + max(*highest, max(self.known_ids) + self.count.number)

    def new_ids(self, number: int) -> list[int]:
        """Ids of the new classes at a number, ascending."""
        return sorted({*self.class_ids[number].tolist()} - {*self.known_ids})

    def arrays(self) -> dict[str, np.ndarray]:
        """Content of numbers.npz, which `read` reads."""
        return {
            "count": np.array(json.dumps(asdict(self.count))),
            "ids": self.ids,
            "known": np.array(self.known_ids),
            "numbers": np.array(self.previews),
            "class_ids": np.stack([self.class_ids[number] for number in self.previews]),
            **{name: tensor.cpu().numpy() for name, tensor in self.scatter.items()},
        }

    @classmethod
    def read(cls, folder: Path, graph: Graph, model: Model) -> OtherNumbers | None:
        """Read the numbers.npz of a run; None where there is none, as in earlier versions."""
        path = folder / NUMBERS
        if not path.is_file():
            return None
        arrays = read_npz(path, error=StorageError)
        _check_arrays(arrays, graph, model, path)
        count = parse_json(str(arrays["count"]).encode(), f"{path}: count")
        check(count, COUNT, f"{path}: count")
        if count["number"] >= len(count["probabilities"]):
            raise StorageError(f"{path}: damaged, its number has no probability")
        return cls(
            ClassCountEstimate.from_json(count),
            arrays["ids"],
            {name: torch.from_numpy(arrays[name]).to(model.device) for name in SCATTER},
            dict(zip(arrays["numbers"].tolist(), arrays["class_ids"], strict=True)),
            tuple(arrays["known"].tolist()),
        )


def preview_numbers(
    known: Model,
    model: Model,
    task: NewTask,
    method: Method,
    *,
    seed: int = 0,
    threads: Threads = "auto",
    progress: Progress = no_progress,
) -> OtherNumbers | None:
    """Preview the neighbors of the number that `discover(known, task, method)` counted.

    None where no number was counted, or by another method than prism. A graph whose pass is not
    kept on one machine has no previews: each would need a pass of its own.
    """
    count = model.stages[-1].count
    if count is None or not isinstance(method, Prism):
        return None
    graph = known.aligned(task.graph)
    known_ids = tuple(sorted({*known.column_class_ids}))
    scatter = {name: getattr(known.memory.classes, name) for name in SCATTER}
    with shared_passes(graph):
        kept = {count.number: _compact(model.predict(graph))}
        numbers = OtherNumbers(count, task.ids, scatter, kept, known_ids)
        if graph.num_nodes > MAX_KEPT or split_of(graph) is not None:
            return numbers
        wanted = [count.number + more for more in NEIGHBORS]
        wanted = [number for number in wanted if 1 <= number <= len(task.ids)]
        task = replace(task, graph=graph, num_new=None)
        stage = len(known.stages)
        progress(PREVIEW, 0)
        with repeatable(seed, f"numbers-{stage}", threads), torch.no_grad():
            head_at = method.preview(known, task)
        for done, number in enumerate(wanted, start=1):
            # A stream for each number: what one gives does not depend on the others.
            with repeatable(seed, f"numbers-{stage}-{number}", threads), torch.no_grad():
                try:
                    head = head_at(number)
                except NumericsError:  # the run itself is fine
                    continue
                z = encode(known.frozen_encoder(), graph)
                column = head(z).argmax(dim=1).cpu().numpy()
            ids = _match_ids(column - known.num_columns, number, numbers)
            owner = np.array([*known.column_class_ids, *ids])
            kept[number] = _compact(owner[column])
            progress(PREVIEW, done, len(wanted))
    return numbers


def discover_number(
    model: Model,
    graph: Graph,
    numbers: OtherNumbers,
    num_new: int,
    *,
    progress: Progress = no_progress,
) -> Model:
    """The model with `num_new` new classes instead of those of its last stage.

    It is what a discovery with this number given finds, but for the ids: a class that the counted
    number, or the preview of this one, has too keeps its id.
    """
    last = model.stages[-1]
    known = drop_last_stage(model, numbers.scatter)
    counted = num_new == numbers.count.number
    if num_new == 0:
        empty = known.grown(encoder=known.frozen_encoder(), head=known.head(), memory=known.memory)
        return empty.with_last_stage(replace(last, count=numbers.count))
    task = NewTask(graph, numbers.ids, num_new, mixed=last.mixed)
    own = {f.name for f in fields(Prism)}
    settings: dict[str, Any] = {name: last.settings[name] for name in own & {*last.settings}}
    with shared_passes(graph):
        grown = discover(
            known, task, Prism(**settings), refresh=False, seed=last.seed, progress=progress
        )
        count = numbers.count if counted else None
        stage = replace(grown.stages[-1], refresh=last.refresh, count=count)
        grown = grown.with_last_stage(stage)
        if counted:
            return grown
        predicted = grown.predict(graph)
    groups = np.full(graph.num_nodes, -1)
    for group, class_id in enumerate(range(known.next_id, known.next_id + num_new)):
        groups[predicted == class_id] = group
    return renumber(grown, _match_ids(groups, num_new, numbers))


def check_number(numbers: OtherNumbers | None, num_new: int, num_decisions: int) -> OtherNumbers:
    """Raise if a run cannot show this number of new classes."""
    instead = f"discover again with num_new={num_new} (--num-new {num_new})"
    if numbers is None:
        raise SettingError(
            "the run keeps no other number of new classes: they are kept where prism estimates "
            f"the number, together with the graph; {instead}"
        )
    if num_decisions:
        raise SettingError(
            f"the run has {plural(num_decisions, 'decision')} about its classes, which another "
            f"number of new classes would undo: take them back first (nodenova undo RUN --last "
            f"{num_decisions}), or {instead}"
        )
    least = min(numbers.count.number, 1)
    if not least <= num_new <= len(numbers.ids):
        raise SettingError(
            f"num_new is a whole number from {least} to {len(numbers.ids)}, the number of nodes "
            f"that were searched; it is {num_new}"
        )
    return numbers


def _match_ids(groups: np.ndarray, number: int, numbers: OtherNumbers) -> list[int]:
    """Id of each group 0..number-1 of (N,) `groups`; negative groups are known classes.

    The groups of a number that is kept get the ids that it has. Otherwise a class that stays keeps
    its id: it shares more than half of the nodes that are in either. The counted number comes
    first, then the nearest ones. The others get ids that no class has.
    """
    ids: dict[int, int] = {}
    if number in numbers.class_ids:
        there = numbers.new_ids(number)
        shared = _overlap(groups, number, numbers.class_ids[number], there)
        pairs = zip(*linear_sum_assignment(shared, maximize=True), strict=True)
        ids = {int(group): there[other] for group, other in pairs}
    else:
        counted = numbers.count.number
        for near in sorted(numbers.previews, key=lambda n: (n != counted, abs(n - number), n)):
            there = numbers.new_ids(near)
            class_ids = numbers.class_ids[near]
            shared = _overlap(groups, number, class_ids, there)
            size = np.bincount(groups[groups >= 0], minlength=number)
            theirs = np.array([(class_ids == c).sum() for c in there])
            # At most one pair of each row and column can be above a half.
            stays = shared > (size[:, None] + theirs - shared) / 2
            for group, other in np.argwhere(stays).tolist():
                if group not in ids and there[other] not in ids.values():
                    ids[group] = there[other]
    fresh = iter(range(numbers.next_id, numbers.next_id + number))
    return [ids[group] if group in ids else next(fresh) for group in range(number)]


def _overlap(
    groups: np.ndarray, number: int, class_ids: np.ndarray, there: Sequence[int]
) -> np.ndarray:
    """(number, len(there)) nodes that each group shares with each class."""
    inside = groups >= 0
    return (
        np.array(
            [np.bincount(groups[inside & (class_ids == c)], minlength=number) for c in there],
            dtype=np.int64,
        )
        .reshape(len(there), number)
        .T
    )


def _compact(ids: np.ndarray) -> np.ndarray:
    return ids.astype(np.uint16 if ids.max(initial=0) < 2**16 else np.int64)


def _check_arrays(arrays: Mapping[str, np.ndarray], graph: Graph, model: Model, path: Path) -> None:
    """Raise if the arrays of numbers.npz are not of this graph and model."""
    memory: ClassStatistics = model.memory.classes
    n, shapes = graph.num_nodes, {name: tuple(getattr(memory, name).shape) for name in SCATTER}
    for name in ("count", "ids", "known", "numbers", "class_ids", *SCATTER):
        if name not in arrays:
            raise StorageError(f"{path}: damaged, the array {name} is missing")
    ids, known, numbers = arrays["ids"], arrays["known"], arrays["numbers"]
    last = len(model.stages) - 1
    before = {c.id for c in model.classes if c.stage < last}
    is_decided = any(edit.after is None or edit.after > last for edit in model.edits)
    fits = (
        all(arrays[name].dtype.kind in "iu" for name in ("ids", "known", "numbers", "class_ids"))
        and arrays["count"].shape == ()
        and ids.ndim == known.ndim == numbers.ndim == 1
        and arrays["class_ids"].shape == (len(numbers), n)
        and len(ids) > 0
        and bool((ids[1:] > ids[:-1]).all())
        and 0 <= int(ids[0]) <= int(ids[-1]) < n
        and len(known) > 0
        and (is_decided or {*known.tolist()} == before)
        and len({*numbers.tolist()}) == len(numbers)
        and all(0 <= number <= len(ids) for number in numbers.tolist())
        and all(0 <= int(each.min()) <= int(each.max()) < 2**31 for each in arrays["class_ids"])
    )
    for name in SCATTER:
        there = arrays[name]
        fits = fits and there.dtype == np.float32 and there.shape[-1:] == shapes[name][-1:]
        fits = fits and there.ndim == len(shapes[name]) and bool(np.isfinite(there).all())
    if not fits:
        raise StorageError(f"{path}: damaged, its arrays are not those of the graph and the model")
    # As those of a model, which a discovery makes of them and stores.
    scatter = {f"prototypes.{ON_DISK.get(n, n)}": torch.from_numpy(arrays[n]) for n in SCATTER}
    try:
        check_weights(scatter)
    except StorageError as error:
        raise StorageError(f"{path}: damaged, {error}") from None
