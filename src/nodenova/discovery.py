"""Phase 2's only entrance for methods that are given no labels."""

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
    """Find `task.num_new` new classes among the unlabelled nodes `task.ids`.

    The method gets the model and the task, and nothing else: neither type has a field for a label.
    Call it again on the result for a further stage.

    Args:
        model: What `fit`, or an earlier `discover`, made.
        task: The graph, the numbers of the new nodes, and how many classes they are of.
        method: How to find them; `Prism()` unless given.
        seed: The same model, task, method and seed give the same result, bit for bit.
        threads: For the computation; the result may depend on it in the last bits.
        watcher: Called after every epoch with its number, their number and the losses.

    Returns:
        A bigger model: the classes of `model`, and `task.num_new` more. `model` stays as it was.

    Raises:
        SettingError: The method is none, or returned another number of classes.
        GraphError: The graph has other features than the model was trained on.

    Examples:
        >>> import nodenova as nova
        >>> old, new, exam = nova.split(nova.synthetic(nodes=200, classes=4, seed=0), [0, 1])
        >>> nova.discover(nova.fit(old), new)
        Model(prism, 4 classes, 2 of them discovered)
    """
    method = Prism() if method is None else method
    if not isinstance(method, Method) or not is_dataclass(method) or isinstance(method, type):
        raise SettingError(
            "a method is a dataclass instance with a discover function, like Sword(); "
            f"got {method!r}"
        )
    model.check(task.graph)
    with repeatable(seed, f"discover-{len(model.stages)}", threads), watched_by(watcher):
        grown = method.discover(model, task)
    found, before = len(grown.classes), len(model.classes)
    if found != before + task.num_new:
        raise SettingError(f"{method!r} returned {found} classes for {before} + {task.num_new}")
    return grown.with_last_stage(Stage(method_name(method), asdict(method), seed, SEES))


def method_name(method: Method) -> str:
    """The short name of a method, as on the command line.

    A user's own method is called by its class.

    Examples:
        >>> method_name(Prism())
        'prism'
    """
    names = {cls: name for name, cls in METHODS.items()}
    return names.get(type(method), type(method).__name__)
