"""Mutated inputs of every format: each is accepted, or refused by one short sentence.

    python -m tools.attack fuzz --seed 0 --scale 0.1
    python -m tools.attack fuzz --case npz:17        # one case alone, with its traceback

A case is made from its format, its number and the seed, so it can be made again.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
import traceback
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from .calls import CALL_FORMATS, close_server
from .corpus import Corpus
from .formats import FILE_FORMATS, Case
from .judge import (
    FINE,
    HANG,
    MEMORY,
    VERDICTS,
    Action,
    Judged,
    judge_all,
)

FORMATS: dict[str, tuple[Case, int]] = {**FILE_FORMATS, **CALL_FORMATS}


@contextmanager
def arena() -> Iterator[tuple[Corpus, Path]]:
    """Yield the corpus and a folder for cases, in memory where the system has such a place."""
    import torch

    with warnings.catch_warnings():
        # PyTorch Geometric and others use deprecated parts of PyTorch when they are imported.
        warnings.simplefilter("ignore")
        import duckdb  # noqa: F401
        import networkx  # noqa: F401
        import pandas  # noqa: F401
        import polars  # noqa: F401
        import pyarrow.parquet  # noqa: F401
        import torch_geometric.data  # noqa: F401

        import nodenova.cli  # noqa: F401
    torch.set_num_threads(1)
    memory = Path("/dev/shm")
    where = memory if memory.is_dir() and os.access(memory, os.W_OK) else None
    here = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="attack-", dir=where) as name:
        try:
            yield Corpus.build(Path(name) / "corpus"), Path(name)
        finally:
            close_server()
            os.chdir(here)


def make_case(corpus: Corpus, scratch: Path, seed: int, form: str, number: int) -> Action:
    """Make the input of a case in an empty folder and return what is done with it."""
    place = scratch / "c"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    os.chdir(place)
    rng = np.random.default_rng([seed, zlib.crc32(form.encode()), number])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of NumPy, for what a mutator does to an array
        return FORMATS[form][0](corpus, rng, place)


@dataclass
class Tally:
    """Verdicts per format, and one failure per (format, verdict, error, place)."""

    seed: int
    verdicts: dict[str, Counter[str]] = field(default_factory=dict)
    slowest: dict[str, float] = field(default_factory=dict)
    failures: dict[tuple[str, ...], dict[str, Any]] = field(default_factory=dict)

    def add(self, form: str, judged: Judged) -> None:
        """Count one case."""
        outcome = judged.outcome
        self.verdicts.setdefault(form, Counter())[outcome.verdict] += 1
        self.slowest[form] = max(self.slowest.get(form, 0.0), judged.seconds)
        if outcome.verdict in FINE:
            return
        where = outcome.place.rsplit(":", 1)[0]
        key = (form, outcome.verdict, outcome.error, where)
        if key in self.failures:
            self.failures[key]["cases"] += 1
            return
        case = f"{form}:{judged.number}"
        self.failures[key] = {
            "what": f"{form}: {outcome.verdict}",
            "reproduce": f"python -m tools.attack fuzz --seed {self.seed} --case {case}",
            "error": outcome.error,
            "place": outcome.place,
            "line": outcome.line,
            "cases": 1,
        }

    def result(self) -> dict[str, Any]:
        """Return the figures and the failures as the report reads them."""
        formats = {
            form: {verdict: counts.get(verdict, 0) for verdict in VERDICTS}
            for form, counts in self.verdicts.items()
        }
        total = sum(self.verdicts.values(), Counter())
        return {
            "part": "fuzz",
            "seed": self.seed,
            "cases": total.total(),
            "totals": {verdict: total.get(verdict, 0) for verdict in VERDICTS},
            "formats": formats,
            "bounds": {"seconds": HANG, "megabytes": MEMORY >> 20},
            "failures": sorted(self.failures.values(), key=lambda one: -one["cases"]),
        }


def run(seed: int, scale: float, out: Path, forms: Iterable[str] = ()) -> dict[str, Any]:
    """Judge the cases of all formats, or of some, in forked children."""
    counts = {form: max(1, round(FORMATS[form][1] * scale)) for form in forms or FORMATS}
    with arena() as (corpus, scratch):
        return judge_formats(corpus, scratch, seed, counts, report=print).result()


def judge_formats(
    corpus: Corpus,
    scratch: Path,
    seed: int,
    counts: Mapping[str, int],
    report: Callable[[str], None] = lambda line: None,
) -> Tally:
    """Judge the first cases of each format, as many as `counts` has for it."""
    tally = Tally(seed)
    for form, count in counts.items():
        began = time.monotonic()
        make = partial(make_case, corpus, scratch, seed, form)
        judge_all(make, range(count), scratch, found=partial(tally.add, form))
        verdicts = ", ".join(f"{n} {v}" for v, n in tally.verdicts[form].most_common())
        report(f"{form:14} {time.monotonic() - began:6.1f} s  {verdicts}")
    return tally


def show_case(seed: int, name: str) -> int:
    """Make one case alone, print what it does and keep its files; return 1 if it failed."""
    form, _, number = name.rpartition(":")
    kept = Path(tempfile.gettempdir()) / f"attack-{form}-{number}"
    with arena() as (corpus, scratch):
        action = make_case(corpus, scratch, seed, form, int(number))
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(scratch / "c", kept)
        print(f"{name}: files in {kept}")

        def traced() -> object:
            try:
                return action()
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
                raise

        def make(_: int) -> Action:
            return traced

        (judged,) = judge_all(make, [int(number)], scratch, quiet=False)
    print(judged.outcome)
    return int(judged.outcome.verdict not in FINE)
