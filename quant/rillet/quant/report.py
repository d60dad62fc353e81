"""What quantization did: every float island and why, every value's parameters, and how far each layer is from float."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from rillet.quant.assign import Assignment
from rillet.quant.calibrate import Calibration
from rillet.shared_ops.program import Program
from rillet.shared_ops.quantize import dequantize
from rillet.shared_ops.types import Array, QuantParams


@dataclass(frozen=True)
class Island:
    """An application that stayed float."""

    name: str
    op: str
    source: str
    reason: str

    def __str__(self) -> str:
        line = f" ({self.source})" if self.source else ""
        return f"{self.op} at {self.name!r}{line} stays float: {self.reason}"


@dataclass(frozen=True)
class QuantReport:
    """Islands, notes, parameters by value name, and the signal-to-noise ratio (dB) of each int8 value against float."""

    islands: tuple[Island, ...]
    notes: tuple[str, ...]
    params: dict[str, QuantParams]
    sqnr: dict[str, float]
    samples: int

    def worst(self, count: int = 5) -> list[tuple[str, float]]:
        """The values furthest from float."""
        return sorted(self.sqnr.items(), key=lambda item: item[1])[:count]

    def __str__(self) -> str:
        lines = [f"{len(self.params)} int8 values from {self.samples} samples, {len(self.islands)} float islands"]
        lines += [f"  {island}" for island in self.islands]
        lines += [f"  note: {note}" for note in self.notes]
        for name, q in self.params.items():
            ratio = f", {self.sqnr[name]:.1f} dB" if name in self.sqnr else ""
            scale = f"{float(q.scale[0]):.6g}" if q.scale.size == 1 else f"{q.scale.min():.3g}..{q.scale.max():.3g}"
            lines.append(f"  {name}: scale {scale}, zero point {q.zero_point}{ratio}")
        return "\n".join(lines)


def make_report(
    program: Program,
    int8: Program,
    assignment: Assignment,
    calibration: Calibration,
    both: tuple[Mapping[str, Array], Mapping[str, Array]] | None = None,
) -> QuantReport:
    """The report of one rewrite. both: every value of the float and of the int8 Program on the same batch."""
    islands = tuple(
        Island(a.name, a.op.name, a.source, assignment.islands[a.outputs[0]])
        for a in program
        if assignment.is_island(a) and assignment.islands[a.outputs[0]] != "no float values"
    )
    params = {n: v.quant for n, v in int8.values.items() if v.quant is not None}
    notes = (*calibration.findings, *dict.fromkeys(assignment.notes))
    return QuantReport(
        islands, notes, params, {} if both is None else signal_to_noise(int8, *both), calibration.samples
    )


def signal_to_noise(int8: Program, floats: Mapping[str, Array], codes: Mapping[str, Array]) -> dict[str, float]:
    """10 log10(signal power / power of the difference) of each int8 activation, by value name; inf where equal."""
    result = {}
    for name, value in int8.values.items():
        origin = name.removesuffix("/int8")
        if value.quant is None or value.constant is not None or origin not in floats or name not in codes:
            continue
        signal = np.asarray(floats[origin], np.float64)
        noise = float(np.sum((signal - dequantize(codes[name], value.quant)) ** 2))
        power = float(np.sum(signal**2))
        result[name] = float("inf") if noise == 0 else 10 * float(np.log10(max(power, 1e-30) / noise))
    return result
