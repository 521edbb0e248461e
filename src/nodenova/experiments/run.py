"""One run: fit, discover, grade, for one seed. The row it returns carries everything that made it."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any, TypeAlias

from nodenova.data.answers import Exam, Labelled
from nodenova.data.splits import split
from nodenova.discovery import discover
from nodenova.evaluation.grade import forgetting, grade
from nodenova.evaluation.metrics import MATCHINGS
from nodenova.fitting import fit
from nodenova.methods import make_method
from nodenova.model import Model
from nodenova.training import Watcher

Row: TypeAlias = "dict[str, Any]"
Watch: TypeAlias = "Callable[[int, str], Watcher | None]"


def unwatched(seed: int, phase: str) -> None:
    """No watcher."""


@dataclass(frozen=True)
class Plan:
    """What to run, apart from the seed. Two runs of equal plans, data and seeds give equal scores."""

    dataset: str
    method: str
    encoder: str
    old: tuple[int, ...]  # class ids that are labelled in phase 1
    num_new: int  # how many classes phase 2 is told to find
    method_settings: tuple[tuple[str, str], ...] = ()  # as given, in text; the row has them resolved
    fit_settings: tuple[tuple[str, Any], ...] = ()
    visibility: str = "transductive"
    per_class: int = 20
    device: str = "auto"


@dataclass(frozen=True, eq=False)
class Outcome:
    model: Model
    exam: Exam
    row: Row


def run_one(labelled: Labelled, plan: Plan, seed: int, watch: Watch = unwatched) -> Outcome:
    """Both phases and the exam for one seed. `watch(seed, phase)` gives the watcher for "fit" and for "discover"."""
    method = make_method(plan.method, dict(plan.method_settings))
    old, new, exam = split(
        labelled, plan.old, num_new=plan.num_new, visibility=plan.visibility, per_class=plan.per_class, seed=seed
    )
    clock = time.perf_counter()
    before = fit(old, plan.encoder, seed=seed, device=plan.device, watcher=watch(seed, "fit"), **dict(plan.fit_settings))
    fit_seconds, clock = time.perf_counter() - clock, time.perf_counter()
    after = discover(before, new, method, seed=seed, watcher=watch(seed, "discover"))
    discover_seconds = time.perf_counter() - clock
    grades = [grade(before, exam), grade(after, exam)]
    aa, af = forgetting(grades)
    row: Row = {
        "dataset": plan.dataset,
        "method": plan.method,
        "encoder": plan.encoder,
        "seed": seed,
        "num_old": len(plan.old),
        "num_new": plan.num_new,
        "old_classes": list(plan.old),
        "class_names": list(exam.class_names),
        "split": "published" if labelled.has_split else f"seeded, {plan.per_class} training nodes a class",
        "visibility": plan.visibility,
        "nodes": {"unlabelled_new": len(new.ids), "test": len(exam.ids)},
        "settings": asdict(method),
        "fit_settings": dict(after.stages[0].settings),
        "sees": list(after.stages[-1].sees),
        "scores": {matching: grades[-1].scores(matching) for matching in MATCHINGS},
        "aa": aa,
        "af": af,
        "confusion": grades[-1].confusion.tolist(),
        "confusion_fit": grades[0].confusion.tolist(),
        "sizes": list(exam.sizes),
        "predicted_sizes": list(after.sizes),
        "seconds": {"fit": fit_seconds, "discover": discover_seconds},
        "device": str(after.device),
        "versions": versions(),
        "data": labelled.fingerprint(),
    }
    return Outcome(after, exam, row)


def versions() -> Mapping[str, str]:
    found = {"python": platform.python_version()}
    for package in ("nodenova", "torch", "torch_geometric", "numpy", "scipy", "scikit-learn"):
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
