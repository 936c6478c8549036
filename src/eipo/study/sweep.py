"""Many runs on Ray: one task a run, in a process of its own, on this machine or on a cluster."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..compute import available_cores
from ..config import Config
from ..display import duration
from ..errors import EipoError
from .plan import Planned, progress, refuse_another

RETRIES = 3  # of a run whose worker has died
POLL = 0.5  # seconds
GRACE = 20.0  # seconds that runs have to close their files when the sweep is stopped
STORE = 80 * 2**20  # bytes of Ray's object store, through which only configurations go


def perform(config: Config, out: Path, driver: dict[str, Any]) -> float:
    """What a worker does: the whole run. Returns the seconds that it took."""
    began = time.monotonic()
    with contextlib.suppress(OSError):  # on another machine the directory may not be there
        os.chdir(driver["cwd"])
    sys.argv = driver["argv"]  # which the run's config.json names
    if "" not in sys.path:
        sys.path.append("")  # a user's own module:Name-v0, beside which the command runs
    from ..checkpoint import Checkpoints
    from ..resuming import resume
    from ..training import train_config

    error = out.with_name(f"{out.name}.error.txt")
    error.unlink(missing_ok=True)
    try:
        if Checkpoints(out, 1).all():  # stopped before, or left by a worker that died
            resume(out, settings={"compute.threads": config.compute.threads})
        else:
            if out.exists():
                shutil.rmtree(out)  # it had not come as far as its first checkpoint
            train_config(config, out)
    except Exception:
        out.parent.mkdir(parents=True, exist_ok=True)
        error.write_text(traceback.format_exc())
        raise
    return time.monotonic() - began


@contextmanager
def alone(out: Path) -> Iterator[None]:
    """Two sweeps in one directory would work on the same runs."""
    out.mkdir(parents=True, exist_ok=True)
    with open(out / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as e:
            raise EipoError(f"another sweep is writing to {out}; `--status` says how far it is") from e
        yield


def load_ray() -> Any:
    """Ray, with nothing of it that calls home, opens a port to the world or writes to the terminal."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        import ray
    except ImportError as e:
        raise EipoError("eipo sweep needs Ray: pip install 'eipo[ray]'") from e
    return ray


@contextmanager
def engine(address: str | None) -> Iterator[Any]:
    """Ray: one of our own on this machine, gone when we are; or a cluster's at an address."""
    ray = load_ray()
    stop = signal.getsignal(signal.SIGTERM)
    try:
        if address is None:
            ray.init(
                num_cpus=available_cores(), num_gpus=None, include_dashboard=False, log_to_driver=False,
                logging_level="error", object_store_memory=STORE, _node_ip_address="127.0.0.1",
            )  # fmt: skip
        else:
            ray.init(address=address, log_to_driver=False, logging_level="error")
    except (ConnectionError, RuntimeError, ValueError) as e:
        raise EipoError(f"Ray does not start{f' at {address}' if address else ''}: {str(e).splitlines()[0]}") from e
    try:
        with contextlib.suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGTERM, stop)  # Ray has taken it
        yield ray
    finally:
        ray.shutdown()


def share(ray: Any, jobs: int, runs: int) -> int:
    """Threads of each run: its share of the cores, of which no run can have more than one machine has."""
    cores = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    side_by_side = max(1, min(jobs or sum(cores), runs))
    return max(1, min(sum(cores) // side_by_side, max(cores)))


def sweep(
    runs: Sequence[Planned],
    out: Path,
    address: str | None = None,
    jobs: int = 0,
    gpus: float = 0.0,
    say: Callable[[str], None] = print,
) -> int:
    """Train what is not complete; the number of runs that failed."""
    with alone(out):
        for run in runs:
            refuse_another(run)
        missing = [run for run in runs if progress(run) < 1.0]
        say(f"{len(runs)} runs, {len(runs) - len(missing)} of them complete; kept in {out}")
        if not missing:
            return 0
        with engine(address) as ray:
            threads = share(ray, jobs, len(missing))
            say(f"{threads} thread{'s' if threads > 1 else ''} a run")
            return _follow(ray, _submit(ray, missing, threads, gpus), len(missing), jobs or len(missing), say)


def _submit(ray: Any, missing: Sequence[Planned], threads: int, gpus: float) -> Iterator[tuple[Any, Planned]]:
    """Start runs as they are asked for. Each has a worker of its own (max_calls), so that nothing is left of the one
    before; Ray starts it again if the worker dies, which costs no run but its own."""
    task = ray.remote(max_calls=1, max_retries=RETRIES)(perform)
    driver = {"cwd": os.getcwd(), "argv": list(sys.argv)}
    for run in missing:
        compute = dataclasses.replace(run.config.compute, threads=threads)
        config = dataclasses.replace(run.config, compute=compute)
        options = {"num_cpus": threads, "num_gpus": gpus, "name": run.name}
        yield task.options(**options).remote(config, run.out.absolute(), driver), run


def _follow(
    ray: Any, submitted: Iterator[tuple[Any, Planned]], total: int, at_once: int, say: Callable[[str], None]
) -> int:
    """Wait for all runs; a line for each. One that fails does not stop the others."""
    running: dict[Any, Planned] = {}
    failed = ended = 0
    try:
        while True:
            while len(running) < at_once and (one := next(submitted, None)) is not None:
                running[one[0]] = one[1]
            if not running:
                return failed
            for ref in ray.wait(list(running), timeout=POLL)[0]:
                run = running.pop(ref)
                ended += 1
                error, seconds = _result(ray, ref)
                failed += error is not None
                say(f"{ended}/{total} {run.name}: {duration(seconds) if error is None else f'failed: {error}'}")
    except BaseException:
        _stop(ray, list(running))
        raise


def _result(ray: Any, ref: Any) -> tuple[str | None, float]:
    """Why a run has failed, if it has; and how long it took."""
    try:
        return None, ray.get(ref)
    except ray.exceptions.RayTaskError as e:
        cause = e.cause if isinstance(e.cause, Exception) else e
        text = str(cause).strip() or repr(cause)
        return (text if isinstance(cause, EipoError) else f"{type(cause).__name__}: {text}").splitlines()[0], 0.0
    except ray.exceptions.RayError as e:
        return f"its worker died {RETRIES + 1} times ({type(e).__name__})", 0.0


def _stop(ray: Any, running: list[Any]) -> None:
    """Take back what waits, interrupt what runs, and let it close its files."""
    for ref in reversed(running):  # what waits first, lest it begins
        ray.cancel(ref)
    if running:
        ray.wait(running, num_returns=len(running), timeout=GRACE)
