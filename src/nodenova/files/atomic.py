"""Files that are written whole or not at all."""

from __future__ import annotations

import logging
import os
import tempfile
from contextlib import suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

BINARY = getattr(os, "O_BINARY", 0)  # Windows would write another end of line
ENDING = ".nodenova"  # of everything that is not in its place yet
log = logging.getLogger("nodenova")


def write_atomically(path: Path, content: bytes, *, follow: bool = True) -> None:
    """Write a file whole or not at all: temporary file, fsync, rename, fsync of the folder.

    With `follow`, a link at the path leads to the file, and a pipe or a device gets the content. A
    file of a folder that others may have made must be written without: it replaces what is there.
    """
    if follow:
        # A pipe or a device, such as /dev/stdout; the real path of a pipe names no file.
        if path.exists() and not path.is_file() and not path.is_dir():
            with suppress(BrokenPipeError), path.open("wb") as file:  # its reader may have enough
                file.write(content)
            return
        path = Path(os.path.realpath(path))  # a link stays a link
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_temporary_files(path.parent)
    handle, temporary = _temporary_file(path)
    try:
        with os.fdopen(handle, "wb") as file:
            os.chmod(temporary, 0o666 & ~umask())  # readable like any other file the user writes
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            if fcntl is None:  # Windows renames closed files only
                file.close()
            os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def _temporary_file(path: Path) -> tuple[int, str]:
    """Make a locked temporary file beside `path`; return its handle and its path."""
    while True:
        name = path.name[:100]  # the name of a file has at most 255 bytes
        handle, temporary = tempfile.mkstemp(f"{ENDING}", f".{name}.", path.parent)
        # Another process may have taken it for left over before it was locked.
        if try_lock(handle) and Path(temporary).exists():
            return handle, temporary
        os.close(handle)


def remove_temporary_files(folder: Path) -> None:
    """Remove temporary files of writers that were killed: those that are not locked."""
    for path in folder.glob(f".*{ENDING}"):
        if path.is_symlink() or not path.is_file() or path.name.endswith(f".lock{ENDING}"):
            continue
        try:
            handle = os.open(path, os.O_RDWR | BINARY)
        except OSError:  # gone, or not ours
            continue
        try:
            if try_lock(handle):
                path.unlink(missing_ok=True)
                log.warning("note: removed %s, left by a command that was killed", path)
        except OSError:
            continue
        finally:
            os.close(handle)


def try_lock(handle: int) -> bool:
    """Lock an open file unless another process holds its lock; closing it ends the lock."""
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            import msvcrt

            os.lseek(handle, 1 << 30, os.SEEK_SET)  # a byte that is never read
            try:
                msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            finally:
                os.lseek(handle, 0, os.SEEK_SET)
    except OSError:
        return False
    return True


def flush_folder(folder: Path) -> None:
    """Make renames in a folder durable."""
    if os.name == "posix":  # elsewhere a folder cannot be opened, and a rename is durable
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def umask() -> int:
    """Return the permission bits that new files of this process lack."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
