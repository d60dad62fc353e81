"""MatMul: the product of two matrices. BatchMatMul, of two stacks of matrices, is in batch_matmul.py."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.int8 import Accumulate
from rillet.shared_ops.op import Case, Emit, Op, Reject
from rillet.shared_ops.product import Activation, check_bias, check_operands, finish, finish_gradient
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import require_rank
from rillet.shared_ops.types import Dim, TensorType


@dataclass(frozen=True)
class MatMulAttrs:
    transpose_a: bool = False
    transpose_b: bool = False
    activation: Activation = "NONE"


def check_inner(op: str, a: Dim, b: Dim, transpose: str) -> None:
    """Refuses factors whose inner dimensions are two different numbers."""
    if isinstance(a, int) and isinstance(b, int) and a != b:
        raise OpError(op, "inner dimensions disagree", got=b, expected=a, hint=f"See the attributes {transpose}.")


def infer(attrs: MatMulAttrs, a: TensorType, b: TensorType, bias: TensorType | None) -> tuple[TensorType, ...]:
    check_operands("MatMul", a, b, bias)
    require_rank("MatMul", "a", a, 2, "use BatchMatMul for stacks of matrices")
    require_rank("MatMul", "b", b, 2, "use BatchMatMul for stacks of matrices")
    m, k = a.shape[::-1] if attrs.transpose_a else a.shape
    k2, n = b.shape[::-1] if attrs.transpose_b else b.shape
    check_inner("MatMul", k, k2, "transpose_a and transpose_b")
    check_bias("MatMul", bias, n)
    return (a.with_shape((m, n)),)


def reference(xp: Any, attrs: MatMulAttrs, a: Any, b: Any, bias: Any = None) -> Any:
    y = (a.T if attrs.transpose_a else a) @ (b.T if attrs.transpose_b else b)
    return finish(xp, attrs, y, bias)


def gradient(emit: Emit, attrs: MatMulAttrs, inputs: Any, outputs: Any, dy: Any) -> tuple[Any, ...]:
    a, b = inputs[0], inputs[1]
    dy, dbias = finish_gradient(emit, attrs, inputs, outputs[0], dy)

    def product(x: Any, y: Any, transpose_a: bool = False, transpose_b: bool = False) -> Any:
        return emit("MatMul", x, y, transpose_a=transpose_a, transpose_b=transpose_b)

    ta, tb = attrs.transpose_a, attrs.transpose_b
    da = product(b, dy, tb, True) if ta else product(dy, b, False, not tb)
    db = product(dy, a, True, ta) if tb else product(a, dy, not ta, False)
    return (da, db, *dbias)


def cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, m: int, k: int, n: int, bias: bool = False, **attrs: Any) -> Case:
        a = rng.normal(size=(k, m) if attrs.get("transpose_a") else (m, k))
        b = rng.normal(size=(n, k) if attrs.get("transpose_b") else (k, n))
        return Case((a, b, rng.normal(size=n)) if bias else (a, b), attrs, label=label)

    for ta in (False, True):
        for tb in (False, True):
            yield case(f"transposes {ta} {tb}", 7, 5, 19, transpose_a=ta, transpose_b=tb)
            yield case(f"several tiles {ta} {tb}", 13, 70, 37, True, transpose_a=ta, transpose_b=tb)
    yield case("bias and relu", 3, 4, 6, True, activation="RELU")
    yield case("relu6 alone", 9, 40, 18, activation="RELU6")
    yield case("one row", 1, 33, 50, True)
    yield case("one column", 23, 8, 1)
    yield case("no rows", 0, 3, 4)
    yield case("no columns", 3, 4, 0)
    yield case("empty sum", 3, 0, 4, True)
    yield case("empty sum, b transposed", 3, 0, 4, transpose_b=True)


DOC = """The product of two matrices, plus an optional bias, then an optional activation.

    Order of each element's native sum: fma from +0 over increasing k, in chunks of 8192; then the bias, then the clamp.
    Args: a: floats [M, K] ([K, M] with transpose_a). b: floats [K, N] ([N, K] with transpose_b). bias: floats [N].
        activation: NONE, RELU or RELU6. Returns: floats [M, N].
    Raises OpError where ranks, dtypes or inner dimensions do not fit.

    Example:
        >>> matmul(np.ones((2, 3), np.float32), np.ones((3, 1), np.float32))
        array([[3.],
               [3.]], dtype=float32)
    """

MATMUL = define_op(
    Op(
        "MatMul",
        inputs=("a", "b", "bias?"),
        outputs=("y",),
        attrs=MatMulAttrs,
        infer=infer,
        reference=reference,
        gradient=gradient,
        quantize=Accumulate(channel_axis=1),
        native="matmul",
        cases=cases,
        rejects=(
            Reject(((2, 3), (4, 5)), match="inner dimensions disagree: got 4, expected 3"),
            Reject(((2, 3), (5, 3)), match="inner dimensions"),
            Reject(((2, 2, 3), (3, 3)), match="BatchMatMul"),
            Reject(((2, 3), (3, 5), (4,)), match="length of the bias: got 4, expected 5"),
            Reject(((2, 3), (3, 5)), match="dtypes", dtypes=("f32", "f64")),
            Reject(((2, 3), (3, 5)), match="dtype", dtypes=("i32", "i32")),
            Reject(((2, 3), (3, 5)), {"activation": "TANH"}, match="activation"),
        ),
        doc=DOC,
    )
)
