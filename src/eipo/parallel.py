"""One run on many processes (torchrun): what they tell each other. Alone, every function gives back what it is given.

Each process acts in an equal block of the environments and keeps the frames of its own. What is small, the streams of
rewards, values and advantages (T, N), every process has whole, so that the method, the scales and the normalization of
advantages know nothing of processes. Minibatches and noise are drawn for all environments by generators in the same
state; each process takes what is its own, and gradients are added up. So, up to rounding, many processes compute what
one would.

Shapes: N environments of the run, n of this process.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from .errors import EipoError

if TYPE_CHECKING:
    from .config import Config, Envs
    from .core.moments import RunningMoments
    from .rollout import Rollout

BONUSES = ("rnd", "none")  # whose state every process can keep the same


def start() -> None:
    """Join the processes that torchrun has started; without it, nothing."""
    if dist.is_available() and dist.is_torchelastic_launched() and not dist.is_initialized():
        if torch.cuda.is_available():
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")


@contextlib.contextmanager
def with_others() -> Iterator[None]:
    """Where a process waits for the others. If one has ended it waits in vain: that one says why, and torchrun too."""
    try:
        yield
    except RuntimeError as e:
        raise EipoError(f"process {rank()} has lost another process of the run: {str(e).splitlines()[0][:200]}") from e


def size() -> int:
    """Processes of the run."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """Which of them this is; process 0 keeps and shows the run."""
    return dist.get_rank() if size() > 1 else 0


def on_this_machine() -> int:
    """Processes that share its cores."""
    return int(os.environ["LOCAL_WORLD_SIZE"]) if size() > 1 else 1


def refuse(config: Config) -> None:
    """Refuse what cannot be split."""
    if size() > 1 and config.envs.num % size():
        raise EipoError(f"envs.num={config.envs.num} cannot be split evenly over {size()} processes")
    if size() > 1 and config.bonus.name not in BONUSES:
        raise EipoError(f"bonus.name={config.bonus.name} runs in one process only; on many: {', '.join(BONUSES)}")


def mine(n: int) -> slice:
    """This process's block of n environments."""
    each = n // size()
    return slice(rank() * each, (rank() + 1) * each)


def here(envs: Envs) -> Envs:
    """What this process makes of the run's environments."""
    return dataclasses.replace(envs, num=envs.num // size())


def columns(x: Tensor) -> Tensor:
    """(T, N, ...) -> (T, n, ...)."""
    return x if size() == 1 else x[:, mine(x.shape[1])]


def blocks_here(blocks: Sequence[tuple[str, slice]], n: int) -> list[tuple[str, slice]]:
    """Blocks of n environments, as far as they are this process's."""
    own = mine(n)
    cut = [(p, slice(max(b.start, own.start) - own.start, min(b.stop, own.stop) - own.start)) for p, b in blocks]
    return [(p, b) for p, b in cut if b.start < b.stop]


def rows_here(index: Tensor, n: int) -> Tensor:
    """Of row numbers of (T, N), those of this process, as row numbers of (T, n)."""
    if size() == 1:
        return index
    t, env = index // (n * size()), index % (n * size())
    own = env // n == rank()
    return t[own] * n + env[own] % n


def whole(x: Tensor) -> Tensor:
    """(T, n, ...) of each process -> (T, N, ...)."""
    if size() == 1:
        return x
    sent = x.to(torch.uint8) if x.dtype == torch.bool else x
    parts = [torch.empty_like(sent, memory_format=torch.contiguous_format) for _ in range(size())]
    with with_others():
        dist.all_gather(parts, sent.contiguous())
    return torch.cat(parts, dim=1).to(x.dtype)


def everyone(items: Sequence[Any]) -> list[Any]:
    """The items of all processes, in their order."""
    if size() == 1:
        return list(items)
    lists: list[Any] = [None] * size()
    with with_others():
        dist.all_gather_object(lists, list(items))
    return [item for one in lists for item in one]


def together(rollout: Rollout) -> Rollout:
    """A rollout with the streams of all environments. Frames, actions and memories stay those of this process."""
    if size() == 1:
        return rollout
    cells = rollout.cells
    return dataclasses.replace(
        rollout,
        acted=tuple(everyone(rollout.acted)),
        own={p: whole(x) for p, x in rollout.own.items()},
        log_prob=whole(rollout.log_prob),
        reward=whole(rollout.reward),
        terminated=whole(rollout.terminated),
        done=whole(rollout.done),
        value={c: whole(x) for c, x in rollout.value.items()},
        next_value={c: whole(x) for c, x in rollout.next_value.items()},
        beyond={c: whole(x[None])[0] for c, x in rollout.beyond.items()},
        episodes=everyone(rollout.episodes),
        cells=None if cells is None else np.concatenate(everyone([cells]), axis=1),
    )


def added_up(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Each tensor, summed over processes, in one message."""
    if size() == 1:
        return list(tensors)
    flat = torch.cat([x.flatten() for x in tensors])
    with with_others():
        dist.all_reduce(flat)
    return [part.reshape(x.shape) for part, x in zip(flat.split([x.numel() for x in tensors]), tensors, strict=True)]


def add_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Sum the gradients that parameters have over processes."""
    if size() > 1:
        learned = [p for p in parameters if p.requires_grad]
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in learned]
        for p, gradient in zip(learned, added_up(gradients), strict=True):
            p.grad = gradient


def total(number: int, device: torch.device) -> int:
    """A whole number, summed over processes."""
    return number if size() == 1 else int(added_up([torch.tensor([number], device=device)])[0])


def pooled(moments: RunningMoments) -> RunningMoments:
    """The moments of what all processes have seen, from those of each."""
    if size() == 1:
        return moments
    result = type(moments)(tuple(moments.mean.shape))
    for one in everyone([copy.deepcopy(moments).to("cpu")]):
        result.merge(one)
    return result.to(moments.mean.device)


def means(logs: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """By key, the mean over the minibatches that have it; what a process has of a minibatch is its share of a sum."""
    keys = list(dict.fromkeys(k for log in sorted(logs, key=len, reverse=True) for k in log))
    if size() == 1:
        return {k: torch.stack([log[k] for log in logs if k in log]).mean() for k in keys}
    # A process may have had nothing of a minibatch of which another had something.
    nothing = torch.zeros((), device=next(iter(logs[0].values())).device)
    sums = added_up([torch.stack([log.get(k, nothing) for log in logs]).sum() for k in sorted(keys)])
    has = torch.tensor([[float(k in log) for log in logs] for k in sorted(keys)], device=nothing.device)
    with with_others():
        dist.all_reduce(has, dist.ReduceOp.MAX)
    mean = {k: s / n for k, s, n in zip(sorted(keys), sums, has.sum(1), strict=True)}
    return {k: mean[k] for k in keys}
