"""Numbers in the info of a batch's step, as Gymnasium's vector environments lay it out."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import EipoError


def numbers(info: dict[str, Any], key: str, over: np.ndarray, where: str) -> np.ndarray:
    """What each environment's step says under `key`, (N,). Of an episode's last step it lies in final_info; what info
    itself holds of that environment belongs to the reset behind it."""
    values = np.full(len(over), np.nan)
    final = info.get("final_info") if over.any() else None
    _put(values, info, key, ~over if final is not None else np.ones_like(over), where)
    if final is not None:
        _put(values, final, key, over, where)
    if not np.isfinite(values).all():
        i = int(np.flatnonzero(~np.isfinite(values))[0])
        raise EipoError(f"info:{key}: NaN or infinity from environment {i} of {where}")
    return values


def _put(values: np.ndarray, info: dict[str, Any], key: str, which: np.ndarray, where: str) -> None:
    """The numbers of some environments, into `values`; every one of them must have it."""
    if not which.any():
        return
    there = info.get(f"_{key}", np.ones_like(which)) if key in info else np.zeros_like(which)
    missing = np.flatnonzero(which & ~there)
    if len(missing):
        keys = sorted(k for k in info if not k.startswith("_") and k not in ("final_obs", "final_info"))
        raise EipoError(
            f"info:{key}: environment {missing[0]} of {where} has no {key!r} in its step's info; it has "
            + (", ".join(keys) if keys else "nothing")
        )
    try:
        values[which] = np.asarray(info[key])[which].astype(np.float64)
    except (TypeError, ValueError, IndexError) as e:
        raise EipoError(f"info:{key}: not one number for each environment of {where}: {e}") from e
