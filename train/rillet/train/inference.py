"""Inference with the variables as they are: the same freeze, passes and kernels as in an exported file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from rillet.lite.engine import Context, Model
from rillet.lite.library import is_available
from rillet.lite.single import apply_native, kernel_dtype
from rillet.lite.writer import write_model
from rillet.shared_ops.passes import inference_passes
from rillet.shared_ops.program import Program, run_reference
from rillet.shared_ops.types import Array
from rillet.train.freeze import freeze
from rillet.train.native import kernel_of
from rillet.train.tensor import Tensor

if TYPE_CHECKING:
    from rillet.train.session import Session


def inference_program(session: Session, inputs: Any, outputs: Any, name: str = "main") -> Program:
    """`freeze`, then the passes that export runs: what a float model file holds.

    The engine folds the constants, so that folding changes no bit.
    """
    program, _ = inference_passes(freeze(session, inputs, outputs, name), evaluate=apply_native)
    return program


class Predictor:
    """Outputs of a graph in inference mode, for the variables of the moment when it was made."""

    def __init__(self, session: Session, inputs: list[Tensor], outputs: list[Tensor]) -> None:
        self.inputs, self.outputs = inputs, outputs
        self.version = session.variable_version
        named = {f"input{i}": t for i, t in enumerate(inputs)}, {f"output{i}": t for i, t in enumerate(outputs)}
        self.program = inference_program(session, *named)
        self._context: Context | None = None
        if is_available() and all(self._is_native(a) for a in self.program):
            self._context = Context(Model(write_model(self.program)), session.threads)

    def _is_native(self, application: Any) -> bool:
        inputs = [None if v is None else v.type for v in self.program.input_values(application)]
        dtype = kernel_dtype(inputs, [v.type for v in self.program.output_values(application)])
        return dtype is not None and kernel_of(application.op, dtype) is not None

    def run(self, feeds: Mapping[Tensor, Array]) -> list[Array]:
        """The outputs, in the order in which they were asked for."""
        if self._context is None:
            results = run_reference(self.program, {f"input{i}": feeds[t] for i, t in enumerate(self.inputs)})
            return [results[n] for n in self.program.outputs]
        for i, tensor in enumerate(self.inputs):
            if self._context.inputs[i].shape != feeds[tensor].shape:
                self._context.resize(i, feeds[tensor].shape)
        self._context.prepare()
        for i, tensor in enumerate(self.inputs):
            self._context.input(i)[...] = feeds[tensor]
        self._context.run()
        return [self._context.output(i).copy() for i in range(len(self.outputs))]


def mean_over(batches: Iterable[tuple[int, list[Array]]], count: int) -> list[float]:
    """The means of scalars over batches, each weighted by its number of examples; summed in float64."""
    sums, examples = [0.0] * count, 0
    for n, values in batches:
        examples += n
        sums = [s + n * float(v) for s, v in zip(sums, values)]
    return [s / examples if examples else float("nan") for s in sums]
