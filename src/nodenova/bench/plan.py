"""What to run: a value. Settings given as text are read before, where they enter (`contenders.contender`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodenova.bench.contenders import AnyMethod, contender, name_of
from nodenova.errors import SettingError, one_of
from nodenova.methods._plugin import origin_of
from nodenova.methods.registry import settings_of

DRAWS = ("published", "balanced", "as-it-comes")


@dataclass(frozen=True)
class Plan:
    """What to run, apart from the seed. Two runs of equal plans, data and seeds give equal scores."""

    dataset: str
    method: AnyMethod  # its fields are its settings
    encoder: str
    old: tuple[int, ...]  # class ids that are labelled in phase 1
    num_new: int  # how many classes phase 2 is told to find
    fit_settings: tuple[tuple[str, Any], ...] = ()  # "schedule" among them stands for all that one sets
    visibility: str = "transductive"
    per_class: int = 20
    device: str = "auto"
    class_split: int | None = None  # number of a random choice of old classes; None for the paper's
    draw: str = "published"  # of training nodes; or drawn by the seed: "balanced", "as-it-comes"

    def __post_init__(self) -> None:
        if isinstance(self.method, str):
            raise SettingError(f"the method of a plan is a value, not a name: {self.method!r}")
        if self.draw not in DRAWS:
            raise one_of("draw", self.draw, DRAWS)

    @property
    def method_name(self) -> str:
        """What rows and tables call the method."""
        return name_of(self.method)

    def to_json(self) -> dict[str, Any]:
        """For run.json: the method by its name (a user's own by its file) and its settings, resolved."""
        origin = origin_of(self.method)
        return {
            "dataset": self.dataset,
            "method": self.method_name if origin is None else origin.name,
            "method_settings": plain(settings_of(self.method)),
            "encoder": self.encoder,
            "old": list(self.old),
            "num_new": self.num_new,
            "fit_settings": plain(dict(self.fit_settings)),
            "visibility": self.visibility,
            "per_class": self.per_class,
            "device": self.device,
            "class_split": self.class_split,
            "draw": self.draw,
        }


def as_now(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """A plan out of a run.json, in the form of `to_json`: earlier versions kept settings as pairs, the method's in text."""
    if isinstance(document["method_settings"], dict):
        return document
    method = contender(document["method"], dict(document["method_settings"]))
    fit_settings = tuple((name, value) for name, value in document["fit_settings"])
    values = {key: value for key, value in document.items() if key != "method_settings"}
    return Plan(**values | {"method": method, "old": tuple(document["old"]), "fit_settings": fit_settings}).to_json()


def plain(value: Any) -> Any:
    """A value as JSON gives it back: lists for tuples."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value
