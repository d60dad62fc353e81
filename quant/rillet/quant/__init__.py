"""Post-training quantization: a float Program and some of its data in, an int8 Program and a report out."""

from __future__ import annotations

from rillet.quant.assign import assign_params
from rillet.quant.calibrate import Calibration, RunAll, Samples, calibrate, check_samples
from rillet.quant.grouped import depthwise_to_groups
from rillet.quant.observers import CalibrationError
from rillet.quant.report import Island, QuantReport, make_report
from rillet.quant.rewrite import rewrite_program
from rillet.quant.runner import run_all
from rillet.shared_ops.program import Program

__all__ = [
    "Calibration",
    "CalibrationError",
    "Island",
    "QuantReport",
    "RunAll",
    "Samples",
    "calibrate",
    "quantize_program",
]


def quantize_program(
    program: Program, samples: Samples, observer: str = "min_max", batch_size: int = 32
) -> tuple[Program, QuantReport]:
    """An int8 Program that computes what the float one computes, with float inputs and outputs as before.

    Args:
        program: an inference Program with constant weights, after `inference_passes`.
        samples: calibration data, [N, ...] an input (a mapping by name where there are several).
        observer: "min_max", "moving_average" or "percentile".

    Raises CalibrationError where the data do not fit the inputs or are not finite.
    """
    feeds = check_samples(program, samples)
    program = depthwise_to_groups(program)
    run_float = run_all(program)
    calibration = calibrate(program, samples, observer, batch_size, run_float)
    assignment = assign_params(program, calibration)
    int8 = rewrite_program(program, assignment)
    size = min(batch_size, calibration.samples)
    fixed = program.values[program.inputs[0]].type.shape[0]
    first = {n: x[: fixed if isinstance(fixed, int) else size] for n, x in feeds.items()}
    both = (run_float(first), run_all(int8)(first))
    return int8, make_report(program, int8, assignment, calibration, both)
