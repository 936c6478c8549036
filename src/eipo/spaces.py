"""Gymnasium spaces as JSON, so that an agent can be loaded without its environment."""

from __future__ import annotations

from typing import Any

import gymnasium as gym
import numpy as np

from .errors import EipoError


def to_json(space: gym.Space) -> dict[str, Any]:
    """A space as plain values."""
    s = gym.spaces
    if isinstance(space, s.Box):
        return {
            "kind": "Box",
            "low": _bound(space.low),
            "high": _bound(space.high),
            "shape": list(space.shape),
            "dtype": str(space.dtype),
        }
    if isinstance(space, s.Discrete):
        return {"kind": "Discrete", "n": int(space.n), "start": int(space.start)}
    if isinstance(space, s.MultiDiscrete):
        start = {"start": space.start.tolist()} if space.start.any() else {}  # old files have none, and say it so
        return {"kind": "MultiDiscrete", "nvec": space.nvec.tolist(), **start, "dtype": str(space.dtype)}
    if isinstance(space, s.MultiBinary):
        return {"kind": "MultiBinary", "n": list(space.shape)}
    if isinstance(space, s.Dict):
        return {"kind": "Dict", "spaces": {str(key): to_json(part) for key, part in space.spaces.items()}}
    if isinstance(space, s.Tuple):
        return {"kind": "Tuple", "spaces": [to_json(part) for part in space.spaces]}
    raise EipoError(f"space {space} is not supported")


def from_json(data: dict[str, Any]) -> gym.Space:
    """The space that `to_json` described."""
    s = gym.spaces
    if data["kind"] == "Box":
        dtype: Any = np.dtype(data["dtype"])
        low, high = (
            np.broadcast_to(np.array(data[k], dtype=float), data["shape"]).astype(dtype) for k in ("low", "high")
        )
        return s.Box(low, high, dtype=dtype)
    if data["kind"] == "Discrete":
        return s.Discrete(data["n"], start=data["start"])
    if data["kind"] == "MultiDiscrete":
        start = np.array(data["start"]) if "start" in data else None
        return s.MultiDiscrete(np.array(data["nvec"]), dtype=np.dtype(data["dtype"]).type, start=start)
    if data["kind"] == "MultiBinary":
        return s.MultiBinary(data["n"])
    if data["kind"] == "Dict":
        return s.Dict({key: from_json(part) for key, part in data["spaces"].items()})
    if data["kind"] == "Tuple":
        return s.Tuple([from_json(part) for part in data["spaces"]])
    raise EipoError(f"space kind {data['kind']!r} is not known to this version")


def _bound(x: np.ndarray) -> Any:
    """One number where all are equal, else all; infinities as text, which JSON has no number for."""
    values = x.astype(float)
    flat = [v if np.isfinite(v) else str(v) for v in values.flatten().tolist()]
    if len(set(flat)) == 1:
        return flat[0]
    return np.array(flat, dtype=object).reshape(values.shape).tolist()
