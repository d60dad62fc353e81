"""Arithmetic of two inputs with NumPy's broadcasting: a table, one row an op; and AddN."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.functions import snake_case
from rillet.shared_ops.gradient_rules import as_number, masked, mul_no_nan, through_activation, unbroadcast
from rillet.shared_ops.int8 import AddSub, Product, SameScale
from rillet.shared_ops.op import Case, Emit, Int8Family, NoAttrs, Op, Reject
from rillet.shared_ops.pointwise import (
    FLOATS,
    NUMBERS,
    activate,
    broadcast_cases,
    broadcast_infer,
    describe,
    draw,
    draw_ints,
    require_dtype,
)
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import merge_shapes, require_same_dtype
from rillet.shared_ops.types import Array, TensorType


@dataclass(frozen=True)
class ActivationAttrs:
    activation: Literal["NONE", "RELU", "RELU6"] = "NONE"


# -- functions (numpy and cupy) -----------------------------------------------------------------------------------


def _refuse_zero_divisor(xp: Any, op: str, b: Any) -> None:
    if b.dtype.kind in "iu" and bool(xp.any(b == 0)):
        raise OpError(op, "an integer divisor is 0", hint="Mask the zeros out before dividing.")


def _floor_div(xp: Any, a: Any, b: Any) -> Any:
    _refuse_zero_divisor(xp, "FloorDiv", b)
    return xp.floor(a / b) if a.dtype.kind == "f" else xp.floor_divide(a, b)


def _floor_mod(xp: Any, a: Any, b: Any) -> Any:
    _refuse_zero_divisor(xp, "FloorMod", b)
    return xp.mod(a, b)


def _pow(xp: Any, a: Any, b: Any) -> Any:
    if b.dtype.kind == "i" and bool(xp.any(b < 0)):
        raise OpError("Pow", "an integer exponent is negative", hint="Cast both inputs to float.")
    return xp.power(a, b)


# -- gradients: each gives (da, db), not yet summed over stretched axes ---------------------------------------------


def _d_real_div(emit: Emit, a: Any, b: Any, y: Any, dy: Any) -> tuple[Any, Any]:
    return mul_no_nan(emit, emit("Reciprocal", b), dy), emit("Neg", mul_no_nan(emit, emit("RealDiv", y, b), dy))


def _d_pow(emit: Emit, a: Any, b: Any, y: Any, dy: Any) -> tuple[Any, Any]:
    """The gradient of the exponent is 0 where the base is not positive (no real logarithm), as in TensorFlow."""
    slope = emit("MulNoNan", emit("Pow", a, emit("Sub", b, 1.0)), b)
    log_a = emit("MulNoNan", emit("Log", a), as_number(emit, emit("Greater", a, 0.0), a))
    return mul_no_nan(emit, slope, dy), mul_no_nan(emit, emit("Mul", y, log_a), dy)


def _d_maximum(emit: Emit, a: Any, b: Any, y: Any, dy: Any) -> tuple[Any, Any]:
    return masked(emit, emit("GreaterEqual", a, b), dy), masked(emit, emit("Less", a, b), dy)


def _d_minimum(emit: Emit, a: Any, b: Any, y: Any, dy: Any) -> tuple[Any, Any]:
    return masked(emit, emit("LessEqual", a, b), dy), masked(emit, emit("Greater", a, b), dy)


def _d_squared_difference(emit: Emit, a: Any, b: Any, y: Any, dy: Any) -> tuple[Any, Any]:
    da = emit("Mul", dy, emit("Mul", 2.0, emit("Sub", a, b)))
    return da, emit("Neg", da)


def _d_prelu(emit: Emit, x: Any, alpha: Any, y: Any, dy: Any) -> tuple[Any, Any]:
    above = emit("Greater", x, 0.0)
    return emit("Select", above, dy, emit("Mul", dy, alpha)), masked(
        emit, emit("LessEqual", x, 0.0), emit("Mul", dy, x)
    )


# -- the table ----------------------------------------------------------------------------------------------------


def _numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return draw(rng, shape)


def _positive(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return draw(rng, shape, 0.3, 2.5)


def _not_zero(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    return _positive(rng, shape) * rng.choice([-1.0, 1.0], size=shape)


def _quarters(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Multiples of 1/4: quotients that are whole are exactly so, in float32 and float64 alike."""
    return rng.choice([-2.5, -2.0, -0.75, 0.25, 0.5, 1.5, 3.0, 4.25], size=shape)


@dataclass(frozen=True)
class Row:
    """One op. function(xp, a, b); derivative(emit, a, b, y, dy) -> (da, db), None: not differentiable; left, right:
    draw the examples; lowest: of the integers among the right examples."""

    name: str
    function: Callable[..., Any]
    derivative: Callable[..., tuple[Any, Any]] | None = None
    left: Callable[..., Array] = _numbers
    right: Callable[..., Array] = _numbers
    dtypes: tuple[str, ...] = NUMBERS
    quantize: Int8Family | None = None
    fused: bool = False
    lowest: int = -9
    inputs: tuple[str, str] = ("a", "b")
    doc: str = ""
    example: tuple[str, str, str] = ("", "", "")  # two arguments, and the result


ROWS = (
    Row("Add", lambda xp, a, b: a + b, lambda emit, a, b, y, dy: (dy, dy), quantize=AddSub(1), fused=True,
        doc="a + b.",
        example=("[1.0, 2.0]", "3.0", "[4., 5.]")),
    Row("Sub", lambda xp, a, b: a - b, lambda emit, a, b, y, dy: (dy, emit("Neg", dy)), quantize=AddSub(-1),
        doc="a - b.",
        example=("[1.0, 2.0]", "[3.0, 0.5]", "[-2. ,  1.5]")),
    Row("Mul", lambda xp, a, b: a * b, lambda emit, a, b, y, dy: (emit("Mul", dy, b), emit("Mul", dy, a)),
        quantize=Product(), fused=True, doc="a * b.",
        example=("[1.0, 2.0]", "[3.0, 0.5]", "[3., 1.]")),
    Row("MulNoNan", lambda xp, a, b: xp.where(b == 0, xp.zeros_like(a * b), a * b),
        lambda emit, a, b, y, dy: (emit("Mul", dy, b), mul_no_nan(emit, a, dy)), dtypes=FLOATS,
        doc="a * b, and 0 where b is 0, even where a is infinite or NaN.",
        example=("[2.0, np.inf]", "[3.0, 0.0]", "[6., 0.]")),
    Row("RealDiv", lambda xp, a, b: a / b, _d_real_div, right=_not_zero, dtypes=FLOATS, doc="a / b, of floats.",
        example=("[1.0, 2.0]", "[4.0, -0.5]", "[ 0.25, -4.  ]")),
    Row("FloorDiv", _floor_div, left=_quarters, right=_quarters, lowest=1,
        doc="floor(a / b); an integer divisor of 0 is an error when it runs.",
        example=("[7.0, -7.0]", "2.0", "[ 3., -4.]")),
    Row("FloorMod", _floor_mod, left=_quarters, right=_quarters, lowest=1,
        doc="The remainder of a / b with the sign of b; an integer divisor of 0 is an error when it runs.",
        example=("[7.0, -7.0]", "2.0", "[1., 1.]")),
    Row("Pow", _pow, _d_pow, left=_positive, lowest=1,
        doc="a to the power b; a negative integer exponent is an error when it runs.",
        example=("[2.0, 9.0]", "[3.0, 0.5]", "[8., 3.]")),
    Row("Maximum", lambda xp, a, b: xp.where((a >= b) | (a != a), a, b), _d_maximum, quantize=SameScale(),
        doc="The larger one; NaN wins. At a tie a gets the gradient.",
        example=("[1.0, 5.0]", "3.0", "[3., 5.]")),
    Row("Minimum", lambda xp, a, b: xp.where((a <= b) | (a != a), a, b), _d_minimum, quantize=SameScale(),
        doc="The smaller one; NaN wins. At a tie a gets the gradient.",
        example=("[1.0, 5.0]", "3.0", "[1., 3.]")),
    Row("SquaredDifference", lambda xp, a, b: (a - b) * (a - b), _d_squared_difference, doc="(a - b) squared.",
        example=("[1.0, 5.0]", "3.0", "[4., 4.]")),
    Row("PRelu", lambda xp, x, alpha: xp.where(x > 0, x, alpha * x), _d_prelu, left=_not_zero, dtypes=FLOATS,
        inputs=("x", "alpha"), doc="x above 0, alpha * x elsewhere; alpha broadcasts, one a channel for example.",
        example=("[-1.0, 2.0]", "[0.25, 0.25]", "[-0.25,  2.  ]")),
)  # fmt: skip


def _reference(row: Row, xp: Any, attrs: Any, a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        y = xp.asarray(row.function(xp, a, b))
    return activate(xp, attrs.activation, y) if row.fused else y


def _gradient(row: Row, emit: Emit, attrs: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...], dy: Any) -> Any:
    assert row.derivative is not None
    a, b = inputs
    if row.fused:
        dy = through_activation(emit, attrs.activation, outputs[0], dy)
    da, db = row.derivative(emit, a, b, outputs[0], dy)
    return unbroadcast(emit, da, a, b), unbroadcast(emit, db, b, a)


def _cases(row: Row, rng: np.random.Generator) -> Iterator[Case]:
    yield from broadcast_cases(partial(row.left, rng), partial(row.right, rng))
    if row.fused:
        for activation in ("RELU", "RELU6"):
            pair = (draw(rng, (3, 5), 1, 3), draw(rng, (5,), -0.5, 3))
            yield Case(pair, {"activation": activation}, label=activation)
    if "i32" in row.dtypes:
        for dtype in ("int32", "int64"):
            pair = (draw_ints(rng, (3, 7), dtype), draw_ints(rng, (7,), dtype, row.lowest))
            yield Case(pair, label=dtype)


def _document(row: Row) -> str:
    a, b, result = row.example
    call = f"{snake_case(row.name)}(np.array({a}, np.float32), np.array({b}, np.float32)).round(3)"
    args = f"{row.inputs[0]}, {row.inputs[1]}: {', '.join(row.dtypes)}, both the same; shapes that broadcast."
    if row.fused:
        args += " activation: NONE, RELU or RELU6, applied to the result."
    return describe(row.doc, args, "the same dtype, of the broadcast shape.", call, f"array({result}, dtype=float32)")


REJECTS = (
    Reject(((2, 3), (4, 3)), match="do not broadcast"),
    Reject(((2,), (2,)), match="dtypes of the inputs differ", dtypes=("f32", "f64")),
    Reject(((2,), (2,)), match="got bool", dtypes=("bool", "bool")),
)

for _row in ROWS:
    define_op(
        Op(
            _row.name,
            inputs=_row.inputs,
            outputs=("y",),
            infer=broadcast_infer(_row.name, _row.dtypes),
            reference=partial(_reference, _row),
            gradient=partial(_gradient, _row) if _row.derivative else None,
            attrs=ActivationAttrs if _row.fused else NoAttrs,
            quantize=_row.quantize,
            native=snake_case(_row.name),
            cases=partial(_cases, _row),
            rejects=REJECTS + ((Reject(((2,), (2,)), {"activation": "TANH"}, "activation"),) if _row.fused else ()),
            doc=_document(_row),
        )
    )


# -- AddN ---------------------------------------------------------------------------------------------------------


def _add_n_infer(attrs: Any, *values: TensorType) -> tuple[TensorType, ...]:
    if not values:
        raise OpError("AddN", "no inputs", got=0, expected="at least one")
    require_dtype("AddN", "the first input", values[0], NUMBERS)
    require_same_dtype("AddN", *values)
    shape = values[0].shape
    for v in values[1:]:
        shape = merge_shapes("AddN", shape, v.shape)
    return (TensorType(values[0].dtype, shape),)


def _add_n(xp: Any, attrs: Any, *values: Any) -> Any:
    total = values[0].copy()
    for v in values[1:]:
        total = total + v
    return xp.asarray(total)


def _add_n_cases(rng: np.random.Generator) -> Iterator[Case]:
    for count in (1, 2, 3, 5):
        yield Case(tuple(draw(rng, (3, 11)) for _ in range(count)), label=f"{count} inputs")
    yield Case(tuple(draw_ints(rng, (5,)) for _ in range(3)), label="int32")


define_op(
    Op(
        "AddN",
        inputs=("*values",),
        outputs=("y",),
        infer=_add_n_infer,
        reference=_add_n,
        gradient=lambda emit, attrs, inputs, outputs, dy: (dy,) * len(inputs),
        native="add_n",
        cases=_add_n_cases,
        rejects=(
            Reject((), match="no inputs"),
            Reject(((2, 3), (1, 3)), match="dimension 0s disagree"),
            Reject(((2,), (2,)), match="dtypes of the inputs differ", dtypes=("f32", "i32")),
        ),
        doc=describe(
            "The sum of its inputs, left to right.",
            "values: numbers of one dtype and one shape, one or more.",
            "the same dtype and shape.",
            "add_n(np.array([1, 2]), np.array([3, 4]), np.array([5, 6]))",
            "array([ 9, 12])",
        ),
    )
)
