"""Commands that are killed, and two commands at once: nothing finished is lost.

The commands and their judges are those of tools/attack; a small part of it runs here. Each kill is
aimed at a commit point: a rename or a removal that a reader can see.
"""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.attack import killer, races
from tools.attack.changes import FailAt, KillAt, do_nothing, refuse, run_child, unflushed
from tools.attack.commands import Command, all_commands, files_of, is_hidden, named, snapshot
from tools.attack.killer import Attempt, Target
from tools.attack.races import Course, Race, all_places, all_races, try_place

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").is_dir(), reason="changes are observed on Linux only"
)
KILLS = 2  # of each command in the default tests, and one more
COMMANDS = [command.name for command in all_commands()]
RACES = {race.name: race for race in all_races()}
PLACES = {place.name: place for place in all_places()}


def visible_commits(target: Target, most: int) -> list[Attempt]:
    """Commit points that a reader can see, the last one too, and the commit before the first."""
    commits = [k for k, change in enumerate(target.changes, start=1) if change.is_commit]
    seen = [k for k in commits if not all(map(is_hidden, filter(None, target.changes[k - 1][1:])))]
    step = max(1, len(seen) // max(1, most - 1))
    chosen = {*seen[::step][: most - 1], seen[-1], *[k for k in commits if k < seen[0]][-1:]}
    return [Attempt("commit", k) for k in sorted(chosen)]


def failures(target: Target, attempts: list[Attempt]) -> list[str]:
    """What is wrong after the attempts; each must have been killed."""
    found = [target.attempt(attempt) for attempt in attempts]
    assert None not in found
    return [
        f"{one.attempt}, {one.change}: {one.state}, {'; '.join(one.wrong)}"
        for one in found
        if one is not None and one.wrong
    ]


@pytest.mark.parametrize("name", ["overwrite", "apply-review", "undo"])
def test_a_command_killed_at_a_commit_point_loses_nothing(name: str, tmp_path: Path) -> None:
    target = Target(*named([name]), tmp_path)
    assert not failures(target, visible_commits(target, KILLS))


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_killed_anywhere_loses_nothing(name: str, tmp_path: Path) -> None:
    target = Target(*named([name]), tmp_path)
    wrong = []
    for attempt in target.plan(24, random.Random(name)):
        found = target.attempt(attempt)
        wrong += [] if found is None or not found.wrong else [f"{attempt}: {found}"]
    assert not wrong


def raced(race: Race, place: Path, numbers: Callable[[Course], list[int]]) -> list[str]:
    course = Course(race, place)
    outcomes = [course.attempt(number) for number in numbers(course)]
    return [f"{one.point}: {'; '.join(one.wrong)}" for one in outcomes if one.wrong]


def test_two_reviews_at_once_are_both_kept_or_one_is_refused(tmp_path: Path) -> None:
    """The second one comes when the first has read the run and is changing it."""
    race = RACES["two reviews without a revision"]
    assert not raced(race, tmp_path, lambda course: [1, len(course.changes) // 2])


@pytest.mark.slow
@pytest.mark.parametrize("name", RACES)
def test_two_processes_on_one_folder(name: str, tmp_path: Path) -> None:
    rng = random.Random(name)
    assert not raced(RACES[name], tmp_path, lambda course: course.points(4, rng))


def test_a_folder_that_appears_while_a_run_is_written_stays(tmp_path: Path) -> None:
    race = RACES["discover, a file appears"]
    assert not raced(race, tmp_path, lambda course: [len(course.changes) // 2])


def test_a_run_may_be_overwritten_from_inside_its_folder(tmp_path: Path) -> None:
    assert not try_place(PLACES["--out . --overwrite in a run"], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLACES)
def test_an_odd_place_for_a_run(name: str, tmp_path: Path) -> None:
    assert not try_place(PLACES[name], tmp_path)


# The harness itself: it sees every change, kills for certain, and finds what is planted.


def write_file(content: str = "new") -> None:
    Path("data").write_text(content * 50)


def write_badly() -> None:
    """Remove the old file, then write the new one in place."""
    Path("data").unlink(missing_ok=True)
    write_file()


def write_well() -> None:
    """Write beside, flush, rename; remove what an earlier attempt has left."""
    Path(".data.new").unlink(missing_ok=True)
    with open(".data.new", "wb") as file:
        file.write(b"new" * 50)
        file.flush()
        os.fsync(file.fileno())
    os.replace(".data.new", "data")


def planted(work: Callable[[], None]) -> Command:
    return Command("planted", lambda: write_file("old"), work, files_of("data"))


def found_by(work: Callable[[], None], place: Path) -> set[str]:
    """Kinds of attempts that find something wrong, of kills at every change and full disks."""
    target = Target(planted(work), place)
    found = [target.attempt(a) for a in target.plan(0, random.Random(0), everything=True)]
    assert len([one for one in found if one is not None]) >= 2 * len(target.changes)
    return {one.attempt.kind for one in found if one is not None and one.wrong}


def test_a_command_that_writes_in_place_is_found(tmp_path: Path) -> None:
    assert "commit" in found_by(write_badly, tmp_path)


def test_a_command_that_writes_beside_passes(tmp_path: Path) -> None:
    def work() -> None:
        try:
            write_well()
        except OSError as error:
            Path(".data.new").unlink(missing_ok=True)
            raise SystemExit(races.c.fail(str(error))) from None

    assert not found_by(work, tmp_path)


def test_a_command_that_leaves_a_file_behind_is_found(tmp_path: Path) -> None:
    def work() -> None:
        name = f".data.{os.getpid()}"
        Path(name).write_text("new" * 50)
        os.replace(name, "data")

    assert {"change", "commit"} & found_by(work, tmp_path)


def test_every_change_is_seen_and_nothing_happens_after_a_kill(tmp_path: Path) -> None:
    def work() -> None:
        os.mkdir("folder")
        Path("folder/a").write_bytes(b"12345678")
        with open("folder/b", "w") as file:
            file.write("12345678")
        handle = os.open("folder/c", os.O_WRONLY | os.O_CREAT)
        os.write(handle, b"12345678")
        os.fsync(handle)
        os.close(handle)
        os.rename("folder/c", "c")
        shutil.rmtree("folder")

    seen = run_child(work, tmp_path, do_nothing).changes
    kinds = ["mkdir", *["open", "write"] * 3, "fsync", "rename"]
    kinds += ["rmtree", "remove", "remove", "rmdir"]
    assert [change.kind for change in seen] == kinds
    assert {change.path for change in seen[-3:]} == {"folder/a", "folder/b", "folder"}
    for k in range(1, len(kinds) + 1):
        folder = tmp_path / str(k)
        folder.mkdir()
        ended = run_child(work, folder, KillAt(k))
        assert ended.code == -signal.SIGKILL
        assert len(ended.changes) == k
    assert (tmp_path / "3" / "folder" / "a").read_bytes() == b"1234"  # torn
    assert {*snapshot(tmp_path / "9")} == {"folder/", "folder/a", "folder/b", "folder/c"}
    assert {*snapshot(tmp_path / "13")} == {"folder/", "c"}


def test_a_full_disk_and_a_read_only_folder_are_errors(tmp_path: Path) -> None:
    def work() -> None:
        try:
            write_file()
        except OSError as error:
            raise SystemExit(error.errno) from None

    assert run_child(work, tmp_path, FailAt(2)).code == errno.ENOSPC
    assert (tmp_path / "data").read_bytes() == b""
    assert run_child(work, tmp_path, refuse).code == errno.EACCES


def test_content_that_is_renamed_before_it_is_flushed_is_found(tmp_path: Path) -> None:
    def hasty() -> None:
        Path(".data.new").write_text("new")
        os.replace(".data.new", "data")

    assert unflushed(run_child(hasty, tmp_path, do_nothing).changes) == ["data"]
    assert not unflushed(run_child(write_well, tmp_path, do_nothing).changes)


def test_a_lost_update_is_found(tmp_path: Path) -> None:
    """Two processes count up without a lock."""

    def count() -> None:
        number = int(Path("data").read_text())
        Path(f".data.{os.getpid()}").write_text(str(number + 1))
        os.replace(f".data.{os.getpid()}", "data")

    race = Race("planted", lambda: Path("data").write_text("0"), count, count)
    (wrong,) = raced(race, tmp_path, lambda course: [3])
    assert wrong.endswith("both succeeded, but data as in no order")


def test_the_parts_write_their_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(killer, "named", lambda only: [planted(write_badly)])
    result = killer.run(0, 0.02, tmp_path)
    assert json.loads((tmp_path / "killer.json").read_text()) == result
    assert result["kills"]
    assert result["at commit points"]
    assert result["failures"]
    race = Race("planted", lambda: None, write_file, lambda: write_file("other"))
    monkeypatch.setattr(races, "all_races", lambda: [race])
    monkeypatch.setattr(races, "all_places", list)
    result = races.run(0, 1.0, tmp_path)
    assert json.loads((tmp_path / "races.json").read_text()) == result
    assert result["races"]
