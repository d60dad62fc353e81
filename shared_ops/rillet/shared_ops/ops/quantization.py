"""Between float and int8: Quantize, Dequantize, Requantize, and LookupTable, the int8 form of every pointwise op.

The parameters belong to the int8 *value* (Value.quant in a Program, the tensor's Quant in a file), and there they
decide. The attributes `scale` and `zero_point` serve calls on bare arrays, which carry no parameters; scale 0 says "the
value's"; attributes that contradict the value are refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.int8 import FromInt8, Lookup, ToInt8, look_up
from rillet.shared_ops.op import Case, Op, Reject
from rillet.shared_ops.quantize import dequantize, quantize
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.types import Array, QuantParams, TensorType

INT8 = np.dtype(np.int8)


@dataclass(frozen=True)
class AffineAttrs:
    """real = scale * (quantized - zero_point); scale 0: the parameters stand with the int8 value."""

    scale: float = 0.0
    zero_point: int = 0


def _check_attrs(op: str, attrs: AffineAttrs) -> None:
    if not (attrs.scale >= 0 and np.isfinite(attrs.scale)):
        raise OpError(op, "scale", got=attrs.scale, expected="a positive number")
    if not -128 <= attrs.zero_point <= 127:
        raise OpError(op, "zero point", got=attrs.zero_point, expected="-128 to 127")


def _params(op: str, attrs: AffineAttrs) -> QuantParams:
    if attrs.scale == 0:
        raise OpError(op, "no parameters", hint="Give scale (and zero_point) where the arrays are bare.")
    return QuantParams.per_tensor(attrs.scale, attrs.zero_point)


def _infer_quantize(attrs: AffineAttrs, x: TensorType) -> tuple[TensorType]:
    _check_attrs("Quantize", attrs)
    if not x.is_float:
        raise OpError("Quantize", "input is not float", got=x, expected="f32")
    return (x.plain().with_dtype(INT8),)


def _infer_dequantize(attrs: AffineAttrs, x: TensorType) -> tuple[TensorType]:
    _check_attrs("Dequantize", attrs)
    if x.dtype not in (INT8, np.dtype(np.int32)):
        raise OpError("Dequantize", "input is not quantized", got=x, expected="i8 or i32")
    return (x.plain().with_dtype(np.float32),)


def _quantize(xp: Any, attrs: AffineAttrs, x: Array) -> Array:
    return quantize(x, _params("Quantize", attrs))


def _dequantize(xp: Any, attrs: AffineAttrs, x: Array) -> Array:
    return dequantize(x, _params("Dequantize", attrs))


def _quantize_cases(rng: np.random.Generator) -> Iterable[Case]:
    yield Case((rng.normal(size=(2, 3, 17)),), {"scale": 0.05, "zero_point": -3})
    ties = np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 1e9, -1e9])
    yield Case((ties,), {"scale": 1.0, "zero_point": 7}, label="ties")


def _dequantize_cases(rng: np.random.Generator) -> Iterable[Case]:
    every = np.arange(-128, 128).astype(np.int8)
    yield Case((every,), {"scale": 0.1, "zero_point": -5})
    yield Case((rng.integers(-(2**20), 2**20, (3, 5)).astype(np.int32),), {"scale": 1e-4}, label="i32")


QUANTIZE = define_op(
    Op(
        "Quantize",
        inputs=("x",),
        outputs=("y",),
        attrs=AffineAttrs,
        infer=_infer_quantize,
        reference=_quantize,
        quantize=ToInt8(),
        native="quantize",
        cases=_quantize_cases,
        rejects=(
            Reject(((2,),), {"scale": 1.0}, match="input is not float", dtypes=("i32",)),
            Reject(((2,),), {"scale": -1.0}, match="scale: got -1.0"),
            Reject(((2,),), {"scale": 1.0, "zero_point": 200}, match="zero point: got 200"),
        ),
        doc="int8 of a float tensor: divide by scale, round half to even, add zero_point, clamp to [-128, 127].\n\n"
        "x: f32 of any shape. Returns: i8 of the same shape. Raises OpError for a scale that is not positive.\n\n"
        "Example:\n    >>> quantize(np.array([0.5, 1.5, 99.0], np.float32), scale=1.0, zero_point=1)\n"
        "    array([  1,   3, 100], dtype=int8)",
    )
)

DEQUANTIZE = define_op(
    Op(
        "Dequantize",
        inputs=("x",),
        outputs=("y",),
        attrs=AffineAttrs,
        infer=_infer_dequantize,
        reference=_dequantize,
        quantize=FromInt8(),
        native="dequantize",
        cases=_dequantize_cases,
        rejects=(
            Reject(((2,),), {"scale": 1.0}, match="input is not quantized"),
            Reject(((2,),), {"scale": float("inf")}, match="scale: got inf", dtypes=("i8",)),
        ),
        doc="float of an int8 (or int32) tensor: scale * (x - zero_point).\n\n"
        "x: i8 or i32 of any shape. Returns: f32 of the same shape.\n\n"
        "Example:\n    >>> dequantize(np.array([-1, 3], np.int8), scale=0.5, zero_point=1)\n"
        "    array([-1.,  1.], dtype=float32)",
    )
)


def _same(attrs: Any, x: TensorType) -> tuple[TensorType]:
    if not (x.is_float or x.dtype == INT8):
        raise OpError("Requantize", "input is neither float nor int8", got=x, expected="i8")
    return (x.plain(),)


# Its float meaning is the identity, so the family Lookup makes the table that leads from one scale to another; an
# exported file holds that table (LookupTable), and no native kernel of this name is needed.
REQUANTIZE = define_op(
    Op(
        "Requantize",
        inputs=("x",),
        outputs=("y",),
        infer=_same,
        reference=lambda xp, attrs, x: x,
        gradient=lambda emit, attrs, inputs, outputs, dy: (dy,),
        quantize=Lookup(),
        cases=lambda rng: (Case((rng.normal(size=(4, 5)),)),),
        rejects=(Reject(((2,),), match="neither float nor int8", dtypes=("i64",)),),
        doc="The same real values under the output value's scale and zero point; the identity on floats.",
    )
)


def _infer_lookup(attrs: Any, x: TensorType, table: TensorType) -> tuple[TensorType]:
    if x.dtype != INT8:
        raise OpError("LookupTable", "x", got=x, expected="i8")
    if table.dtype != INT8 or table.rank != 1 or table.shape[0] not in (256, None):
        raise OpError("LookupTable", "table", got=table, expected="i8[256]")
    return (x.plain(),)


def _lookup_cases(rng: np.random.Generator) -> Iterable[Case]:
    table = rng.integers(-128, 128, 256).astype(np.int8)
    yield Case((np.arange(-128, 128).astype(np.int8).reshape(8, 32), table))
    yield Case((rng.integers(-128, 128, (3, 7)).astype(np.int8), table), label="odd size")


LOOKUP_TABLE = define_op(
    Op(
        "LookupTable",
        inputs=("x", "table"),
        outputs=("y",),
        infer=_infer_lookup,
        reference=lambda xp, attrs, x, table: look_up(x, table),
        native="lookup_table",
        cases=_lookup_cases,
        rejects=(
            Reject(((2,), (256,)), match="x: got f32", dtypes=("f32", "i8")),
            Reject(((2,), (255,)), match=r"table: got i8\[255\]", dtypes=("i8", "i8")),
        ),
        doc="table[x + 128], element by element: every int8 op of one input in one kernel.\n\n"
        "x: i8 of any shape; table: i8[256]. Returns: i8 like x.\n\n"
        "Example:\n    >>> lookup_table(np.array([-128, 127], np.int8), np.arange(-128, 128).astype(np.int8)[::-1])\n"
        "    array([ 127, -128], dtype=int8)",
    )
)
