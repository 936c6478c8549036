"""Files that are whole or not there: written aside, flushed to the disk, renamed; and one process to a directory."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

from .errors import EipoError

try:
    import fcntl
except ImportError:  # not on this system: two processes on one directory are then not told apart
    fcntl = None  # type: ignore[assignment]

_held: set[int] = set()  # descriptors that hold a lock


def write_flushed(path: Path, data: bytes) -> None:
    """Write a new file, and wait until the disk has it."""
    with open(path, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def flush_directory(path: Path) -> None:
    """Wait until the disk has the names in a directory."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace(path: Path, data: bytes) -> None:
    """Put `data` in the place of a file: whoever reads it, now or after a crash, sees the old or the new, whole."""
    aside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write_flushed(aside, data)
        os.replace(aside, path)
    except BaseException:
        with contextlib.suppress(OSError):
            aside.unlink()
        raise
    flush_directory(path.parent)


@contextlib.contextmanager
def held(directory: Path) -> Iterator[None]:
    """Keep other processes from writing to this run. The kernel lets go when the process ends, however it does."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as e:
            if e.errno in (errno.EWOULDBLOCK, errno.EACCES):
                raise EipoError(f"{directory}: another process is writing to this run; wait for it, or stop it") from e
            # A file system without locks (some network mounts): nothing can be told, and nothing is broken.
        _held.add(descriptor)
        yield
    finally:
        _held.discard(descriptor)
        os.close(descriptor)


def _let_go() -> None:
    """In a forked child: the lock is its parent's, and must not outlive it."""
    for descriptor in _held:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
