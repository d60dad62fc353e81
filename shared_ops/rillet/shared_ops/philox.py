"""Philox4x32-10, the counter-based generator (Salmon et al. 2011): random numbers as a function of (key, counter).

Nothing is remembered between calls, so no operation can disturb another's numbers, and resuming at a step continues the
same stream. shared_ops/native/philox.h is the same in C++.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = 0xFFFFFFFF
_MASK64 = (1 << 64) - 1


def philox(counter: tuple[Any, Any, Any, Any], key: tuple[int, int]) -> tuple[Any, Any, Any, Any]:
    """Four words of 32 random bits for each counter.

    counter: four uint64 arrays (of one shape) that hold 32-bit words. key: two 32-bit words.
    """
    c0, c1, c2, c3 = counter
    for turn in range(10):
        k0, k1 = ((k + turn * w) & _LOW for k, w in zip(key, _WEYL))
        p0, p1 = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & _LOW, (p0 >> 32) ^ c3 ^ k1, p0 & _LOW
    return c0, c1, c2, c3


def key_of(seed: int, stream: int) -> tuple[int, int]:
    """The key of an operation's numbers. The seed is scrambled (splitmix64): neighbouring seeds share nothing."""
    z = (seed + 0x9E3779B97F4A7C15) & _MASK64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK64
    z ^= z >> 31
    z ^= stream & _MASK64
    return z & _LOW, z >> 32


def random_bits(xp: Any, count: int, seed: int, stream: int, step: int, attempt: int = 0) -> Any:
    """`count` words of 32 random bits (uint32): element i is word i mod 4 of block i div 4.

    attempt: another draw for the same elements. The counter is (block, attempt, step).
    """
    block = xp.arange((count + 3) // 4, dtype=np.uint64)
    step &= _MASK64
    high = (block >> np.uint64(32)) + np.uint64(attempt << 24)  # blocks stay below 2^56

    def word(value: int) -> Any:
        return xp.full(block.shape, value, np.uint64)

    counter = (block & np.uint64(_LOW), high, word(step & _LOW), word(step >> 32))
    words = philox(counter, key_of(seed, stream))
    return xp.stack(words, axis=-1).reshape(-1)[:count].astype(np.uint32)


def uniform(xp: Any, bits: Any) -> Any:
    """float32 in [0, 1) from the upper 24 bits: every value is exact, and 1 cannot occur."""
    return (bits >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def normal(xp: Any, bits: Any) -> Any:
    """Standard normal float32 by Box and Muller: words 2p and 2p + 1 give elements 2p and 2p + 1; an even number."""
    pairs = (bits >> np.uint32(8)).reshape(-1, 2).astype(np.float64)
    radius = xp.sqrt(-2 * xp.log((pairs[:, 0] + 1) * 2.0**-24))  # of (0, 1]: the logarithm is finite
    angle = pairs[:, 1] * (2 * np.pi * 2.0**-24)
    return xp.stack([radius * xp.cos(angle), radius * xp.sin(angle)], axis=-1).reshape(-1).astype(np.float32)
