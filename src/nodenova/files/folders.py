"""Folders that change whole or not at all: runs, models, graph folders, exports.

A change is made inside the folder and counts from one rename on. The folder itself stays, so that
a shell or a program that is in it keeps its place.

mine/.lock.nodenova          held by the process that changes the folder
mine/.change-xxxx.nodenova/  a change in preparation: new/ has its files, gone/ a folder for each
                             file that goes
mine/.commit.nodenova/       a change that counts, until its files are in their places

A process may be killed at any time. `recover` then removes a change that was in preparation, and
completes one that counts; everything that opens such a folder calls it first.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nodenova.errors import StorageError
from nodenova.files.atomic import (
    BINARY,
    ENDING,
    flush_folder,
    log,
    remove_temporary_files,
    try_lock,
    umask,
)

NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)  # not on Windows
FOLDER = getattr(os, "O_PATH", os.O_RDONLY)  # open a folder without reading it
LOCK = f".lock{ENDING}"
COMMIT = f".commit{ENDING}"
CHANGE = ".change-"
DONE = f"{CHANGE}done{ENDING}"  # a change whose files are in their places
# Files that make a folder complete are put in their places last.
LAST = ("model.json", "row.json", "graph.json", "run.json", "protocol.json")
# Other programs read what it names, and complete no change: it is away while the others change.
AWAY = Path("protocol.json")
PATIENCE = 20.0  # seconds that a short change waits for another one
_held: set[tuple[Path, int]] = set()  # folders that a thread of this process has locked
_completed: set[Path] = set()  # folders with a change that this process completed


class Change:
    """A change of a folder that is being made; `change_folder` yields one.

    Attributes:
        folder: The folder, without links in its path.
        new: Folder for the new files; their paths below it are those below `folder`.
        interrupted: Whether Ctrl-C came when it was too late to stop: the change is complete.
    """

    def __init__(self, folder: Path, stage: Path, fresh: bool) -> None:
        self.folder, self._stage, self._fresh = folder, stage, fresh
        self.new, self._gone = stage / "new", stage / "gone"
        self.new.mkdir()
        self._gone.mkdir()
        self.interrupted = False

    def remove(self, *patterns: str) -> None:
        """Remove files, by their paths below the folder, unless there are new ones."""
        for pattern in patterns:
            for path in self.folder.glob(pattern):
                name = path.relative_to(self.folder)
                if path.is_file() and not (self.new / name).exists():
                    (self._gone / name).mkdir(parents=True, exist_ok=True)

    def commit(self) -> None:
        """Make the change count, then put its files in their places."""
        # A writer makes the parents of its file anew, but not `gone`.
        if not self.new.is_dir() or not self._gone.is_dir():
            raise StorageError(f"{self.folder} was deleted while it was being written")
        names = [name for name, _ in files_below(self.new)]
        _check_places(self.folder, names)
        for name in names:
            if self._fresh and os.path.lexists(self.folder / name):
                raise StorageError(
                    f"{self.folder / name} was made by another program meanwhile; "
                    "nothing was written"
                )
        for place, _, _ in os.walk(self._stage):
            flush_folder(Path(place))
        try:
            os.rename(self._stage, self.folder / COMMIT)  # from here on the change counts
            flush_folder(self.folder)
            _complete(self.folder)
        except KeyboardInterrupt:
            if self._stage.exists():
                raise
            _complete(self.folder)
            self.interrupted = True


@contextmanager
def change_folder(folder: Path, *, fresh: bool = False, patience: float = 0.0) -> Iterator[Change]:
    """Lock a folder, yield a change of it, and commit the change unless an error is raised.

    A fresh change only adds files: one that is already there stays, and the change is refused.
    """
    with lock_folder(folder, patience) as folder:
        stage = Path(tempfile.mkdtemp(ENDING, CHANGE, folder))
        try:
            os.chmod(stage, 0o777 & ~umask())
            change = Change(folder, stage, fresh)
            yield change
            change.commit()
        except BaseException:
            shutil.rmtree(stage, ignore_errors=True)
            raise


@contextmanager
def lock_folder(folder: Path, patience: float = 0.0) -> Iterator[Path]:
    """Hold the lock of a folder, which is made if need be; yield its path without links.

    Another process that holds the lock is named in the error, after `patience` seconds. A thread
    may lock a folder again that it has locked. A folder that was made and stays empty is removed.
    """
    folder = Path(os.path.realpath(folder))
    key = (folder, threading.get_ident())
    if key in _held:
        yield folder
        return
    if folder.exists() and not folder.is_dir():
        raise StorageError(f"{folder} is a file, not a folder")
    handles = _open_folders(folder, *folder.parents)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock_file(folder / LOCK, str(folder), patience):
            _held.add(key)
            try:
                _recover(folder)
                yield folder
            finally:
                _held.discard(key)
    finally:
        with suppress(OSError):  # the first one that is not empty stays, and so do its parents
            for path in (folder, *folder.parents):
                # Not there before, or deleted by another program and made anew for a file.
                if path not in handles or (handles[path] >= 0 and not _is_at(handles[path], path)):
                    path.rmdir()
        for handle in handles.values():
            if handle >= 0:
                os.close(handle)


def _open_folders(*paths: Path) -> dict[Path, int]:
    """Handles of those folders that exist: no new folder gets the inode number of an open one.

    -1 where a folder cannot be opened, as on Windows, which deletes no folder that is in use.
    """
    handles = {path: -1 for path in paths if path.is_dir()}
    for path in handles:
        with suppress(OSError):
            handles[path] = os.open(path, FOLDER)
    return handles


@contextmanager
def lock_file(path: Path, what: str, patience: float = 0.0) -> Iterator[None]:
    """Hold a lock that ends with the process; `what` it protects is named in the error."""
    deadline = time.monotonic() + patience
    while True:
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | NO_LINK | BINARY, 0o666)
        except OSError as error:
            if path.is_symlink():
                raise StorageError(_not_a_lock(path)) from None
            raise StorageError(f"{what} cannot be written ({error.strerror})") from error
        _check_lock(handle, path)
        # The process that held it before removes the file when it ends.
        if try_lock(handle) and _is_at(handle, path):
            break
        holder = os.pread(handle, 200, 0) if hasattr(os, "pread") else b""
        os.close(handle)
        if time.monotonic() >= deadline:
            name = holder.decode(errors="replace").partition("\n")[0] or "another process"
            raise StorageError(
                f"{what}: {name} is writing there; wait until it ends, or choose another folder"
            )
        time.sleep(0.02)
    try:
        command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:2]])
        os.ftruncate(handle, 0)
        os.write(handle, f"process {os.getpid()} ({command})\n".encode(errors="replace"))
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(handle)


def _check_lock(handle: int, path: Path) -> None:
    """Raise unless an open file may be emptied: a link of a hostile folder leads to other files."""
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1 or path.is_symlink():
        os.close(handle)
        raise StorageError(_not_a_lock(path))


def _not_a_lock(path: Path) -> str:
    return f"{path}: a link, a pipe or a device, not a lock of nodenova; delete it"


def _is_at(handle: int, path: Path) -> bool:
    """Whether a path still names the file that is open."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except OSError:
        return False


def recover(folder: Path) -> None:
    """Complete the change of a killed command that counts, and remove one that does not.

    Raises:
        StorageError: If a change cannot be completed, or another process is completing it.
    """
    left = [path.name for path in folder.glob(f".*{ENDING}")]
    if COMMIT in left:
        with lock_folder(folder, PATIENCE):
            pass
    elif left:
        with suppress(StorageError), lock_folder(folder):  # locked: another process is at work
            pass


class FolderState:
    """The state of a folder when it was opened, by the file `index` that every change replaces.

    `reading` raises a StorageError if another process changes the folder meanwhile.
    """

    def __init__(self, folder: Path, index: str) -> None:
        recover(folder)
        self._folder, self._index = folder, folder / index
        self._state = self._now()

    def _now(self) -> tuple[int, ...]:
        try:
            found = os.stat(self._index)
        except OSError:
            return ()
        return (found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size)

    @property
    def is_current(self) -> bool:
        """Whether the folder is as it was."""
        return self._state == self._now() and not os.path.lexists(self._folder / COMMIT)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Raise at the end if what was read may be of two states of the folder."""
        changed = f"{self._folder} was changed by another process; open it again"
        try:
            yield
        except Exception as error:  # parts of two states may fail in any way
            if not self.is_current:
                raise StorageError(changed) from error
            raise
        if not self.is_current:
            raise StorageError(changed)


def has_completed(folder: Path) -> bool:
    """Whether this process has completed a change of the folder that another one had begun."""
    return Path(os.path.realpath(folder)) in _completed


def is_empty(folder: Path) -> bool:
    """Whether a folder holds nothing but what a killed command may have left."""
    return all(path.name.endswith(ENDING) for path in folder.iterdir())


def _recover(folder: Path) -> None:
    """`recover` for a folder whose lock is held."""
    if os.path.lexists(folder / COMMIT) or os.path.lexists(folder / DONE):
        _complete(folder)
        _completed.add(folder)
        log.warning("note: completed a change of %s whose command was killed", folder)
    for path in folder.glob(f"{CHANGE}*{ENDING}"):
        if not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
            log.warning("note: removed %s, left by a command that was killed", path)
    remove_temporary_files(folder)


def _complete(folder: Path) -> None:
    """Put the files of a committed change in their places; it may have been begun before."""
    commit = folder / COMMIT
    if not os.path.lexists(commit):
        return
    if not _is_change(commit) or (folder / DONE).is_symlink():
        raise StorageError(f"{commit}: damaged, not a change of nodenova; delete it")
    new = [name for name, _ in files_below(commit / "new")]
    gone = list(_leaves(commit / "gone"))
    _check_places(folder, [*new, *gone])
    if AWAY in new:
        (folder / AWAY).unlink(missing_ok=True)
        _remove_files(folder, gone)
    _place(commit / "new", folder)
    _remove_files(folder, gone)
    for part in {folder / name.parent for name in new} | {folder}:
        flush_folder(part)
    # Renamed before it is removed: half of a commit must not be taken for one.
    shutil.rmtree(folder / DONE, ignore_errors=True)
    os.rename(commit, folder / DONE)
    shutil.rmtree(folder / DONE, ignore_errors=True)


def _remove_files(folder: Path, names: Iterable[Path]) -> None:
    """Remove files, and the folders that are empty then."""
    for name in names:
        (folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # a folder that is not empty stays
            for part in name.parents[:-1]:
                (folder / part).rmdir()


def _is_change(commit: Path) -> bool:
    """Whether a folder holds folders and files alone, as every change does: no link, no pipe."""
    if commit.is_symlink() or not commit.is_dir():
        return False
    return all(
        stat.S_ISREG(mode) or stat.S_ISDIR(mode)
        for place, folders, names in os.walk(commit)
        for mode in (os.lstat(Path(place) / name).st_mode for name in (*folders, *names))
    )


def _place(source: Path, target: Path) -> None:
    """Move what is in one folder to another, by renames alone: they work on a full disk."""
    for path in sorted(source.iterdir(), key=_place_order):
        place = target / path.name
        if path.is_dir() and not path.is_symlink() and place.is_dir():
            _place(path, place)
        else:
            os.replace(path, place)


def _check_places(folder: Path, names: Iterable[Path]) -> None:
    """Raise where a file cannot be put in its place, or its place is outside the folder."""
    for name in names:
        parts = [folder / part for part in name.parents[:-1]]
        if any(part.is_symlink() for part in parts):
            raise StorageError(f"{folder / name.parent} is a link; nodenova writes no file there")
        if any(part.exists() and not part.is_dir() for part in parts):
            raise StorageError(f"{folder / name.parent} is a file where a folder is to be written")
        if (folder / name).is_dir() and not (folder / name).is_symlink():
            raise StorageError(f"{folder / name} is a folder where a file is to be written")


def _place_order(path: Path) -> tuple[int, str]:
    return (LAST.index(path.name) + 1 if path.name in LAST else 0, path.name)


def _leaves(folder: Path) -> Iterator[Path]:
    """Yield the folders below a folder that have no folder in them, as paths from there."""
    for place, folders, _ in os.walk(folder):
        if not folders and Path(place) != folder:
            yield Path(place).relative_to(folder)


def files_below(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield the files below a folder, each as its path from there and its whole path.

    Links are not followed, and hidden folders and files of a change are left out.
    """
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.endswith(ENDING)]
        for name in names:
            path = Path(place) / name
            if not name.endswith(ENDING) and not path.is_symlink():
                yield path.relative_to(folder), path
