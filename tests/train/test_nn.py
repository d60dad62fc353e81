"""Layers, losses and metrics against NumPy; their variables' names, shapes and dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rillet.shared_ops.types import Dim
from rillet.train import Graph, GraphError, Session, Variable, gradients, initializers, nn, placeholder

RNG = np.random.default_rng(0)


def run(y: Any, feeds: dict[Any, Any]) -> tuple[Any, dict[str, np.ndarray]]:
    """The value of a layer's output with random variables, and these."""
    session = Session()
    for v in session.graph.variables:
        session.set(v, RNG.normal(size=v.shape))
    return session.run(y, feeds), {v.name: session.get(v) for v in session.graph.variables}


@pytest.mark.parametrize("shape", [(4, 3), (2, 4, 3), (None, 4, 3), (None, None, 3), ("n", "t", 5, 3)])
def test_dense_works_on_the_last_axis(shape: tuple[Dim, ...]) -> None:
    at = RNG.normal(size=[d if isinstance(d, int) else 2 for d in shape])
    with Graph().as_default():
        x = placeholder(shape, np.float64)
        y = nn.dense(x, 6, activation="tanh")
        got, values = run(y, {x: at})
    assert len(y.shape) == len(shape) and y.shape[-1] == 6
    np.testing.assert_allclose(got, np.tanh(at @ values["dense/kernel"] + values["dense/bias"]), rtol=1e-12)


def test_layers_name_their_variables() -> None:
    with Graph().as_default() as graph:
        x = placeholder((None, 8, 8, 4))
        nn.separable_conv2d(nn.batch_norm(nn.conv2d(x, 6, 3, groups=2)), 5)
        found = {v.name: (v.shape, v.trainable) for v in graph.variables}
    assert found == {
        "conv2d/kernel": ((3, 3, 2, 6), True),
        "conv2d/bias": ((6,), True),
        "batch_norm/scale": ((6,), True),
        "batch_norm/offset": ((6,), True),
        "batch_norm/moving_mean": ((6,), False),
        "batch_norm/moving_variance": ((6,), False),
        "separable_conv2d/depthwise/kernel": ((3, 3, 6, 1), True),
        "separable_conv2d/pointwise/kernel": ((1, 1, 6, 5), True),
        "separable_conv2d/pointwise/bias": ((5,), True),
    }


def test_batch_norm_normalises_and_keeps_moving_averages() -> None:
    at = RNG.normal(size=(6, 3)) * 4 + 2
    with Graph().as_default() as graph:
        x = placeholder((None, 3), np.float64)
        y = nn.batch_norm(x, momentum=0.75, epsilon=0.0)
        session = Session()
        session.initialize()
        got = session.run(y, {x: at})
        moving = {v.name.split("/")[1]: session.get(v) for v in graph.variables}
    np.testing.assert_allclose(got, (at - at.mean(0)) / at.std(0), rtol=1e-10)
    np.testing.assert_allclose(moving["moving_mean"], 0.25 * at.mean(0), rtol=1e-10)
    np.testing.assert_allclose(moving["moving_variance"], 0.75 + 0.25 * at.var(0, ddof=1), rtol=1e-10)


def test_pools_flatten_and_embedding() -> None:
    at = RNG.normal(size=(2, 4, 4, 3))
    with Graph().as_default():
        x = placeholder((None, 4, 4, 3), np.float64)
        words = placeholder((None, 5), np.int32)
        session_inputs = {x: at, words: RNG.integers(0, 7, (2, 5))}
        (m, a, g, f, e), values = run(
            [nn.max_pool(x), nn.avg_pool(x), nn.global_average_pool(x), nn.flatten(x), nn.embedding(words, 7, 4)],
            session_inputs,
        )
    tiles = at.reshape(2, 2, 2, 2, 2, 3)
    np.testing.assert_allclose(m, tiles.max((2, 4)))
    np.testing.assert_allclose(a, tiles.mean((2, 4)))
    np.testing.assert_allclose(g, at.mean((1, 2)))
    assert f.shape == (2, 48)
    np.testing.assert_array_equal(e, values["embedding/table"][session_inputs[words]])


def test_losses() -> None:
    logits, labels = RNG.normal(size=(5, 4)), RNG.integers(0, 4, 5)
    p = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    one_hot = np.eye(4)[labels]
    with Graph().as_default():
        x, t, i = placeholder((5, 4), np.float64), placeholder((5, 4), np.float64), placeholder((5,), np.int32)
        w = Variable(np.array([1.0, 2.0, -3.0]), name="w")
        fetches = [
            nn.sparse_softmax_cross_entropy(x, i),
            nn.softmax_cross_entropy(x, t, label_smoothing=0.2),
            nn.sigmoid_cross_entropy(x, t),
            nn.mean_squared_error(x, t),
            nn.accuracy(x, i),
            nn.l2([w], 0.5),
        ]
        session = Session()
        session.initialize()
        got = session.run(fetches, {x: logits, t: one_hot, i: labels})
    smooth = one_hot * 0.8 + 0.05
    q = 1 / (1 + np.exp(-logits))
    want = [
        -np.log(p[np.arange(5), labels]).mean(),
        -(smooth * np.log(p)).sum(1).mean(),
        -(one_hot * np.log(q) + (1 - one_hot) * np.log(1 - q)).mean(),
        ((logits - one_hot) ** 2).mean(),
        (logits.argmax(1) == labels).mean(),
        0.25 * 14,
    ]
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_unknown_activations_and_widths_are_refused() -> None:
    with Graph().as_default():
        with pytest.raises(GraphError, match="no activation 'swoosh'.* Did you mean .*swish"):
            nn.dense(placeholder((2, 3)), 4, activation="swoosh")
        for of_two_or_fixed in ("add", "cast", "reshape"):
            with pytest.raises(GraphError, match="no activation"):
                nn.dense(placeholder((2, 3)), 4, activation=of_two_or_fixed)
        assert nn.dense(placeholder((2, 3)), 4, activation="softplus").operation.kind == "Softplus"  # any op of one
        with pytest.raises(GraphError, match="last dimension"):
            nn.dense(placeholder((2, None)), 4)


def test_fans_and_spreads_of_initial_values() -> None:
    """Standard deviations over 20000 draws; truncation at two deviations of the uncut normal."""
    shape = (5, 5, 20, 40)
    he = initializers.he_normal(shape, 0, 1)
    assert he.std() == pytest.approx(np.sqrt(2 / 500), rel=0.02)
    assert np.abs(he).max() <= 2 * np.sqrt(2 / 500) / 0.8796 * 1.0001
    glorot = initializers.glorot_uniform(shape, 0, 1)
    limit = np.sqrt(6 / (500 + 1000))
    assert np.abs(glorot).max() <= limit and glorot.std() == pytest.approx(limit / np.sqrt(3), rel=0.02)
    assert abs(glorot.mean()) < 0.02 * limit and (glorot != initializers.glorot_uniform(shape, 0, 2)).any()


def test_dropout_differs_by_layer_step_and_seed_and_its_gradient_has_its_mask() -> None:
    def masks(seed: int, extra: bool = False) -> list[bytes]:
        with Graph(seed).as_default():
            x = placeholder((50,))
            if extra:
                x = x * 1.0
            a, b = nn.dropout(x, 0.5, name="a"), nn.dropout(x, 0.5, name="b")
            (da,) = gradients(a, [x])
            session = Session()
            ya, yb, dx = session.run([a, b, da], {x: np.ones(50)})
            assert set(ya) == {0, 2} and (ya == dx).all()
            session.step = 1
            return [ya.tobytes(), yb.tobytes(), session.run(a, {x: np.ones(50)}).tobytes()]

    first = masks(1)
    assert len({*first, *masks(2)}) == 6 and masks(1, extra=True) == first


def test_columns_do_not_meet_rows_in_losses_and_metrics() -> None:
    """[n, 1] against [n] broadcasts to [n, n]: a number comes out, and it is wrong."""
    with Graph().as_default():
        column, row = placeholder((None, 1)), placeholder((None,))
        with pytest.raises(GraphError, match=r"predictions have shape \(None, 1\), targets \(None,\)"):
            nn.mean_squared_error(column, row)
        with pytest.raises(GraphError, match="targets"):
            nn.mean_squared_error(placeholder((4, 3)), np.zeros((4, 1), np.float32))
        got = Session().run(
            [nn.mean_squared_error(row, 1.0), nn.mean_squared_error(row, [1.0, 5.0])], {row: [1.0, 3.0]}
        )
        assert got == [2.0, 2.0]
        with pytest.raises(GraphError, match=r"labels \[n\]"):
            nn.accuracy(placeholder((None, 3)), placeholder((None, 1), np.int64))
        with pytest.raises(GraphError, match="number of classes"):
            nn.softmax_cross_entropy(placeholder((4, None)), placeholder((4, None)), label_smoothing=0.1)
