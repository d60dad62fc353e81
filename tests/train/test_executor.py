"""Random graphs: the session, however it cuts them into regions, agrees with the references run in order."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rillet.shared_ops.program import run_reference
from rillet.train import Graph, Session, Variable, freeze, gradients, ops, placeholder
from rillet.train.tensor import Tensor

UNARY = ("neg", "tanh", "sigmoid", "relu", "square", "exp")
BINARY = ("add", "sub", "mul", "maximum")


@st.composite
def recipes(draw: Any) -> list[tuple[str, int, int]]:
    kinds = st.sampled_from([*UNARY, *BINARY, "matmul", "transpose", "double", "read", "constant"])
    count = draw(st.integers(2, 14))
    return [(draw(kinds), draw(st.integers(0, 99)), draw(st.integers(0, 99))) for _ in range(count)]


def build(recipe: list[tuple[str, int, int]]) -> tuple[Graph, Tensor, list[Tensor]]:
    """A graph over 3x3 matrices, and all its tensors. `double` goes through float64, without kernels."""
    with Graph().as_default() as graph:
        x = placeholder((3, 3), name="x")
        variables = [Variable(np.eye(3, dtype=np.float32) * k, name=f"v{k}") for k in (1, 2)]
        made: list[Any] = [x]
        for kind, i, j in recipe:
            a, b = made[i % len(made)], made[j % len(made)]
            if kind in UNARY:
                y = getattr(ops, kind)(ops.clip_by_value(a, lo=-4.0, hi=4.0))
            elif kind in BINARY:
                y = getattr(ops, kind)(a, b)
            elif kind == "matmul":
                y = ops.matmul(ops.tanh(a), ops.tanh(b))
            elif kind == "transpose":
                y = ops.transpose(a, perm=(1, 0))
            elif kind == "double":
                y = ops.cast(ops.neg(ops.cast(a, dtype="f64")), dtype="f32")
            elif kind == "read":
                y = variables[i % 2] + 0.5
            else:
                y = graph.constant(np.full((3, 3), 0.1 * (i % 7), np.float32)) * 1.0
            made.append(ops.clip_by_value(y, lo=-1e3, hi=1e3))
    return graph, x, made


@settings(max_examples=40, deadline=None)
@given(recipes(), st.data())
def test_session_agrees_with_the_references(recipe: list[tuple[str, int, int]], data: Any) -> None:
    graph, x, made = build(recipe)
    session = Session(graph)
    session.initialize()
    chosen = data.draw(st.lists(st.sampled_from(made[1:]), min_size=1, max_size=3, unique=True))
    at = np.random.default_rng(len(recipe)).normal(size=(3, 3)).astype(np.float32)
    got = session.run(chosen, {x: at})
    names = {f"out{i}": t for i, t in enumerate(chosen)}
    want = run_reference(freeze(session, {"in": x}, names), {"in": at})
    for value, name in zip(got, names):
        np.testing.assert_allclose(value, want[name], rtol=2e-4, atol=1e-4)
    again = session.run(chosen, {x: at})
    assert all(a.tobytes() == b.tobytes() for a, b in zip(got, again)) and session.compilations == 1


@settings(max_examples=25, deadline=None)
@given(recipes())
def test_updates_and_gradients_in_one_run_see_the_old_values(recipe: list[tuple[str, int, int]]) -> None:
    """Assigning in the same run changes nothing that is fetched, however the run is cut."""
    graph, x, made = build(recipe)
    with graph.as_default():
        v = graph.variables[0]
        loss = ops.sum(made[-1] * v, axes=(0, 1)) + ops.sum(v * v, axes=(0, 1))
        (dv,) = gradients(loss, [v])
        update = v.assign_sub(dv * 0.1)
    at = np.full((3, 3), 0.3, np.float32)
    session = Session(graph)
    session.initialize()
    before = session.get(v)
    alone = session.run([loss, dv, v.value], {x: at})
    together = session.run([loss, dv, v.value, update], {x: at})[:3]
    for a, b in zip(alone, together):
        assert a.tobytes() == b.tobytes()
    np.testing.assert_allclose(session.get(v), before - together[1] * np.float32(0.1), rtol=1e-5, atol=1e-6)
