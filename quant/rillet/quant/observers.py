"""Observers: watch one value over a calibration set and say which range int8 should cover.

Every array is checked before it counts: a NaN or an infinity is an error that names the tensor and the sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rillet.shared_ops.errors import RilletError, describe
from rillet.shared_ops.types import Array


class CalibrationError(RilletError, ValueError):
    """Calibration data, or what the model makes of it, that no range can be taken from."""


@dataclass(frozen=True)
class Range:
    """The real values that int8 should cover."""

    low: float
    high: float

    def union(self, other: Range) -> Range:
        return Range(min(self.low, other.low), max(self.high, other.high))

    @property
    def magnitude(self) -> float:
        return max(abs(self.low), abs(self.high))


class Observer(Protocol):
    """Takes arrays one at a time, then gives a range."""

    def update(self, x: Array) -> None: ...

    def range(self) -> Range: ...


class MinMax:
    """The smallest and the largest value seen."""

    def __init__(self) -> None:
        self._low, self._high = np.inf, -np.inf

    def update(self, x: Array) -> None:
        self._low = min(self._low, float(x.min()))
        self._high = max(self._high, float(x.max()))

    def range(self) -> Range:
        return Range(self._low, self._high)


class MovingAverage:
    """Exponential moving averages of each array's minimum and maximum: one odd sample moves the range little."""

    def __init__(self, momentum: float = 0.9) -> None:
        if not 0 <= momentum < 1:
            raise CalibrationError(describe("momentum of the moving average", momentum, "0 <= momentum < 1"))
        self._momentum = momentum
        self._range: Range | None = None

    def update(self, x: Array) -> None:
        low, high, m = float(x.min()), float(x.max()), self._momentum
        if self._range is None:
            self._range = Range(low, high)
        else:
            self._range = Range(m * self._range.low + (1 - m) * low, m * self._range.high + (1 - m) * high)

    def range(self) -> Range:
        assert self._range is not None
        return self._range


class Percentile:
    """The range that holds `percent` of all values, the rest split between both ends; outliers are clamped.

    Values are counted in a histogram over [-limit, limit]; where one falls outside, the limit doubles and pairs of
    bins merge, so that the counts stay exact and the memory constant.
    """

    BINS = 8192

    def __init__(self, percent: float = 99.99) -> None:
        if not 50 < percent <= 100:
            raise CalibrationError(describe("percentile", percent, "above 50, at most 100"))
        self._tail = (1 - percent / 100) / 2
        self._counts = np.zeros(self.BINS, np.int64)
        self._limit = 0.0
        self._seen = MinMax()

    def update(self, x: Array) -> None:
        self._seen.update(x)
        largest = self._seen.range().magnitude
        if self._limit == 0 and largest > 0:  # zeros so far: they lie in the middle whatever the limit is
            self._limit = largest
        while largest > self._limit:
            self._double()
        limit = self._limit or 1.0
        self._counts += np.histogram(x, self.BINS, (-limit, limit))[0]

    def _double(self) -> None:
        pairs = self._counts.reshape(-1, 2).sum(axis=1)
        quarter = self.BINS // 4
        self._counts = np.concatenate([np.zeros(quarter, np.int64), pairs, np.zeros(quarter, np.int64)])
        self._limit *= 2

    def range(self) -> Range:
        seen, limit = self._seen.range(), self._limit or 1.0
        edges = np.linspace(-limit, limit, self.BINS + 1)
        below = np.cumsum(self._counts) / self._counts.sum()
        low = float(edges[np.searchsorted(below, self._tail, side="right")])
        high = float(edges[np.searchsorted(below, 1 - self._tail, side="left") + 1])
        return Range(max(seen.low, low), min(seen.high, high))


OBSERVERS: dict[str, Callable[[], Observer]] = {
    "min_max": MinMax,
    "moving_average": MovingAverage,
    "percentile": Percentile,
}


def make_observer(name: str) -> Observer:
    """A new observer by name; refuses unknown names with the list of known ones."""
    if name not in OBSERVERS:
        raise CalibrationError(describe("observer", repr(name), f"one of {', '.join(OBSERVERS)}"))
    return OBSERVERS[name]()


def check_finite(tensor: str, x: Array, first_sample: int) -> None:
    """Refuses NaN and infinity. first_sample: the number of the calibration sample that x[0] belongs to."""
    finite = np.isfinite(x)
    if finite.all():
        return
    at = tuple(int(i) for i in np.argwhere(~finite)[0])
    sample = first_sample + (at[0] if at else 0)
    raise CalibrationError(
        describe(
            f"tensor {tensor!r}, calibration sample {sample}, element {list(at)}",
            f"{x[at]} ({int((~finite).sum())} such values)",
            "finite numbers",
            "Remove the sample, or mend the layer that produces them.",
        )
    )


class Watch:
    """One tensor's observer, with what its data tells besides the range: constant values and dead channels."""

    def __init__(self, tensor: str, observer: Observer) -> None:
        self.tensor, self._observer = tensor, observer
        self._seen = MinMax()
        self._live: Array | None = None

    def update(self, x: Array, first_sample: int) -> None:
        if x.size == 0:
            return
        check_finite(self.tensor, x, first_sample)
        self._observer.update(x)
        self._seen.update(x)
        if x.ndim >= 2:
            live = np.any(x != 0, axis=tuple(range(x.ndim - 1)))
            self._live = live if self._live is None or self._live.shape != live.shape else self._live | live

    def range(self) -> Range | None:
        """None where every array was empty."""
        return self._observer.range() if self._seen.range().low <= self._seen.range().high else None

    def findings(self) -> list[str]:
        """Sentences on what looks wrong with the data, none of which stops the export."""
        seen = self._seen.range()
        if seen.low == seen.high:
            return [f"{self.tensor} is {seen.low:g} everywhere, in every sample"]
        if self._live is None or self._live.all():
            return []
        dead = np.flatnonzero(~self._live)
        shown = ", ".join(map(str, dead[:8])) + (", ..." if dead.size > 8 else "")
        return [f"{self.tensor}: {dead.size} of {self._live.size} channels are 0 in every sample ({shown})"]
