"""Where the time of an iteration goes: the environments, and torch's operations by kind.

    python benchmarks/where.py [--preset atari-paper] [--env ALE/Breakout-v5] [--methods eo eipo]

Two iterations are thrown away (games begin to end), two are measured whole, and two more are looked into by torch's
profiler, which makes them slower: what it says are shares of the time that torch's operations took, brought to the
measured seconds. EIPO's stages alternate, so that both are in it.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import Any

import eipo  # isort: skip  # before torch, as in `eipo train`: it says how torch's threads wait
from torch.profiler import ProfilerActivity, profile

from eipo.training import Training

KINDS = {
    "convolutions, forward": ("mkldnn_convolution", "slow_conv"),
    "convolutions, backward": ("convolution_backward",),
    "other products": ("mm", "addmm", "bmm", "mkldnn_rnn_layer", "mkldnn_rnn_layer_backward", "dot", "addmv", "mv"),
    "copies, casts and gathers": ("copy_", "index", "cat", "index_select", "embedding", "gather", "clone", "fill_"),
    "activations": (
        "threshold_backward", "clamp_min", "relu", "leaky_relu", "leaky_relu_backward", "sigmoid_", "tanh", "tanh_",
        "tanh_backward", "_log_softmax", "_softmax",
    ),
}  # fmt: skip
OTHER = "other operations of torch"


def kind_of(operation: str) -> str:
    name = operation.removeprefix("aten::")
    return next((kind for kind, names in KINDS.items() if name in names), OTHER)


def look(env: str, preset: str, method: str) -> tuple[dict[str, float], float]:
    """Seconds of an iteration by kind, and the steps a second that it makes."""
    stages = {"method.switch": "alternate"} if method == "eipo" else {}
    config = eipo.make_config(env, preset=preset, method=method, steps=10**9, settings=stages)
    training = Training(config)
    step, in_envs = training.envs.step, 0.0

    def timed(action: Any) -> Any:
        nonlocal in_envs
        began = time.perf_counter()
        result = step(action)
        in_envs += time.perf_counter() - began
        return result

    training.envs.step = timed  # type: ignore[method-assign]
    for _ in range(2):
        training.iterate()
    in_envs, began = 0.0, time.perf_counter()
    for _ in range(2):
        training.iterate()
    whole, in_envs = (time.perf_counter() - began) / 2, in_envs / 2
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        kept = in_envs
        for _ in range(2):
            training.iterate()
    in_envs = kept
    training.close()
    spent: Counter[str] = Counter()
    for event in seen.key_averages():
        spent[kind_of(event.key)] += event.self_cpu_time_total / 2e6
    total = sum(spent.values())
    # What Python does between operations is in neither; the profiler's own work is left out by the scale.
    scale = min(1.0, (whole - in_envs) / total)
    parts = {"environments": in_envs} | {kind: spent[kind] * scale for kind in [*KINDS, OTHER]}
    parts["Python between them"] = max(0.0, whole - sum(parts.values()))
    return parts, config.steps_per_iteration / whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="ALE/Breakout-v5")
    parser.add_argument("--preset", default="atari-paper")
    parser.add_argument("--methods", nargs="+", default=["eo", "eipo"])
    args = parser.parse_args()
    for method in args.methods:
        parts, speed = look(args.env, args.preset, method)
        whole = sum(parts.values())
        print(f"{args.preset} {method}: {speed:,.0f} steps/s, an iteration takes {whole:.2f} s")
        for kind, seconds in parts.items():
            print(f"  {kind:<28}{seconds:>7.2f} s{seconds / whole:>7.0%}")


if __name__ == "__main__":
    main()
