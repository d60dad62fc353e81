"""Initial values of variables: a function of (shape, seed, stream), so that no other variable can change them.

Random ones come from the engine's counter-based generator, keyed by the graph's seed and the variable's name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rillet.shared_ops import eager
from rillet.shared_ops.types import Array

# (shape, seed, stream) -> float32 array
Initializer = Callable[[tuple[int, ...], int, int], Array]


def zeros(shape: tuple[int, ...], seed: int, stream: int) -> Array:
    return np.zeros(shape, np.float32)


def ones(shape: tuple[int, ...], seed: int, stream: int) -> Array:
    return np.ones(shape, np.float32)


def constant(value: Any) -> Initializer:
    """The same value everywhere (or an array of the variable's shape)."""
    return lambda shape, seed, stream: np.broadcast_to(np.asarray(value), shape).copy()


def fans(shape: Sequence[int]) -> tuple[int, int]:
    """(fan in, fan out): the last two axes are channels in and out, the ones before are filter taps.

    >>> fans((3, 3, 16, 32))
    (144, 288)
    """
    if len(shape) < 2:
        return (int(shape[0]), int(shape[0])) if shape else (1, 1)
    taps = math.prod(shape[:-2])
    return taps * shape[-2], taps * shape[-1]


def uniform(low: float = -0.05, high: float = 0.05) -> Initializer:
    """Uniform in [low, high)."""

    def initialize(shape: tuple[int, ...], seed: int, stream: int) -> Array:
        unit = _draw("RandomUniform", shape, seed, stream)
        return unit * np.float32(high - low) + np.float32(low)

    return initialize


def normal(stddev: float = 0.05, mean: float = 0.0) -> Initializer:
    """Normal with this mean and standard deviation."""
    return lambda shape, seed, stream: (
        _draw("RandomNormal", shape, seed, stream) * np.float32(stddev) + np.float32(mean)
    )


# The standard deviation of a standard normal cut at two standard deviations.
_TRUNCATED_STDDEV = 0.87962566103423978


def truncated_normal(stddev: float = 0.05) -> Initializer:
    """Normal, cut at two of the uncut distribution's deviations, then scaled so that `stddev` is the true deviation."""
    factor = np.float32(stddev / _TRUNCATED_STDDEV)
    return lambda shape, seed, stream: _draw("TruncatedNormal", shape, seed, stream) * factor


def glorot_uniform(shape: tuple[int, ...], seed: int, stream: int) -> Array:
    """Uniform with limit sqrt(6 / (fan in + fan out)) (Glorot and Bengio 2010)."""
    limit = math.sqrt(6.0 / sum(fans(shape)))
    return uniform(-limit, limit)(shape, seed, stream)


def he_normal(shape: tuple[int, ...], seed: int, stream: int) -> Array:
    """Truncated normal of standard deviation sqrt(2 / fan in) (He et al. 2015)."""
    return truncated_normal(math.sqrt(2.0 / fans(shape)[0]))(shape, seed, stream)


def lecun_normal(shape: tuple[int, ...], seed: int, stream: int) -> Array:
    """Truncated normal of standard deviation sqrt(1 / fan in)."""
    return truncated_normal(math.sqrt(1.0 / fans(shape)[0]))(shape, seed, stream)


def _draw(op: str, shape: tuple[int, ...], seed: int, stream: int) -> Array:
    sizes = np.asarray(shape, np.int64).reshape(len(shape))
    return np.asarray(eager.apply(op, sizes, np.int64(0), seed=seed, stream=stream))
