"""SIGINT and SIGTERM: when they take effect, so that what is on the disk is always something to go on from."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

BOTH = (signal.SIGINT, signal.SIGTERM)
SAY = b"\neipo: stops and saves after this iteration; once more: at once, from the last checkpoint\n"


def deliver(number: int) -> None:
    """What a signal does here and now. Not by raising it again: who counts signals would count it twice."""
    handler = signal.getsignal(number)
    if callable(handler):
        handler(number, None)
    else:
        signal.raise_signal(number)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Both wait until the block is over. In the middle of it they would leave half a line in a file, or the lock of
    TensorBoard's writer taken, on which its close() waits forever."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {s: signal.signal(s, lambda number, frame: came.append(number)) for s in BOTH}
    try:
        yield
    finally:
        for s, handler in before.items():
            signal.signal(s, handler)
        for number in came:
            deliver(number)


class Stop:
    """The first one is noted, for the loop to end at a place from which it can go on exactly. The second has its usual
    effect at once."""

    def __init__(self) -> None:
        self.asked: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            for number in BOTH:
                if signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                    self._before[number] = signal.signal(number, self._came)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _came(self, number: int, frame: FrameType | None) -> None:
        if self.asked is not None:
            self.leave()
        self.asked = number
        with contextlib.suppress(OSError):
            os.write(2, SAY)  # not print: the signal may have come in the middle of one

    def leave(self) -> None:
        """Let the signal do what it does without this class."""
        self.__exit__()
        if self.asked is not None:
            deliver(self.asked)
