"""Kill every command at every change of the file system, and look at what is left.

    python -m tools.attack.killer --seed 0 --kills 400      # all commands
    python -m tools.attack.killer --only overwrite --all    # one command, killed at every change
    python -m tools.attack.killer --only undo --at 17       # one kill, with what was found

A command is killed immediately before its k-th change of the file system (a write is torn: half of
it happens) or at a random time; or the disk is full from the k-th change on. Then

1. a reader must find the folder as it was before the command or as it is after it, all parts of it
   of the same state, or get a sentence that names a way out;
2. the same command, given again, must succeed, with the same bytes as a command that was never
   killed. It may refuse if the work was done already;
3. no hidden file or folder of the killed command may be left then.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from nodenova.errors import NodenovaError

from .changes import (
    Act,
    Child,
    Ended,
    FailAt,
    KillAt,
    do_nothing,
    import_modules,
    run_child,
    unflushed,
)
from .commands import Command, DisagreementError, Reading, is_hidden, named, snapshot

KILLS = 400  # of all commands together, at scale 1
NEAR = 1  # changes before and after a commit point that count as aimed at it
AIMED = 0.65  # share of the kills at commit points
TIMED = 0.12  # share of the kills at random times
ROOT = Path(__file__).parents[2]
RANDOM = re.compile(r"(?<![^/ ])(\.[^/ ]+)\.[a-z0-9_]{8}(?=[/ ,]|$)")
# Sentences that name no way out where something had been finished before.
LOST = ("does not exist", "no run.json", "is not a run", "is not a saved model", "not a graph")


@dataclass(frozen=True)
class State:
    """A folder: its files, and what a reader finds; `error` if the reader gets a sentence."""

    files: dict[str, str]
    reading: Reading = field(default_factory=dict)
    error: str = ""
    broken: str = ""  # a traceback, or parts that do not belong together

    @property
    def visible(self) -> dict[str, str]:
        """Files that are not hidden."""
        return {path: code for path, code in self.files.items() if not is_hidden(path)}


@dataclass(frozen=True)
class Attempt:
    """One attempt: killed at a change or at a time, or on a disk that is full from a change on."""

    kind: str  # "commit", "change", "time" or "full"
    number: int = 0
    seconds: float = 0.0

    def __str__(self) -> str:
        return f"at {self.seconds:.3f} s" if self.kind == "time" else f"change {self.number}"


@dataclass
class Found:
    """What was found after an attempt; `wrong` is empty if all is well."""

    attempt: Attempt
    change: str
    state: str  # old, new, between, sentence or broken
    wrong: list[str]
    leftovers: int = 0
    again: str = ""

    @property
    def is_only_leftovers(self) -> bool:
        """Whether nothing is wrong but files that are left behind."""
        return bool(self.wrong) and all(text.endswith("left behind") for text in self.wrong)


class Target:
    """A command with its start, made once, and its undisturbed end."""

    def __init__(self, command: Command, place: Path) -> None:
        self.command, self.place = command, place
        self.origin = place / "start"
        self.origin.mkdir(parents=True)
        self._need(run_child(command.start, self.origin))
        self.start = look(command, self.origin)
        folder = self.fresh()
        ended = self._need(run_child(command.work, folder, do_nothing))
        self.changes, self.seconds = ended.changes, ended.seconds
        self.done = look(command, folder)
        if self.done.error or self.done.broken:
            raise RuntimeError(f"{command.name}: {self.done.error}{self.done.broken}")
        self.unflushed = unflushed(self.changes)

    def _need(self, ended: Ended) -> Ended:
        if ended.code:
            raise RuntimeError(f"{self.command.name}: {ended}\n{ended.errors}")
        return import_modules(ended)

    def fresh(self) -> Path:
        """A copy of the folder that the command starts in."""
        folder = self.place / "attempt"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.origin, folder, symlinks=True)
        return folder

    def plan(self, count: int, rng: random.Random, everything: bool = False) -> list[Attempt]:
        """Kills of the command: half of them or more at commit points, some at random times."""
        numbers = range(1, len(self.changes) + 1)
        commits = [k for k in numbers if self.changes[k - 1].is_commit]
        aimed = {j for k in commits for j in range(k - NEAR, k + NEAR + 1)} & {*numbers}
        others = [k for k in numbers if k not in aimed]
        if not everything:
            timed = max(1, round(TIMED * count))
            most = max(1, round(AIMED * count))
            first = {*rng.sample(commits, min(len(commits), most))}
            near = sorted(aimed - {*commits})
            aimed = first | {*rng.sample(near, min(len(near), most - len(first)))}
            others = rng.sample(others, min(len(others), max(0, count - timed - len(aimed))))
        else:
            timed = max(1, len(numbers) // 8)
        kills = [
            Attempt("commit" if k in aimed else "change", k) for k in sorted({*aimed, *others})
        ]
        kills += [Attempt("time", seconds=rng.uniform(0, self.seconds)) for _ in range(timed)]
        full = numbers if everything else rng.sample(numbers, min(len(numbers), max(1, count // 6)))
        return kills + [Attempt("full", k) for k in sorted(full)]

    def attempt(self, attempt: Attempt) -> Found | None:
        """Do one attempt and judge it; None if the command ended before its time came."""
        folder = self.fresh()
        ended = self._disturbed(folder, attempt)
        if attempt.kind != "full" and not ended.is_killed:
            if attempt.kind == "time" and not ended.code:
                return None
            return Found(attempt, "", "broken", [f"was not killed: {ended}"])
        change = str(ended.changes[-1]) if ended.changes else "the beginning"
        found = Found(attempt, change, "", [])
        if attempt.kind == "full":
            found.change = str(self.changes[attempt.number - 1])
            found.wrong += complaints(ended)
        found.change = masked(found.change)
        left = {*snapshot(folder)} - {*self.start.files} - {*self.done.files}
        found.leftovers = len(left)
        found.state, wrong = self._judge(look(self.command, folder))
        found.wrong += wrong
        is_change = self.start.reading != self.done.reading
        if attempt.kind == "full" and ended.code == 0 and found.state == "old" and is_change:
            found.wrong.append("reported success, and nothing was done")
        if attempt.kind == "full" and ended.code and found.state == "new":
            found.wrong.append(f"reported an error, but all is done: {ended.sentence}")
        if attempt.kind == "full" and ended.code and found.state == "old" and left:
            found.wrong.append(f"a full disk left {some([*left])}")
        self._again(folder, found)
        return found

    def _disturbed(self, folder: Path, attempt: Attempt) -> Ended:
        if attempt.kind != "time":
            act: Act = (FailAt if attempt.kind == "full" else KillAt)(attempt.number)
            return run_child(self.command.work, folder, act)
        child = Child(self.command.work, folder, do_nothing)
        time.sleep(attempt.seconds)
        if not child.poll():
            child.kill()
        return child.wait()

    def _judge(self, state: State) -> tuple[str, list[str]]:
        """Old, new, between, sentence or broken, and what is wrong with that."""
        start, done = self.start, self.done
        if state.broken:
            return "broken", [state.broken]
        if state.error and state.error != start.error:
            wrong = [] if not self._had_something() else _no_way_out(state.error)
            return "sentence", wrong
        for name, other in (("old", start), ("new", done)):
            if state.reading == other.reading and state.error == other.error:
                lacking = [p for p, code in other.visible.items() if state.files.get(p) != code]
                if not lacking:
                    return name, []
                if not self.command.by_file:
                    return "broken", [f"read as the {name} one, but {some(lacking)} differ"]
        if self.command.by_file:
            known = {**start.reading, **done.reading}
            odd = [
                k for k, v in state.reading.items() if v not in (start.reading.get(k), known.get(k))
            ]
            return ("broken", [f"neither old nor new: {some(odd)}"]) if odd else ("between", [])
        return "broken", [f"neither old nor new: {_difference(state, start, done)}"]

    def _had_something(self) -> bool:
        return bool(self.start.reading)

    def _again(self, folder: Path, found: Found) -> None:
        """Give the same command again, and compare with the undisturbed end."""
        ended = run_child(self.command.work, folder)
        found.again = "done" if ended.code == 0 else "refused"
        wrong = complaints(ended)
        after = snapshot(folder)
        if ended.code and found.state != "new":
            wrong.append(f"given again: {ended}")
        elif ended.code and self.command.repeats:
            wrong.append(f"given again after it was done: {ended}")
        else:
            wrong += self._unlike_done(after)
        found.wrong += [text if "again" in text else f"given again: {text}" for text in wrong]

    def _unlike_done(self, files: dict[str, str]) -> list[str]:
        done = self.done.files
        extra = [path for path in files if path not in done]
        differ = [path for path in done if files.get(path) != done[path]]
        wrong = [f"{some(extra)} left behind"] if extra else []
        return [*wrong, *([f"{some(differ)} differ from an undisturbed command"] if differ else [])]


def look(command: Command, folder: Path) -> State:
    """Read a folder in a child as a user would; opening may repair it."""
    note = folder.parent / "reading.json"

    def work() -> None:
        found: dict[str, Any] = {}
        try:
            found["reading"] = command.read()
        except NodenovaError as error:
            found["error"] = str(error)
        except DisagreementError as error:
            found["broken"] = str(error)
        note.write_text(json.dumps(found))

    ended = run_child(work, folder)
    if ended.code:
        last = (ended.errors.strip().splitlines() or [str(ended)])[-1]
        return State(snapshot(folder), broken=f"a reader gets {last}")
    return State(snapshot(folder), **json.loads(note.read_text()))


def complaints(ended: Ended) -> list[str]:
    """What is wrong with the way a command ended: a traceback, or no sentence."""
    if ended.has_traceback or ended.code < 0 or ended.code not in (0, 1, 2):
        last = (ended.errors.strip().splitlines() or [""])[-1]
        return [f"ended with {ended.code} and {last!r}"]
    lines = [line for line in ended.errors.splitlines() if line.strip()]
    if ended.code and len(lines) != 1:
        return [f"ended with {len(lines)} lines instead of a sentence"]
    return []


def _no_way_out(error: str) -> list[str]:
    return (
        [f"lost, and the sentence names no way out: {error}"]
        if any(part in error for part in LOST)
        else []
    )


def _difference(state: State, start: State, done: State) -> str:
    parts = [k for k in state.reading if state.reading[k] != start.reading.get(k)]
    others = [k for k in state.reading if state.reading[k] != done.reading.get(k)]
    return f"{some(parts)} not as before, {some(others)} not as after"


def some(paths: Sequence[str]) -> str:
    shown = ", ".join(masked(path) for path in sorted(paths)[:3])
    return shown + (f" and {len(paths) - 3} more" if len(paths) > 3 else "") if paths else "nothing"


def masked(text: str) -> str:
    """A text without the random part of hidden names, so that two reports can be compared."""
    return RANDOM.sub(r"\1.*", text)


def run(
    seed: int,
    scale: float,
    out: Path,
    *,
    only: Sequence[str] = (),
    everything: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, object]:
    """Kill the commands about `KILLS * scale` times and write killer.json into `out`."""
    torch.set_num_threads(1)
    commands = list(named(only))
    weight = sum(command.weight for command in commands)
    figures: dict[str, object] = {}
    failures: list[dict[str, object]] = []
    total: Counter[str] = Counter()
    for command in commands:
        # Its own generator, so that a command can be repeated alone.
        rng = random.Random(f"{seed}/{command.name}")
        count = max(2, round(KILLS * scale * command.weight / weight))
        with tempfile.TemporaryDirectory(prefix="killer-") as place:
            target = Target(command, Path(place))
            found = [target.attempt(a) for a in target.plan(count, rng, everything)]
        figures[command.name], wrong = summarize(target, [one for one in found if one is not None])
        failures += wrong
        total += Counter({k: v for k, v in vars_of(figures[command.name]).items() if k in SUMS})
        report(f"{command.name:18} {json.dumps(figures[command.name])}")
    result: dict[str, object] = {
        "part": "killer",
        "seed": seed,
        "commit": commit(),
        **{name: total[name] for name in SUMS},
        "commands": figures,
        "failures": failures,
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "killer.json").write_text(json.dumps(result, indent=1) + "\n")
    return result


SUMS = ("kills", "at commit points", "at other changes", "at random times", "full disks", "broken",
        "only leftovers remain", "refused again", "not flushed")  # fmt: skip


def vars_of(figures: object) -> dict[str, int]:
    """The whole numbers among the figures of a command."""
    assert isinstance(figures, dict)
    return {name: value for name, value in figures.items() if isinstance(value, int)}


def summarize(
    target: Target, found: Sequence[Found]
) -> tuple[dict[str, object], list[dict[str, object]]]:
    """Figures of a command, and its failures."""
    kinds = Counter(one.attempt.kind for one in found)
    states = Counter(one.state for one in found if one.attempt.kind != "full")
    failures: list[dict[str, object]] = [
        {
            "command": target.command.name,
            "how": "full disk" if one.attempt.kind == "full" else "kill",
            "at": str(one.attempt),
            "change": one.change,
            "state": one.state,
            "found": "; ".join(dict.fromkeys(one.wrong)),
            "only leftovers": one.is_only_leftovers,
        }
        for one in found
        if one.wrong
    ]
    figures: dict[str, object] = {
        "changes": len(target.changes),
        "commit points": sum(change.is_commit for change in target.changes),
        "not flushed": len(target.unflushed),
        "kills": len(found) - kinds["full"],
        "at commit points": kinds["commit"],
        "at other changes": kinds["change"],
        "at random times": kinds["time"],
        "full disks": kinds["full"],
        "found": {name: states[name] for name in STATES if states[name]},
        "with leftovers": sum(one.leftovers > 0 for one in found),
        "refused again": sum(one.again == "refused" and one.state != "new" for one in found),
        "only leftovers remain": sum(one.is_only_leftovers for one in found),
        "broken": sum(bool(one.wrong) and not one.is_only_leftovers for one in found),
    }
    return figures, failures


STATES = ("old", "new", "between", "sentence", "broken")


def commit() -> str:
    """The commit of the checkout, with + if files differ from it."""

    def git(*words: str) -> str:
        return subprocess.run(
            ["git", *words], cwd=ROOT, capture_output=True, text=True
        ).stdout.strip()

    return git("rev-parse", "--short", "HEAD") + (
        "+" if git("status", "--porcelain", "src") else ""
    )


def main() -> None:
    """The command line of this part."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--only", action="append", default=[], metavar="COMMAND")
    parser.add_argument("--all", action="store_true", help="kill at every change")
    parser.add_argument("--at", type=int, help="with --only: one kill at this change")
    parser.add_argument(
        "--full", type=int, help="with --only: a disk that is full from this change on"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "attack")
    options = parser.parse_args()
    if options.at or options.full:
        kind = "change" if options.at else "full"
        with tempfile.TemporaryDirectory(prefix="killer-") as place:
            torch.set_num_threads(1)
            target = Target(next(iter(named(options.only))), Path(place))
            print(target.attempt(Attempt(kind, options.at or options.full)))
        return
    result = run(
        options.seed,
        options.kills / KILLS,
        options.out,
        only=options.only,
        everything=options.all,
        report=lambda line: print(line, flush=True),
    )
    failures = result["failures"]
    assert isinstance(failures, list)
    for failure in failures:
        print(json.dumps(failure))
    print({name: result[name] for name in SUMS})
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
