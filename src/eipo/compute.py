"""Threads and memory of a run on this machine."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from . import parallel
from .config import Compute
from .encoders import Layers
from .errors import EipoError

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_MAX = -1, -2, -4  # glibc's malloc.h


def prepare(config: Compute) -> int:
    """Set torch's threads, keep freed memory, and return how many pieces a minibatch is worked on in.

    With pieces (`shards`) every torch operation runs on one thread: the pieces are what runs side by side.
    """
    threads = config.threads or available_cores()
    shards = min(config.shards, threads) if device_of(config).type == "cpu" else 1
    torch.set_num_threads(1 if shards > 1 else threads)
    keep_freed_memory()
    return shards


def device_of(config: Compute) -> torch.device:
    """Where the networks live; `auto` takes a CUDA device where there is one."""
    if config.device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if config.device == "cuda" and not torch.cuda.is_available():
        raise EipoError("compute.device=cuda: torch sees no CUDA device here; use compute.device=cpu")
    return torch.device(config.device)


def precision_of(config: Compute) -> str:
    """fp32 or bf16; `auto` takes bf16 where the device multiplies it in hardware."""
    if config.precision != "auto":
        return config.precision
    if device_of(config).type == "cuda":
        return "bf16" if torch.cuda.is_bf16_supported(including_emulation=False) else "fp32"
    return "bf16" if cpu_has_bf16() else "fp32"


def cpu_has_bf16() -> bool:
    """Whether the processor has bf16 products (AVX-512 BF16, or AMX); emulated ones are slower than fp32."""
    if not hasattr(torch.cpu, "get_capabilities"):  # before torch 2.13
        return torch.cpu._is_avx512_bf16_supported()
    has = torch.cpu.get_capabilities()
    return bool(has.get("avx512_bf16") or has.get("amx_bf16") or has.get("bf16"))


def to_device(array: np.ndarray, device: torch.device) -> Tensor:
    """A copy of an array as a tensor: the environment may write into its own again."""
    if device.type == "cuda":
        return torch.from_numpy(array).pin_memory().to(device, non_blocking=True)
    return torch.from_numpy(array.copy())


def compile_networks(modules: Iterable[Any], device: torch.device) -> None:
    """Have torch compile what is read most: each module's networks, in place, so that their weights keep their names.

    Batches come in many sizes (the distinct frames of a minibatch), so sizes are left open.
    """
    try:
        torch.compile(_something)(torch.zeros(2, device=device))
    except Exception as e:  # whatever the compilers of this machine come up with
        why = str(e).strip().splitlines()[0] if str(e).strip() else type(e).__name__
        raise EipoError(
            f"compute.compile=true: torch.compile does not work here ({why}); install a C++ compiler (g++), or leave it"
        ) from e
    for module in modules:
        for network in module.children():
            if isinstance(network, Layers):
                network.compile(dynamic=True)


def _something(x: Tensor) -> Tensor:
    """The least that has to be compiled."""
    return x.sin() + 1.0


def available_cores() -> int:
    """Cores that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // parallel.on_this_machine())


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
