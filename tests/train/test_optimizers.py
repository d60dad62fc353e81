"""Optimizers against the formulas that their documentation gives, transcribed to NumPy; schedules; clipping."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rillet.shared_ops.errors import OpError
from rillet.train import Graph, GraphError, Session, Variable, ops, optimizers, placeholder
from rillet.train.optimizers import Optimizer, clip_by_global_norm, cosine, exponential, linear_warmup
from rillet.train.tensor import Operation, Tensor

STEPS = 12


def trace(optimizer: Optimizer) -> tuple[np.ndarray, list[np.ndarray]]:
    """The path of a variable in float64 under given gradients, and these."""
    rng = np.random.default_rng(0)
    gradients = [rng.normal(size=5) for _ in range(STEPS)]
    with Graph().as_default():
        w = Variable(np.linspace(-1.0, 1.0, 5), name="w")
        g = placeholder((5,), np.float64)
        train = optimizer.minimize(ops.sum(w * g))
        session = Session()
        session.initialize()
        path = []
        for given in gradients:
            session.run(train, {g: given})
            path.append(session.get(w))
    return np.array(path), gradients


def walk(update: Callable[[np.ndarray, np.ndarray, int], np.ndarray], gradients: list[np.ndarray]) -> np.ndarray:
    w, path = np.linspace(-1.0, 1.0, 5), []
    for t, g in enumerate(gradients, 1):
        w = update(w, g, t)
        path.append(w)
    return np.array(path)


def test_sgd() -> None:
    path, gradients = trace(optimizers.SGD(0.125))
    np.testing.assert_allclose(path, walk(lambda w, g, t: w - 0.125 * g, gradients), rtol=1e-12)


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum(nesterov: bool) -> None:
    path, gradients = trace(optimizers.Momentum(0.125, 0.75, nesterov=nesterov))
    a = np.zeros(5)

    def update(w: np.ndarray, g: np.ndarray, t: int) -> np.ndarray:
        nonlocal a
        a = 0.75 * a + g
        return w - 0.125 * (g + 0.75 * a if nesterov else a)

    np.testing.assert_allclose(path, walk(update, gradients), rtol=1e-12)


@pytest.mark.parametrize("decay", [None, 0.1])
def test_adam_and_adamw(decay: float | None) -> None:
    lr, b1, b2, eps = 0.125, 0.8, 0.9, 1e-3
    made: Any = optimizers.Adam(lr, b1, b2, eps) if decay is None else optimizers.AdamW(lr, decay, b1, b2, eps)
    path, gradients = trace(made)
    m, v = np.zeros(5), np.zeros(5)

    def update(w: np.ndarray, g: np.ndarray, t: int) -> np.ndarray:
        nonlocal m, v
        w = w - lr * (decay or 0.0) * w
        m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
        return w - lr * (m / (1 - b1**t)) / (np.sqrt(v / (1 - b2**t)) + eps)

    np.testing.assert_allclose(path, walk(update, gradients), rtol=1e-9)


@pytest.mark.parametrize("inside", [True, False])
def test_rmsprop(inside: bool) -> None:
    path, gradients = trace(optimizers.RMSProp(0.125, 0.9, 0.5, 1e-3, epsilon_inside=inside))
    s, m = np.zeros(5), np.zeros(5)

    def update(w: np.ndarray, g: np.ndarray, t: int) -> np.ndarray:
        nonlocal s, m
        s = 0.9 * s + 0.1 * g * g
        m = 0.5 * m + 0.125 * g / (np.sqrt(s + 1e-3) if inside else np.sqrt(s) + 1e-3)
        return w - m

    np.testing.assert_allclose(path, walk(update, gradients), rtol=1e-9)


def test_adagrad() -> None:
    path, gradients = trace(optimizers.Adagrad(0.125, initial=0.5, epsilon=1e-2))
    a = np.full(5, 0.5)

    def update(w: np.ndarray, g: np.ndarray, t: int) -> np.ndarray:
        nonlocal a
        a = a + g * g
        return w - 0.125 * g / (np.sqrt(a) + 1e-2)

    np.testing.assert_allclose(path, walk(update, gradients), rtol=1e-9)


def test_a_users_own_optimizer_is_a_few_lines() -> None:
    class SignMomentum(Optimizer):
        def _apply(self, variable: Variable, gradient: Tensor, rate: Tensor) -> Operation:
            kept = self._slot(variable, "kept")
            new = kept.value * 0.5 + gradient
            return ops.assign_sub(variable, rate * ops.sign(new)), kept.assign(new)  # type: ignore

    class Grouped(SignMomentum):
        def _apply(self, variable: Variable, gradient: Tensor, rate: Tensor) -> Operation:
            return variable.graph.group(super()._apply(variable, gradient, rate))  # type: ignore

    path, gradients = trace(Grouped(0.125))
    kept = np.zeros(5)

    def update(w: np.ndarray, g: np.ndarray, t: int) -> np.ndarray:
        nonlocal kept
        kept = 0.5 * kept + g
        return w - 0.125 * np.sign(kept)

    np.testing.assert_allclose(path, walk(update, gradients), rtol=1e-12)


def test_schedules_are_functions_of_the_step() -> None:
    schedules = {
        "cosine": (cosine(1.0, total=10, warmup=4, final=0.1), lambda t: (t + 1) / 4 if t < 4 else
                   0.1 + 0.9 * (1 + math.cos(math.pi * min((t - 4) / 6, 1))) / 2),
        "exponential": (exponential(2.0, 0.5, 4), lambda t: 2 * 0.5 ** (t / 4)),
        "staircase": (exponential(2.0, 0.5, 4, staircase=True), lambda t: 2 * 0.5 ** (t // 4)),
        "warmup": (linear_warmup(3.0, 5), lambda t: 3 * min((t + 1) / 5, 1)),
    }  # fmt: skip
    with Graph().as_default() as graph:
        rates = {name: make(graph.step) for name, (make, _) in schedules.items()}
        session = Session()
        for t in range(13):
            session.step = t
            for name, got in session.run(rates).items():
                assert got == pytest.approx(schedules[name][1](t), rel=1e-5), (name, t)


def test_the_schedule_drives_the_steps() -> None:
    with Graph().as_default():
        w = Variable(np.zeros((), np.float32), name="w")
        train = optimizers.SGD(linear_warmup(1.0, 4)).minimize(w * 1.0)
        session = Session()
        session.initialize()
        for _ in range(3):
            session.run(train)
        assert session.get(w) == pytest.approx(-(0.25 + 0.5 + 0.75))


def clipped(values: list[list[float]], limit: float, **more: Any) -> tuple[list[np.ndarray], float]:
    with Graph().as_default() as graph:
        tensors = [graph.placeholder((len(v),)) for v in values]
        parts, norm = clip_by_global_norm(tensors, limit, **more)
        got, n = Session().run([parts, norm], dict(zip(tensors, values)))
        return got, float(n)


def test_clipping_scales_all_by_one_factor() -> None:
    (a, b), norm = clipped([[3.0], [0.0, 4.0]], 2.5)
    assert norm == 5 and a.tolist() == [1.5] and b.tolist() == [0, 2]


def test_a_norm_at_the_limit_changes_nothing() -> None:
    (a, b), norm = clipped([[3.0], [0.0, 4.0]], 5.0)
    assert norm == 5 and a.tolist() == [3] and b.tolist() == [0, 4]


def test_zeros_stay_zeros() -> None:
    (a,), norm = clipped([[0.0, 0.0]], 0.0)
    assert norm == 0 and a.tolist() == [0, 0]


def test_squares_that_overflow_do_not() -> None:
    (a,), norm = clipped([[3e30, 4e30]], 1.0)
    assert norm == pytest.approx(5e30, rel=1e-6)
    np.testing.assert_allclose(a, [0.6, 0.8], rtol=1e-6)


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_a_norm_that_is_not_finite_names_its_source(bad: float) -> None:
    with pytest.raises(OpError, match=r"CheckFinite at .*not finite: second: got"):
        clipped([[1.0], [bad, 1.0]], 1.0, names=["first", "second"])
    (a, b), _ = clipped([[1.0], [bad, 1.0]], 1.0, check=False)
    assert np.isnan(a).all() and np.isnan(b).all()


def test_a_refused_step_updates_nothing() -> None:
    with Graph().as_default():
        w, u = Variable([1.0], name="w"), Variable([1.0], name="u")
        x = placeholder((1,))
        train = optimizers.Adam(0.1, clip_norm=1.0).minimize(ops.sum(w * x + u * 2.0))
        session = Session()
        session.initialize()
        with pytest.raises(OpError, match="not finite: w"):
            session.run(train, {x: [np.inf]})
        assert session.step == 0 and all(session.get(v)[0] in (0, 1) for v in session.graph.variables)
        session.run(train, {x: [1.0]})
        assert session.step == 1


def test_a_variable_is_updated_once_in_a_step() -> None:
    with Graph().as_default():
        w = Variable([1.0], name="w")
        with pytest.raises(GraphError, match="'w' would be updated twice"):
            optimizers.SGD(0.1).minimize(ops.sum(w), [w, w])
        with pytest.raises(GraphError, match="nothing to train"):
            optimizers.SGD(0.1).apply_gradients([])
