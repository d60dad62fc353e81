"""Learning rates as functions of the step tensor: `Adam(cosine(1e-3, total=1000, warmup=100))`.

The step counts finished updates, so the first update sees 0. A schedule is part of the graph; a resumed run goes on
where it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from rillet.train.graph import GraphError
from rillet.train.tensor import Tensor

Schedule = Callable[[Tensor], Tensor]


def _as_float(step: Tensor) -> Any:
    return step.graph.emit("Cast", step, dtype="f32")


def exponential(rate: float, decay: float, every: float, staircase: bool = False) -> Schedule:
    """rate * decay ** (step / every); with `staircase` the exponent is rounded down."""

    def schedule(step: Tensor) -> Tensor:
        emit, t = step.graph.emit, _as_float(step) / float(every)
        power = emit("Floor", t) if staircase else t
        decayed: Tensor = emit("Exp", power * math.log(decay)) * rate
        return decayed

    return schedule


def cosine(rate: float, total: int, warmup: int = 0, final: float = 0.0) -> Schedule:
    """From `rate` down to `final` in half a cosine over the steps after `warmup`, which ends at step `total`.

    During the warm-up the rate rises linearly: rate * (step + 1) / warmup.
    """
    if not 0 <= warmup < total:
        raise GraphError(f"cosine schedule: warmup must lie in [0, total); got {warmup} and {total}.")

    def schedule(step: Tensor) -> Tensor:
        emit, t = step.graph.emit, _as_float(step)
        done = emit("Minimum", (t - float(warmup)) / float(total - warmup), 1.0)
        falling = (emit("Cos", done * math.pi) + 1.0) * (0.5 * (rate - final)) + final
        return _warmed_up(t, falling, rate, warmup)

    return schedule


def linear_warmup(rate: float, warmup: int) -> Schedule:
    """rate * (step + 1) / warmup for the first `warmup` steps, then `rate`."""

    def schedule(step: Tensor) -> Tensor:
        return _warmed_up(_as_float(step), step.graph.constant(np.float32(rate)), rate, warmup)

    return schedule


def _warmed_up(t: Any, after: Any, rate: float, warmup: int) -> Tensor:
    if warmup == 0:
        return after
    emit = t.graph.emit
    chosen: Tensor = emit("Select", t < float(warmup), (t + 1.0) * (rate / warmup), after)
    return chosen
