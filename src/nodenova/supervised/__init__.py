"""Methods that ARE given labels in phase 2, marked † wherever they are shown.

They have an entrance of their own (`entrance.discover_supervised`). To add one: a frozen dataclass
with `needs` (what the entrance is to hand over, out of NEEDS) and one function, `learn`; then its
line here. What `needs` does not name, it does not get.

Examples:
    >>> import nodenova as nova
    >>> nova.LABELLED["gem"]
    <class 'nodenova.supervised.gem.GEM'>
    >>> nova.LABELLED["gem"]().memory
    10
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

from nodenova.data.labels import LabelledNewTask
from nodenova.model.model import Model
from nodenova.supervised.autonovel_ncd import AutoNovelNCD
from nodenova.supervised.cpca import CPCA
from nodenova.supervised.dtc_ncd import DTCNCD
from nodenova.supervised.er_gnn import ERGNN
from nodenova.supervised.gem import GEM
from nodenova.supervised.ncl_ncd import NCLNCD
from nodenova.supervised.oracle import Oracle
from nodenova.supervised.sword_as_released import SwordAsReleased
from nodenova.supervised.twp import TWP

NEEDS = ("new_labels", "old_nodes", "old_labels", "validation")


@runtime_checkable
class LabelledMethod(Protocol):
    """A method that is given labels: a frozen dataclass whose fields are its settings.

    Attributes:
        needs: What it must be given, out of "new_labels", "old_nodes", "old_labels", "validation".

    Examples:
        >>> import nodenova as nova
        >>> gem = nova.LABELLED["gem"](epochs=5)
        >>> isinstance(gem, nova.LabelledMethod)
        True
        >>> gem.needs
        ('new_labels', 'old_nodes', 'old_labels')
    """

    needs: ClassVar[tuple[str, ...]]

    def learn(self, model: Model, given: LabelledNewTask) -> Model:
        """Learn `given.num_new` new classes.

        PyTorch's generator is seeded before the call; every random number comes from it.

        Args:
            model: Of the classes known so far. `encoder()` and `head()` are copies to be trained.
            given: The visible graph, the new nodes, and of labels and old nodes what `needs` names.

        Returns:
            The model with `given.num_new` more classes: what `Model.grown` makes.
        """


LABELLED: dict[str, type[Any]] = {
    "gem": GEM,
    "er_gnn": ERGNN,
    "twp": TWP,
    "cpca": CPCA,
    "sword_as_released": SwordAsReleased,
    "autonovel_ncd": AutoNovelNCD,
    "ncl_ncd": NCLNCD,
    "dtc_ncd": DTCNCD,
    "oracle": Oracle,
}
"""The methods that are given labels in phase 2, by the names they have on the command line."""
