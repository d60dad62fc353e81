"""State ops: optimizers against the published formulas and ONNX's training ops; batch norm's moving statistics."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rillet.train  # noqa: F401 - defines the ops
from rillet.lite.library import is_available
from rillet.lite.single import apply_native
from rillet.shared_ops.errors import RilletError
from rillet.shared_ops.registry import get_op

LR = 0.05


def by_reference(name: str, *inputs: Any, **attrs: Any) -> tuple[Any, ...]:
    op = get_op(name)
    return op.compute(np, op.make_attrs(attrs), *inputs)


def by_native(name: str, *inputs: Any, **attrs: Any) -> tuple[Any, ...]:
    op = get_op(name)
    single = tuple(x.astype(np.float32) if x.dtype == np.float64 else x for x in inputs)
    results = apply_native(op, op.make_attrs(attrs), single)
    assert results is not NotImplemented
    return results


Apply = Callable[..., tuple[Any, ...]]
EXECUTORS = [
    pytest.param(by_reference, 1e-12, id="reference"),
    pytest.param(
        by_native, 2e-5, id="native", marks=pytest.mark.skipif(not is_available(), reason="the library is not built")
    ),
]


def adam_steps(gradients: Any, x: Any, hat: bool, eps: float, b1: float = 0.9, b2: float = 0.999) -> Any:
    """Kingma and Ba, algorithm 1 (hat=False), or the reordering at the end of their section 2 (hat=True)."""
    m = v = np.zeros_like(x)
    for t, g in enumerate(gradients, 1):
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
        if hat:
            x = x - LR * np.sqrt(1 - b2**t) / (1 - b1**t) * m / (np.sqrt(v) + eps)
        else:
            x = x - LR * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)
    return x


@pytest.mark.parametrize("apply,tolerance", EXECUTORS)
@pytest.mark.parametrize("hat", [True, False])
def test_adam_over_ten_steps(apply: Apply, tolerance: float, hat: bool) -> None:
    rng = np.random.default_rng(0)
    x0, gradients = rng.normal(size=9), rng.normal(size=(10, 9))
    x, m, v = x0, np.zeros(9), np.zeros(9)
    for step, g in enumerate(gradients):
        inputs = (x, m, v, np.array(step, np.int64), np.array(LR), g)
        x, m, v = apply("ApplyAdam", *inputs, epsilon=1e-3, epsilon_hat=hat)
        np.testing.assert_allclose(x, adam_steps(gradients[: step + 1], x0, hat, 1e-3), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("hat,expected", [(False, 0.5), (True, 0.030653)])
def test_adam_epsilon_stands_where_the_form_says(hat: bool, expected: float) -> None:
    """A gradient as small as epsilon tells the two forms apart."""
    zero, g = np.zeros(1), np.full(1, 1e-8)
    x, _, _ = by_reference("ApplyAdam", zero, zero, zero, np.array(0, np.int64), np.array(1.0), g, epsilon_hat=hat)
    np.testing.assert_allclose(-x, expected, rtol=1e-4)


@pytest.mark.parametrize("apply,tolerance", EXECUTORS)
@pytest.mark.parametrize("times_lr", [True, False])
def test_adamw_decays_the_weight_not_the_gradient(apply: Apply, tolerance: float, times_lr: bool) -> None:
    rng = np.random.default_rng(1)
    x, g, zero = rng.normal(size=5), rng.normal(size=5), np.zeros(5)
    inputs = (x, zero, zero, np.array(0, np.int64), np.array(LR), g)
    got, _, _ = apply("ApplyAdamW", *inputs, weight_decay=0.1, decay_times_lr=times_lr)
    decayed = x * (1 - 0.1 * (LR if times_lr else 1))
    np.testing.assert_allclose(got, adam_steps([g], decayed, False, 1e-8), rtol=tolerance)


@pytest.mark.parametrize("apply,tolerance", EXECUTORS)
@pytest.mark.parametrize("inside", [True, False])
def test_rmsprop_over_three_steps(apply: Apply, tolerance: float, inside: bool) -> None:
    rng = np.random.default_rng(2)
    x = want = rng.normal(size=7)
    ms = want_ms = np.ones(7)
    mom = want_mom = np.zeros(7)
    for g in rng.normal(size=(3, 7)):
        x, ms, mom = apply(
            "ApplyRMSProp", x, ms, mom, np.array(LR), g, decay=0.8, momentum=0.7, epsilon=0.01, epsilon_inside=inside
        )
        want_ms = 0.8 * want_ms + 0.2 * g**2
        root = np.sqrt(want_ms + 0.01) if inside else np.sqrt(want_ms) + 0.01
        want_mom = 0.7 * want_mom + LR * g / root
        want = want - want_mom
    np.testing.assert_allclose(x, want, rtol=tolerance, atol=tolerance)


def onnx_training_cases() -> list[Any]:
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    training = [c for c in cases if len(c.model.graph.node) == 1 and "training" in c.model.graph.node[0].domain]
    return [c for c in training if c.model.graph.node[0].op_type in ("Adam", "Adagrad", "Momentum")]


def onnx_step(apply: Apply, kind: str, a: dict[str, Any], lr: Any, t: Any, x: Any, g: Any, slots: Any) -> Any:
    """One variable's step by a rillet op: (new x, new slots...). ONNX decays the gradient's norm first."""
    g = g + x * x.dtype.type(a.get("norm_coefficient", 0.0))
    if kind == "Adam":
        step = np.asarray(int(t) - 1 if int(t) else 10**9, np.int64)  # at T = 0 ONNX does not correct the bias
        names = {"beta1": a["alpha"], "beta2": a["beta"], "epsilon": a["epsilon"]}
        return apply("ApplyAdam", x, *slots, step, lr, g, **names)
    if kind == "Adagrad":
        rate = np.asarray(lr / (1 + int(t) * a.get("decay_factor", 0.0)), x.dtype)
        return apply("ApplyAdagrad", x, *slots, rate, g, epsilon=a["epsilon"])
    beta = a["beta"] if int(t) > 0 else 1.0
    nesterov = a["mode"] == b"nesterov"
    return apply("ApplyMomentum", x, *slots, lr, g * x.dtype.type(beta), momentum=a["alpha"], nesterov=nesterov)


@pytest.mark.parametrize("apply", [by_reference, by_native])
@pytest.mark.parametrize("case", onnx_training_cases(), ids=lambda c: c.name)
def test_onnx_training_ops(case: Any, apply: Apply) -> None:
    from onnx import helper

    node = case.model.graph.node[0]
    attrs = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    width = {"Adam": 4, "Adagrad": 3, "Momentum": 3}[node.op_type]
    for (lr, t, *arrays), expected in case.data_sets:
        count = len(arrays) // width
        got: list[list[Any]] = []
        for i in range(count):
            x, g, *slots = arrays[i::count]
            lr_x = np.asarray(lr, x.dtype).reshape(())
            got.append(list(onnx_step(apply, node.op_type, attrs, lr_x, np.ravel(t)[0], x, g, slots)))
        flat = [result for kind in zip(*got) for result in kind]
        for have, want in zip(flat, expected, strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("apply", [by_reference, by_native])
def test_batch_norm_moving_variance_is_unbiased_and_survives_a_large_mean(apply: Apply) -> None:
    x = (np.random.default_rng(0).normal(size=(50, 3)) + 1000).astype(np.float32)
    one, zero = np.ones(3, np.float32), np.zeros(3, np.float32)
    y, _, _, mean, variance = apply("BatchNormTraining", x, one, zero, zero, one, momentum=0.75, epsilon=0.0)
    np.testing.assert_allclose(mean, 0.25 * x.mean(0, dtype=np.float64), rtol=1e-5)
    np.testing.assert_allclose(variance, 0.75 + 0.25 * x.astype(np.float64).var(0, ddof=1), rtol=1e-4)
    np.testing.assert_allclose(y.std(0), 1, rtol=1e-3)
    np.testing.assert_array_equal(by_reference("BatchNorm", x, one, zero, zero, one, epsilon=0.0)[0], x)


@pytest.mark.parametrize("apply", [by_reference, by_native])
def test_scatter_keeps_the_order_of_equal_indices(apply: Apply) -> None:
    var, rows = np.zeros((3, 2), np.float32), np.arange(6, dtype=np.float32).reshape(3, 2)
    (added,) = apply("ScatterAdd", var, np.array([1, 1, 0]), rows)
    np.testing.assert_array_equal(added, [[4, 5], [2, 4], [0, 0]])
    (updated,) = apply("ScatterUpdate", var, np.array([1, 1, 0]), rows)
    np.testing.assert_array_equal(updated, [[4, 5], [2, 3], [0, 0]])


@pytest.mark.parametrize("apply", [by_reference, by_native])
@pytest.mark.parametrize("name", ["ScatterAdd", "ScatterUpdate"])
def test_scatter_names_an_index_that_is_no_row(apply: Apply, name: str) -> None:
    with pytest.raises(RilletError, match="index 2: got 3, expected a row from 0 to 2"):
        apply(name, np.zeros((3, 1), np.float32), np.array([0, 1, 3]), np.ones((3, 1), np.float32))
