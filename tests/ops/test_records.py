"""Every op, every case, every check over its record. A new op adds cases in its own file and nothing here."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rillet.train  # noqa: F401 - its state ops are ops too
from rillet.shared_ops.eager import reference
from rillet.shared_ops.errors import OpError
from rillet.shared_ops.op import Case, Op
from rillet.shared_ops.registry import all_ops
from rillet.shared_ops.types import DTYPES, TensorType, type_of


def cases_of(op: Op) -> list[Case]:
    return list(op.cases(np.random.default_rng(0)))


ALL = [pytest.param(op, case, id=f"{op.name}-{case.label or i}")
       for op in all_ops() for i, case in enumerate(cases_of(op))]  # fmt: skip
# Backprop ops need no cases of their own: the gradient check of the op they serve runs them, and the native check
# compares them through the applications that it records there.


def types_of(case: Case) -> tuple[TensorType | None, ...]:
    return tuple(None if x is None else type_of(x) for x in case.inputs)


@pytest.mark.parametrize("op,case", ALL)
def test_infer_agrees_with_reference(op: Op, case: Case) -> None:
    attrs = op.make_attrs(case.attrs)
    results = op.compute(np, attrs, *case.inputs)
    inferred = op.infer_types(attrs, types_of(case))
    assert len(results) == len(inferred) + len(op.updates)
    for got, want in zip(results, inferred):
        assert (want.dtype, want.shape) == (got.dtype, got.shape)


@pytest.mark.parametrize("op,case", ALL)
def test_infer_keeps_what_is_known(op: Op, case: Case) -> None:
    """With each dimension unknown in turn, infer still answers, and never contradicts the full answer."""
    attrs = op.make_attrs(case.attrs)
    full = op.infer_types(attrs, types_of(case))
    for i, x in enumerate(case.inputs):
        if x is None:
            continue
        for axis in range(x.ndim):
            types = list(types_of(case))
            shape = tuple(None if a == axis else d for a, d in enumerate(x.shape))
            if op.inputs[min(i, len(op.inputs) - 1)].rstrip("?").endswith("shape"):
                shape = (
                    x.shape
                )  # its length is the rank of the result, and ranks are always known: only the value is not
            types[i] = TensorType(x.dtype, shape)
            try:
                inferred = op.infer_types(attrs, tuple(types))
            except OpError as refusal:  # ranks are always known: what would leave one open is refused
                assert "the rank of the result is unknown" in str(refusal)
                continue
            for partial, known in zip(inferred, full):
                assert partial.dtype == known.dtype and partial.rank == known.rank
                assert all(p is None or isinstance(p, str) or p == k for p, k in zip(partial.shape, known.shape))


def run64(op: Op, case: Case, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    return op.compute(np, op.make_attrs(case.attrs), *inputs)[: len(op.outputs) if not op.outputs[-1:] or not
                                                              op.outputs[-1].startswith("*") else None]  # fmt: skip


@pytest.mark.parametrize("op,case", [p for p in ALL if p.values[0].gradient])
def test_gradient_agrees_with_finite_differences(op: Op, case: Case) -> None:
    """One random direction a case: <dy, J v> by central differences against <J' dy, v>, in float64."""
    rng, eps = np.random.default_rng(1), 1e-6
    moved = case.differentiable
    if moved is None:
        moved = tuple(i for i, x in enumerate(case.inputs) if x is not None and x.dtype == np.float64)
    if not moved:
        return  # values at which the op has no derivative, or integers
    outputs = run64(op, case, case.inputs)
    dys = tuple(rng.normal(size=y.shape) if y.dtype == np.float64 else None for y in outputs)
    direction = {i: rng.normal(size=case.inputs[i].shape) for i in moved}  # type: ignore[union-attr]

    def step(sign: float) -> tuple[Any, ...]:
        return run64(op, case, tuple(x + sign * eps * direction[i] if i in direction else x
                                     for i, x in enumerate(case.inputs)))  # fmt: skip

    numeric = sum(
        np.vdot(dy, (p - m) / (2 * eps)) for dy, p, m in zip(dys, step(+1), step(-1), strict=True) if dy is not None
    )
    assert op.gradient is not None
    given = tuple(np.zeros(y.shape) if dy is None else dy for dy, y in zip(dys, outputs))
    gradients = op.gradient(reference, op.make_attrs(case.attrs), case.inputs, outputs, *given)
    assert len(gradients) == len(case.inputs)
    analytic = 0.0
    for i in moved:
        g = gradients[i]
        assert g is not None, f"no gradient for input {i}; name the differentiable inputs in the case"
        assert g.shape == case.inputs[i].shape and g.dtype == np.float64  # type: ignore[union-attr]
        analytic += np.vdot(g, direction[i])
    scale = max(abs(numeric), abs(analytic), 1e-3)
    assert abs(analytic - numeric) / scale < 2e-6


REJECTS = [pytest.param(op, r, id=f"{op.name}-{r.match or i}") for op in all_ops() for i, r in enumerate(op.rejects)]


@pytest.mark.parametrize("op,reject", REJECTS)
def test_refuses(op: Op, reject: Any) -> None:
    def type_at(i: int) -> TensorType | None:
        shape = reject.shapes[i]
        if shape is None:
            return None
        dtype = DTYPES[reject.dtypes[i] if i < len(reject.dtypes) else "f32"]
        return TensorType(dtype, shape, reject.values[i] if i < len(reject.values) else None)

    with pytest.raises(OpError, match=reject.match):
        attrs = op.make_attrs(reject.attrs)
        op.infer_types(attrs, tuple(type_at(i) for i in range(len(reject.shapes))))


SERVED = ("Backprop", "Grad")  # backprop ops are run by the check of the op they serve


def test_every_op_has_cases_and_rejects() -> None:
    bare = [op.name for op in all_ops() if not cases_of(op) and not any(s in op.name for s in SERVED)]
    assert not bare, f"ops without cases: {bare}"
    mild = [op.name for op in all_ops() if not op.rejects and op.inputs and not any(s in op.name for s in SERVED)]
    assert not mild, f"ops that refuse nothing: {mild}"
