"""Depthwise convolutions with several filters a channel, as grouped convolutions: the same sums, other labels."""

from __future__ import annotations

from dataclasses import asdict, replace

from rillet.shared_ops.program import Program
from rillet.shared_ops.registry import get_op


def depthwise_to_groups(program: Program) -> Program:
    """DepthwiseConv2D with constant filters [rows, columns, C, M], M > 1, becomes Conv2D with C groups.

    One scale an output channel cannot be stored along one axis of [rows, columns, C, M]; it can along the last axis of
    [rows, columns, 1, C*M], which holds the same numbers in the same order.
    """
    program = program.copy()
    for i, a in enumerate(program.applications):
        weights = program.values[a.inputs[1] or ""].constant if a.op.name == "DepthwiseConv2D" else None
        if weights is None or weights.shape[3] == 1:
            continue
        rows, columns, channels, multiplier = weights.shape
        name = program.add_constant(
            program.fresh(f"{a.inputs[1]}/grouped"), weights.reshape(rows, columns, 1, channels * multiplier)
        )
        conv = get_op("Conv2D")
        attrs = conv.make_attrs({**asdict(a.attrs), "groups": channels})
        program.applications[i] = replace(a, op=conv, attrs=attrs, inputs=(a.inputs[0], name, *a.inputs[2:]))
    program.prune()
    return program
