# What `nodenova` offers, read by type checkers and, at run time, by lazy_loader: one list for both.

from .data.labels import Exam as Exam
from .data.labels import GivenTask as GivenTask
from .data.labels import Labelled as Labelled
from .data.labels import Loaded as Loaded
from .data.labels import OldTask as OldTask
from .data.splits import given_task as given_task
from .data.splits import split as split
from .data.splits import split_stages as split_stages
from .data.synthetic import synthetic as synthetic
from .data.tasks import own_tasks as own_tasks
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
from .methods.dtc import Dtc as Dtc
from .methods.frozen_kmeans import FrozenKmeans as FrozenKmeans
from .methods.ncl import Ncl as Ncl
from .methods.never_new import NeverNew as NeverNew
from .methods.restune import ResTune as ResTune
from .methods.sword import Sword as Sword
from .methods.taught import Taught as Taught
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
from .supervised.entrance import teach as teach
from .task import NewTask as NewTask
from .testing import find_leak as find_leak

__version__: str
