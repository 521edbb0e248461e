"""One run: fit, discover, grade, for one seed. The row it returns carries everything that made it."""

from __future__ import annotations

import platform
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from nodenova.data.answers import Exam, Labelled
from nodenova.data.splits import given_task, redrawn, split, with_split
from nodenova.discovery import discover
from nodenova.errors import one_of
from nodenova.evaluation.grade import forgetting, grade
from nodenova.evaluation.metrics import MATCHINGS
from nodenova.experiments import schedules
from nodenova.experiments.contenders import contender, is_given_labels, title
from nodenova.fitting import fit
from nodenova.labelled.door import teach
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
    fit_settings: tuple[tuple[str, Any], ...] = ()  # "schedule" among them stands for all that one sets
    visibility: str = "transductive"
    per_class: int = 20
    device: str = "auto"
    class_split: int | None = None  # number of a random choice of old classes; None for the paper's
    draw: str = "published"  # of training nodes; or drawn by the seed: "balanced", "as-it-comes"


DRAWS = ("published", "balanced", "as-it-comes")


@dataclass(frozen=True, eq=False)
class Learnt:
    """Phase 1 of a plan for one seed. Every method of that seed can start from it: a model cannot be damaged."""

    model: Model
    seconds: float


@dataclass(frozen=True, eq=False)
class Outcome:
    model: Model
    exam: Exam
    row: Row


def drawn(labelled: Labelled, plan: Plan, seed: int) -> Labelled:
    """The graph with the training nodes that a plan asks for."""
    if plan.draw not in DRAWS:
        raise one_of("draw", plan.draw, DRAWS)
    if plan.draw == "published":
        return with_split(labelled, plan.per_class, seed)
    return redrawn(labelled, plan.old, plan.per_class, seed, balanced=plan.draw == "balanced")


def learn(labelled: Labelled, plan: Plan, seed: int, watch: Watch = unwatched) -> Learnt:
    """Phase 1 alone. It does not depend on the plan's method."""
    clock = time.perf_counter()
    old, _, _ = split(drawn(labelled, plan, seed), plan.old, num_new=plan.num_new, visibility=plan.visibility)
    model = fit(
        old,
        plan.encoder,
        seed=seed,
        device=plan.device,
        watcher=watch(seed, "fit"),
        **schedules.fit_settings(plan),
    )
    return Learnt(model, time.perf_counter() - clock)


def run_one(labelled: Labelled, plan: Plan, seed: int, watch: Watch = unwatched, learnt: Learnt | None = None) -> Outcome:
    """Both phases and the exam for one seed, or phase 2 and the exam when phase 1 was `learnt` before.

    `watch(seed, phase)` gives the watcher for "fit" and for "discover".
    """
    method = contender(plan.method, schedules.method_settings(plan))
    ready = drawn(labelled, plan, seed)
    _, new, exam = split(ready, plan.old, num_new=plan.num_new, visibility=plan.visibility)
    learnt = learnt or learn(labelled, plan, seed, watch)
    before, clock = learnt.model, time.perf_counter()
    if is_given_labels(method):
        given = given_task(ready, plan.old, num_new=plan.num_new, visibility=plan.visibility)
        after = teach(before, given, method, seed=seed, watcher=watch(seed, "discover"))
    else:
        after = discover(before, new, method, seed=seed, watcher=watch(seed, "discover"))
    discover_seconds = time.perf_counter() - clock
    grades = [grade(before, exam), grade(after, exam)]
    aa, af = forgetting(grades)
    row: Row = {
        "dataset": plan.dataset,
        "method": title(plan.method),
        "encoder": plan.encoder,
        "seed": seed,
        "num_old": len(plan.old),
        "num_new": plan.num_new,
        "old_classes": list(plan.old),
        "class_names": list(exam.class_names),
        "class_split": plan.class_split,
        "draw": plan.draw,
        "split": "published" if labelled.has_split else f"seeded, {plan.per_class} training nodes a class",
        "visibility": plan.visibility,
        "nodes": {"unlabelled_new": len(new.ids), "test": len(exam.ids)},
        "settings": asdict(method),
        "changed": changed(method, contender(plan.method, schedules.method_settings(plan, alone=True))),
        "fit_changed": dict(plan.fit_settings),
        "fit_settings": dict(after.stages[0].settings),
        "sees": list(after.stages[-1].sees),
        **grades[-1].collapse,
        "scores": {matching: grades[-1].scores(matching) for matching in MATCHINGS},
        "aa": aa,
        "af": af,
        "confusion": grades[-1].confusion.tolist(),
        "confusion_fit": grades[0].confusion.tolist(),
        "confusion_old": _counts(grades[-1].confusion_old),
        "confusion_new": _counts(grades[-1].confusion_new),
        "sizes": list(exam.sizes),
        "predicted_sizes": list(after.sizes),
        "seconds": {"fit": learnt.seconds, "discover": discover_seconds},
        "device": str(after.device),
        "versions": versions(),
        "commit": commit(),
        "data": labelled.fingerprint(),
    }
    return Outcome(after, exam, row)


def _counts(confusion: np.ndarray | None) -> list[list[int]] | None:
    return None if confusion is None else confusion.tolist()


def changed(method: Any, plain: Any) -> dict[str, object]:
    """The settings in which a method differs from the same one as it is by default, or by its schedule."""
    defaults = asdict(plain)
    return {name: value for name, value in asdict(method).items() if value != defaults[name]}


@cache
def commit() -> str | None:
    """The git commit of the code that runs, marked where files differ from it; None for an installed package."""
    here = Path(__file__)

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here.parent), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", here.name)  # a package installed inside somebody else's repository is not in it
        differs = git("status", "--porcelain", "--untracked-files=no", "--", str(here.parent.parent))
        return git("rev-parse", "HEAD") + ("+changed" if differs else "")
    except (OSError, subprocess.SubprocessError):
        return None


def versions() -> Mapping[str, str]:
    found = {"python": platform.python_version()}
    for package in ("nodenova", "torch", "torch_geometric", "numpy", "scipy", "scikit-learn"):
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found
