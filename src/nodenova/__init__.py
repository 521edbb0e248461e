"""nodenova: discover new classes of nodes on a graph.

The names below are loaded when they are first used, so that `nodenova --help` need not wait for PyTorch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nodenova.classes.info import ClassInfo as ClassInfo
    from nodenova.classes.info import class_info as class_info
    from nodenova.classes.review import apply_review as apply_review
    from nodenova.data.answers import Exam as Exam
    from nodenova.data.answers import GivenTask as GivenTask
    from nodenova.data.answers import Labelled as Labelled
    from nodenova.data.answers import Loaded as Loaded
    from nodenova.data.answers import OldTask as OldTask
    from nodenova.data.datasets import load_dataset as load_dataset
    from nodenova.data.load import load_graph as load_graph
    from nodenova.data.own import own_tasks as own_tasks
    from nodenova.data.pyg import from_pyg as from_pyg
    from nodenova.data.splits import given_task as given_task
    from nodenova.data.splits import split as split
    from nodenova.data.splits import split_stages as split_stages
    from nodenova.data.synthetic import synthetic as synthetic
    from nodenova.discovery import discover as discover
    from nodenova.errors import NodenovaError as NodenovaError
    from nodenova.evaluation.grade import Grade as Grade
    from nodenova.evaluation.grade import forgetting as forgetting
    from nodenova.evaluation.grade import grade as grade
    from nodenova.evaluation.leak import find_leak as find_leak
    from nodenova.fitting import fit as fit
    from nodenova.graph import Graph as Graph
    from nodenova.labelled import LABELLED as LABELLED
    from nodenova.labelled import LabelledMethod as LabelledMethod
    from nodenova.labelled.door import teach as teach
    from nodenova.methods import METHODS as METHODS
    from nodenova.methods import Method as Method
    from nodenova.methods.autonovel import AutoNovel as AutoNovel
    from nodenova.methods.dtc import Dtc as Dtc
    from nodenova.methods.frozen_kmeans import FrozenKmeans as FrozenKmeans
    from nodenova.methods.ncl import Ncl as Ncl
    from nodenova.methods.never_new import NeverNew as NeverNew
    from nodenova.methods.prism import Prism as Prism
    from nodenova.methods.restune import ResTune as ResTune
    from nodenova.methods.sword import Sword as Sword
    from nodenova.methods.taught import Taught as Taught
    from nodenova.model import Model as Model
    from nodenova.model import NodeClass as NodeClass
    from nodenova.storage import load_model as load_model
    from nodenova.task import NewTask as NewTask

__version__ = "0.1.0"

_PLACES = {
    "classes.info": ("ClassInfo", "class_info"),
    "classes.review": ("apply_review",),
    "data.answers": ("Exam", "GivenTask", "Labelled", "Loaded", "OldTask"),
    "data.datasets": ("load_dataset",),
    "data.load": ("load_graph",),
    "data.own": ("own_tasks",),
    "data.pyg": ("from_pyg",),
    "data.splits": ("given_task", "split", "split_stages"),
    "data.synthetic": ("synthetic",),
    "discovery": ("discover",),
    "errors": ("NodenovaError",),
    "evaluation.grade": ("Grade", "forgetting", "grade"),
    "evaluation.leak": ("find_leak",),
    "fitting": ("fit",),
    "graph": ("Graph",),
    "labelled": ("LABELLED", "LabelledMethod"),
    "labelled.door": ("teach",),
    "methods": ("METHODS", "Method"),
    "methods.autonovel": ("AutoNovel",),
    "methods.dtc": ("Dtc",),
    "methods.frozen_kmeans": ("FrozenKmeans",),
    "methods.ncl": ("Ncl",),
    "methods.never_new": ("NeverNew",),
    "methods.prism": ("Prism",),
    "methods.restune": ("ResTune",),
    "methods.sword": ("Sword",),
    "methods.taught": ("Taught",),
    "model": ("Model", "NodeClass"),
    "storage": ("load_model",),
    "task": ("NewTask",),
}
_PLACE_OF = {name: f"nodenova.{place}" for place, names in _PLACES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _PLACE_OF:
        raise AttributeError(f"module 'nodenova' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_PLACE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_PLACE_OF])
