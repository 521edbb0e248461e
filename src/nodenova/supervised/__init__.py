"""Methods that ARE given labels in phase 2, by a door of their own (`door.teach`), and marked † wherever they are shown.

To add one: a frozen dataclass with `needs` (what the door is to hand over, out of NEEDS) and one function, `learn`; then
its line here. What `needs` does not name, it does not get.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

from nodenova.data.labels import GivenTask
from nodenova.model.model import Model
from nodenova.supervised.autonovel_ncd import AutoNovelNcd
from nodenova.supervised.cpca import Cpca
from nodenova.supervised.dtc_ncd import DtcNcd
from nodenova.supervised.er_gnn import ErGnn
from nodenova.supervised.gem import Gem
from nodenova.supervised.ncl_ncd import NclNcd
from nodenova.supervised.oracle import Oracle
from nodenova.supervised.sword_as_released import SwordAsReleased
from nodenova.supervised.twp import Twp

NEEDS = ("new_labels", "old_nodes", "old_labels", "validation")


@runtime_checkable
class LabelledMethod(Protocol):
    """A frozen dataclass: its fields are its settings, `needs` what it must be given, `learn` its one function."""

    needs: ClassVar[tuple[str, ...]]

    def learn(self, model: Model, given: GivenTask) -> Model: ...


LABELLED: dict[str, type[Any]] = {
    "gem": Gem,
    "er_gnn": ErGnn,
    "twp": Twp,
    "cpca": Cpca,
    "sword_as_released": SwordAsReleased,
    "autonovel_ncd": AutoNovelNcd,
    "ncl_ncd": NclNcd,
    "dtc_ncd": DtcNcd,
    "oracle": Oracle,
}
