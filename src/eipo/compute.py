"""Threads and memory of a run on this machine."""

from __future__ import annotations

import ctypes
import os

import torch

from .config import Compute

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # glibc's malloc.h


def prepare(config: Compute) -> int:
    """Set torch's threads, keep freed memory, and return how many pieces a minibatch is worked on in.

    With pieces (`shards`) every torch operation runs on one thread: the pieces are what runs side by side.
    """
    threads = config.threads or available_cores()
    shards = min(config.shards, threads)
    torch.set_num_threads(1 if shards > 1 else threads)
    keep_freed_memory()
    return shards


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def keep_freed_memory() -> None:
    """Tell glibc to hand large freed blocks out again rather than back to the kernel (nothing happens elsewhere).

    Every iteration asks for the same buffers of megabytes; mapping them anew costs a page fault for each 4 KiB, a
    fifth of the run's time on the maze (docs/performance.md).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if os.name == "posix" else None
    if mallopt is not None:
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
        mallopt(M_TOP_PAD, 64 * 2**20)
