"""A graded run as a value: confusion matrices, from which scores are computed.

It is stored as a JSON object. Schema 1 has scores instead of the confusion matrix of the head for
new classes; scores that its matrices cannot give are read from there.
"""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from importlib import metadata
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np

from nodenova.errors import StorageError, brief
from nodenova.evaluation.grade import Grade, forgetting
from nodenova.evaluation.metrics import MATCHINGS
from nodenova.files.documents import (
    Schema,
    check,
    list_of,
    map_of,
    nullable,
    number,
    record,
    text,
    whole,
)

SCHEMA = 2
Counts: TypeAlias = "tuple[tuple[int, ...], ...]"  # confusion matrix: true x predicted classes
Reader: TypeAlias = "Callable[[Any], Any]"  # converts a value of a document to that of a field


@dataclass(frozen=True)
class Seconds:
    """Seconds that each phase took."""

    fit: float = 0.0
    discover: float = 0.0


def counts_of(confusion: np.ndarray) -> Counts:
    """Return a confusion matrix as tuples."""
    return tuple(map(tuple, confusion.tolist()))


def read_ints(values: Sequence[Any]) -> tuple[int, ...]:
    """Return a list of a document as whole numbers."""
    return tuple(map(int, values))


def read_names(values: Sequence[Any]) -> tuple[str, ...]:
    """Return a list of a document as texts."""
    return tuple(map(str, values))


def read_counts(rows: Sequence[Sequence[Any]]) -> Counts:
    """Return a matrix of a document as whole numbers."""
    return tuple(map(read_ints, rows))


_COUNTS = list_of(list_of(whole(0)))
_SIZES = list_of(whole(0, 1_000_000))
_SCORES = map_of(map_of(nullable(number())))

RENAMED = {"gate": "old_new_accuracy"}  # names of scores in earlier documents


def _read_scores(document: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return {matching: scores} of a document under today's names."""
    return {
        matching: {
            RENAMED.get(name, name): float(value)
            for name, value in each.items()
            if value is not None
        }
        for matching, each in document.items()
    }


@dataclass(frozen=True, kw_only=True)
class GradedRun:
    """One seed of a graded run."""

    seed: int
    num_old: int
    class_names: tuple[str, ...] = ()  # of the true classes
    confusion: Counts = ()  # by the joint head after phase 2
    confusion_fit: Counts = ()  # by the model of phase 1
    confusion_old: Counts | None = None  # of test nodes of old classes, among old classes
    confusion_new: Counts | None = None  # of those of new classes, by the head for new classes
    sizes: tuple[int, ...] = ()  # number of true classes of each phase
    predicted_sizes: tuple[int, ...] = ()  # number of predicted classes of each phase
    seconds: Seconds = Seconds()
    stored: Mapping[str, Mapping[str, float]] = field(default_factory=dict)  # no matrix gives these

    _NEEDED: ClassVar[tuple[str, ...]] = ("seed", "num_old")
    _READERS: ClassVar[Mapping[str, Reader]] = {
        "seed": int,
        "num_old": int,
        "class_names": read_names,
        "confusion": read_counts,
        "confusion_fit": read_counts,
        "confusion_old": read_counts,
        "confusion_new": read_counts,
        "sizes": read_ints,
        "predicted_sizes": read_ints,
        "seconds": lambda value: Seconds(**value),
        "stored": _read_scores,
    }

    _FORMS: ClassVar[Mapping[str, Schema]] = {  # each may be null
        "seed": whole(),
        "num_old": whole(0, 1_000_000),
        "class_names": list_of(text),
        "confusion": _COUNTS,
        "confusion_fit": _COUNTS,
        "confusion_old": _COUNTS,
        "confusion_new": _COUNTS,
        "sizes": _SIZES,
        "predicted_sizes": _SIZES,
        "seconds": record({}, {"fit": number(0), "discover": number(0)}, exact=True),
        "stored": _SCORES,
        "scores": _SCORES,
        "aa": number(),
        "af": number(),
    }

    @property
    def is_done(self) -> bool:
        """Whether the run has a result."""
        return True

    @cached_property
    def grade(self) -> Grade:
        """Grade after both phases."""
        new, old = (
            None if counts is None else np.array(counts)
            for counts in (self.confusion_new, self.confusion_old)
        )
        return Grade(np.array(self.confusion), new, self.sizes, self.predicted_sizes, old)

    def scores(self, matching: str = "block") -> Mapping[str, float]:
        """Return every score under a matching, nan where there was nothing to measure."""
        if matching not in self._scores:
            stored = dict(self.stored.get(matching, {}))
            self._scores[matching] = stored | self.grade.scores(matching)
        return self._scores[matching]

    @cached_property
    def _scores(self) -> dict[str, Mapping[str, float]]:
        return {}

    @cached_property
    def once(self) -> Mapping[str, float]:
        """Scores that do not depend on a choice of matching; AA and AF use the headline's."""
        stored = self.stored.get("block", {})
        found = {name: value for name, value in stored.items() if name in ("aa", "af")}
        if self.confusion_fit:
            before = Grade(np.array(self.confusion_fit), None, self.sizes, self.sizes)
            found["aa"], found["af"] = forgetting([before, self.grade])
        found |= self.grade.collapse
        # 100 where every discovered class is used, else 0: its mean is a share of the seeds.
        return found | {"new_all": 100.0 * (found["new_used"] == self.predicted_sizes[-1])}

    def score(self, name: str, matching: str = "block") -> float | None:
        """Return one score, None for a failed run and where there was nothing to measure."""
        if not self.is_done:
            return None
        value = self.once[name] if name in self.once else self.scores(matching).get(name)
        return value if value is not None and isfinite(value) else None

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Self:
        """Build a run from a document of this or an earlier schema; unknown keys are ignored.

        Raises:
            StorageError: If the document is damaged or not one of a graded run.
        """
        for name in cls._NEEDED:
            if document.get(name) is None:
                raise StorageError(f"not a result row, it has no {name}")
        schema = document.get("schema", 1)
        if type(schema) is not int or schema not in range(1, SCHEMA + 1):
            raise StorageError(
                f"a row of schema {brief(schema)}, but this version of nodenova reads schemas "
                f"up to {SCHEMA}"
            )
        forms = {name: nullable(form) for name, form in cls._FORMS.items()}
        check(document, record({}, forms), "a result row")
        values = {
            name: read(document[name])
            for name, read in cls._READERS.items()
            if document.get(name) is not None
        }
        if schema == 1:
            values |= cls._of_schema_1(document, values)
        run = cls(**values)
        run._check_shapes()
        return run

    def to_json(self) -> dict[str, Any]:
        """Return the document."""
        return {"schema": SCHEMA} | asdict(self)

    @classmethod
    def _of_schema_1(cls, document: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
        """Return what schema 1 stores in another way: scores that its matrices do not give."""
        missing = {side: f"confusion_{side}" not in values for side in ("old", "new")}
        names = [f"{side}_n" for side, is_missing in missing.items() if is_missing]
        names += ["all_n"] * any(missing.values())
        scores = document.get("scores") or {}
        known = {
            matching: {name: scores[matching].get(name) for name in names}
            for matching in MATCHINGS
            if matching in scores
        }
        if "confusion_fit" not in values and "block" in known:
            known["block"] |= {name: document.get(name) for name in ("aa", "af")}
        stored = {matching: each for matching, each in _read_scores(known).items() if each}
        return {"stored": stored}

    def _check_shapes(self) -> None:
        """Raise unless confusion matrices have the shape of the classes; a failed run has none."""
        true, predicted = self.sizes, self.predicted_sizes
        shapes = {
            "confusion": (sum(true), sum(predicted)),
            "confusion_fit": (sum(true), sum(true)),
            "confusion_old": (sum(true[:-1]), sum(predicted[:-1])),
            "confusion_new": (sum(true[-1:]), sum(predicted[-1:])),
        }
        for name, shape in shapes.items():
            counts = getattr(self, name)
            must = name == "confusion" and self.is_done
            fits = bool(counts) and [len(line) for line in counts] == [shape[1]] * shape[0]
            if (counts or must) and not fits:
                raise StorageError(
                    f"a damaged result row: its {name} is not {shape[0]} × {shape[1]}, "
                    "the numbers of its classes"
                )


PACKAGES = ("nodenova", "torch", "torch_geometric", "numpy", "scipy", "scikit-learn")


def versions() -> Mapping[str, str]:
    """Return the versions of Python and of the installed packages that decide a result."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


@cache
def commit() -> str | None:
    """Return the git commit of the code, with +changed if files differ, None if installed."""
    here = Path(__file__)

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here.parent), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
        return done.stdout.strip()

    try:
        # A package that is installed inside another repository is not tracked there.
        git("ls-files", "--error-unmatch", here.name)
        differs = git(
            "status", "--porcelain", "--untracked-files=no", "--", str(here.parent.parent)
        )
        return git("rev-parse", "HEAD") + ("+changed" if differs else "")
    except (OSError, subprocess.SubprocessError):
        return None
