"""Gradients of graphs against finite differences and hand-written formulas; paths, cuts and refusals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from nets import Net, convolutional, fill_randomly, transformer_block

from rillet.train import GradientError, Graph, GraphError, Session, Variable, gradients, ops, optimizers, placeholder


@pytest.mark.parametrize("build", [convolutional, transformer_block])
def test_gradients_of_nets_agree_with_finite_differences(build: Callable[..., Net]) -> None:
    """In float64, for every variable: the derivative along one random direction."""
    net = build(dtype=np.float64)
    session = Session(net.graph)
    with net.graph.as_default():
        trained = [v for v in net.graph.variables if v.trainable]
        found = gradients(net.loss, trained)
    for v in net.graph.variables:
        session.set(v, np.ones(v.shape) if "variance" in v.name else np.zeros(v.shape))
    fill_randomly(session)
    feeds = net.feeds(0)
    analytic = session.run(found, feeds)
    rng = np.random.default_rng(1)
    for v, dv in zip(trained, analytic):
        start, direction, eps = session.get(v), rng.normal(size=v.shape), 1e-5
        losses = []
        for sign in (1, -1):
            session.set(v, start + sign * eps * direction)
            losses.append(session.run(net.loss, feeds))
        session.set(v, start)
        numeric = (losses[0] - losses[1]) / (2 * eps)
        assert np.vdot(dv, direction) == pytest.approx(numeric, rel=1e-5, abs=1e-8), v.name


def test_a_dense_net_agrees_with_the_formulas() -> None:
    rng = np.random.default_rng(0)
    xs, ts = rng.normal(size=(6, 4)), rng.normal(size=(6, 2))
    w1, w2 = rng.normal(size=(4, 5)), rng.normal(size=(5, 2))
    with Graph().as_default():
        a, b = Variable(w1, name="a"), Variable(w2, name="b")
        h = ops.tanh(ops.matmul(xs, a.value))
        loss = ops.mean(ops.square(ops.matmul(h, b) - ts), axes=(0, 1))
        session = Session()
        session.initialize()
        da, db = session.run(gradients(loss, [a, b]))
    hidden = np.tanh(xs @ w1)
    dy = 2 * (hidden @ w2 - ts) / ts.size
    np.testing.assert_allclose(db, hidden.T @ dy, rtol=1e-12)
    np.testing.assert_allclose(da, xs.T @ (dy @ w2.T * (1 - hidden**2)), rtol=1e-12)


def test_paths_that_meet_are_added() -> None:
    with Graph().as_default():
        x = placeholder((3,), np.float64)
        y = x * x + ops.exp(x) * x + 2.0 * x
        (dx,) = gradients(y, [x])
        at = np.array([0.5, -1.0, 2.0])
        got = Session().run(dx, {x: at})
    np.testing.assert_allclose(got, 2 * at + np.exp(at) * (1 + at) + 2, rtol=1e-12)


def test_second_derivatives() -> None:
    with Graph().as_default():
        x = placeholder((3,), np.float64)
        (dx,) = gradients(x * x * x, [x])
        (ddx,) = gradients(dx, [x])
        assert Session().run(ddx, {x: [1.0, 2.0, -1.0]}).tolist() == [6, 12, -6]


def test_an_inner_tensor_can_be_differentiated_by() -> None:
    with Graph().as_default():
        x = placeholder((2,), np.float64)
        h = x * 3.0
        dx, dh = gradients(h * h, [x, h])
        got = Session().run([dx, dh], {x: [1.0, 2.0]})
    assert [g.tolist() for g in got] == [[18, 36], [6, 12]]


def test_only_paths_between_are_differentiated() -> None:
    """An op without a gradient that lies elsewhere is no obstacle, and no node is made for other branches."""
    with Graph().as_default() as graph:
        x, z = placeholder((3,), name="x"), placeholder((3,), name="z")
        y = x * 2.0 + ops.floor(ops.exp(z))
        before = len(graph.operations)
        gradients(y, [x])
        assert not any("exp" in o.name for o in graph.operations[before:])


def test_broadcast_operands_get_gradients_of_their_shape() -> None:
    with Graph().as_default():
        x, b = placeholder((None, 3), np.float64), placeholder((3,), np.float64)
        db, dx = gradients(x * b, [b, x])
        got = Session().run([db, dx], {x: np.ones((4, 3)), b: [1.0, 2.0, 3.0]})
    assert got[0].tolist() == [4, 4, 4] and got[1].shape == (4, 3)


def test_an_unconnected_x_is_an_error_that_says_where() -> None:
    with Graph().as_default():
        x, z = placeholder((3,), name="x"), placeholder((3,), name="z")
        y = ops.cast(ops.cast(x, dtype="i32"), dtype="f32") * 2.0
        with pytest.raises(
            GradientError, match=r"path ends at \[Cast at 'cast' \(test_gradients.py:\d+\)\], which gives no"
        ):
            gradients(y, [x])
        with pytest.raises(GradientError, match="Nothing that leads there reads it"):
            gradients(y, [z])
        assert gradients(y, [x], unconnected="none") == [None]
        with pytest.raises(GradientError, match="passes no gradient"):
            gradients(ops.stop_gradient(x) * 2.0, [x])


def test_stop_gradients_are_constants() -> None:
    with Graph().as_default():
        x = placeholder((2,), np.float64)
        h = x * x
        (dx,) = gradients(h * x, [x], stop_gradients=[h])
        assert Session().run(dx, {x: [2.0, 3.0]}).tolist() == [4, 9]


def test_an_op_without_gradient_on_the_path_is_named() -> None:
    net = convolutional()
    with net.graph.as_default():
        kernel = next(v for v in net.graph.variables if v.name == "conv/kernel")
        (dw,) = gradients(net.loss, [kernel])
        with pytest.raises(
            GradientError, match=r"\[BatchNormTrainingGrad at .*norm.*\(nets.py:\d+\)\] the op has no grad"
        ):
            gradients(ops.sum(dw * dw), [kernel])


def test_given_gradients_scale() -> None:
    with Graph().as_default():
        x = placeholder((2,), np.float64)
        (dx,) = gradients([x * x], [x], grad_ys=[np.array([1.0, 10.0])])
        assert Session().run(dx, {x: [2.0, 3.0]}).tolist() == [4, 60]


def test_a_loss_that_is_no_scalar_is_refused() -> None:
    with Graph().as_default():
        v = Variable(np.ones(3, np.float32))
        with pytest.raises(ValueError, match="a loss is a scalar"):
            optimizers.SGD(0.1).minimize(v * 2.0)


def test_gradients_carry_the_line_of_the_forward_operation() -> None:
    with Graph().as_default() as graph:
        x = placeholder((3,), name="x")
        y = ops.tanh(x)
        before = len(graph.operations)
        gradients(y, [x])
        made = [o for o in graph.operations[before:] if o.kind == "TanhGrad"]
        assert made and made[0].source == y.operation.source


def test_ys_may_be_variables_and_have_one_gradient_each() -> None:
    with Graph().as_default():
        v = Variable(np.ones(2, np.float32), name="v")
        (dv,) = gradients(v, [v])
        session = Session()
        session.initialize()
        assert session.run(dv).tolist() == [1, 1]
        with pytest.raises(GraphError, match="got 1 grad_ys for 2 ys"):
            gradients([v * 2.0, v], [v], grad_ys=[None])
