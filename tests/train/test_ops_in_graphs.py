"""Every op in a graph: each case through a session, and each gradient with nothing known of a shape but its rank."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pytest

from rillet.shared_ops.eager import reference
from rillet.shared_ops.errors import OpError
from rillet.shared_ops.op import Case, Op
from rillet.shared_ops.registry import all_ops
from rillet.train import Graph, Session, Tensor, constant, gradients, placeholder

CASES = [
    pytest.param(op, case, id=f"{op.name}-{case.label or i}")
    for op in all_ops()
    if not op.updates and op.name != "ReadVariable"
    for i, case in enumerate(op.cases(np.random.default_rng(3)))
]


def emit(graph: Graph, op: Op, case: Case, known: bool) -> tuple[list[Any], list[Tensor], dict[Any, Any]]:
    """(inputs, outputs, feeds). What describes a shape is a constant, as the kernels want it."""
    given: list[Any] = []
    for i, x in enumerate(case.inputs):
        name = op.inputs[min(i, len(op.inputs) - 1)]
        if x is None:
            given.append(None)
        elif x.dtype.kind == "i" and x.ndim <= 1 and ("shape" in name or not known):
            given.append(constant(x))
        else:
            given.append(placeholder(x.shape if known else (None,) * x.ndim, x.dtype))
    y = graph.emit(op.name, *given, **asdict(op.make_attrs(case.attrs)))
    feeds = {t: x for t, x in zip(given, case.inputs) if t is not None and t.operation.kind == "Placeholder"}
    return given, [y] if isinstance(y, Tensor) else list(y), feeds


@pytest.mark.parametrize("op,case", CASES)
def test_a_session_gives_what_the_reference_gives(op: Op, case: Case) -> None:
    with Graph().as_default() as graph:
        _, outputs, feeds = emit(graph, op, case, known=True)
        got = Session().run(outputs, feeds)
    for y, want in zip(got, op.compute(np, op.make_attrs(case.attrs), *case.inputs)):
        assert (y.dtype, y.shape) == (want.dtype, want.shape)
        if y.dtype.kind != "f":
            assert np.array_equal(y, want)
        else:
            np.testing.assert_allclose(y, want, rtol=max(case.tolerance, 1e-9), atol=case.tolerance)


@pytest.mark.parametrize("op,case", [p for p in CASES if p.values[0].gradient])
def test_gradients_do_not_need_to_know_the_shapes(op: Op, case: Case) -> None:
    moved = case.differentiable
    if moved is None:
        moved = tuple(i for i, x in enumerate(case.inputs) if x is not None and x.dtype == np.float64)
    if not moved:
        return
    attrs, rng = op.make_attrs(case.attrs), np.random.default_rng(0)
    outputs = op.compute(np, attrs, *case.inputs)
    dys = [rng.normal(size=y.shape) if y.dtype == np.float64 else None for y in outputs]
    inputs = case.inputs if op.is_variadic else case.inputs + (None,) * (len(op.inputs) - len(case.inputs))
    assert op.gradient is not None
    want = op.gradient(reference, attrs, inputs, outputs, *dys)
    with Graph().as_default() as graph:
        try:
            given, ys, feeds = emit(graph, op, case, known=False)
        except OpError as refusal:
            assert "the rank of the result is unknown" in str(refusal)
            return
        pairs = [(y, constant(dy)) for y, dy in zip(ys, dys) if dy is not None]
        found = gradients([y for y, _ in pairs], [given[i] for i in moved], [dy for _, dy in pairs], unconnected="none")
        kept = [(i, dx) for i, dx in zip(moved, found) if dx is not None]
        got = Session().run([dx for _, dx in kept], feeds)
    for (i, _), dx in zip(kept, got):
        assert dx.shape == case.inputs[i].shape  # type: ignore[union-attr]
        np.testing.assert_allclose(dx, want[i], rtol=1e-6, atol=1e-8)
