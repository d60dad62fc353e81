"""Compares two ways of computing a model, value by value, and names the first that differs."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Union

import numpy as np

from rillet.export.metadata import ExportError
from rillet.lite.engine import Context, Model
from rillet.lite.reader import read_model
from rillet.quant.runner import run_all, run_context
from rillet.shared_ops.errors import describe
from rillet.shared_ops.program import Program, run_reference
from rillet.shared_ops.quantize import dequantize
from rillet.shared_ops.types import Array, QuantParams

# A model file (run by the engine), or a Program (the engine where it has the kernels, else the references).
Source = Union[str, os.PathLike[str], Program]
Feeds = Array | Mapping[str, Array]


@dataclass(frozen=True)
class Difference:
    """One value that differs: in how many elements, by how much at most, and where that is."""

    name: str
    operation: str
    differing: int
    size: int
    largest: float
    index: tuple[int, ...]
    first: Any
    second: Any

    def __str__(self) -> str:
        return (
            f"{self.name} ({self.operation}): {self.differing} of {self.size} elements differ, by {self.largest:.3g} "
            f"at {list(self.index)}: {self.first} and {self.second}"
        )


@dataclass(frozen=True)
class Verification:
    """differences: in the order in which the values are computed. compared: names. skipped: names in one of the two."""

    differences: tuple[Difference, ...]
    compared: tuple[str, ...]
    skipped: tuple[str, ...]

    @property
    def equal(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        if self.equal:
            return f"equal: {len(self.compared)} values, bit for bit"
        first = f"the first of {len(self.differences)} that differ (of {len(self.compared)}): {self.differences[0]}"
        return first


def verify(a: Source, b: Source | None, feeds: Feeds, tolerance: float = 0.0) -> Verification:
    """Compares every value that both compute, in the order of the second.

    Args:
        a, b: model files or Programs. b None: `a` by the references against `a` in the engine, which is exact for
            integer values; float values there are compared with a relative tolerance of 1e-5 at least.
        feeds: an array for the first input, or arrays by name.
        tolerance: largest difference allowed, relative to the largest magnitude of the value; 0 asks for equal bits.

    Raises ExportError where names of inputs or outputs differ, and ModelError for a damaged file. An int8 value is
    compared with a float one as the number it stands for.
    """
    second = _program(b if b is not None else a)
    first = _program(a)
    if first.inputs != second.inputs:
        raise ExportError(describe("inputs of the two models", first.inputs, str(second.inputs)))
    if set(first.outputs) != set(second.outputs):
        hint = "Values are compared by name."
        raise ExportError(describe("outputs of the two models", first.outputs, str(second.outputs), hint))
    arrays = _feeds(first, feeds)
    if b is None:
        left: Mapping[str, Array] = run_reference(first, arrays, keep=True)
        right = _runner(a, second)(arrays)
    else:
        left, right = _runner(a, first)(arrays), _runner(b, second)(arrays)
    return _compare(first, second, left, right, tolerance, references=b is None)


def _program(source: Source) -> Program:
    if isinstance(source, Program):
        return source
    if not Path(source).exists():
        raise ExportError(f"no such file: {os.fspath(source)}.")
    return read_model(source)


def _runner(source: Source, program: Program) -> Callable[[dict[str, Array]], Mapping[str, Array]]:
    """Runs a file as it lies on the disk, not as it was read and would be written again."""
    return run_all(program) if isinstance(source, Program) else run_context(Context(Model(source)))


def _feeds(program: Program, feeds: Feeds) -> dict[str, Array]:
    arrays = dict(feeds) if isinstance(feeds, Mapping) else {program.inputs[0]: feeds}
    if set(arrays) != set(program.inputs):
        raise ExportError(describe("inputs given", sorted(arrays), str(sorted(program.inputs))))
    for name, x in arrays.items():
        want = program.values[name].type
        if x.ndim != want.rank or any(isinstance(w, int) and w != d for d, w in zip(x.shape, want.shape)):
            raise ExportError(describe(f"input {name!r}", f"{x.dtype}{list(x.shape)}", str(want)))
        if x.dtype != want.dtype:
            raise ExportError(describe(f"input {name!r}", x.dtype, want.dtype))
    return {n: np.ascontiguousarray(x) for n, x in arrays.items()}


def _compare(
    first: Program,
    second: Program,
    left: Mapping[str, Array],
    right: Mapping[str, Array],
    tolerance: float,
    references: bool,
) -> Verification:
    differences, compared = [], []
    pairs = _pairs(first, second)
    for application in second:
        for name in application.outputs:
            other = pairs.get(name)
            if other is None or name not in right or other not in left:
                continue
            compared.append(name)
            allowed = max(tolerance, 1e-5) if references and second.values[name].type.is_float else tolerance
            x = _real(left[other], first.values[other].quant, second.values[name].quant)
            y = _real(right[name], second.values[name].quant, first.values[other].quant)
            found = _difference(name, application.op.name, x, y, allowed)
            if found is not None:
                differences.append(found)
    skipped = tuple(n for a in second for n in a.outputs if n not in compared)
    return Verification(tuple(differences), tuple(compared), skipped)


def _pairs(first: Program, second: Program) -> dict[str, str]:
    """Values of the second -> values of the first that stand for the same: same name, but for the suffix of int8."""
    known = {n for a in first for n in a.outputs}
    pairs = {}
    for name in (n for a in second for n in a.outputs):
        for candidate in (name, name.removesuffix("/int8"), f"{name}/int8"):
            if candidate in known:
                pairs[name] = candidate
                break
    return pairs


def _real(x: Array, own: QuantParams | None, other: QuantParams | None) -> Array:
    """Codes as they are where both sides hold codes of the same meaning, else the numbers they stand for."""
    return x if own is None or own.same(other) else dequantize(x, own)


def _difference(name: str, op: str, x: Array, y: Array, tolerance: float) -> Difference | None:
    if x.shape != y.shape:
        shapes = f"shape {list(x.shape)}", f"shape {list(y.shape)}"
        return Difference(name, op, max(x.size, y.size), max(x.size, y.size), float("inf"), (), *shapes)
    x64, y64 = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(invalid="ignore"):
        apart = np.where(
            x64 == y64, 0.0, np.nan_to_num(np.abs(x64 - y64), nan=np.inf)
        )  # equal infinities are not apart
    if tolerance == 0 and x.dtype == y.dtype:
        differs = _bits(x) != _bits(y)
    else:
        scale = max(float(np.abs(x64[np.isfinite(x64)]).max(initial=0.0)), 1e-30)
        differs = (apart > tolerance * scale) & ~(np.isnan(x64) & np.isnan(y64))
    if not differs.any():
        return None
    distance = np.where(differs, apart, -1.0)
    at = tuple(int(i) for i in np.unravel_index(int(distance.argmax()), distance.shape))
    return Difference(name, op, int(differs.sum()), x.size, float(distance[at]), at, x[at].item(), y[at].item())


def _bits(x: Array) -> Array:
    """The bytes of each element as a number."""
    return np.ascontiguousarray(x).view(f"u{x.dtype.itemsize}").reshape(x.shape)
