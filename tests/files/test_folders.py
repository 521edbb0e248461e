"""Folders change whole or not at all, whatever is killed, deleted or run twice."""

from __future__ import annotations

import logging
import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from nodenova.errors import StorageError
from nodenova.files import atomic, folders
from nodenova.files.atomic import ENDING, write_atomically
from nodenova.files.folders import (
    COMMIT,
    DONE,
    LOCK,
    Change,
    FolderState,
    change_folder,
    files_below,
    lock_folder,
    recover,
)


class Killed(BaseException):
    """Stands for SIGKILL: nothing of the command runs after it."""


def contents(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def change(folder: Path) -> None:
    """Replace one file, add one, and remove one."""
    with change_folder(folder) as made:
        write_atomically(made.new / "run.json", b"new")
        write_atomically(made.new / "model" / "model.json", b"new")
        made.remove("old.csv")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    for name in ("run.json", "old.csv", "notes.txt"):
        write_atomically(folder / name, b"old")
    return folder


OLD = {"run.json": b"old", "old.csv": b"old", "notes.txt": b"old"}
NEW = {"run.json": b"new", "model/model.json": b"new", "notes.txt": b"old"}


def test_a_change_replaces_adds_and_removes_and_leaves_nothing_else(folder: Path) -> None:
    place = os.stat(folder).st_ino
    change(folder)
    assert contents(folder) == NEW
    assert os.stat(folder).st_ino == place  # a shell that is in the folder keeps its place


def test_a_change_that_raises_changes_nothing(folder: Path) -> None:
    with pytest.raises(ZeroDivisionError), change_folder(folder) as made:
        write_atomically(made.new / "run.json", bytes([1 // 0]))
    assert contents(folder) == OLD


@pytest.mark.parametrize("step", ["_check_places", "_complete"])
def test_whoever_opens_the_folder_next_finds_the_state_before_or_after(
    folder: Path,
    step: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with monkeypatch.context() as patch:

        def die(*_: object) -> None:
            patch.setattr(folders.shutil, "rmtree", lambda *_, **__: None)
            raise Killed

        patch.setattr(folders, step, die)
        with pytest.raises(Killed):
            change(folder)
    left = {path.name for path in folder.iterdir() if path.name.endswith(ENDING)}
    assert (COMMIT in left) == (step == "_complete")
    assert left
    with caplog.at_level(logging.WARNING):
        recover(folder)
    assert contents(folder) == (NEW if step == "_complete" else OLD)
    assert "killed" in caplog.text


def test_a_commit_is_completed_wherever_it_was_stopped(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every change of the file system after the commit is a place to be killed at."""
    calls = {"replace": os.replace, "rename": os.rename, "unlink": Path.unlink, "rmdir": os.rmdir}
    with monkeypatch.context() as patch:
        patch.setattr(folders, "_complete", lambda folder: (_ for _ in ()).throw(Killed()))
        patch.setattr(folders.shutil, "rmtree", lambda *_, **__: None)
        with pytest.raises(Killed):
            change(folder)
    for name, real in calls.items():
        for last in range(3):
            copy = tmp_path / f"{name}-{last}"
            shutil.copytree(folder, copy)
            left = [last]

            def stop(*arguments: object, left: list[int] = left, real: object = real, **_: object):  # type: ignore[no-untyped-def]
                if not left[0]:
                    raise Killed
                left[0] -= 1
                return real(*arguments, **_)  # type: ignore[operator]

            with monkeypatch.context() as patch:
                patch.setattr(Path if name == "unlink" else os, name, stop)
                with suppress(Killed):
                    folders._complete(copy)
            recover(copy)
            assert contents(copy) == NEW, (name, last)


def test_a_second_process_is_refused_and_the_first_is_named(folder: Path) -> None:
    refused: list[StorageError] = []

    def second() -> None:
        try:
            change(folder)
        except StorageError as error:
            refused.append(error)

    with lock_folder(folder):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert f"process {os.getpid()} (" in str(refused[0])
    assert "is writing there" in str(refused[0])
    assert contents(folder) == OLD
    change(folder)  # the lock is free again


def test_a_short_change_waits_for_another_one(folder: Path) -> None:
    started = threading.Event()

    def second() -> None:
        started.set()
        with change_folder(folder, patience=20) as made:
            write_atomically(made.new / "second", b"")

    thread = threading.Thread(target=second)
    with lock_folder(folder):
        thread.start()
        started.wait()
        write_atomically(folder / "first", b"")
    thread.join()
    assert {"first", "second"} <= set(contents(folder))


def test_the_lock_of_a_killed_process_is_no_lock(folder: Path) -> None:
    write_atomically(folder / LOCK, b"process 1 (nodenova discover)\n")
    change(folder)
    assert contents(folder) == NEW


def test_a_folder_that_stays_empty_is_removed_with_its_parents(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), lock_folder(tmp_path / "a" / "b"):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_fresh_change_replaces_nothing_that_appears_meanwhile(tmp_path: Path) -> None:
    with (
        pytest.raises(StorageError, match=r"run\.json was made by another program meanwhile"),
        change_folder(tmp_path / "mine", fresh=True) as made,
    ):
        _write_twice(made.new / "run.json", tmp_path / "mine" / "run.json")
    assert contents(tmp_path / "mine") == {"run.json": b"theirs"}


def _write_twice(ours: Path, theirs: Path) -> None:
    write_atomically(ours, b"new")
    write_atomically(theirs, b"theirs")


@pytest.mark.parametrize("has_parent", [False, True])
def test_a_folder_deleted_meanwhile_is_an_error_and_nothing_is_left(
    tmp_path: Path, has_parent: bool
) -> None:
    if has_parent:
        (tmp_path / "parent").mkdir()
    with (
        pytest.raises(StorageError, match="was deleted while it was being written"),
        change_folder(tmp_path / "parent" / "mine", fresh=True) as made,
    ):
        _write_around_a_deletion(made.new, tmp_path / "parent")
    assert list(tmp_path.iterdir()) == []


def _write_around_a_deletion(new: Path, parent: Path) -> None:
    write_atomically(new / "predictions.csv", b"")
    shutil.rmtree(parent)
    write_atomically(new / "run.json", b"")


def test_a_link_to_a_folder_stays_a_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(folder)
    change(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert contents(folder) == NEW


def test_a_commit_from_elsewhere_writes_nothing_outside_its_folder(
    folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    (folder / "model").symlink_to(tmp_path / "home")
    write_atomically(folder / COMMIT / "new" / "model" / "profile", b"evil")
    with pytest.raises(StorageError, match="is a link"):
        recover(folder)
    assert contents(tmp_path / "home") == {}
    shutil.rmtree(folder / COMMIT)
    (folder / COMMIT).symlink_to(tmp_path / "home")
    with pytest.raises(StorageError, match="not a change of nodenova"):
        recover(folder)


def test_a_link_in_a_commit_from_elsewhere_goes_nowhere(folder: Path, tmp_path: Path) -> None:
    """Links are no files of a change, and their places were not looked at."""
    home = tmp_path / "home"
    write_atomically(home / "profile", b"mine")
    (folder / "origin").symlink_to(home)
    (folder / COMMIT / "new" / "origin").mkdir(parents=True)
    (folder / COMMIT / "new" / "origin" / "profile").symlink_to("elsewhere")
    with pytest.raises(StorageError, match="not a change of nodenova"):
        recover(folder)
    assert contents(home) == {"profile": b"mine"}
    assert not (home / "profile").is_symlink()


def test_a_done_change_that_is_a_link_is_refused(folder: Path, tmp_path: Path) -> None:
    write_atomically(folder / COMMIT / "new" / "run.json", b"new")
    (folder / DONE).symlink_to(tmp_path)
    with pytest.raises(StorageError, match="not a change of nodenova"):
        recover(folder)


@pytest.mark.parametrize("kind", ["symlink", "hardlink", "pipe"])
def test_a_lock_from_elsewhere_empties_no_other_file(
    folder: Path, tmp_path: Path, kind: str
) -> None:
    """A folder that was unpacked from an archive may have any lock: opening it takes the lock."""
    home = tmp_path / "profile"
    home.write_bytes(b"mine")
    lock = folder / LOCK
    match kind:
        case "symlink":
            lock.symlink_to(home)
        case "hardlink":
            os.link(home, lock)
        case _:
            os.mkfifo(lock)
    with pytest.raises(StorageError, match="not a lock of nodenova; delete it"):
        change(folder)
    recover(folder)  # a reader is not kept from reading
    assert home.read_bytes() == b"mine"
    assert (folder / "run.json").read_bytes() == b"old"
    lock.unlink()
    change(folder)
    assert contents(folder) == NEW


def test_a_link_in_a_folder_of_others_is_replaced_and_not_followed(tmp_path: Path) -> None:
    home, link = tmp_path / "profile", tmp_path / "map.npz"
    home.write_bytes(b"mine")
    link.symlink_to(home)
    write_atomically(link, b"new", follow=False)
    assert (home.read_bytes(), link.read_bytes()) == (b"mine", b"new")
    link.unlink()
    os.mkfifo(link)  # nothing reads from it: to write there would never end
    write_atomically(link, b"new", follow=False)
    assert link.read_bytes() == b"new"


def test_a_place_that_is_a_folder_is_refused_before_anything_changes(folder: Path) -> None:
    (folder / "model" / "model.json").mkdir(parents=True)
    with pytest.raises(StorageError, match="is a folder where a file"):
        change(folder)
    assert contents(folder) == OLD


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    write_atomically(tmp_path / "file", b"")
    with pytest.raises(StorageError, match="is a file, not a folder"):
        change(tmp_path / "file")


def test_what_is_read_during_a_change_is_refused(folder: Path) -> None:
    state = FolderState(folder, "run.json")
    with state.reading():
        assert (folder / "run.json").read_bytes() == b"old"
    with pytest.raises(StorageError, match="was changed by another process"), state.reading():
        change(folder)
    assert not state.is_current
    assert FolderState(folder, "run.json").is_current


def test_temporary_files_of_killed_writers_are_removed_and_those_in_use_stay(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    left = tmp_path / f".table.csv.abcd{ENDING}"
    left.write_bytes(b"half")
    used = tmp_path / f".other.csv.abcd{ENDING}"
    used.write_bytes(b"half")
    handle = os.open(used, os.O_RDWR)
    try:
        from nodenova.files.atomic import try_lock

        assert try_lock(handle)
        write_atomically(tmp_path / "table.csv", b"whole")
    finally:
        os.close(handle)
    assert {path.name for path in tmp_path.iterdir()} == {"table.csv", used.name}
    assert f"removed {left}" in caplog.text


def test_a_file_has_the_rights_of_any_other_and_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"")
    write_atomically(tmp_path / "made", b"first")
    assert os.stat(tmp_path / "made").st_mode == os.stat(tmp_path / "plain").st_mode
    (tmp_path / "link").symlink_to(tmp_path / "made")
    write_atomically(tmp_path / "link", b"second")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "made").read_bytes() == b"second"
    write_atomically(tmp_path / ("n" * 250), b"")  # a name as long as a file may have


def test_whatever_fails_during_a_change_is_the_change(folder: Path) -> None:
    state = FolderState(folder, "run.json")
    with pytest.raises(StorageError, match="was changed by another process"), state.reading():
        _change_and_fail(folder)
    with pytest.raises(KeyError), FolderState(folder, "run.json").reading():
        raise KeyError


def _change_and_fail(folder: Path) -> None:
    change(folder)
    raise KeyError


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="needs /dev/fd")
def test_a_pipe_gets_the_content_and_may_be_closed_early() -> None:
    reader, writer = os.pipe()
    write_atomically(Path(f"/dev/fd/{writer}"), b"content")
    assert os.read(reader, 100) == b"content"
    os.close(reader)
    write_atomically(Path(f"/dev/fd/{writer}"), b"nobody reads this")
    os.close(writer)


def test_ctrl_c_during_a_commit_completes_the_change_and_is_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete = folders._complete

    def interrupted(place: Path) -> None:
        monkeypatch.setattr(folders, "_complete", complete)
        raise KeyboardInterrupt

    with change_folder(folder) as made:
        write_atomically(made.new / "run.json", b"new")
        monkeypatch.setattr(folders, "_complete", interrupted)
    assert made.interrupted
    assert contents(folder) == OLD | {"run.json": b"new"}


def test_ctrl_c_before_a_commit_changes_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = os.rename

    def interrupted(source: Path, target: Path) -> None:
        if Path(target).name == COMMIT:
            raise KeyboardInterrupt
        rename(source, target)

    monkeypatch.setattr(folders.os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt):
        change(folder)
    assert contents(folder) == OLD


def test_a_lock_names_the_command_and_none_of_its_arguments(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["/usr/bin/nodenova", "review", "secret"])
    with lock_folder(folder):
        assert (folder / LOCK).read_text() == f"process {os.getpid()} (nodenova review)\n"
    assert not (folder / LOCK).exists()


def test_a_temporary_file_is_locked_until_it_is_in_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise another writer could take it for left over, and remove it."""
    if atomic.fcntl is None:
        pytest.skip("Windows renames closed files only")
    replace, free = os.replace, []

    def renamed(source: str, target: Path) -> None:
        handle = os.open(source, os.O_RDWR)
        free.append(atomic.try_lock(handle))
        os.close(handle)
        replace(source, target)

    monkeypatch.setattr(atomic.os, "replace", renamed)
    write_atomically(tmp_path / "table.csv", b"whole")
    assert free == [False]
    assert (tmp_path / "table.csv").read_bytes() == b"whole"


def test_the_error_of_a_change_is_not_hidden_by_cleaning_up(folder: Path) -> None:
    def fail(made: Change) -> None:
        shutil.rmtree(made.new.parent)
        raise KeyError

    with pytest.raises(KeyError), change_folder(folder) as made:
        fail(made)
    assert contents(folder) == OLD


def test_files_of_a_folder_are_neither_links_nor_parts_of_a_change(
    folder: Path, tmp_path: Path
) -> None:
    write_atomically(folder / "model" / "model.json", b"")
    (folder / "link").symlink_to(folder / "run.json")
    (folder / "model" / f".half.abc{ENDING}").write_bytes(b"")
    write_atomically(folder / f".change-x{ENDING}" / "new" / "run.json", b"")
    names = {str(name) for name, _ in files_below(folder)}
    assert names == {"run.json", "old.csv", "notes.txt", os.path.join("model", "model.json")}
