"""How long and how large: the paper's text says it once for all datasets, the released configuration files for each.

A plan follows the text unless its fit_settings name another schedule, which then stands for what it sets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from nodenova.data.datasets import DATASETS
from nodenova.errors import SettingError, one_of
from nodenova.experiments.paper import FACTS

if TYPE_CHECKING:
    from nodenova.experiments.run import Plan

SCHEDULES = ("paper", "released")
# Whose second phase the released files speak of; other methods have epochs of their own in it.
FOLLOW = ("sword", "sword_as_released")
AS_RELEASED = "sword_as_released"  # is on the released schedule wherever there is one
HIDDEN = 16  # of `fit` unless told otherwise

# {(dataset, encoder): settings of fit} and {(dataset, encoder): epochs of phase 2}.
RELEASED_FIT: dict[tuple[str, str], dict[str, Any]] = {
    (dataset, encoder): {"hidden": hidden, "epochs": epochs, "early_stopping": False, **FACTS["released"]["fit"][encoder]}
    for dataset, encoder, hidden, epochs, _ in FACTS["released"]["schedules"]
}
RELEASED_EPOCHS: dict[tuple[str, str], int] = {
    (dataset, encoder): epochs for dataset, encoder, _, _, epochs in FACTS["released"]["schedules"]
}


def hidden_size(dataset: str) -> int:
    """The size of the representation in the paper's setting."""
    return DATASETS[dataset].hidden if dataset in DATASETS else HIDDEN


def schedule_for(method: str, dataset: str, encoder: str, asked: str = "paper") -> str:
    """The schedule a method is run on when `asked` is what was asked for."""
    if asked not in SCHEDULES:
        raise one_of("schedule", asked, SCHEDULES)
    if encoder == "prism":
        return "paper"  # it is computed: nothing takes epochs
    if asked == "released" and (dataset, encoder) not in RELEASED_FIT:
        known = ", ".join(dict.fromkeys(name for name, _ in RELEASED_FIT))
        raise SettingError(f"there is no released schedule for {dataset} with {encoder}; there is one for {known}")
    return "released" if asked == "released" or (method == AS_RELEASED and (dataset, encoder) in RELEASED_FIT) else "paper"


def schedule_of(plan: Plan) -> str:
    return str(dict(plan.fit_settings).get("schedule", "paper"))


def fit_settings(plan: Plan) -> dict[str, Any]:
    """Settings of phase 1: those of the plan's schedule, and over them those the plan names itself."""
    given = dict(plan.fit_settings)
    if given.pop("schedule", "paper") == "released":
        return RELEASED_FIT[plan.dataset, plan.encoder] | given
    return given


def method_settings(plan: Plan, alone: bool = False) -> Mapping[str, str]:
    """Settings of phase 2, as text: those of the plan's schedule (`alone`: only those), and over them the plan's own."""
    follows = schedule_of(plan) == "released" and plan.method in FOLLOW
    scheduled = {"epochs": str(RELEASED_EPOCHS[plan.dataset, plan.encoder])} if follows else {}
    return scheduled if alone else scheduled | dict(plan.method_settings)
