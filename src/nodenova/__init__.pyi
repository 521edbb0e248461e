# What `nodenova` offers, read by type checkers and, at run time, by lazy_loader: one list for both.

from .data.labels import Exam as Exam
from .data.labels import LabelledGraph as LabelledGraph
from .data.labels import LabelledNewTask as LabelledNewTask
from .data.labels import OldTask as OldTask
from .data.labels import UserGraph as UserGraph
from .data.splits import labelled_new_task as labelled_new_task
from .data.splits import split as split
from .data.splits import split_stages as split_stages
from .data.synthetic import synthetic as synthetic
from .data.tasks import tasks_from_labels as tasks_from_labels
from .discovery import discover as discover
from .errors import NodenovaError as NodenovaError
from .estimator import NodeDiscoverer as NodeDiscoverer
from .evaluation.grade import Grade as Grade
from .evaluation.grade import forgetting as forgetting
from .evaluation.grade import grade as grade
from .fitting import fit as fit
from .graph import Graph as Graph
from .io.datasets import load_dataset as load_dataset
from .io.load import load_graph as load_graph
from .io.pyg import from_pyg as from_pyg
from .methods import METHODS as METHODS
from .methods import Method as Method
from .methods.autonovel import AutoNovel as AutoNovel
from .methods.distilled_gnn import DistilledGNN as DistilledGNN
from .methods.dtc import DTC as DTC
from .methods.frozen_kmeans import FrozenKMeans as FrozenKMeans
from .methods.ncl import NCL as NCL
from .methods.never_new import NeverNew as NeverNew
from .methods.restune import ResTune as ResTune
from .methods.sword import Sword as Sword
from .model.info import ClassInfo as ClassInfo
from .model.info import ClassInfos as ClassInfos
from .model.info import class_info as class_info
from .model.loading import load_model as load_model
from .model.model import Model as Model
from .model.model import NodeClass as NodeClass
from .prism.method import Prism as Prism
from .review.decisions import apply_review as apply_review
from .supervised import LABELLED as LABELLED
from .supervised import LabelledMethod as LabelledMethod
from .supervised.entrance import discover_supervised as discover_supervised
from .task import NewTask as NewTask
from .testing import find_leak as find_leak

__version__: str
