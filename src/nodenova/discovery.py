"""Phase 2's only door for methods that are given no labels."""

from __future__ import annotations

from dataclasses import asdict, is_dataclass

from nodenova.errors import SettingError
from nodenova.methods import METHODS, Method
from nodenova.model.model import Model, Stage
from nodenova.nn.seeding import repeatable
from nodenova.nn.training import Watcher, watched_by
from nodenova.prism.method import Prism
from nodenova.task import NewTask

SEES = ("graph", "new_ids")


def discover(
    model: Model,
    task: NewTask,
    method: Method | None = None,
    *,
    seed: int = 0,
    threads: int = 1,
    watcher: Watcher | None = None,
) -> Model:
    """Find `task.num_new` new classes among the unlabelled nodes `task.ids` and return a bigger model.

    The method (default: Prism) gets the model and the task, and nothing else: neither type has a field for a label.
    The same model, task, method and seed give the same result bit for bit. Call it again on the result for a
    further stage. `watcher(epoch, epochs, losses)` is called after every epoch.
    """
    method = Prism() if method is None else method
    if not isinstance(method, Method) or not is_dataclass(method) or isinstance(method, type):
        raise SettingError(f"a method is a dataclass instance with a discover function, like Sword(); got {method!r}")
    model.check(task.graph)
    with repeatable(seed, f"discover-{len(model.stages)}", threads), watched_by(watcher):
        grown = method.discover(model, task)
    if len(grown.classes) != len(model.classes) + task.num_new:
        raise SettingError(f"{method!r} returned {len(grown.classes)} classes for {len(model.classes)} + {task.num_new}")
    return grown.with_last_stage(Stage(method_name(method), asdict(method), seed, SEES))


def method_name(method: Method) -> str:
    """The short name of a method, as on the command line; a user's own method is called by its class."""
    names = {cls: name for name, cls in METHODS.items()}
    return names.get(type(method), type(method).__name__)
