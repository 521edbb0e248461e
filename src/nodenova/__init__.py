"""nodenova: discover new classes of nodes on a graph.

The names in __init__.pyi are loaded when they are first used, so that `nodenova --help` need not
wait for PyTorch.
"""

from typing import Any

import lazy_loader

from nodenova.errors import warn_renamed as _warn_renamed

__version__ = "0.1.0"

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

# Names that go with the next release.
_OLD_NAMES = {
    "Labelled": "LabelledGraph",
    "Loaded": "UserGraph",
    "GivenTask": "LabelledNewTask",
    "given_task": "labelled_new_task",
    "teach": "discover_supervised",
    "own_tasks": "tasks_from_labels",
    "Taught": "DistilledGNN",
    "Dtc": "DTC",
    "Ncl": "NCL",
    "FrozenKmeans": "FrozenKMeans",
}


def __getattr__(name: str) -> Any:
    if name in _OLD_NAMES:
        _warn_renamed(f"nodenova.{name}", f"nodenova.{_OLD_NAMES[name]}")
        name = _OLD_NAMES[name]
    return _load(name)
