"""Two processes on one folder, and folders that are odd places: what is lost, and which side knows.

    python -m tools.attack.races --seed 0
    python -m tools.attack.races --only "two reviews"

The first process stops at a chosen change of the file system; the second one then runs until it has
ended, or waits for the first; then the first one goes on. So a race is no luck. The result must be
that of the two commands one after the other, in some order, or of one of them while the other one
was refused: by one sentence, which names the first process if that was still at work.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from nodenova.model.decisions import Rename

from . import commands as c
from .changes import (
    Act,
    Change,
    Child,
    CountReads,
    Ended,
    PauseAt,
    do_nothing,
    import_modules,
    refuse,
    run_child,
)
from .commands import is_hidden, snapshot
from .killer import ROOT, commit, complaints, some

POINTS = 6  # changes at which the first process stops, at scale 1
EARLY = 5  # changes before a refusal that comes in time: a lock, a look whether it can be written
PATIENCE = 2.0  # seconds after which the second process is taken to wait for the first
Work = Callable[[], object]


@dataclass(frozen=True)
class Race:
    """Two commands on one folder.

    Attributes:
        name: Name in the report.
        start: Makes the folder.
        first: Command that stops half-way.
        second: Command that runs meanwhile.
        reads: Whether the first command stops where it opens a file to read it.
        keeps: File of the second command that must exist in the end if that command succeeded.
        is_command: Whether the second one is a command of nodenova, which a message can name.
    """

    name: str
    start: Work
    first: Work
    second: Work
    reads: bool = False
    keeps: str = ""
    is_command: bool = True


@dataclass
class Outcome:
    """How a race ended: both processes, the folder, and what is wrong."""

    point: str
    first: Ended
    second: Ended
    files: dict[str, str]
    was_alone: bool  # whether the first process had ended before the second began
    wrong: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Which of the two succeeded."""
        good = (self.first.code == 0, self.second.code == 0)
        return {(True, True): "both", (True, False): "first", (False, True): "second"}.get(
            good, "neither"
        )


class Course:
    """A race with its start and its four undisturbed ends."""

    def __init__(self, race: Race, place: Path) -> None:
        self.race, self.place = race, place
        self.origin = place / "start"
        self.origin.mkdir(parents=True)
        self._need(run_child(race.start, self.origin))
        one, two = race.first, race.second
        folder = self.fresh()
        act = CountReads() if race.reads else do_nothing
        self.changes = self._need(run_child(one, folder, act)).changes
        # (first succeeded, second succeeded): possible ends
        self.ends = {(True, False): [snapshot(folder)]}
        folder = self.fresh()
        self._need(run_child(two, folder))
        self.ends[False, True] = [snapshot(folder)]
        self.ends[True, True] = []
        self.refusal = self._serial(one, two)  # of the second if the first is done
        self._serial(two, one)

    def _serial(self, *works: Work) -> str:
        """Note the end of two commands in a row; return why the later one was refused."""
        folder = self.fresh()
        *_, ended = [run_child(work, folder) for work in works]
        if not ended.code:
            self.ends[True, True].append(snapshot(folder))
        return ended.sentence

    def _need(self, ended: Ended) -> Ended:
        if ended.code:
            raise RuntimeError(f"{self.race.name}: {ended}\n{ended.errors}")
        return import_modules(ended)

    def fresh(self) -> Path:
        """A copy of the folder that both start in."""
        folder = self.place / "attempt"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.origin, folder, symlinks=True)
        return folder

    def points(self, count: int, rng: random.Random) -> list[int]:
        """Changes to stop at: the first, the last, those that others can see, and some more."""
        total = range(1, len(self.changes) + 1)
        seen = [k for k in total if _is_visible(self.changes[k - 1], self.race.reads)]
        chosen = {1, len(self.changes)} | {*rng.sample(seen, min(len(seen), count))}
        others = [k for k in total if k not in chosen]
        return sorted(chosen | {*rng.sample(others, min(len(others), max(2, count // 2)))})

    def attempt(self, number: int) -> Outcome:
        """Stop the first process at a change, run the second one, and judge the end."""
        folder = self.fresh()
        to_child, answer = os.pipe(), os.pipe()
        act = PauseAt(number, (to_child[0], answer[1]), self.race.reads)
        first = Child(self.race.first, folder, act)
        os.set_blocking(answer[0], False)
        reached = _wait_for(lambda: _has_byte(answer[0]) or first.poll())
        was_alone = not reached or first.poll()
        second = Child(self.race.second, folder)
        _wait_for(second.poll, PATIENCE)
        os.write(to_child[1], b".")
        ended, other = first.wait(), second.wait()
        for pipe in (*to_child, *answer):
            os.close(pipe)
        point = str(self.changes[number - 1]) if number <= len(self.changes) else "the end"
        outcome = Outcome(point, ended, other, snapshot(folder), was_alone)
        outcome.wrong = self._judge(outcome, first.pid)
        return outcome

    def _judge(self, outcome: Outcome, pid: int) -> list[str]:
        wrong = [f"the first {text}" for text in complaints(outcome.first)]
        wrong += [f"the second {text}" for text in complaints(outcome.second)]
        sides = (outcome.first.code == 0, outcome.second.code == 0)
        ends = self.ends.get(sides, [])
        start = snapshot(self.origin)
        if sides == (False, False):
            ends = [start]
        if not ends:
            wrong.append(f"{outcome.kind} succeeded, which is not possible in any order")
        elif outcome.files not in ends:
            wrong.append(
                f"{outcome.kind} succeeded, but {_difference(outcome.files, ends)} as in no order"
            )
        keeps = self.race.keeps
        if keeps and sides[1] and keeps not in outcome.files:
            wrong.append(f"{keeps} is gone")
        why = outcome.second.sentence
        refused = outcome.second.code and not outcome.was_alone and why != self.refusal
        # The first one may hold the lock and not yet have written its number into it.
        named = str(pid) in why or "another process is writing there" in why
        if refused and self.race.is_command and not named:
            wrong.append(f"the second does not name the first: {why[-200:]}")
        return wrong


def _is_visible(change: Change, reads: bool) -> bool:
    if reads:
        return change.kind == "read" and not is_hidden(change.path)
    return change.is_commit and not is_hidden(change.path)


def _difference(files: dict[str, str], ends: Sequence[dict[str, str]]) -> str:
    """Where a folder differs from the undisturbed end that is most like it."""

    def unlike(end: dict[str, str]) -> list[str]:
        return [path for path in {*files} | {*end} if files.get(path) != end.get(path)]

    return some(min(map(unlike, ends), key=len))


def _has_byte(pipe: int) -> bool:
    try:
        return bool(os.read(pipe, 1))
    except BlockingIOError:
        return False


def _wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.002)
    return False


# The races


def two_reviews(after: bool = True) -> Work:
    """A run and two reviews of it, of its present revision or of an unknown one."""

    def start() -> None:
        c.discovered()
        c.write_review("review.json", Rename(2, "plants"))
        c.write_review("other.json", Rename(3, "rocks"))
        for path in () if after else map(Path, ("review.json", "other.json")):
            review = json.loads(path.read_text())
            del review["after"]
            path.write_text(json.dumps(review))

    return start


def reviewed_and_review() -> None:
    """A run with two reviews, and a third one."""
    c.reviewed()
    c.write_review("other.json", Rename(3, "rocks"))


def otherwise_and_review() -> None:
    """A run that is about to be overwritten, and a review of it."""
    c.discovered_otherwise()
    c.write_review("other.json", Rename(3, "rocks"))


def counted_and_review() -> None:
    """A run with an estimated number of new classes, and a review of it."""
    c.counted()
    c.write_review("other.json", Rename(0, "rocks"))


def put_thesis() -> None:
    """Another program writes a file into the folder of the run."""
    os.makedirs("mine", exist_ok=True)
    Path("mine/thesis.txt").write_text("years of work\n")


def below() -> None:
    """Tables, and an empty folder `sub`."""
    c.write_tables()
    os.mkdir("sub")


def remove_sub() -> None:
    """Another program removes the folder `sub`."""
    shutil.rmtree("sub", ignore_errors=True)


def all_races() -> list[Race]:
    """The races in the order of the report."""
    apply, other = (
        c.call("apply-review", "mine", f"{name}.json", "-q") for name in ("review", "other")
    )
    server = c.review_in_browser("/review", "review.json")
    undo = c.call("undo", "mine", "-q")
    discover, otherwise = c.call(*c.DISCOVER), c.call(*c.DISCOVER, "--seed", "5", "--num-new", "3")
    overwrite = c.call(*c.DISCOVER, "--overwrite")
    prepare = ("prepare", *c.TABLES, "-q", "--out", "graph")
    larger = ("prepare", *c.LATER, "--label-column", "topic", "-q", "--out", "graph")
    predict = c.call("predict", "mine", *c.LATER, "--out", "found.csv", "-q")
    grade = c.call(*c.RUN, "--method", "frozen_kmeans", "--seeds", "2")
    below_sub = c.call("discover", *c.TABLES, "--num-new", "2", "-q", "--out", "sub/mine")
    continue_ = c.call("discover", "--from", "mine", *c.LATER, "-q", "--out", "later")

    number, another = (c.call("classes", "mine", "--num-new", n, "--use", "-q") for n in ("4", "3"))

    def bench() -> None:
        c.bench("--methods", "never_new", "--seeds", "2")

    return [
        Race("two discoveries", c.write_tables, discover, otherwise),
        Race("two overwrites", c.discovered_otherwise, overwrite,
             c.call(*c.DISCOVER, "--seed", "7", "--num-new", "3", "--overwrite")),
        Race("two reviews", two_reviews(), apply, other),
        Race("two reviews without a revision", two_reviews(after=False), apply, other),
        Race("server and review", two_reviews(), server, other),
        Race("review and server", two_reviews(), other, server),
        Race("review and undo", reviewed_and_review, other, undo),
        Race("undo and review", reviewed_and_review, undo, other),
        Race("two undo", c.reviewed, undo, undo),
        Race("overwrite and review", otherwise_and_review, overwrite, other),
        Race("review and overwrite", otherwise_and_review, other, overwrite),
        Race("report and review", two_reviews(), c.call("report", "mine", "-q"), other),
        Race("two numbers", c.counted, number, another),
        Race("number and review", counted_and_review, number, other),
        Race("review and number", counted_and_review, other, number),
        Race("two protocols", lambda: None, c.call(*c.PROTOCOL),
             c.call(*c.PROTOCOL, "--seeds", "3")),
        Race("two prepare", c.write_tables, c.call(*prepare), c.call(*larger)),
        Race("two prepare overwrite", c.prepared, c.call(*larger, "--overwrite"),
             c.call(*prepare, "--overwrite")),
        Race("two model saves", c.saved_model, c.save_model,
             c.in_python(lambda: c.make_model(2).save("model"))),
        Race("two graded runs", lambda: None, grade, grade),
        Race("two benches", lambda: None, bench, bench),
        Race("overwrite, predict", c.discovered_otherwise, overwrite, predict),
        Race("review, predict", c.discovered, apply, predict),
        Race("predict reads, overwrite", c.discovered_otherwise, predict, overwrite, reads=True),
        Race("predict reads, review", c.discovered, predict, apply, reads=True),
        Race("continue reads, review", two_reviews(), continue_, other, reads=True),
        Race("discover, a file appears", c.write_tables, discover, put_thesis,
             keeps="mine/thesis.txt", is_command=False),
        Race("overwrite, a file appears", c.discovered_otherwise, overwrite, put_thesis,
             keeps="mine/thesis.txt", is_command=False),
        Race("discover, its folder goes", below, below_sub, remove_sub, is_command=False),
    ]  # fmt: skip


# Odd places


@dataclass(frozen=True)
class Place:
    """A command whose --out is an odd place.

    Attributes:
        name: Name in the report.
        start: Makes the folder.
        work: The command.
        plain: The same start and command with a plain --out, which give the expected content.
        folder: Folder that has the run afterwards.
        act: Called before each change of the file system.
    """

    name: str
    start: Work
    work: Work
    plain: tuple[Work, Work]
    folder: str = "mine"
    act: Act = do_nothing


def all_places() -> list[Place]:
    """Odd places, in the order of the report."""
    tables = ("--nodes", "../nodes.csv", "--edges", "../edges.csv", "--label-column", "topic")
    inside = ("discover", *tables, "--num-new", "2", "-q", "--out", ".")

    def in_folder(*options: str) -> Work:
        def work() -> None:
            os.chdir("mine")
            c.nodenova(*inside, *options)

        return work

    def empty() -> None:
        c.write_tables()
        os.mkdir("mine")

    def linked() -> None:
        c.discovered_otherwise()
        os.rename("mine", "real")
        os.symlink("real", "mine")

    def linked_empty() -> None:
        c.write_tables()
        os.mkdir("real")
        os.symlink("real", "mine")

    def nowhere() -> None:
        c.write_tables()
        os.symlink("real", "mine")

    plain, again = c.call(*c.DISCOVER), c.call(*c.DISCOVER, "--overwrite")
    crooked = c.call(*c.DISCOVER[:-1], "real/../mine", "--overwrite")

    def crooked_start() -> None:
        c.discovered_otherwise()
        os.mkdir("real")

    review = c.call("apply-review", "mine", "review.json", "-q")
    new, old, reviews = c.write_tables, c.discovered_otherwise, two_reviews()
    return [
        Place("--out . --overwrite in a run", old, in_folder("--overwrite"), (old, again)),
        Place("--out . in an empty folder", empty, in_folder(), (new, plain)),
        Place("--out . in a run", old, in_folder(), (old, plain)),
        Place("--out a link to a run, --overwrite", linked, again, (old, again), "real"),
        Place("--out a link to an empty folder", linked_empty, plain, (new, plain), "real"),
        Place("--out a link to nothing", nowhere, plain, (new, plain), "real"),
        Place("--out real/../mine --overwrite", crooked_start, crooked, (old, again)),
        Place("--out, read-only", new, plain, (new, plain), act=refuse),
        Place("--overwrite, read-only", old, again, (old, again), act=refuse),
        Place("apply-review, read-only", reviews, review, (reviews, review), act=refuse),
    ]


def try_place(place: Place, parent: Path) -> list[str]:
    """Run a command with an odd --out; return what is wrong."""
    plain, odd = parent / "plain", parent / "odd"
    for folder, start in ((plain, place.plain[0]), (odd, place.start)):
        folder.mkdir()
        ended = run_child(start, folder)
        if ended.code:
            raise RuntimeError(f"{place.name}: {ended}\n{ended.errors}")
        import_modules(ended)
    before = snapshot(odd)
    expected = run_child(place.plain[1], plain)
    ended = run_child(place.work, odd, place.act)
    after = snapshot(odd)
    wrong = complaints(ended)
    if ended.code:
        if after != before:
            wrong.append(f"refused, and changed {_difference(after, [before])}")
        if not expected.code and len(ended.changes) > EARLY:
            wrong.append(f"refused when the work was done: {ended.sentence}")
        return wrong
    if expected.code:
        return [*wrong, "succeeded where a plain --out is refused"]
    written = {
        path: code for path, code in snapshot(odd / place.folder).items() if _is_result(path)
    }
    wanted = snapshot(plain / "mine")
    if written != {path: code for path, code in wanted.items() if _is_result(path)}:
        wrong.append(
            f"{some([p for p in wanted if written.get(p) != wanted[p]])} not as with a plain --out"
        )
    hidden = [path for path in after if is_hidden(path) and path not in before]
    return wrong + ([f"{some(hidden)} left behind"] if hidden else [])


def _is_result(path: str) -> bool:
    """Whether a file does not hold the name of the folder, which is the title of the page."""
    return not path.endswith(("run.json", "report.html")) and not is_hidden(path)


def run(
    seed: int,
    scale: float,
    out: Path,
    *,
    only: Sequence[str] = (),
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, object]:
    """Run all races and odd places, and write races.json into `out`."""
    torch.set_num_threads(1)
    races, places = all_races(), all_places()
    known = {race.name for race in races} | {place.name for place in places}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise SystemExit(f"there is no race {unknown[0]!r}")
    figures: dict[str, object] = {}
    failures: list[dict[str, object]] = []
    for race in races:
        if only and race.name not in only:
            continue
        rng = random.Random(f"{seed}/{race.name}")
        with tempfile.TemporaryDirectory(prefix="races-") as place:
            course = Course(race, Path(place))
            points = course.points(max(1, round(POINTS * scale)), rng)
            outcomes = {number: course.attempt(number) for number in points}
        kinds = Counter(outcome.kind for outcome in outcomes.values())
        bad = {number: outcome for number, outcome in outcomes.items() if outcome.wrong}
        figures[race.name] = {"tried": len(points), **kinds, "wrong": len(bad)}
        failures += [
            {
                "race": race.name,
                "at": number,
                "change": outcome.point,
                "first": str(outcome.first),
                "second": str(outcome.second),
                "found": "; ".join(outcome.wrong),
            }
            for number, outcome in bad.items()
        ]
        report(f"{race.name:34} {json.dumps(figures[race.name])}")
    odd: dict[str, str] = {}
    for one in places:
        if only and one.name not in only:
            continue
        with tempfile.TemporaryDirectory(prefix="races-") as place:
            wrong = try_place(one, Path(place))
        odd[one.name] = "; ".join(wrong) or "well"
        failures += [{"place": one.name, "found": odd[one.name]}] if wrong else []
        report(f"{one.name:34} {odd[one.name]}")
    result: dict[str, object] = {
        "part": "races",
        "seed": seed,
        "commit": commit(),
        "races": figures,
        "places": odd,
        "failures": failures,
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "races.json").write_text(json.dumps(result, indent=1) + "\n")
    return result


def main() -> None:
    """The command line of this part."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--only", action="append", default=[], metavar="RACE")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "attack")
    options = parser.parse_args()
    result = run(
        options.seed,
        options.scale,
        options.out,
        only=options.only,
        report=lambda line: print(line, flush=True),
    )
    failures = result["failures"]
    assert isinstance(failures, list)
    for failure in failures:
        print(json.dumps(failure))
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
