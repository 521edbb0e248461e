"""The registry of methods that get no labels in phase 2.

It imports neither PyTorch nor a method, so the command line can check names and settings at once.
To add a method: its file, its entry here and its page (see CONTRIBUTING.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from nodenova.errors import needs_training, one_of
from nodenova.files.own_code import is_path
from nodenova.methods._plugin import load_from_file, origin_of
from nodenova.settings import Entry, Registry, from_text

if TYPE_CHECKING:
    from nodenova.graph import NewTask
    from nodenova.model.model import Model

AMethod = TypeVar("AMethod")


@runtime_checkable
class Method(Protocol):
    """Protocol of a method: a frozen dataclass whose fields are its settings.

    Three class variables are optional: `prefers`, the name of the encoder that the method is
    designed for (default: gcn); `mixed`, True if the new nodes may belong to known classes too; and
    `batches`, True if it works with a model that was fitted with batch=N: it trains on
    `nodenova.nn.sampling.Batches`, or not at all.

    Examples:
        >>> import nodenova as nova
        >>> isinstance(nova.Sword(epochs=5), nova.Method)
        True
    """

    def discover(self, model: Model, task: NewTask) -> Model:
        """Find `task.number` new classes among the unlabelled nodes `task.ids`.

        PyTorch's generator is seeded before the call; every random number comes from it.

        Args:
            model: Model of the classes known so far. `encoder()` and `head()` return copies that
                may be trained.
            task: Visible graph, ids of the new nodes and number of classes to find.

        Returns:
            The model with `task.number` more classes, built by `Model.grown`.
        """


METHODS = Registry(
    {
        "prism": Entry(
            "nodenova.methods.prism:Prism",
            "Prism",
            pool=True, restarts=20, refit=True, n_resamples=12, ridge=3.0, weigh=True,
        ),
        "distilled_gnn": Entry(
            "nodenova.methods.distilled_gnn:DistilledGNN",
            "GNN distilled from Prism",
            encoder="gcn", hidden=64, layers=2, epochs=100, lr=0.01, weight_decay=5e-4,
        ),
        "sword": Entry(
            "nodenova.methods.sword:Sword",
            "SWORD",
            epochs=600, lr=0.01, weight_decay=5e-4, joint_head="unit", k=3,
            similarity="softmax", pseudo=1.0, alpha1=0.08, alpha2=5.0, rampup_epochs=50,
            eta=0.2, noise="z", perturb="new", replay=1.0, draws=20, sigma="class",
            replay_temperature=False, omega=10.0, distill="global", novel=1.0, lam=0.4,
            class_mean=False, pair_nodes=4096, reading="",
        ),
        "autonovel": Entry(
            "nodenova.methods.autonovel:AutoNovel",
            "AutoNovel",
            epochs=200, lr=0.01, weight_decay=5e-4, k=5, pairwise=1.0, omega=5.0,
            rampup_epochs=50, eta=0.2, new_rows="concatenated", pair_nodes=4096,
        ),
        "restune": Entry(
            "nodenova.methods.restune:ResTune",
            "ResTune",
            epochs=200, lr=0.01, weight_decay=5e-4, clustering=1.0, update=5, consistency=1.0,
            pairwise=1.0, k=10, alpha=1.0, temperature=2.0, eta=0.2, restarts=20,
            new_rows="untrained", pair_nodes=4096,
        ),
        "ncl": Entry(
            "nodenova.methods.ncl:NCL",
            "NCL",
            epochs=200, lr=0.01, weight_decay=5e-4, pairwise=1.0, lam=0.95, omega=5.0,
            rampup_epochs=50, contrast=1.0, alpha=0.2, neighbors=0, hard=0.2, tau=0.05,
            eta=0.2, new_rows="concatenated", pair_nodes=1024,
        ),
        "dtc": Entry(
            "nodenova.methods.dtc:DTC",
            "DTC",
            epochs=200, lr=0.01, weight_decay=5e-4, alpha=1.0, clustering=1.0, warmup=10,
            update=5, omega=10.0, rampup_epochs=5, eta=0.2, restarts=20,
            new_rows="concatenated",
        ),
        "frost": Entry(
            "nodenova.methods.frost:FRoST",
            "FRoST",
            epochs=200, lr=0.01, weight_decay=5e-4, k=5, pairwise=1.0, omega_mse=5.0,
            omega_st=0.1, rampup_epochs=50, eta=0.2, replay=1.0, draws=20, sigma="class",
            omega_fd=10.0, distill="all", pair_nodes=4096,
        ),
        "simgcd": Entry(
            "nodenova.methods.simgcd:SimGCD",
            "SimGCD",
            epochs=200, lr=0.01, weight_decay=5e-4, lam=0.35, epsilon=2.0, student=0.1,
            teacher_start=0.07, teacher=0.04, warmup_epochs=30, tau_u=1.0, tau_c=0.07,
            drop_edges=0.2, mask_features=0.2, projection=128, omega_fd=1.0, batch=512,
        ),
        "frozen_kmeans": Entry(
            "nodenova.methods.frozen_kmeans:FrozenKMeans",
            "frozen k-means",
            restarts=20, new_rows="concatenated",
        ),
        "never_new": Entry("nodenova.methods.never_new:NeverNew", "never new (floor)"),
    }
)  # fmt: skip
"""Methods that get no labels in phase 2, by their names on the command line."""


def get_method(
    name: str, settings: Mapping[str, str], methods: Mapping[str, type[Any]] = METHODS
) -> Any:
    """Build a method from its name and from settings given as text.

    Args:
        name: Name in `methods`, or path/to/mine.py:Mine for a class in a file.
        settings: Values as text by setting. A method that has named readings also takes `reading`,
            which the other settings then change: {"reading": "printed", "epochs": "200"}.
        methods: Registry to look the name up in.

    Raises:
        SettingError: If the method, a setting or a reading is unknown, or a value is impossible.

    Examples:
        >>> get_method("sword", {"eta": "0.5"}).eta
        0.5
    """
    kind = _kind(name, methods)
    known = {f.name: f for f in fields(kind)}
    readings: Mapping[str, Mapping[str, object]] = getattr(kind, "READINGS", {})
    values: dict[str, object] = {}
    if readings and "reading" in settings:
        if settings["reading"] not in readings:
            raise one_of(f"reading of {name}", settings["reading"], readings)
        values |= readings[settings["reading"]]
    for key, text in settings.items():
        if readings and key == "reading":
            continue
        if key not in known:
            raise one_of(f"setting of {name}", key, known)
        values[key] = from_text(key, text, known[key].default)
    return kind(**values)


def choose_encoder(
    method: str, encoder: str | type[Any] | None, methods: Mapping[str, type[Any]] = METHODS
) -> str | type[Any]:
    """Return the encoder to run a method on.

    Args:
        method: Name of the method.
        encoder: Requested encoder, a name or a class; None for the one that the method prefers.
        methods: Registry to look the method up in.

    Raises:
        SettingError: If the method trains its encoder and the requested one cannot be trained.

    Examples:
        >>> choose_encoder("sword", None)
        'gcn'
    """
    from nodenova.encoders.registry import encoder_kind  # imports PyTorch

    preferred = preferred_encoder(_kind(method, methods))
    if encoder and not encoder_kind(encoder).trainable and encoder_kind(preferred).trainable:
        raise needs_training(method, encoder_kind(encoder).name)
    return encoder or preferred


def preferred_encoder(method: object) -> str:
    """Return the name of the encoder that a method, or its class, is designed for."""
    return getattr(method, "prefers", "gcn")


def name_of(method: object, methods: Registry = METHODS) -> str:
    """Return the name of a method in rows and tables: its registered name, else its class's."""
    origin = origin_of(method)
    if origin is not None:
        return origin.class_name
    return methods.name_of(type(method)) or type(method).__name__


def settings_of(method: object) -> dict[str, Any]:
    """Return the settings of a method by name."""
    return asdict(method)  # type: ignore[call-overload]


def with_settings(method: AMethod, **settings: object) -> AMethod:
    """Return the same method with some settings changed."""
    return replace(method, **settings)  # type: ignore[type-var]


def _kind(name: str, methods: Mapping[str, type[Any]]) -> type[Any]:
    """Return the class of a registered method or of one in a user's file."""
    if is_path(name):
        return load_from_file(name)
    if name not in methods:
        raise one_of("method", name, methods)
    return methods[name]
