"""Runs the float Program over calibration data and takes the range of every float value."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track

from rillet.quant.observers import CalibrationError, Range, Watch, make_observer
from rillet.shared_ops.errors import describe
from rillet.shared_ops.program import Program, run_reference
from rillet.shared_ops.types import Array

# One array for a Program with one input, or one for each input by name; the first axis counts samples.
Samples = Array | Mapping[str, Array]
# Feeds of one batch -> every value of the Program by name.
RunAll = Callable[[dict[str, Array]], Mapping[str, Array]]


@dataclass(frozen=True)
class Calibration:
    """The range of every float value that depends on the inputs, and findings about the data."""

    ranges: dict[str, Range]
    samples: int
    findings: tuple[str, ...] = ()


def calibrate(
    program: Program,
    samples: Samples,
    observer: str = "min_max",
    batch_size: int = 32,
    run: RunAll | None = None,
) -> Calibration:
    """Ranges of all float values over the samples.

    Args:
        samples: [N, ...] an input; N samples, each of the shape that the input has behind its first axis.
        observer: "min_max", "moving_average" or "percentile".
        batch_size: samples in one run; an input with a fixed first dimension sets it.
        run: computes every value of the Program from feeds; the default is the references.

    Raises CalibrationError for wrong names, shapes or dtypes, for no samples, and for NaN or infinity anywhere.
    """
    feeds = check_samples(program, samples)
    count = next(iter(feeds.values())).shape[0]
    fixed = _fixed_batch(program)
    size = fixed or min(batch_size, count)
    if count < size:
        raise CalibrationError(describe("calibration samples", count, f"at least {size}, the model's batch"))
    run = run or (lambda batch: run_reference(program, batch, keep=True))
    watches = {
        n: Watch(n, make_observer(observer))
        for n, v in program.values.items()
        if v.type.is_float and v.constant is None
    }
    for start, batch in batches(feeds, count - count % size if fixed else count, size):
        for name, value in run(batch).items():
            if name in watches:
                watches[name].update(np.asarray(value), start)
    ranges = {n: r for n, w in watches.items() if (r := w.range()) is not None}
    findings = [f for w in watches.values() for f in w.findings()]
    unused = count % size if fixed else 0
    if unused:
        findings.append(f"the last {unused} of {count} samples were not used: the model takes {size} at a time")
    return Calibration(ranges, count - unused, tuple(findings))


def check_samples(program: Program, samples: Samples) -> dict[str, Array]:
    """The samples by input name; refuses what does not fit the Program's inputs, all in one error."""
    if not isinstance(samples, Mapping):
        if len(program.inputs) != 1:
            raise CalibrationError(
                describe("calibration data", "one array", f"a mapping with an array for each of {program.inputs}")
            )
        samples = {program.inputs[0]: samples}
    if set(samples) != set(program.inputs):
        raise CalibrationError(describe("names in the calibration data", sorted(samples), sorted(program.inputs)))
    feeds = {n: np.asarray(samples[n]) for n in program.inputs}
    for name, x in feeds.items():
        want = program.values[name].type
        fits = x.ndim == want.rank and x.ndim > 0 and all(_fits(d, w) for d, w in zip(x.shape[1:], want.shape[1:]))
        if not fits or x.dtype != want.dtype:
            shape = ["samples", *("?" if d is None else d for d in want.shape[1:])]
            expected = f"{want.dtype} [{', '.join(map(str, shape))}]"
            raise CalibrationError(
                describe(f"calibration data for input {name!r}", f"{x.dtype} {list(x.shape)}", expected)
            )
    counts = {n: x.shape[0] for n, x in feeds.items()}
    if len(set(counts.values())) != 1 or not next(iter(counts.values())):
        raise CalibrationError(describe("calibration samples an input", counts, "the same number for all, at least 1"))
    return feeds


def _fits(have: int, want: Any) -> bool:
    return not isinstance(want, int) or have == want


def _fixed_batch(program: Program) -> int | None:
    fixed = {d for n in program.inputs if isinstance(d := program.values[n].type.shape[0], int)}
    if len(fixed) > 1:
        raise CalibrationError(describe("first dimensions of the inputs", sorted(fixed), "one batch size for all"))
    return fixed.pop() if fixed else None


def batches(feeds: Mapping[str, Array], count: int, size: int) -> Iterator[tuple[int, dict[str, Array]]]:
    """(first sample, feeds) of each batch of the first `count` samples, with a progress bar on a terminal."""
    console = Console(stderr=True)
    starts = range(0, count, size)
    for start in track(starts, "calibrating", console=console, transient=True, disable=not sys.stderr.isatty()):
        yield start, {n: np.ascontiguousarray(x[start : min(start + size, count)]) for n, x in feeds.items()}
