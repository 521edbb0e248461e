"""Mutation testing: does a test fail where a line of nodenova is wrong?

    python -m tools.attack.mutants --seed 0 --mutants 300               # every group
    python -m tools.attack.mutants --mutants 20 --only losses edges     # some groups

Mutants (tools/attack/mutators.py) are drawn by seed, evenly over the groups and by size within
them. Tests run in a copy of the checkout in which one place is different, so that processes
which a test starts see the mutant too. The tests of a mutant are those of its group that execute
the changed line, the fastest first; a mutant is killed if one of them fails, crashes or takes too
long. Survivors are listed with the reason why they are equivalent, or as open.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import inspect
import json
import math
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

from .mutators import Mutant, find_mutants

ROOT = Path(__file__).parent.parent.parent
EQUIVALENT = Path(__file__).with_name("equivalent_mutants.json")
MUTANTS = 350  # at scale 1
COPIED = ("src", "tests", "tools", "pyproject.toml")  # the rest of the checkout is linked
MEMORY = 4 * 2**30  # bytes that a mutant may use beyond what the server has
GRACE = 10.0  # seconds beyond three times those that the tests take without a change
PROCESS = ("", 0)  # the line of a test that starts a process, which may run anything
PATIENCE = 5  # seconds that pass for each second of a processor, where others use it too


class Group(NamedTuple):
    """Modules of one topic, below src/nodenova, and their tests, below tests."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]


GROUPS = {
    "losses": Group(
        ("losses.py",),
        ("losses", "methods/test_sword_twin.py", "methods/test_baselines.py"),
    ),
    "metrics": Group(
        tuple(f"evaluation/{name}.py" for name in ("metrics", "grade", "scores", "significance")),
        ("evaluation", "bench/test_row.py", "bench/test_tables.py", "bench/test_render.py"),
    ),
    # count_weights.py is left out: it holds learned numbers, and no logic.
    "open world": Group(
        tuple(
            f"open_world/{name}.py"
            for name in ("anchored_kmeans", "count", "count_features", "mixed", "novelty")
        ),
        ("open_world", "methods/test_prism.py", "bench/test_open_world.py"),
    ),
    "edges": Group(
        ("io/edges.py", "io/graph_folder/edges.py"),
        (
            "io/test_edges.py",
            "io/test_column_guessing.py",
            "io/graph_folder",
            "io/test_load.py",
            "io/test_mmap_graph.py",
            "io/test_broken_files.py",
            "io/test_json_files.py",
            "io/test_frames.py",
            "cli/test_edges_and_vectors.py",
        ),
    ),
    "reviews": Group(
        (
            *(f"review/{name}.py" for name in ("review_file", "suggestions", "suggest", "trust")),
            "review/user_labels.py",
            "model/edits.py",
            "model/decisions.py",
        ),
        (
            "review/test_decisions.py",
            "review/test_suggesting.py",
            "review/test_trust.py",
            "review/test_user_labels.py",
            "review/test_page.py",
            "model/test_edits.py",
            "model/test_decisions.py",
            "runs/test_corrections.py",
            "runs/test_history.py",
            "runs/test_server.py",
        ),
    ),
    "growth": Group(
        ("growth.py", "runs/continue_run.py"),
        ("growth", "runs/test_continue_run.py", "cli/test_discover_from.py"),
    ),
    "storage": Group(
        (
            *(f"files/{name}.py" for name in ("arrays", "atomic", "content", "documents")),
            "files/folders.py",
            "model/saving.py",
            "model/loading.py",
            "runs/folder.py",
            "runs/apply.py",
        ),
        (
            "files",
            "model/test_storage.py",
            "model/test_disclosure.py",
            "io/test_npz.py",
            "runs",
            "review/test_widget.py",
            "cli/test_review.py",
            "cli/test_safe_csv.py",
            "test_previous.py",
            "test_killed.py",
        ),
    ),
}


class Test(NamedTuple):
    """One test on the code as it is: its duration, and the lines (module, number) it executes."""

    id: str
    seconds: float
    lines: frozenset[tuple[str, int]]

    def reveals(self, mutant: Mutant) -> bool:
        """Whether the test runs the changed line or, where that is not known, its module."""
        if PROCESS in self.lines:
            return True
        if not self.lines:
            return mutant.on_import  # the test may read a constant
        if mutant.lines:
            return any((mutant.module, line) in self.lines for line in mutant.lines)
        return any(module == mutant.module for module, _ in self.lines)


KILLED = ("failed test", "error on import", "time", "crash")
SURVIVED = ("survived", "not covered")


def run(seed: int, scale: float, out: Path) -> dict[str, object]:
    """Test mutants of every group and write the report to `out`/mutants.json."""
    return measure(seed, round(MUTANTS * scale), out, list(GROUPS))


def measure(seed: int, number: int, out: Path, only: Sequence[str]) -> dict[str, object]:
    """Test about `number` mutants of the groups `only`; write and return the report."""
    results = []
    with tempfile.TemporaryDirectory(prefix="nodenova-mutants-") as folder:
        laboratory = Laboratory(ROOT, Path(folder).resolve())
        for name in only:
            chosen = draw(ROOT, name, GROUPS[name].modules, seed, -(-number // len(only)))
            results += list(examine(laboratory, name, chosen))
    report = summarize(seed, results)
    out.mkdir(parents=True, exist_ok=True)
    text = json.dumps(report, indent=1, ensure_ascii=False)
    (out / "mutants.json").write_text(text + "\n", encoding="utf-8")
    return report


class Result(NamedTuple):
    """A mutant and what became of it."""

    group: str
    mutant: Mutant
    verdict: str  # one of KILLED or SURVIVED


def examine(laboratory: Laboratory, name: str, mutants: Sequence[Mutant]) -> Iterator[Result]:
    """Test mutants of a group and print those that survive."""
    group = GROUPS[name]
    start = time.monotonic()
    modules = [f"src/nodenova/{module}" for module in group.modules]
    tests = laboratory.observe(modules, group.tests, [_dotted(module) for module in modules])
    print(f"{name}: {len(tests)} tests observed in {time.monotonic() - start:.0f} s", flush=True)
    killed = 0
    for number, mutant in enumerate(mutants):
        if number % 10 == 0:
            print(f"{name}: {killed} of {number} killed", flush=True)
        verdict = laboratory.judge(mutant, tests)
        killed += verdict in KILLED
        if verdict in SURVIVED:
            print(f"{verdict}: {mutant.module}:{mutant.line} {mutant.function} ({mutant.kind})")
            print(f"  - {mutant.before}\n  + {mutant.after}", flush=True)
        yield Result(name, mutant, verdict)
    seconds = time.monotonic() - start
    print(f"{name}: {killed} of {len(mutants)} killed, {seconds:.0f} s", flush=True)


def draw(root: Path, name: str, modules: Sequence[str], seed: int, number: int) -> list[Mutant]:
    """Draw mutants of a group of modules: of each module by its size, and at least one."""
    found = {}
    for module in modules:
        path = f"src/nodenova/{module}"
        found[path] = find_mutants((root / path).read_text(encoding="utf-8"), path)
    total = sum(map(len, found.values()))
    chosen = []
    for path, mutants in found.items():
        rng = random.Random(f"{seed} {name} {path}")
        share = max(1, round(number * len(mutants) / total))
        chosen += rng.sample(mutants, min(share, len(mutants)))
    return chosen


def known_equivalents() -> dict[tuple[str, str, str, str], str]:
    """Return the reason why a mutant cannot be killed, by its key."""
    entries = json.loads(EQUIVALENT.read_text(encoding="utf-8"))
    return {(e["module"], e["function"], e["before"], e["after"]): e["why"] for e in entries}


def summarize(seed: int, results: Sequence[Result]) -> dict[str, object]:
    """Return the report: figures in total, by group and by module, and the survivors."""
    reasons = known_equivalents()
    survivors = [
        {
            "module": mutant.module,
            "line": mutant.line,
            "function": mutant.function,
            "before": mutant.before,
            "after": mutant.after,
            "kind": mutant.kind,
            "verdict": verdict,
            "status": f"equivalent: {reasons[mutant.key]}" if mutant.key in reasons else "open",
        }
        for _, mutant, verdict in results
        if verdict in SURVIVED
    ]
    groups = dict.fromkeys(result.group for result in results)
    modules = dict.fromkeys(result.mutant.module for result in results)
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return {
        "part": "mutants",
        "seed": seed,
        "commit": commit.stdout.strip(),
        "all": _figures(results, reasons),
        "verdicts": dict(Counter(result.verdict for result in results)),
        "groups": {g: _figures([r for r in results if r.group == g], reasons) for g in groups},
        "modules": {
            m: _figures([r for r in results if r.mutant.module == m], reasons) for m in modules
        },
        "survivors": survivors,
    }


def merge(parts: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Return one report of groups that were judged one by one, maybe at different commits."""
    groups = {name: f for part in parts for name, f in part["groups"].items()}
    counts = {k: sum(f[k] for f in groups.values()) for k in ("mutants", "killed", "equivalent")}
    total, killed, equivalent = counts.values()
    return {
        "part": "mutants",
        "seed": parts[0]["seed"],
        "commit": ", ".join(dict.fromkeys(part["commit"][:10] for part in parts)),
        "all": counts
        | {
            "open": total - killed - equivalent,
            "share": round(100 * killed / total, 1),
            "share_without_equivalents": round(100 * killed / (total - equivalent), 1),
        },
        "groups": groups,
        "modules": {name: f for part in parts for name, f in part["modules"].items()},
        "survivors": [one for part in parts for one in part["survivors"]],
    }


def _figures(results: Sequence[Result], reasons: Collection[object]) -> dict[str, float]:
    """Count mutants; shares are in percent, of all and of those not known as equivalent."""
    killed = sum(result.verdict in KILLED for result in results)
    equivalent = sum(r.verdict in SURVIVED and r.mutant.key in reasons for r in results)
    return {
        "mutants": len(results),
        "killed": killed,
        "equivalent": equivalent,
        "open": len(results) - killed - equivalent,
        "share": round(100 * killed / max(len(results), 1), 1),
        "share_without_equivalents": round(100 * killed / max(len(results) - equivalent, 1), 1),
    }


class Laboratory:
    """A copy of a checkout whose tests run in forked processes.

    The process that forks has imported everything except nodenova and its tests, so that an attempt
    costs little more than the tests.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.copy = folder / "checkout"
        self.folder = folder
        self.clock = 0
        self.copy.mkdir()
        for path in root.iterdir():
            if path.name in COPIED and path.is_dir():
                skipped = shutil.ignore_patterns("__pycache__", ".*")
                shutil.copytree(path, self.copy / path.name, ignore=skipped)
            elif path.name in COPIED:
                shutil.copy(path, self.copy)
            elif path.name != ".hypothesis":
                (self.copy / path.name).symlink_to(path)

    def observe(
        self, modules: Sequence[str], tests: Sequence[str], examples: Sequence[str]
    ) -> list[Test]:
        """Run tests, and examples in docstrings of modules; return what passes, fastest first."""
        doctests = [f"tests/test_doctests.py::test_examples_run[{name}]" for name in examples]
        arguments = [*(f"tests/{test}" for test in tests), *doctests]
        observer = Observer({str(self.copy / module): module for module in modules})
        seen = self._answer(lambda: observer.result(_run_pytest(arguments, observer)))
        _import_all(seen["imported"])
        lines = {name: {(m, n) for m, n in where} for name, where in seen["lines"].items()}
        # Once more in another order and without tracing: a test that fails now proves nothing.
        choice = Choice(list(lines))
        files = _files(list(lines))
        again = self._answer(lambda: choice.result(_run_pytest(files, choice)))
        for name in again["failed"]:
            print(f"fails without a mutant, ignored: {name}", flush=True)
        passed = {n: s for n, s in again["seconds"].items() if n not in again["failed"]}
        found = [Test(name, seconds, frozenset(lines[name])) for name, seconds in passed.items()]
        return sorted(found, key=lambda test: (test.seconds, test.id))

    def judge(self, mutant: Mutant, tests: Sequence[Test]) -> str:
        """Return the verdict on a mutant: one of KILLED or SURVIVED."""
        chosen = [test for test in tests if test.reveals(mutant)]
        if not chosen:
            return "not covered"
        names = [test.id for test in chosen]
        limit = 3 * sum(test.seconds for test in chosen) + GRACE
        path = self.copy / mutant.module
        source = path.read_text(encoding="utf-8")
        try:
            self._write(path, mutant.apply(source))
            code = self._fork(lambda: _run_pytest(["-x", *_files(names)], Choice(names)), limit)
        finally:
            self._write(path, source)
        if code in (None, -signal.SIGXCPU):
            return "time"
        if code is not None and code < 0:
            return "crash"
        if code == pytest.ExitCode.OK:
            return "survived"
        return "failed test" if code == pytest.ExitCode.TESTS_FAILED else "error on import"

    def _write(self, path: Path, source: str) -> None:
        """Write a source with a time of its own, so that no older bytecode is taken for it."""
        self.clock += 1
        path.write_text(source, encoding="utf-8")
        os.utime(path, (self.clock, self.clock))

    def _answer(self, work: Callable[[], object]) -> Any:
        """Run `work` in a fork and return its result, a JSON document."""
        path = self.folder / "answer.json"

        def write() -> int:
            path.write_text(json.dumps(work()), encoding="utf-8")
            return 0

        if self._fork(write, 3600.0) != 0:
            log = (self.folder / "log.txt").read_text(encoding="utf-8", errors="replace")
            raise RuntimeError(f"the tests cannot be run without a mutant:\n{log[-3000:]}")
        return json.loads(path.read_text(encoding="utf-8"))

    def _fork(self, work: Callable[[], int], limit: float) -> int | None:
        """Exit code of `work` in a process of its own; negative for a signal, None if it hangs."""
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            code = 70
            try:
                self._enter(math.ceil(limit))
                code = work()
            except BaseException as error:
                print(repr(error), file=sys.stderr)
            finally:
                os._exit(code)
        end = time.monotonic() + PATIENCE * limit
        try:
            while True:
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    return os.waitstatus_to_exitcode(status)
                if time.monotonic() > end:
                    os.kill(child, signal.SIGKILL)
                    os.waitpid(child, 0)
                    return None
                time.sleep(0.01)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child, signal.SIGKILL)  # processes that a test has left

    def _enter(self, limit: int) -> None:
        """Make the forked process one that works in the copy, for `limit` seconds of processor."""
        os.setsid()
        log = os.open(self.folder / "log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(self.copy)
        for name in [name for name in sys.modules if name.split(".")[0] in OWN]:
            del sys.modules[name]
        # Entries of the checkout itself, and "", would let its modules in before those of the copy.
        outside = [path for path in sys.path if path and not _is_below(path, self.root)]
        sys.path[:] = [str(self.copy / "src"), str(self.copy), *outside]
        os.environ["PYTHONPATH"] = str(self.copy / "src")
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
        used = math.ceil(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (used + limit, used + limit + 1))


OWN = ("nodenova", "tests", "tools", "conftest")


def _is_below(path: str, root: Path) -> bool:
    """Whether a path of modules belongs to a checkout; its environment of packages does not."""
    return Path(path).resolve() in (root, root / "src")


def _dotted(module: str) -> str:
    return module.removeprefix("src/").removesuffix(".py").replace("/", ".")


def _files(tests: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(test.split("::")[0] for test in tests))


def _run_pytest(arguments: Sequence[str], plugin: object) -> int:
    rewritten = "ignore::pytest.PytestAssertRewriteWarning"  # plug-ins are imported already
    fixed = [
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        "--basetemp=../tmp",
        "--tb=no",
        "-W",
        rewritten,
    ]
    return int(pytest.main([*fixed, *arguments], plugins=[plugin]))


def _import_all(names: Sequence[str]) -> None:
    """Import what the tests imported, except the code under test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            if name.split(".")[0] not in (*OWN, "__main__", "__mp_main__"):
                with contextlib.suppress(Exception):
                    importlib.import_module(name)


class Choice:
    """Plug-in of pytest that runs chosen tests in the order given."""

    def __init__(self, names: Sequence[str]) -> None:
        self.place = {name: place for place, name in enumerate(names)}
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self.place]
        items.sort(key=lambda item: self.place[item.nodeid])

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        before = self.seconds.get(report.nodeid, 0.0)
        self.seconds[report.nodeid] = before + report.duration
        if report.outcome != "passed":
            self.failed.add(report.nodeid)

    def result(self, code: int) -> dict[str, object]:
        """Return durations and failures after a run of pytest that ended with `code`."""
        _check_ran(code)
        return {"seconds": self.seconds, "failed": sorted(self.failed)}


def _check_ran(code: int) -> None:
    if code not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        raise RuntimeError(f"pytest ended with {code}")


class Observer:
    """Plug-in of pytest that records which lines of some files each test executes."""

    # A shared fixture runs in one test only; its lines count for every test that uses it.

    def __init__(self, modules: dict[str, str]) -> None:
        self.modules = modules  # {path of the file: name of the module}
        self.tests: dict[str, set[tuple[str, int]]] = {}
        self.users: dict[str, Sequence[str]] = {}
        self.fixtures: dict[str, set[tuple[str, int]]] = {}
        self._open: list[set[tuple[str, int]]] = [set()]

    def pytest_sessionstart(self) -> None:
        sys.addaudithook(self._watch)

    def _watch(self, event: str, values: object) -> None:
        if event == "subprocess.Popen":
            self._open[-1].add(PROCESS)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        with self._record() as lines:
            done = yield
        self.tests[item.nodeid] = lines
        self.users[item.nodeid] = list(getattr(item, "fixturenames", ()))
        return done

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any]
    ) -> Generator[None, object, object]:
        with self._record() as lines:
            done = yield
        self.fixtures.setdefault(fixturedef.argname, set()).update(lines)
        return done

    @contextlib.contextmanager
    def _record(self) -> Iterator[set[tuple[str, int]]]:
        lines: set[tuple[str, int]] = set()
        self._open.append(lines)
        sys.settrace(self._enter)
        threading.settrace(self._enter)
        try:
            yield lines
        finally:
            self._open.pop()
            self._open[-1].update(lines)

    def _enter(self, frame: FrameType, event: str, value: object) -> Any:
        """Trace functions of the modules; what they run on import is no test's doing."""
        code = frame.f_code
        if code.co_filename not in self.modules or not code.co_flags & inspect.CO_OPTIMIZED:
            return None
        return self._line(frame, event, value)

    def _line(self, frame: FrameType, event: str, value: object) -> Any:
        self._open[-1].add((self.modules[frame.f_code.co_filename], frame.f_lineno))
        return self._line

    def result(self, code: int) -> dict[str, object]:
        """Return the lines of each test, and the modules imported so far."""
        sys.settrace(None)
        _check_ran(code)
        for name, fixtures in self.users.items():
            self.tests[name].update(*(self.fixtures.get(fixture, ()) for fixture in fixtures))
        lines = {name: sorted(where) for name, where in self.tests.items()}
        return {"lines": lines, "imported": list(sys.modules)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the tool from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--mutants", type=int, default=MUTANTS, help="number of mutants")
    parser.add_argument("--only", nargs="+", choices=GROUPS, default=list(GROUPS), metavar="GROUP")
    parser.add_argument("--out", type=Path, default=ROOT / "results/attack")
    parser.add_argument("--merge", type=Path, nargs="+", help="results of groups to put together")
    given = parser.parse_args(arguments)
    os.environ["OMP_NUM_THREADS"] = "1"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the forked process, too
    if given.merge:
        report = merge([json.loads(path.read_text(encoding="utf-8")) for path in given.merge])
        text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
        (given.out / "mutants.json").write_text(text, encoding="utf-8")
    else:
        report = measure(given.seed, given.mutants, given.out, given.only)
    print(json.dumps(report["all"]))


if __name__ == "__main__":
    main()
