"""What to run: a value. Settings given as text are read before (`registry.get_method`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from nodenova.bench.registry import AnyMethod, get_method, name_of
from nodenova.bench.row import OLD_METHODS, OLD_VISIBILITIES, frozen_settings
from nodenova.encoders.prism.lda import LDASettings
from nodenova.errors import SettingError, one_of
from nodenova.methods._plugin import origin_of
from nodenova.methods.registry import settings_of

DRAWS = ("published", "balanced", "as-it-comes")


@dataclass(frozen=True)
class Plan:
    """What to run, apart from the seed.

    Two runs of equal plans, data and seeds give equal scores.

    Attributes:
        dataset: The name of the graph.
        method: Its fields are its settings.
        encoder: The name of the encoder of phase 1.
        old: Ids of the classes that are labelled in phase 1.
        num_new: How many classes phase 2 is told to find.
        fit_settings: Settings of phase 1; "schedule" among them stands for all that one sets.
        visibility: "transductive", or "inductive": a phase sees only classes met so far.
        per_class: Training nodes a class, for a graph without a published split.
        device: "auto", "cpu" or "cuda".
        class_split: The number of a random choice of old classes; None for the paper's.
        draw: Of training nodes: "published", or by the seed: "balanced", "as-it-comes".
        protocol: Of the league, which then decides classes and nodes: "pown", "mixed-95"; "" is the
            paper's.
        handed: In the league, how unlabelled nodes are handed over: "mixed", "told" or "all-new".

    Raises:
        SettingError: `method` is a name, or `draw` none of these.

    Examples:
        >>> import nodenova as nova
        >>> plan = Plan("cora", nova.Sword(epochs=300), "gcn", old=(0, 1, 2), num_new=4)
        >>> plan.method_name, plan.to_json()["method_settings"]["epochs"]
        ('sword', 300)
    """

    dataset: str
    method: AnyMethod
    encoder: str
    old: tuple[int, ...]
    num_new: int
    fit_settings: tuple[tuple[str, Any], ...] = ()
    visibility: str = "transductive"
    per_class: int = 20
    device: str = "auto"
    class_split: int | None = None
    draw: str = "published"
    protocol: str = ""
    handed: str = ""

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
        """For run.json: the method by its name (a user's own by its file), settings resolved."""
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
    """A plan out of a run.json, in the form of `Plan.to_json`.

    Earlier versions kept settings as pairs, the method's in text.
    """
    words = {"method": OLD_METHODS, "visibility": OLD_VISIBILITIES}
    document = {
        key: words.get(key, {}).get(value, value) if isinstance(value, str) else value
        for key, value in document.items()
    }
    if isinstance(document["method_settings"], dict):
        settings = frozen_settings(document["method_settings"])
        # These are settings of phase 1 now.
        moved = asdict(LDASettings()) if document["method"] == "prism" else {}
        kept = {name: value for name, value in settings.items() if moved.get(name) != value}
        return {**document, "method_settings": plain(kept)}
    settings = frozen_settings(dict(document["method_settings"]))
    method = get_method(document["method"], {name: str(text) for name, text in settings.items()})
    fit_settings = tuple((name, value) for name, value in document["fit_settings"])
    values = {key: value for key, value in document.items() if key != "method_settings"}
    return Plan(
        **values | {"method": method, "old": tuple(document["old"]), "fit_settings": fit_settings}
    ).to_json()


def plain(value: object) -> object:
    """A value as JSON gives it back: lists for tuples."""
    if isinstance(value, Mapping):
        return {key: plain(inner) for key, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list | tuple) else value
