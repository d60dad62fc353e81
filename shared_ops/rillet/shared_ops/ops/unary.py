"""Pointwise ops of one input: a table, one row an op.

A row says what the op computes (on any array namespace), its derivative times dy, the interval and the kinks that its
examples keep away from, and how it becomes int8.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from rillet.shared_ops.functions import snake_case
from rillet.shared_ops.gradient_rules import as_number, masked, mul_no_nan
from rillet.shared_ops.int8 import Lookup
from rillet.shared_ops.op import Case, Emit, Int8Family, NoAttrs, Op, Reject
from rillet.shared_ops.pointwise import BOOLS, FLOATS, NUMBERS, SIGNED, clamp, describe, draw, draw_ints, unary_infer
from rillet.shared_ops.registry import define_op

SQRT_HALF = math.sqrt(0.5)
TWO_OVER_SQRT_PI = 2 / math.sqrt(math.pi)
GELU_TANH = (math.sqrt(2 / math.pi), 0.044715)  # of the tanh form of Gelu


@dataclass(frozen=True)
class GeluAttrs:
    approximate: bool = False


@dataclass(frozen=True)
class HardSigmoidAttrs:
    alpha: float = 0.2
    beta: float = 0.5


@dataclass(frozen=True)
class LeakyReluAttrs:
    alpha: float = 0.2


@dataclass(frozen=True)
class EluAttrs:
    alpha: float = 1.0


@dataclass(frozen=True)
class ClipByValueAttrs:
    lo: float
    hi: float


# -- functions (numpy and cupy) -----------------------------------------------------------------------------------


def _erf(xp: Any, a: Any, x: Any) -> Any:
    if xp is np:
        return np.asarray(np.frompyfunc(math.erf, 1, 1)(x)).astype(x.dtype)
    return importlib.import_module("cupyx.scipy.special").erf(x)


def _sigmoid(xp: Any, a: Any, x: Any) -> Any:
    e = xp.exp(-xp.abs(x))
    return xp.where(x < 0, e, 1) / (1 + e)


def _gelu(xp: Any, a: GeluAttrs, x: Any) -> Any:
    if a.approximate:
        return 0.5 * x * (1 + xp.tanh(GELU_TANH[0] * (x + GELU_TANH[1] * x * x * x)))
    return 0.5 * x * (1 + _erf(xp, a, x * SQRT_HALF))


def _hard_sigmoid(xp: Any, a: HardSigmoidAttrs, x: Any) -> Any:
    return clamp(xp, a.alpha * x + a.beta, 0.0, 1.0)


def _elu(xp: Any, a: EluAttrs, x: Any) -> Any:
    return xp.where(x > 0, x, a.alpha * xp.expm1(xp.where(x > 0, xp.zeros_like(x), x)))


def _softplus(xp: Any, a: Any, x: Any) -> Any:
    return clamp(xp, x, 0.0, None) + xp.log1p(xp.exp(-xp.abs(x)))


# -- derivatives times dy -----------------------------------------------------------------------------------------


def _between(emit: Emit, x: Any, lo: float, hi: float) -> Any:
    """1 where lo < x < hi, else 0, in x's dtype."""
    inside = emit("LogicalAnd", emit("Greater", x, lo), emit("Less", x, hi))
    return as_number(emit, inside, x)


def _d_erf(emit: Emit, a: Any, x: Any, y: Any, dy: Any) -> Any:
    bell = emit("Exp", emit("Neg", emit("Square", x)))
    return emit("Mul", dy, emit("Mul", TWO_OVER_SQRT_PI, bell))


def _d_rsqrt(emit: Emit, a: Any, x: Any, y: Any, dy: Any) -> Any:
    return mul_no_nan(emit, emit("Mul", -0.5, emit("Mul", y, emit("Square", y))), dy)


def _d_gelu(emit: Emit, a: GeluAttrs, x: Any, y: Any, dy: Any) -> Any:
    square = emit("Square", x)
    if a.approximate:
        k, c = GELU_TANH
        t = emit("Tanh", emit("Mul", k, emit("Mul", x, emit("Add", 1.0, emit("Mul", c, square)))))
        slope = emit("Mul", k, emit("Add", 1.0, emit("Mul", 3 * c, square)))
        slope = emit("Mul", emit("Sub", 1.0, emit("Square", t)), slope)
    else:
        t = emit("Erf", emit("Mul", SQRT_HALF, x))
        slope = emit("Mul", SQRT_HALF * TWO_OVER_SQRT_PI, emit("Exp", emit("Mul", -0.5, square)))
    d = emit("Mul", 0.5, emit("Add", emit("Add", 1.0, t), emit("Mul", x, slope)))
    return emit("Mul", dy, d)


def _d_silu(emit: Emit, a: Any, x: Any, y: Any, dy: Any) -> Any:
    s = emit("Sigmoid", x)
    return emit("Mul", dy, emit("Add", s, emit("Mul", y, emit("Sub", 1.0, s))))


def _d_hard_swish(emit: Emit, a: Any, x: Any, y: Any, dy: Any) -> Any:
    gate = emit("HardSigmoid", x, alpha=1 / 6, beta=0.5)
    inside = _between(emit, x, -3.0, 3.0)
    return emit("Mul", dy, emit("Add", gate, emit("Mul", inside, emit("Mul", 1 / 6, x))))


def _d_hard_sigmoid(emit: Emit, a: HardSigmoidAttrs, x: Any, y: Any, dy: Any) -> Any:
    return emit("Mul", dy, emit("Mul", a.alpha, _between(emit, y, 0.0, 1.0)))


def _d_leaky_relu(emit: Emit, a: LeakyReluAttrs, x: Any, y: Any, dy: Any) -> Any:
    return emit("Select", emit("Greater", x, 0.0), dy, emit("Mul", a.alpha, dy))


def _d_elu(emit: Emit, a: EluAttrs, x: Any, y: Any, dy: Any) -> Any:
    return emit("Select", emit("Greater", x, 0.0), dy, emit("Mul", dy, emit("Add", y, a.alpha)))


def _d_clip(emit: Emit, a: ClipByValueAttrs, x: Any, y: Any, dy: Any) -> Any:
    inside = emit("LogicalAnd", emit("GreaterEqual", x, a.lo), emit("LessEqual", x, a.hi))
    return masked(emit, inside, dy)


# -- the table ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One op. function(xp, attrs, x); derivative(emit, attrs, x, y, dy), None where the op is not differentiable;
    low, high: the interval of the examples; kinks: points they avoid; settings: attributes to try."""

    name: str
    function: Callable[..., Any]
    derivative: Callable[..., Any] | None = None
    low: float = -4.0
    high: float = 4.0
    kinks: tuple[float, ...] = ()
    dtypes: tuple[str, ...] = FLOATS
    result: Any = None
    quantize: Int8Family | None = Lookup()
    attrs: type = NoAttrs
    settings: tuple[dict[str, Any], ...] = ({},)
    doc: str = ""
    example: tuple[str, str] = ("", "")  # an argument, and the result


ROWS = (
    Row("Abs", lambda xp, a, x: xp.abs(x), lambda emit, a, x, y, dy: emit("Mul", dy, emit("Sign", x)),
        kinks=(0,), dtypes=SIGNED, doc="|x|; the smallest integer stays as it is.",
        example=("[-1.5, 2.0]", "[1.5, 2. ]")),
    Row("Neg", lambda xp, a, x: -x, lambda emit, a, x, y, dy: emit("Neg", dy), dtypes=SIGNED, doc="-x.",
        example=("[-1.5, 2.0]", "[ 1.5, -2. ]")),
    Row("Sign", lambda xp, a, x: xp.sign(x), kinks=(0,), dtypes=SIGNED, quantize=None,
        doc="-1, 0 or 1; NaN stays NaN.",
        example=("[-3.0, 0.0, 2.0]", "[-1.,  0.,  1.]")),
    Row("Square", lambda xp, a, x: x * x, lambda emit, a, x, y, dy: emit("Mul", dy, emit("Mul", 2.0, x)),
        dtypes=NUMBERS, doc="x * x.",
        example=("[-3.0, 2.0]", "[9., 4.]")),
    Row("Sqrt", lambda xp, a, x: xp.sqrt(x),
        lambda emit, a, x, y, dy: mul_no_nan(emit, emit("RealDiv", 0.5, y), dy), low=0.1,
        doc="Square root; NaN below 0.",
        example=("[4.0, 2.0]", "[2.   , 1.414]")),
    Row("Rsqrt", lambda xp, a, x: 1 / xp.sqrt(x), _d_rsqrt, low=0.1, doc="1 / sqrt(x), rounded twice.",
        example=("[4.0, 0.25]", "[0.5, 2. ]")),
    Row("Reciprocal", lambda xp, a, x: 1 / x,
        lambda emit, a, x, y, dy: mul_no_nan(emit, emit("Neg", emit("Square", y)), dy), low=0.2, doc="1 / x.",
        example=("[4.0, -0.5]", "[ 0.25, -2.  ]")),
    Row("Exp", lambda xp, a, x: xp.exp(x), lambda emit, a, x, y, dy: mul_no_nan(emit, y, dy), doc="e to the x.",
        example=("[0.0, 1.0]", "[1.   , 2.718]")),
    Row("Log", lambda xp, a, x: xp.log(x), lambda emit, a, x, y, dy: mul_no_nan(emit, emit("Reciprocal", x), dy),
        low=0.1, doc="Natural logarithm; -inf at 0, NaN below.",
        example=("[1.0, 10.0]", "[0.   , 2.303]")),
    Row("Sin", lambda xp, a, x: xp.sin(x), lambda emit, a, x, y, dy: emit("Mul", dy, emit("Cos", x)), -20, 20,
        doc="Sine of an angle in radians, of any size.",
        example=("[0.0, 1.0]", "[0.   , 0.841]")),
    Row("Cos", lambda xp, a, x: xp.cos(x), lambda emit, a, x, y, dy: emit("Neg", emit("Mul", dy, emit("Sin", x))),
        -20, 20, doc="Cosine of an angle in radians, of any size.",
        example=("[0.0, 1.0]", "[1.  , 0.54]")),
    Row("Erf", _erf, _d_erf, doc="The error function.",
        example=("[0.0, 1.0]", "[0.   , 0.843]")),
    Row("Floor", lambda xp, a, x: xp.floor(x), quantize=None, doc="The largest whole number that is not above x.",
        example=("[-1.5, 1.5]", "[-2.,  1.]")),
    Row("Ceil", lambda xp, a, x: xp.ceil(x), quantize=None, doc="The smallest whole number that is not below x.",
        example=("[-1.5, 1.5]", "[-1.,  2.]")),
    Row("Round", lambda xp, a, x: xp.rint(x), quantize=None, doc="The nearest whole number, of two the even one.",
        example=("[0.5, 1.5, 2.4]", "[0., 2., 2.]")),
    Row("Relu", lambda xp, a, x: clamp(xp, x, 0, None), lambda emit, a, x, y, dy: emit("ReluGrad", dy, y),
        kinks=(0,), dtypes=SIGNED, doc="max(x, 0); NaN passes.",
        example=("[-1.0, 2.0]", "[0., 2.]")),
    Row("Relu6", lambda xp, a, x: clamp(xp, x, 0, 6), lambda emit, a, x, y, dy: emit("Relu6Grad", dy, y),
        -3, 9, kinks=(0, 6), dtypes=SIGNED, doc="x clamped to [0, 6]; NaN passes.",
        example=("[-1.0, 2.0, 7.0]", "[0., 2., 6.]")),
    Row("Sigmoid", _sigmoid, lambda emit, a, x, y, dy: emit("SigmoidGrad", dy, y),
        quantize=Lookup((1 / 256, -128)), doc="1 / (1 + exp(-x)).",
        example=("[-1.0, 0.0, 1.0]", "[0.269, 0.5  , 0.731]")),
    Row("Tanh", lambda xp, a, x: xp.tanh(x), lambda emit, a, x, y, dy: emit("TanhGrad", dy, y),
        quantize=Lookup((1 / 128, 0)), doc="Hyperbolic tangent.",
        example=("[-1.0, 1.0]", "[-0.762,  0.762]")),
    Row("Gelu", _gelu, _d_gelu, attrs=GeluAttrs, settings=({}, {"approximate": True}),
        doc="x times the normal distribution function of x; `approximate` takes the tanh form.",
        example=("[-1.0, 1.0]", "[-0.159,  0.841]")),
    Row("Silu", lambda xp, a, x: x * _sigmoid(xp, a, x), _d_silu, doc="x * sigmoid(x), also known as swish.",
        example=("[-1.0, 1.0]", "[-0.269,  0.731]")),
    Row("HardSwish", lambda xp, a, x: x * _hard_sigmoid(xp, HardSigmoidAttrs(1 / 6, 0.5), x), _d_hard_swish,
        -5, 5, kinks=(-3, 3), doc="x * clamp(x / 6 + 1/2, 0, 1).",
        example=("[-1.0, 1.0, 4.0]", "[-0.333,  0.667,  4.   ]")),
    Row("HardSigmoid", _hard_sigmoid, _d_hard_sigmoid, kinks=(-2.5, 2.5, -3, 3), attrs=HardSigmoidAttrs,
        settings=({}, {"alpha": 1 / 6, "beta": 0.5}), doc="alpha * x + beta, clamped to [0, 1].",
        example=("[-1.0, 1.0, 4.0]", "[0.3, 0.7, 1. ]")),
    Row("LeakyRelu", lambda xp, a, x: xp.where(x > 0, x, a.alpha * x), _d_leaky_relu, kinks=(0,),
        attrs=LeakyReluAttrs, settings=({}, {"alpha": 0.01}), doc="x above 0, alpha * x elsewhere.",
        example=("[-1.0, 2.0]", "[-0.2,  2. ]")),
    Row("Elu", _elu, _d_elu, kinks=(0,), attrs=EluAttrs, settings=({}, {"alpha": 0.5}),
        doc="x above 0, alpha * (exp(x) - 1) elsewhere.",
        example=("[-1.0, 2.0]", "[-0.632,  2.   ]")),
    Row("Softplus", _softplus, lambda emit, a, x, y, dy: emit("Mul", dy, emit("Sigmoid", x)),
        doc="log(1 + exp(x)), without overflow.",
        example=("[-1.0, 1.0]", "[0.313, 1.313]")),
    Row("ClipByValue", lambda xp, a, x: clamp(xp, x, a.lo, a.hi), _d_clip, kinks=(-1, 2), attrs=ClipByValueAttrs,
        settings=({"lo": -1.0, "hi": 2.0}, {"lo": 2.0, "hi": -1.0}),
        doc="x clamped to [lo, hi]; NaN passes, hi wins where lo > hi. Its gradient passes at the bounds.",
        example=("[-3.0, 1.0, 4.0]", "[-1.,  1.,  2.]")),
    Row("IsNan", lambda xp, a, x: xp.isnan(x), result=np.bool_, quantize=None, doc="Whether x is not a number.",
        example=("[1.0, np.nan]", "[False,  True]")),
    Row("LogicalNot", lambda xp, a, x: xp.logical_not(x), dtypes=BOOLS, quantize=None, doc="True where x is false.",
        example=("[True, False]", "[False,  True]")),
)  # fmt: skip


def _reference(row: Row, xp: Any, attrs: Any, x: Any) -> Any:
    with np.errstate(all="ignore"):
        return xp.asarray(row.function(xp, attrs, x))


def _gradient(row: Row, emit: Emit, attrs: Any, inputs: tuple[Any, ...], outputs: tuple[Any, ...], dy: Any) -> Any:
    assert row.derivative is not None
    return (row.derivative(emit, attrs, inputs[0], outputs[0], dy),)


def _cases(row: Row, rng: np.random.Generator) -> Iterator[Case]:
    if row.dtypes == BOOLS:
        yield Case((rng.random((3, 37)) < 0.5,), label="matrix")
        return
    for settings in row.settings:
        label = " ".join(f"{k}={v:g}" for k, v in settings.items())
        for shape in ((3, 37), ()):
            kind = "matrix" if shape else "scalar"
            yield Case((draw(rng, shape, row.low, row.high, row.kinks),), settings, label=f"{kind} {label}".strip())
    yield Case((np.zeros((2, 0, 3)),), row.settings[0], label="empty")
    if "i32" in row.dtypes:
        for dtype in ("int32", "int64"):
            yield Case((draw_ints(rng, (3, 7), dtype),), row.settings[0], label=dtype)


def _document(row: Row) -> str:
    """Results are shown to three digits: kernels and references may differ in the last one."""
    argument, result = row.example
    attrs = "".join(f", {k}={v!r}" for k, v in row.settings[0].items())
    dtype, rounded = ("np.bool_", "") if row.dtypes == BOOLS else ("np.float32", "" if row.result else ".round(3)")
    call = f"{snake_case(row.name)}(np.array({argument}, {dtype}){attrs}){rounded}"
    shown = f"array({result})" if dtype == "np.bool_" or row.result else f"array({result}, dtype=float32)"
    named = "".join(f" {f.name}: {f.type}." for f in fields(row.attrs))
    returns = f"{'bool' if row.result or row.dtypes == BOOLS else 'the same dtype'}, of x's shape."
    return describe(row.doc, f"x: {', '.join(row.dtypes)}, any shape.{named}", returns, call, shown)


def _rejects(row: Row) -> tuple[Reject, ...]:
    wrong = "f32" if row.dtypes == BOOLS else "bool"
    settings = row.settings[0]
    return (
        Reject(((2, 3),), settings, match=f"dtype of x: got {wrong}", dtypes=(wrong,)),
        Reject(((2,), (2,)), settings, match="wrong number of inputs"),
    )


for _row in ROWS:
    define_op(
        Op(
            _row.name,
            inputs=("x",),
            outputs=("y",),
            infer=unary_infer(_row.name, _row.dtypes, _row.result),
            reference=partial(_reference, _row),
            gradient=partial(_gradient, _row) if _row.derivative else None,
            attrs=_row.attrs,
            quantize=_row.quantize,
            native=snake_case(_row.name),
            cases=partial(_cases, _row),
            rejects=_rejects(_row),
            doc=_document(_row),
        )
    )
