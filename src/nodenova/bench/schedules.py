"""How long and how large.

The paper's text says it once for all datasets, the released configuration files for each. A plan
follows the text unless its fit_settings name another schedule, which then stands for what it sets.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from nodenova.bench.paper import FACTS
from nodenova.bench.plan import Plan
from nodenova.bench.registry import AnyMethod, name_of
from nodenova.encoders.registry import encoder_kind
from nodenova.errors import SettingError, one_of
from nodenova.fitting import TRAINING
from nodenova.io.dataset_table import DATASETS
from nodenova.methods.registry import settings_of, with_settings

SCHEDULES = ("paper", "released")
# Whose second phase the released files speak of; other methods have epochs of their own in it.
FOLLOW = ("sword", "sword_as_released")
AS_RELEASED = "sword_as_released"  # is on the released schedule wherever there is one
HIDDEN = 16  # of `fit` unless told otherwise

# {(dataset, encoder): settings of fit} and {(dataset, encoder): epochs of phase 2}.
RELEASED_FIT: dict[tuple[str, str], dict[str, Any]] = {
    (dataset, encoder): {
        "hidden": hidden,
        "epochs": epochs,
        "early_stopping": False,
        **FACTS["released"]["fit"][encoder],
    }
    for dataset, encoder, hidden, epochs, _ in FACTS["released"]["schedules"]
}
RELEASED_EPOCHS: dict[tuple[str, str], int] = {
    (dataset, encoder): epochs for dataset, encoder, _, _, epochs in FACTS["released"]["schedules"]
}


def hidden_size(dataset: str) -> int:
    """The size of the representation in the paper's setting."""
    return DATASETS[dataset].hidden if dataset in DATASETS else HIDDEN


def schedule_for(method: str, dataset: str, encoder: str, asked: str = "paper") -> str:
    """The schedule a method is run on when `asked` is what was asked for.

    Raises:
        SettingError: There is no such schedule, or none for this dataset and encoder.
    """
    if asked not in SCHEDULES:
        raise one_of("schedule", asked, SCHEDULES)
    if not encoder_kind(encoder).trainable:
        return "paper"  # it is computed: nothing takes epochs
    if asked == "released" and (dataset, encoder) not in RELEASED_FIT:
        known = ", ".join(dict.fromkeys(name for name, _ in RELEASED_FIT))
        raise SettingError(
            f"there is no released schedule for {dataset} with {encoder}; there is one for {known}"
        )
    if asked == "released" or (method == AS_RELEASED and (dataset, encoder) in RELEASED_FIT):
        return "released"
    return "paper"


def schedule_of(plan: Plan) -> str:
    """The schedule that a plan follows: "paper" or "released"."""
    return str(dict(plan.fit_settings).get("schedule", "paper"))


def fit_settings(plan: Plan) -> dict[str, Any]:
    """Settings of phase 1: those of the plan's schedule, over them those the plan names itself."""
    given = dict(plan.fit_settings)
    if given.pop("schedule", "paper") == "released":
        return RELEASED_FIT[plan.dataset, plan.encoder] | given
    return given


def resolved(plan: Plan) -> dict[str, Any]:
    """Settings of phase 1, those that nobody named too.

    Of an encoder that is computed only what was named.
    """
    return (TRAINING if encoder_kind(plan.encoder).trainable else {}) | fit_settings(plan)


def scheduled(
    method: AnyMethod, dataset: str, encoder: str, schedule: str, given: Collection[str] = ()
) -> AnyMethod:
    """The method with the epochs that a schedule has for it, if any.

    Not where epochs are among the settings that were given.
    """
    if schedule != "released" or name_of(method) not in FOLLOW or "epochs" in given:
        return method
    return with_settings(method, epochs=RELEASED_EPOCHS[dataset, encoder])


def changed(plan: Plan) -> dict[str, Any]:
    """The settings of a plan's method that are not as by default, or by its schedule.

    Examples:
        >>> import nodenova as nova
        >>> changed(Plan("cora", nova.Sword(eta=0.5), "gcn", old=(0, 1, 2), num_new=4))
        {'eta': 0.5}
    """
    default = type(plan.method)()
    usual = settings_of(scheduled(default, plan.dataset, plan.encoder, schedule_of(plan)))
    return {name: value for name, value in settings_of(plan.method).items() if value != usual[name]}
