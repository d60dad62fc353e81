"""Comparisons, logic of two inputs, Select and Cast."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from rillet.shared_ops.functions import snake_case
from rillet.shared_ops.gradient_rules import masked, unbroadcast
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.pointwise import (
    ANY,
    BOOLS,
    NUMBERS,
    broadcast_cases,
    broadcast_infer,
    describe,
    draw,
    draw_ints,
    require_dtype,
)
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import broadcast_shapes, require_same_dtype
from rillet.shared_ops.types import DTYPE_NAMES, DTYPES, Array, TensorType


def _coarse(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Few different numbers, so that many are equal."""
    return rng.integers(-2, 3, size=shape) * 0.5


def _bits(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return np.asarray(rng.random(shape) < 0.5)


# -- comparisons and logic ----------------------------------------------------------------------------------------

# Name, function, dtypes, what it says, and the result for 1, 2, 3 against 2 (for false and true against true).
COMPARISONS: tuple[tuple[str, Callable[..., Any], tuple[str, ...], str, str], ...] = (
    ("Equal", lambda a, b: a == b, ANY, "Whether a equals b; NaN equals nothing.",
     "[False,  True, False]"),
    ("NotEqual", lambda a, b: a != b, ANY, "Whether a differs from b; NaN differs from everything.",
     "[ True, False,  True]"),
    ("Less", lambda a, b: a < b, NUMBERS, "Whether a is below b.",
     "[ True, False, False]"),
    ("LessEqual", lambda a, b: a <= b, NUMBERS, "Whether a is not above b; false where either is NaN.",
     "[ True,  True, False]"),
    ("Greater", lambda a, b: a > b, NUMBERS, "Whether a is above b.",
     "[False, False,  True]"),
    ("GreaterEqual", lambda a, b: a >= b, NUMBERS, "Whether a is not below b; false where either is NaN.",
     "[False,  True,  True]"),
    ("LogicalAnd", lambda a, b: a & b, BOOLS, "Whether both are true.",
     "[False,  True]"),
    ("LogicalOr", lambda a, b: a | b, BOOLS, "Whether one or both are true.",
     "[ True,  True]"),
    ("LogicalXor", lambda a, b: a ^ b, BOOLS, "Whether exactly one is true.",
     "[ True, False]"),
)  # fmt: skip


def _compare_cases(dtypes: tuple[str, ...], rng: np.random.Generator) -> Iterator[Case]:
    if dtypes is not BOOLS:
        yield from broadcast_cases(partial(_coarse, rng), partial(_coarse, rng))
        for dtype in ("int32", "int64"):
            yield Case((draw_ints(rng, (9, 7), dtype), draw_ints(rng, (7,), dtype)), label=dtype)
    if "bool" in dtypes:
        for label, left, right in (("bool", (5, 9), (5, 9)), ("bool row", (5, 9), (9,)), ("bool scalar", (5, 9), ())):
            yield Case((_bits(rng, left), _bits(rng, right)), label=label)


for _name, _function, _dtypes, _doc, _result in COMPARISONS:
    _example = "np.array([False, True]), True" if _dtypes is BOOLS else "np.array([1, 2, 3]), 2"
    _wrong = "f32" if _dtypes is BOOLS else "bool"
    define_op(
        Op(
            _name,
            inputs=("a", "b"),
            outputs=("y",),
            infer=broadcast_infer(_name, _dtypes, np.bool_),
            reference=lambda xp, attrs, a, b, f=_function: xp.asarray(f(a, b)),
            native=snake_case(_name),
            cases=partial(_compare_cases, _dtypes),
            rejects=(
                Reject(((2, 3), (4, 3)), match="do not broadcast", dtypes=_dtypes[:1] * 2),
                Reject(((2,), (2,)), match="dtypes of the inputs differ", dtypes=(_dtypes[0], "u8")),
                *((Reject(((2,), (2,)), match=f"got {_wrong}", dtypes=(_wrong,) * 2),) if _dtypes is not ANY else ()),
            ),
            doc=describe(
                _doc,
                f"a, b: {', '.join(_dtypes)}, both the same; shapes that broadcast.",
                "bool, of the broadcast shape.",
                f"{snake_case(_name)}({_example})",
                f"array({_result})",
            ),
        )
    )


# -- Select -------------------------------------------------------------------------------------------------------


def _select_infer(attrs: Any, condition: TensorType, a: TensorType, b: TensorType) -> tuple[TensorType, ...]:
    require_dtype("Select", "condition", condition, BOOLS)
    require_same_dtype("Select", a, b)
    shape = broadcast_shapes("Select", broadcast_shapes("Select", condition.shape, a.shape), b.shape)
    return (TensorType(a.dtype, shape),)


def _select_gradient(emit: Emit, attrs: Any, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    """Exact zeros go back through the branch that was not taken, even where dy is infinite or NaN."""
    condition, a, b = inputs
    da, db = masked(emit, condition, dy), masked(emit, emit("LogicalNot", condition), dy)
    return None, unbroadcast(emit, da, a, condition, b), unbroadcast(emit, db, b, condition, a)


def _select_cases(rng: np.random.Generator) -> Iterator[Case]:
    shapes = {
        "same shape": ((3, 17), (3, 17), (3, 17)),
        "row condition": ((17,), (3, 17), (3, 17)),
        "column condition": ((3, 1), (3, 17), (3, 17)),
        "scalar branches": ((3, 17), (), ()),
        "scalar condition": ((), (3, 5), (5,)),
        "all stretched": ((4, 1, 1), (1, 3, 1), (1, 1, 5)),
        "scalars": ((), (), ()),
        "empty": ((0, 2), (2,), ()),
    }
    for label, (condition, a, b) in shapes.items():
        yield Case((_bits(rng, condition), draw(rng, a), draw(rng, b)), label=label)
    yield Case((_bits(rng, (5,)), draw_ints(rng, (3, 5), "int64"), draw_ints(rng, (5,), "int64")), label="int64")
    yield Case((_bits(rng, (5,)), _bits(rng, (3, 5)), _bits(rng, ())), label="bool")


define_op(
    Op(
        "Select",
        inputs=("condition", "a", "b"),
        outputs=("y",),
        infer=_select_infer,
        reference=lambda xp, attrs, condition, a, b: xp.asarray(xp.where(condition, a, b)),
        gradient=_select_gradient,
        native="select",
        cases=_select_cases,
        rejects=(
            Reject(((2,), (2,), (2,)), match="dtype of condition: got f32, expected bool"),
            Reject(((2,), (2,), (2,)), match="dtypes of the inputs differ", dtypes=("bool", "f32", "i32")),
            Reject(((2,), (3,), (3,)), match="do not broadcast", dtypes=("bool", "f32", "f32")),
        ),
        doc=describe(
            "a where the condition holds, else b. The branch not taken gets a gradient of exactly 0.",
            "condition: bool. a, b: any dtype, both the same; the three shapes broadcast.",
            "the dtype of a, of the broadcast shape.",
            "select(np.array([True, False]), np.array([1, 2]), np.array([3, 4]))",
            "array([1, 4])",
        ),
    )
)


# -- Cast ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CastAttrs:
    dtype: Literal["f32", "f64", "i8", "u8", "i32", "i64", "bool"]


def _cast_infer(attrs: CastAttrs, x: TensorType) -> tuple[TensorType, ...]:
    """A known shape vector stays known from one integer dtype to a wide one."""
    return (TensorType(DTYPES[attrs.dtype], x.shape, x.value if attrs.dtype in ("i32", "i64") else None),)


def _cast(xp: Any, attrs: CastAttrs, x: Any) -> Any:
    """Float to integer cuts off the fraction, goes to the nearest end where it does not fit, and makes NaN 0, on every
    CPU (as ARM's instructions do; x86's would not). Integers wrap. Anything but 0 is true."""
    to = DTYPES[attrs.dtype]
    if x.dtype.kind != "f" or to.kind not in "iu":
        with np.errstate(over="ignore"):
            return xp.asarray(x).astype(to)
    low, high = np.iinfo(to).min, np.iinfo(to).max
    wide = xp.asarray(x).astype(np.float64)
    inside = (wide > low - 1.0) & (wide < high + 1.0)  # the ends themselves may not be floats
    inside &= wide > low if to.itemsize == 8 else True  # low - 1.0 is low here
    whole = xp.trunc(xp.where(inside, wide, 0.0)).astype(to)
    ends = xp.where(wide > 0, to.type(high), xp.where(wide < 0, to.type(low), to.type(0)))
    return xp.asarray(xp.where(inside, whole, ends)).astype(to)


def _cast_gradient(emit: Emit, attrs: CastAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    source = np.dtype(inputs[0].dtype)
    if source.kind != "f" or DTYPES[attrs.dtype].kind != "f":
        return (None,)
    return (emit("Cast", dy, dtype=DTYPE_NAMES[source]),)


def _cast_cases(rng: np.random.Generator) -> Iterator[Case]:
    floats = np.array([0.0, -0.0, 0.6, -0.6, 1.5, -2.5, 127.9, -128.9, 300.0, -1.0, 3e9, -3e9, 1e20, -1e20, 255.5, 7.0])
    special = np.array([np.nan, np.inf, -np.inf, 2.0**31, -(2.0**31), 2.0**63, -(2.0**63), 16777217.0])
    for dtype in ("i8", "u8", "i32", "i64", "bool"):
        yield Case((np.concatenate([floats, special]),), {"dtype": dtype}, label=f"float to {dtype}", differentiable=())
    yield Case((draw(rng, (3, 4)),), {"dtype": "f64"}, label="float to f64")
    for source in ("int8", "uint8", "int32", "int64", "bool"):
        x = (rng.integers(-300, 300, size=(3, 11)) % (2 if source == "bool" else 1000)).astype(source)
        for dtype in ("f32", "i8", "u8", "i32", "i64", "bool"):
            yield Case((x,), {"dtype": dtype}, label=f"{source} to {dtype}")


define_op(
    Op(
        "Cast",
        inputs=("x",),
        outputs=("y",),
        attrs=CastAttrs,
        infer=_cast_infer,
        reference=_cast,
        gradient=_cast_gradient,
        native="cast",
        cases=_cast_cases,
        rejects=(Reject(((2,),), {"dtype": "f16"}, "attribute 'dtype': got 'f16'"),),
        doc=describe(
            "x as another dtype. Float to integer truncates and saturates, and NaN becomes 0; integers wrap.",
            "x: any dtype. dtype: f32, f64, i8, u8, i32, i64 or bool.",
            "that dtype, of x's shape.",
            "cast(np.array([2.9, -2.9, 300.0, np.nan]), dtype='i8')",
            "array([  2,  -2, 127,   0], dtype=int8)",
        ),
    )
)
