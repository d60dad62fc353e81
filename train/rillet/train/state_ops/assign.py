"""Reading and overwriting variables: ReadVariable, Assign, AssignAdd, AssignSub, AssignMovingAverage."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.functions import snake_case
from rillet.shared_ops.op import Case, NoAttrs, Op, Reject
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import merge_shapes, require_float, require_same_dtype
from rillet.shared_ops.types import TensorType


@dataclass(frozen=True)
class MovingAverageAttrs:
    """decay: the share of the old value that is kept."""

    decay: float = 0.99


def infer_read(attrs: NoAttrs, handle: TensorType) -> tuple[TensorType, ...]:
    return (handle.plain(),)


def infer_update(op: str) -> Callable[..., tuple[TensorType, ...]]:
    def infer(attrs: Any, var: TensorType, value: TensorType) -> tuple[TensorType, ...]:
        require_same_dtype(op, var, value)
        merge_shapes(op, var.shape, value.shape)
        if op == "AssignMovingAverage":
            require_float(op, "var", var)
        return ()

    return infer


def moving_average(xp: Any, attrs: MovingAverageAttrs, var: Any, value: Any) -> Any:
    return var - (var - value) * var.dtype.type(1 - attrs.decay)


def cases(rng: np.random.Generator) -> Iterable[Case]:
    yield Case((rng.normal(size=(3, 7)), rng.normal(size=(3, 7))), label="matrix")
    yield Case((rng.normal(size=()), rng.normal(size=())), label="scalar")
    yield Case((rng.normal(size=37), rng.normal(size=37)), label="vector")


def integer_cases(rng: np.random.Generator) -> Iterable[Case]:
    yield from cases(rng)
    yield Case((np.array(41, np.int64), np.array(1, np.int64)), label="step counter")
    yield Case((np.array([1, 2], np.int32), np.array([5, -7], np.int32)), label="i32")


REJECTS = (
    Reject(((2, 3), (3, 2)), match="disagree"),
    Reject(((2,), (2,)), match="dtypes", dtypes=("f32", "i32")),
)

READ_VARIABLE = define_op(
    Op(
        "ReadVariable",
        inputs=("handle",),
        outputs=("value",),
        infer=infer_read,
        reference=lambda xp, attrs, handle: handle.copy(),
        gradient=lambda emit, attrs, inputs, outputs, dy: (dy,),
        native="read_variable",
        cases=lambda rng: [Case((rng.normal(size=(2, 5)),)), Case((np.array(3, np.int64),), label="i64")],
        rejects=(Reject((), match="inputs"),),
        doc="The value of a variable at this point of the step: a copy, which later updates do not change.",
    )
)


def define(name: str, reference: Any, doc: str, **facets: Any) -> Op:
    facets.setdefault("cases", integer_cases)
    return define_op(
        Op(
            name,
            inputs=("var", "value"),
            outputs=(),
            infer=infer_update(name),
            reference=reference,
            native=snake_case(name),
            updates=("var",),
            rejects=REJECTS,
            doc=doc,
            **facets,
        )
    )


ASSIGN = define("Assign", lambda xp, attrs, var, value: value.copy(), "var = value. The shapes must be equal.")
ASSIGN_ADD = define("AssignAdd", lambda xp, attrs, var, value: var + value, "var = var + value, in place.")
ASSIGN_SUB = define("AssignSub", lambda xp, attrs, var, value: var - value, "var = var - value, in place.")
ASSIGN_MOVING_AVERAGE = define(
    "AssignMovingAverage",
    moving_average,
    "var = var - (var - value) * (1 - decay): an exponential moving average, in place.",
    attrs=MovingAverageAttrs,
    cases=cases,
)
