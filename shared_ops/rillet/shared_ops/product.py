"""What products (MatMul, Conv2D, ...) share: the optional bias and the fused activation, and their gradients."""

from __future__ import annotations

from typing import Any, Literal

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.op import Emit
from rillet.shared_ops.shapes import require_float, require_rank, require_same_dtype
from rillet.shared_ops.types import Dim, TensorType

Activation = Literal["NONE", "RELU", "RELU6"]


def check_operands(op: str, *operands: TensorType | None) -> None:
    """Refuses operands that are not float tensors of one dtype."""
    require_same_dtype(op, *operands)
    for t in operands:
        if t is not None:
            require_float(op, "the operands", t)


def check_bias(op: str, bias: TensorType | None, channels: Dim) -> None:
    """Refuses a bias that is not one number an output channel."""
    if bias is None:
        return
    require_rank(op, "bias", bias, 1)
    if isinstance(channels, int) and isinstance(bias.shape[0], int) and bias.shape[0] != channels:
        raise OpError(op, "length of the bias", got=bias.shape[0], expected=channels)


def finish(xp: Any, attrs: Any, y: Any, bias: Any) -> Any:
    """The end of every product: add the bias, then apply the activation."""
    if bias is not None:
        y = y + bias
    if attrs.activation == "NONE":
        return y
    y = xp.where(y < 0, xp.zeros_like(y), y)  # NaN passes, as in the native clamp
    return xp.where(y > 6, xp.full_like(y, 6), y) if attrs.activation == "RELU6" else y


def finish_gradient(emit: Emit, attrs: Any, inputs: Any, y: Any, dy: Any) -> tuple[Any, tuple[Any, ...]]:
    """(gradient before bias and activation, (gradient of the bias,) or () where the op has no bias input).

    Inside the clamp the sign of `y` (and of 6 - y) is 1, at its bounds 0.
    """
    if attrs.activation != "NONE":
        dy = emit("Mul", dy, emit("Sign", y))
    if attrs.activation == "RELU6":
        dy = emit("Mul", dy, emit("Sign", emit("Sub", 6.0, y)))
    if len(inputs) < 3:
        return dy, ()
    return dy, (None if inputs[2] is None else emit("BiasAddGrad", dy),)
