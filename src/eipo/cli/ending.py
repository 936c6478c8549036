"""How a command ends when it is told to from outside."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

PATIENCE = 5.0  # seconds that the second signal leaves for files to be closed


class Stopped(BaseException):
    """The run was stopped from outside; says what is kept."""

    def __init__(self, stop: KeyboardInterrupt, message: str) -> None:
        super().__init__(message)
        self.code = exit_code(stop)


class Terminated(KeyboardInterrupt):
    """SIGTERM, taken as Ctrl-C is."""


_terminated = False  # Ray puts a KeyboardInterrupt of its own in the place of ours


def exit_code(stop: KeyboardInterrupt) -> int:
    """128 + signal, as shells have it."""
    return 128 + (signal.SIGTERM if _terminated or isinstance(stop, Terminated) else signal.SIGINT)


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM ends a run as Ctrl-C does: files closed, terminal clean. A second signal ends it even where it hangs."""

    def stop(number: int, frame: FrameType | None) -> None:
        global _terminated
        _terminated = True
        raise Terminated

    global _terminated
    _terminated = False
    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # not the main thread: whoever called from Python keeps the signals
        yield
        return
    try:
        with last_resort():
            yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def last_resort() -> Iterator[None]:
    """A thread that sees signals while the main one hangs in a library, where Python's handlers never run."""
    read, write = os.pipe()
    os.set_blocking(write, False)
    over = threading.Event()

    def watch() -> None:
        came = 0
        while numbers := os.read(read, 64):
            for number in numbers:
                came += number in (signal.SIGINT, signal.SIGTERM)
                if came == 2 and not over.wait(PATIENCE):
                    os._exit(128 + number)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    earlier = signal.set_wakeup_fd(write)
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(earlier)
        os.close(write)
        thread.join()
        os.close(read)


def _forget() -> None:
    """In a forked child: what reaches it is not for its parent to count."""
    signal.set_wakeup_fd(-1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
