"""Folds batch normalization with fixed statistics into the weights of the op before it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rillet.shared_ops.passes.edit import Note, absorb, add_constant_like, constant_of, read_counts, silent
from rillet.shared_ops.passes.fuse_bias import takes_bias
from rillet.shared_ops.program import Application, Program
from rillet.shared_ops.types import Array

# Ops whose weights can take one factor an output channel; _along_outputs knows where those channels lie.
_FOLDS = {"Conv2D", "DepthwiseConv2D", "Conv2DTranspose", "MatMul"}


def fold_batch_norm(program: Program, note: Note = silent) -> Program:
    """A convolution (of any kind) or MatMul followed by BatchNorm becomes one op with other weights and a bias.

    y = (conv(x, w) + b - mean) * k + offset with k = scale / sqrt(variance + epsilon) is conv(x, w * k) +
    (b - mean) * k + offset. The products are taken in float64 and rounded once. A BiasAdd between the two goes with
    them. Results change by rounding: this is the one pass that does not keep the bits, which is why the trainer's
    inference mode runs it too.
    """
    program = program.copy()
    while (found := _find(program)) is not None:
        linear, norm = found
        _fold(program, linear, norm)
        note(f"{norm.name}: into the weights of {linear.name}")
    program.prune()
    return program


def _find(program: Program) -> tuple[Application, Application] | None:
    """The next (linear op, BatchNorm) that can be folded. A BiasAdd between them is fused on the way."""
    producers, counts = program.producers(), read_counts(program)
    for norm in program:
        if norm.op.name != "BatchNorm" or any(constant_of(program, n) is None for n in norm.inputs[1:]):
            continue
        linear = producers.get(norm.inputs[0] or "")
        bias = None
        if linear is not None and linear.op.name == "BiasAdd" and counts[linear.outputs[0]] == 1:
            bias, linear = linear, producers.get(linear.inputs[0] or "")
        if linear is None or counts[linear.outputs[0]] != 1 or not _has_fixed_weights(program, linear):
            continue
        if bias is not None:
            if not takes_bias(linear) or constant_of(program, bias.inputs[1]) is None:
                continue
            merged = replace(linear, inputs=(*linear.inputs[:2], bias.inputs[1]), outputs=bias.outputs)
            absorb(program, linear, bias, merged)
            linear = merged
        return linear, norm
    return None


def _has_fixed_weights(program: Program, a: Application) -> bool:
    if a.op.name not in _FOLDS or a.attrs.activation != "NONE" or constant_of(program, a.inputs[1]) is None:
        return False
    return len(a.inputs) < 3 or a.inputs[2] is None or constant_of(program, a.inputs[2]) is not None


def _fold(program: Program, linear: Application, norm: Application) -> None:
    scale, offset, mean, variance = (_double(constant_of(program, n)) for n in norm.inputs[1:])
    k = scale / np.sqrt(variance + np.float64(norm.attrs.epsilon))
    weights = constant_of(program, linear.inputs[1])
    given = constant_of(program, linear.inputs[2]) if len(linear.inputs) > 2 else None
    bias = np.zeros_like(k) if given is None else _double(given)
    assert weights is not None
    w = (_double(weights) * _along_outputs(k, linear, weights.shape)).astype(weights.dtype)
    b = ((bias - mean) * k + offset).astype(weights.dtype)
    names = (
        linear.inputs[0],
        add_constant_like(program, f"{linear.inputs[1]}/folded", w),
        add_constant_like(program, f"{linear.name}/bias", b),
    )
    absorb(program, linear, norm, replace(linear, inputs=names, outputs=norm.outputs))


def _along_outputs(k: NDArray[np.float64], linear: Application, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """The factors, shaped to multiply the weights. HWIO and [K, N] have the outputs last, transposed ones last but one;
    in HWCM, output channel c*M+m stands at [c, m]."""
    if linear.op.name == "DepthwiseConv2D":
        return k.reshape(shape[2], shape[3])
    if linear.op.name == "Conv2DTranspose" or getattr(linear.attrs, "transpose_b", False):
        return k[:, None]
    return k


def _double(array: Array | None) -> NDArray[np.float64]:
    assert array is not None
    return array.astype(np.float64)
