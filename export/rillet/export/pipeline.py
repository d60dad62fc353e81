"""One call from a trained graph to a model file: freeze, passes, quantization, write."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from rillet.export.metadata import ExportError, Rule, make_metadata
from rillet.lite.library import is_available
from rillet.lite.single import apply_native, has_kernel, kernel_dtype
from rillet.lite.writer import save_model
from rillet.quant import QuantReport, Samples, quantize_program
from rillet.quant.observers import make_observer
from rillet.shared_ops.errors import describe
from rillet.shared_ops.passes import Report, inference_passes
from rillet.shared_ops.program import Application, Program
from rillet.shared_ops.quantize import PROFILE
from rillet.shared_ops.registry import is_exportable
from rillet.train import Session, freeze


@dataclass(frozen=True)
class ExportReport:
    """What was written, and everything that was changed on the way."""

    path: Path
    bytes: int
    program: Program
    passes: Report
    quantization: QuantReport | None
    seconds: float

    def __str__(self) -> str:
        head = f"{self.path}: {self.bytes:,} bytes, {len(self.program.applications)} operations, {self.seconds:.2f} s"
        parts = [head, str(self.passes)]
        if self.quantization is not None:
            parts.append(str(self.quantization))
        return "\n".join(parts)


def export(  # noqa: PLR0913 - all but four are keywords
    source: Session | Program,
    inputs: Any = None,
    outputs: Any = None,
    path: str | os.PathLike[str] = "model.rlt",
    *,
    quantize: Literal["int8"] | None = None,
    calibration: Samples | None = None,
    observer: str = "min_max",
    labels: Sequence[str] | None = None,
    preprocessing: Rule | Mapping[str, Rule] | None = None,
    skip: Sequence[str] = (),
) -> ExportReport:
    """Writes a trained graph as a model file, whole or not at all.

    Args:
        source: a session, whose variables become constants; or an inference Program (then without inputs, outputs).
        inputs, outputs: tensors of the session's graph, or a dict of names and tensors.
        quantize: "int8" for integer arithmetic, with scales from `calibration` ([N, ...] an input) by `observer`
            ("min_max", "moving_average" or "percentile").
        labels: names of the classes. preprocessing: {"scale": ..., "mean": ..., "std": ...}, or one such rule an input.
        skip: names of passes to leave out.

    Raises:
        FreezeError, ExportError: all that cannot be exported, at once, with the user's lines.
        CalibrationError: the calibration data do not fit, or there is no such observer.

    Example:
        >>> import tempfile
        >>> from rillet.shared_ops.registry import get_op
        >>> from rillet.shared_ops.types import TensorType
        >>> program = Program()
        >>> x = program.add_input("x", TensorType(np.dtype(np.float32), ("batch", 2)))
        >>> program.outputs = list(program.apply(get_op("Relu"), [x]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     export(program, path=f"{folder}/model.rlt").path.name
        'model.rlt'
    """
    start = time.perf_counter()
    path = Path(path)
    _check_arguments(source, inputs, outputs, quantize, calibration)
    make_observer(observer)  # refuses an unknown name before anything is computed
    _check_target(path)
    program = source if isinstance(source, Program) else freeze(source, inputs, outputs)
    program, passes = inference_passes(program, evaluate=apply_native, skip=skip)
    check_exportable(program, quantize == "int8")
    metadata = make_metadata(program, labels, preprocessing)
    report = None
    if quantize is not None:
        assert calibration is not None
        program, report = quantize_program(program, calibration, observer)
    program.metadata.update(metadata)
    write(program, path)
    return ExportReport(path, path.stat().st_size, program, passes, report, time.perf_counter() - start)


def _check_arguments(
    source: Session | Program, inputs: Any, outputs: Any, quantize: str | None, calibration: Samples | None
) -> None:
    """Refuses combinations of arguments that leave something open."""
    if isinstance(source, Program) != (inputs is None and outputs is None):
        raise ExportError("a session needs inputs and outputs; a Program has its own.")
    if quantize not in (None, "int8"):
        raise ExportError(describe("quantize", repr(quantize), "None or 'int8'"))
    if quantize is not None and calibration is None:
        hint = "Some hundred samples of the training data will do."
        raise ExportError(describe("int8 needs calibration data", "none", "an array [N, ...] for each input", hint))
    if quantize is None and calibration is not None:
        raise ExportError("calibration data were given, but nothing is to be quantized. Pass quantize='int8'.")


def _check_target(path: Path) -> None:
    """Before minutes of calibration: is there a folder to write to?"""
    if not path.parent.is_dir():
        raise ExportError(f"cannot write {path}: there is no folder {path.parent}.")
    if path.is_dir():
        raise ExportError(f"cannot write {path}: it is a folder.")


def check_exportable(program: Program, int8: bool = False) -> None:
    """Raises one ExportError that lists every operation a device cannot run, and every constant that is not finite.

    int8: the Program is about to be quantized, so a kernel on int8 values will do.
    """
    faults = [f"[{a.op.name} at {a.name!r} ({a.source})] {why}" for a in program if (why := _fault(program, a, int8))]
    for value in program.values.values():
        if value.constant is not None and value.type.is_float and not np.all(np.isfinite(value.constant)):
            bad = int((~np.isfinite(value.constant)).sum())
            faults.append(f"constant {value.name!r}: {bad} of {value.constant.size} values are NaN or infinite")
    if faults:
        raise ExportError("the model cannot be exported:\n  " + "\n  ".join(faults))


def _fault(program: Program, a: Application, int8: bool) -> str:
    """Why a device cannot run an application; "" where it can."""
    if not is_exportable(a.op):
        return "is an operation of the trainer"
    inputs = [None if v is None else v.type for v in program.input_values(a)]
    dtype = kernel_dtype(inputs, [v.type for v in program.output_values(a)])
    assert dtype is not None
    quantizable = int8 and a.op.quantize is not None
    if is_available() and not has_kernel(a.op, dtype) and not quantizable:
        return f"has no native kernel for {dtype}"
    return ""


def write(program: Program, path: Path) -> None:
    """Writes the file, whole or not at all; says what kept it from being written."""
    profile = PROFILE if any(v.quant is not None for v in program.values.values()) else ""
    try:
        save_model(path, program, quant_profile=profile)
    except OSError as error:
        hint = "Free some space or choose another place." if error.errno == 28 else ""
        raise ExportError(describe(f"cannot write {path}: {error.strerror or error}", hint=hint)) from error
