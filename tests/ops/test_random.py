"""The generator against its published vectors, and what the distributions promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rillet.shared_ops import functions as ops
from rillet.shared_ops import philox

# Known answers published with Random123 (kat_vectors, philox4x32 with 10 rounds): counter, key, result.
KNOWN = [
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize("counter,key,result", KNOWN)
def test_philox_gives_the_published_numbers(counter: Any, key: Any, result: Any) -> None:
    words = philox.philox(tuple(np.array([c], np.uint64) for c in counter), key)
    assert tuple(int(w[0]) for w in words) == result


def draw(name: str, count: int, step: int = 0, **attrs: int) -> Any:
    return getattr(ops, name)(np.array([count]), np.array(step), **attrs)


def test_elements_do_not_depend_on_how_many_are_drawn() -> None:
    for name in ("random_uniform", "random_normal", "truncated_normal"):
        np.testing.assert_array_equal(draw(name, 1037)[:9], draw(name, 9))


@pytest.mark.parametrize("other", [{"step": 1}, {"step": 1 << 40}, {"seed": 1}, {"stream": 1}, {"stream": 1 << 40}])
def test_seed_stream_and_step_give_unrelated_numbers(other: dict[str, int]) -> None:
    a, b = draw("random_uniform", 20000), draw("random_uniform", 20000, **other)
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.03 and np.mean(a == b) < 1e-3


def test_uniform_fills_the_unit_interval() -> None:
    u = draw("random_uniform", 100_000, seed=3)
    assert u.min() >= 0 and u.max() < 1
    counts, _ = np.histogram(u, 50, (0, 1))
    assert ((counts - 2000) ** 2 / 2000).sum() < 100  # chi-squared of 49: beyond 100 once in 10^4


def test_normal_is_normal() -> None:
    stats = pytest.importorskip("scipy.stats")
    z = draw("random_normal", 100_000, seed=4)
    assert stats.kstest(z, "norm").pvalue > 1e-4
    assert abs(np.corrcoef(z[0::2], z[1::2])[0, 1]) < 0.02


def test_truncated_normal_is_drawn_again_not_clamped() -> None:
    stats = pytest.importorskip("scipy.stats")
    z = draw("truncated_normal", 100_000, seed=5)
    assert abs(z).max() <= 2 and np.mean(abs(z) == 2) < 1e-4
    assert stats.kstest(z, stats.truncnorm(-2, 2).cdf).pvalue > 1e-4


def test_dropout_keeps_the_expectation_and_its_own_mask() -> None:
    x = np.ones(50_000, np.float32)
    y = ops.dropout(x, np.array(7), rate=0.3, seed=1)
    assert set(np.unique(y)) == {0.0, np.float32(1 / 0.7)}
    assert abs(y.mean() - 1) < 0.02
    np.testing.assert_array_equal(y, ops.dropout(x, np.array(7), rate=0.3, seed=1))
    assert np.mean(y != ops.dropout(x, np.array(8), rate=0.3, seed=1)) > 0.3
