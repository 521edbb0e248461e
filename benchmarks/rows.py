"""Cases, each measured in its own process, and the rows they write.

A case is a function of a module here and its arguments. Its process prints a dictionary of numbers;
each becomes a line of benchmarks/rows/NAME.jsonl, with the machine's load, the threads, the
versions and the commit. A case with rows of this commit is not run again.
"""

from __future__ import annotations

import importlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "benchmarks/rows"
PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "torch_geometric")
# The end of a quantity's name says its unit.
UNITS = {"seconds": "s of processor", "clock": "s by the clock", "mib": "MiB", "percent": "%"}


@dataclass(frozen=True)
class Case:
    """One thing to measure.

    Attributes:
        benchmark: Name of its module.
        name: Name for readers, unique within a benchmark.
        work: Function of the module that measures it.
        given: Arguments of the function: sizes and settings.
        against: Name of the case that ratios are to.
        threads: OMP_NUM_THREADS of its process.
    """

    benchmark: str
    name: str
    work: str
    given: Mapping[str, Any] = field(default_factory=dict)
    against: str = ""
    threads: int = 1


def unit(quantity: str) -> str:
    """Unit of a quantity, by the last word of its name."""
    return UNITS.get(quantity.rsplit("_", 1)[-1], "")


def status(key: str) -> float:
    """MiB of a line of /proc/self/status, such as VmHWM: the peak (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1]) / 1024


def forget_peak() -> float:
    """Reset the peak of memory; return the current MiB."""
    Path("/proc/self/clear_refs").write_text("5")
    return status("VmRSS")


def timed(work: Callable[[], object], repeats: int = 1, name: str = "") -> dict[str, float]:
    """Median processor and wall-clock seconds, and the peak of memory."""
    name = name and f"{name}_"
    before = forget_peak()
    taken = []
    for _ in range(repeats):
        clock, processor = time.perf_counter(), time.process_time()
        work()
        taken.append((time.process_time() - processor, time.perf_counter() - clock))
    return {
        f"{name}seconds": statistics.median(seconds for seconds, _ in taken),
        f"{name}clock": statistics.median(clock for _, clock in taken),
        f"{name}peak_mib": status("VmHWM"),
        f"{name}before_mib": before,
        "repeated": repeats,
    }


def commit() -> str:
    """Commit of the checkout, followed by "+" where the source has changed."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
        return done.stdout.strip()

    return git("rev-parse", "--short", "HEAD") + "+" * bool(git("status", "--porcelain", "src"))


def run(case: Case, commit: str, run_id: str, again: bool = False) -> list[dict[str, Any]]:
    """Measure a case in its own process and append its rows; a SystemExit if it fails."""
    path = FOLDER / f"{case.benchmark}.jsonl"
    kept = [row for row in read(path) if row["case"] == case.name and row["commit"] == commit]
    same = [row for row in kept if row["given"] == case.given and row["threads"] == case.threads]
    if same and not again and not commit.endswith("+"):
        last = same[-1]["run"]
        return [row for row in same if row["run"] == last]
    threads = str(case.threads)
    environment = os.environ | {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads}
    load = os.getloadavg()[0]
    command = [sys.executable, __file__, case.benchmark, case.work, json.dumps(case.given)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"{case.benchmark}, {case.name}: {done.stderr}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    repeated = found.pop("repeated", 1)
    shared = {
        "run": run_id,
        "commit": commit,
        "benchmark": case.benchmark,
        "case": case.name,
        "given": dict(case.given),
        "against": case.against,
        "threads": case.threads,
        "repeated": repeated,
        "load": round(load, 2),
        "cores": os.cpu_count(),
        "versions": {"python": platform.python_version()} | {p: version(p) for p in PACKAGES},
    }
    rows = [
        shared | {"quantity": quantity, "value": value, "unit": unit(quantity)}
        for quantity, value in found.items()
    ]
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as file:  # one write: a line is there as a whole or not at all
        file.write("".join(json.dumps(row) + "\n" for row in rows))
    return rows


def read(path: Path) -> list[dict[str, Any]]:
    """Rows of a file; none if there is no file."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


if __name__ == "__main__":
    module, function, arguments = sys.argv[1:]
    measured = getattr(importlib.import_module(module), function)(**json.loads(arguments))
    print(json.dumps(measured))
