"""One step of an optimizer, in place: Apply<Optimizer>(variables..., lr, gradient).

The formulas are TensorFlow's. `step` counts the steps made before this one, so the first step has t = step + 1 = 1.
Where epsilon stands makes a different optimizer, so every op says it, and has a switch where the other form is in use.
Powers of beta are float64: beta to the t underflows the digits of 1 - beta^t in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.functions import snake_case
from rillet.shared_ops.op import Case, NoAttrs, Op, Reject
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import merge_shapes, require_float, require_same_dtype
from rillet.shared_ops.types import TensorType


@dataclass(frozen=True)
class MomentumAttrs:
    """nesterov: look ahead by one more step of the momentum."""

    momentum: float = 0.9
    nesterov: bool = False


@dataclass(frozen=True)
class AdamAttrs:
    """epsilon_hat: epsilon is added to sqrt(v) before the bias correction (TensorFlow); else after it (the paper)."""

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    epsilon_hat: bool = True


@dataclass(frozen=True)
class AdamWAttrs:
    """decay_times_lr: the decay is weight_decay * lr (as most trainers do), else weight_decay alone (as the paper)."""

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    epsilon_hat: bool = False
    weight_decay: float = 0.01
    decay_times_lr: bool = True


@dataclass(frozen=True)
class RMSPropAttrs:
    """epsilon_inside: sqrt(ms + epsilon) (TensorFlow), else sqrt(ms) + epsilon."""

    decay: float = 0.9
    momentum: float = 0.0
    epsilon: float = 1e-10
    epsilon_inside: bool = True


@dataclass(frozen=True)
class AdagradAttrs:
    """epsilon: added to the root; 0 is the first form of the optimizer, whose accumulator starts above zero."""

    epsilon: float = 0.0


def gradient_descent(xp: Any, attrs: NoAttrs, var: Any, lr: Any, grad: Any) -> Any:
    return var - lr * grad


def momentum(xp: Any, attrs: MomentumAttrs, var: Any, accum: Any, lr: Any, grad: Any) -> tuple[Any, ...]:
    m = var.dtype.type(attrs.momentum)
    accum = accum * m + grad
    step = grad * lr + accum * m * lr if attrs.nesterov else accum * lr
    return var - step, accum


def adam(xp: Any, attrs: Any, var: Any, m: Any, v: Any, step: Any, lr: Any, grad: Any) -> tuple[Any, ...]:
    real = var.dtype.type
    t = float(step) + 1
    root = np.sqrt(1 - attrs.beta2**t)
    lr_t = real(float(lr) * root / (1 - attrs.beta1**t))
    epsilon = real(attrs.epsilon if attrs.epsilon_hat else attrs.epsilon * root)
    m = m + (grad - m) * real(1 - attrs.beta1)
    v = v + (grad * grad - v) * real(1 - attrs.beta2)
    return var - lr_t * m / (xp.sqrt(v) + epsilon), m, v


def adamw(xp: Any, attrs: AdamWAttrs, var: Any, m: Any, v: Any, step: Any, lr: Any, grad: Any) -> tuple[Any, ...]:
    decay = attrs.weight_decay * (float(lr) if attrs.decay_times_lr else 1.0)
    return adam(xp, attrs, var - var * var.dtype.type(decay), m, v, step, lr, grad)


def rmsprop(xp: Any, attrs: RMSPropAttrs, var: Any, ms: Any, mom: Any, lr: Any, grad: Any) -> tuple[Any, ...]:
    real = var.dtype.type
    epsilon = real(attrs.epsilon)
    ms = ms + (grad * grad - ms) * real(1 - attrs.decay)
    root = xp.sqrt(ms + epsilon) if attrs.epsilon_inside else xp.sqrt(ms) + epsilon
    mom = mom * real(attrs.momentum) + lr * grad / root
    return var - mom, ms, mom


def adagrad(xp: Any, attrs: AdagradAttrs, var: Any, accum: Any, lr: Any, grad: Any) -> tuple[Any, ...]:
    accum = accum + grad * grad
    return var - lr * grad / (xp.sqrt(accum) + var.dtype.type(attrs.epsilon)), accum


def infer_apply(op: str, inputs: tuple[str, ...]) -> Callable[..., tuple[TensorType, ...]]:
    def infer(attrs: Any, *types: TensorType) -> tuple[TensorType, ...]:
        given = dict(zip(inputs, types))
        var = given["var"]
        require_float(op, "var", var)
        for name, x in given.items():
            if name in ("lr", "step") and x.rank != 0:
                raise OpError(op, f"rank of {name}", got=x.rank, expected="0 (a scalar)")
            if name == "step" and x.dtype != np.dtype(np.int64):
                raise OpError(op, "dtype of step", got=x.dtype, expected="i64")
            if name != "step":
                require_same_dtype(op, var, x)
            if name not in ("lr", "step"):
                merge_shapes(op, var.shape, x.shape, f"{name}: dimension")
        return ()

    return infer


def apply_cases(
    inputs: tuple[str, ...], variants: tuple[dict[str, Any], ...]
) -> Callable[[np.random.Generator], Iterable[Case]]:
    """Each form of the optimizer, on a matrix and on a vector that leaves a remainder in any vector width."""

    def draw(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> Any:
        if name == "lr":
            return np.array(0.05)
        if name == "step":
            return np.array(6, np.int64)
        return rng.random(shape) + 0.1 if name in ("v", "ms", "accum") else rng.normal(size=shape)

    def cases(rng: np.random.Generator) -> Iterable[Case]:
        for i, attrs in enumerate(variants):
            for shape in ((4, 8), (37,)):
                arrays = tuple(draw(rng, name, shape) for name in inputs)
                yield Case(arrays, attrs, label=f"form {i}, {'matrix' if len(shape) == 2 else 'vector'}")

    return cases


def define(name: str, slots: tuple[str, ...], reference: Any, attrs: type, doc: str, *variants: dict[str, Any]) -> Op:
    scalars = ("step", "lr") if "Adam" in name else ("lr",)
    inputs = ("var", *slots, *scalars, "grad")
    mismatched = tuple(() if n in ("lr", "step") else (3,) if n == "grad" else (2,) for n in inputs)
    dtypes = tuple("i64" if n == "step" else "f32" for n in inputs)
    vector_lr = tuple((2,) if n != "step" else () for n in inputs)
    return define_op(
        Op(
            name,
            inputs=inputs,
            outputs=(),
            attrs=attrs,
            infer=infer_apply(name, inputs),
            reference=reference,
            native=snake_case(name),
            updates=("var", *slots),
            cases=apply_cases(inputs, variants or ({},)),
            rejects=(
                Reject(mismatched, match="grad", dtypes=dtypes),
                Reject(vector_lr, match="scalar", dtypes=dtypes),
            ),
            doc=doc,
        )
    )


APPLY_GRADIENT_DESCENT = define(
    "ApplyGradientDescent", (), gradient_descent, NoAttrs, "var = var - lr * grad, in place."
)
APPLY_MOMENTUM = define(
    "ApplyMomentum",
    ("accum",),
    momentum,
    MomentumAttrs,
    """accum = accum * momentum + grad; var = var - lr * accum, in place.

    With nesterov: var = var - (grad * lr + accum * momentum * lr). The rate stands outside the accumulator, so that
    changing it acts at once.
    """,
    {},
    {"momentum": 0.5, "nesterov": True},
)
APPLY_ADAM = define(
    "ApplyAdam",
    ("m", "v"),
    adam,
    AdamAttrs,
    """Adam, in place: t = step + 1; m += (grad - m)(1 - beta1); v += (grad^2 - v)(1 - beta2);
    var -= lr * sqrt(1 - beta2^t) / (1 - beta1^t) * m / (sqrt(v) + epsilon).

    With epsilon_hat=False the denominator is sqrt(v) + epsilon * sqrt(1 - beta2^t), the paper's first form.
    """,
    {},
    {"beta1": 0.8, "epsilon": 1e-3, "epsilon_hat": False},
)
APPLY_ADAMW = define(
    "ApplyAdamW",
    ("m", "v"),
    adamw,
    AdamWAttrs,
    "Adam with decoupled weight decay: var -= var * weight_decay * lr, then ApplyAdam. See AdamWAttrs for the forms.",
    {},
    {"decay_times_lr": False, "epsilon_hat": True, "epsilon": 1e-3},
)
APPLY_RMSPROP = define(
    "ApplyRMSProp",
    ("ms", "mom"),
    rmsprop,
    RMSPropAttrs,
    """ms += (grad^2 - ms)(1 - decay); mom = momentum * mom + lr * grad / sqrt(ms + epsilon); var -= mom, in place.

    With epsilon_inside=False the denominator is sqrt(ms) + epsilon.
    """,
    {},
    {"momentum": 0.9, "epsilon": 1e-3},
    {"epsilon": 1e-2, "epsilon_inside": False},
)
APPLY_ADAGRAD = define(
    "ApplyAdagrad",
    ("accum",),
    adagrad,
    AdagradAttrs,
    "accum += grad^2; var -= lr * grad / (sqrt(accum) + epsilon), in place. Start the accumulator at 0.1.",
    {},
    {"epsilon": 0.01},
)
