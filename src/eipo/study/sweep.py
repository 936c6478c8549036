"""Many runs on Ray: one task a run, in a process of its own, on this machine or on a cluster."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import itertools
import os
import shutil
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..compute import available_cores
from ..config import Config
from ..display import duration
from ..errors import EipoError
from ..files import held
from .plan import Planned, progress, refuse_another

RETRIES = 3  # of a run whose worker has died; of a Ray of our own that has died
POLL = 0.5  # seconds
GRACE = 20.0  # seconds that runs have to close their files when the sweep is stopped, or their Ray is gone
STORE = 80 * 2**20  # bytes of Ray's object store, through which only configurations go


def perform(config: Config, out: Path, driver: dict[str, Any]) -> float:
    """What a worker does: the whole run. Returns the seconds that it took."""
    began = time.monotonic()
    with contextlib.suppress(OSError):  # on another machine the directory may not be there
        os.chdir(driver["cwd"])
    sys.argv = driver["argv"]  # which the run's config.json names
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A script's background jobs ignore it, so the workers of a Ray that was started as one (Slurm) do, and with it
        # ray.cancel, by which a sweep stops its runs.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if "" not in sys.path:
        sys.path.append("")  # a user's own module:Name-v0, beside which the command runs
    from ..checkpoint import Checkpoints
    from ..resuming import resume
    from ..training import train_config

    error = out.with_name(f"{out.name}.error.txt")
    error.unlink(missing_ok=True)
    try:
        wait_for_predecessor(out)
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


def wait_for_predecessor(out: Path) -> None:
    """A worker that has lost its Ray writes on for a moment."""
    end = time.monotonic() + GRACE
    while out.exists():
        try:
            with held(out):
                return
        except EipoError:
            if time.monotonic() > end:
                raise
        time.sleep(POLL)


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
    """Ray, with nothing of it that calls home or writes to the terminal."""
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
    except Exception as e:  # Ray has no class of its own for it; on a machine that is very busy it gives up
        ray.shutdown()
        why = (str(e).strip() or repr(e)).splitlines()[0]
        if address is None:
            raise EipoError(f"Ray does not start: {why}") from e
        token = "" if os.environ.get("RAY_AUTH_MODE") else "; if the cluster has a token, set RAY_AUTH_MODE=token"
        raise EipoError(f"Ray does not start at {address}: {why}{token}") from e
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
        sweeping = _Sweeping(missing, jobs or len(missing), gpus, say)
        for left in itertools.count(RETRIES, -1):
            with engine(address) as ray:
                try:
                    return sweeping.go_on(ray, share(ray, jobs, len(sweeping.waiting)))
                except _Lost:
                    if address is not None or not left:
                        raise EipoError("Ray has died; the same command goes on from the last checkpoints") from None
            say("Ray has died; it is started again, and runs go on from their last checkpoints")
    raise AssertionError("unreachable")  # the loop has no end


class _Lost(Exception):
    """No machine of Ray's is alive, so no run ever ends."""


class _Sweeping:
    """What waits, and what runs. Whether a run whose worker has died goes on is decided here: not by Ray, which says
    nothing of it, and whose retry did once not come."""

    def __init__(self, missing: Sequence[Planned], at_once: int, gpus: float, say: Callable[[str], None]) -> None:
        self.waiting = deque((run, 0) for run in missing)  # and how many workers it has lost
        self.at_once, self.gpus, self.say = at_once, gpus, say
        self.total, self.ended, self.failed = len(missing), 0, 0

    def go_on(self, ray: Any, threads: int) -> int:
        """Wait for all runs; a line for each. One that fails does not stop the others. How many have failed."""
        self.say(f"{threads} thread{'s' if threads > 1 else ''} a run")
        task = ray.remote(max_calls=1, max_retries=0)(perform)  # a worker of its own: nothing is left in it of another
        running: dict[Any, tuple[Planned, int]] = {}
        try:
            while self.waiting or running:
                while self.waiting and len(running) < self.at_once:
                    run, lost = self.waiting.popleft()
                    running[self._submit(task, run, threads)] = run, lost
                ended = ray.wait(list(running), timeout=POLL)[0]
                if not any(node["Alive"] for node in ray.nodes()):
                    self.waiting.extendleft(reversed(running.values()))
                    raise _Lost
                for ref in ended:
                    self._end(ray, ref, *running.pop(ref))
            return self.failed
        except _Lost:
            raise
        except BaseException:
            _stop(ray, list(running))
            raise

    def _submit(self, task: Any, run: Planned, threads: int) -> Any:
        config = dataclasses.replace(run.config, compute=dataclasses.replace(run.config.compute, threads=threads))
        driver = {"cwd": os.getcwd(), "argv": list(sys.argv)}
        options = {"num_cpus": threads, "num_gpus": self.gpus, "name": run.name}
        return task.options(**options).remote(config, run.out.absolute(), driver)

    def _end(self, ray: Any, ref: Any, run: Planned, lost: int) -> None:
        """A run is complete, has failed, or has lost its worker."""
        try:
            what = duration(ray.get(ref))
        except ray.exceptions.RayTaskError as e:
            self.failed += 1
            what = f"failed: {_reason(e)}"
        except ray.exceptions.RayError as e:
            if lost < RETRIES:
                self.waiting.appendleft((run, lost + 1))
                self.say(f"{run.name}: its worker died ({type(e).__name__}), another one goes on")
                return
            self.failed += 1
            what = f"failed: its worker died {lost + 1} times ({type(e).__name__})"
        self.ended += 1
        self.say(f"{self.ended}/{self.total} {run.name}: {what}")


def _reason(error: Any) -> str:
    """Why a run has failed, in a line."""
    cause = error.cause if isinstance(error.cause, Exception) else error
    text = str(cause).strip() or repr(cause)
    return (text if isinstance(cause, EipoError) else f"{type(cause).__name__}: {text}").splitlines()[0]


def _stop(ray: Any, running: list[Any]) -> None:
    """Take back what waits, interrupt what runs, and let it close its files."""
    for ref in reversed(running):  # what waits first, lest it begins
        ray.cancel(ref)
    if running:
        ray.wait(running, num_returns=len(running), timeout=GRACE)
