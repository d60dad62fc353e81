"""Softmax and the cross entropies: stable for any finite logits, equal to SciPy's, and clear about bad labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rillet.lite.library import is_available
from rillet.lite.single import apply_native
from rillet.shared_ops import eager
from rillet.shared_ops.errors import RilletError
from rillet.shared_ops.registry import get_op


def native(name: str, *inputs: Any, **attrs: Any) -> Any:
    op = get_op(name)
    results = apply_native(op, op.make_attrs(attrs), inputs)
    assert results is not NotImplemented
    return results if len(results) > 1 else results[0]


EXECUTORS = [
    pytest.param(eager.reference, id="reference"),
    pytest.param(native, id="native", marks=pytest.mark.skipif(not is_available(), reason="the library is not built")),
]
DENSE, SPARSE, SIGMOID = (
    "SoftmaxCrossEntropyWithLogits",
    "SparseSoftmaxCrossEntropyWithLogits",
    "SigmoidCrossEntropyWithLogits",
)


@pytest.mark.parametrize("apply", EXECUTORS)
def test_large_logits(apply: Any) -> None:
    logits = np.array([[1e8, 1e8]], np.float32)
    loss, _ = apply(SPARSE, logits, np.array([1]))
    np.testing.assert_allclose(loss, np.log(2), rtol=1e-6)
    loss, _ = apply(DENSE, np.array([[-4885.46, 4878.03]], np.float32), np.array([[0.2, 0.8]], np.float32))
    np.testing.assert_allclose(loss, 1952.698, rtol=1e-5)


@pytest.mark.parametrize("apply", EXECUTORS)
@pytest.mark.parametrize("size", [10.0**e for e in range(-30, 31, 6)])
def test_no_finite_logits_give_nan_or_inf(apply: Any, size: float) -> None:
    logits = (np.array([[1, -1, 0.5], [-1, -1, -1]]) * size).astype(np.float32)
    results = [apply("Softmax", logits), apply("LogSoftmax", logits), apply("LogSumExp", logits, axes=(1,))]
    results += [*apply(SPARSE, logits, np.array([1, 2])), *apply(DENSE, logits, np.full((2, 3), 1 / 3, np.float32))]
    results.append(apply(SIGMOID, logits, np.full((2, 3), 0.5, np.float32)))
    assert all(np.isfinite(r).all() for r in results)


@pytest.mark.parametrize("apply", EXECUTORS)
def test_against_scipy(apply: Any) -> None:
    special = pytest.importorskip("scipy.special")
    rng = np.random.default_rng(0)
    logits = (rng.normal(size=(6, 40)) * 5).astype(np.float32)
    labels, p = rng.integers(0, 40, 6), special.softmax(logits, axis=-1)
    log_p = special.log_softmax(logits.astype(np.float64), axis=-1)
    np.testing.assert_allclose(apply("Softmax", logits), p, rtol=2e-6, atol=1e-9)
    np.testing.assert_allclose(apply("LogSoftmax", logits), log_p, rtol=2e-6, atol=3e-7)
    hot = np.eye(40, dtype=np.float32)[labels]
    for loss, backprop in (apply(SPARSE, logits, labels), apply(DENSE, logits, hot)):
        np.testing.assert_allclose(loss, -log_p[np.arange(6), labels], rtol=2e-6, atol=3e-7)
        np.testing.assert_allclose(backprop, p - hot, rtol=1e-5, atol=1e-7)
    z = rng.random((6, 40)).astype(np.float32)
    want = -z * special.log_expit(logits) - (1 - z) * special.log_expit(-logits)
    np.testing.assert_allclose(apply(SIGMOID, logits, z), want, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("apply", EXECUTORS)
@pytest.mark.parametrize("label", [3, -1])
def test_a_bad_label_is_named_with_its_row(apply: Any, label: int) -> None:
    labels = np.array([0, 2, 1, label, 99], np.int64)
    with pytest.raises(RilletError, match=rf"label of row 3: got {label}, expected a class from 0 to 2"):
        apply(SPARSE, np.zeros((5, 3), np.float32), labels)


@pytest.mark.parametrize("apply", EXECUTORS)
def test_a_class_of_no_weight_may_have_an_infinite_logit(apply: Any) -> None:
    logits = np.array([[0.0, -np.inf, 0.0]], np.float32)
    loss, backprop = apply(DENSE, logits, np.array([[1.0, 0.0, 0.0]], np.float32))
    np.testing.assert_allclose(loss, np.log(2), rtol=1e-6)
    np.testing.assert_allclose(backprop, [[-0.5, 0, 0.5]])


def test_second_order_gradient_of_the_sparse_loss() -> None:
    """The Hessian of the loss is diag(p) - p p', through the op that computes the first gradient."""
    logits, op = np.random.default_rng(0).normal(size=(1, 4)), get_op(SPARSE)
    outputs = op.compute(np, op.make_attrs({}), logits, np.array([2]))
    p = eager.reference("Softmax", logits)[0]
    for i in range(4):
        assert op.gradient is not None
        row, _ = op.gradient(
            eager.reference, op.make_attrs({}), (logits, np.array([2])), outputs, np.zeros(1), np.eye(4)[i : i + 1]
        )
        np.testing.assert_allclose(row[0], (np.diag(p) - np.outer(p, p))[i], atol=1e-12)
