"""Every native kernel against the op's reference, on every case; same bytes on every ISA and thread count."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rillet.train  # noqa: F401 - its state ops have kernels too
from rillet.lite.library import current_isa, is_available, isas, set_isa
from rillet.lite.single import apply_native, has_kernel, prepare_single
from rillet.shared_ops.eager import as_arrays
from rillet.shared_ops.errors import OpError
from rillet.shared_ops.op import Case, Op
from rillet.shared_ops.registry import all_ops, get_op

pytestmark = pytest.mark.skipif(not is_available(), reason="the native library is not built")
SERVED = ("Backprop", "Grad")


def as_float32(case: Case) -> tuple[Any, ...]:
    return tuple(x.astype(np.float32) if x is not None and x.dtype == np.float64 else x for x in case.inputs)


def cases_of(op: Op) -> list[Case]:
    return list(op.cases(np.random.default_rng(0)))


def recorded() -> list[tuple[Op, Case, str]]:
    """Applications that gradient functions make of ops with native kernels, where they have no cases of their own."""
    found: list[tuple[Op, Case, str]] = []
    for op in all_ops():
        if op.gradient is None:
            continue
        for n, case in enumerate(cases_of(op)):

            def emit(name: str, *inputs: Any, op: Op = op, n: int = n, case: Case = case, **attrs: Any) -> Any:
                arrays = as_arrays(inputs)
                target = get_op(name)
                record = target.make_attrs(attrs)
                if target.native and any(s in name for s in SERVED):
                    found.append(
                        (target, Case(arrays, attrs, case.tolerance), f"{name}-of-{op.name}-{case.label or n}")
                    )
                results = target.compute(np, record, *arrays)
                return results if len(results) != 1 else results[0]

            inputs = case.inputs
            outputs = op.compute(np, op.make_attrs(case.attrs), *inputs)[: len(op.outputs)]
            if not any(y.dtype == np.float64 for y in outputs):
                continue
            rng = np.random.default_rng(1)
            dys = tuple(rng.normal(size=y.shape) if y.dtype == np.float64 else np.zeros(y.shape) for y in outputs)
            with contextlib.suppress(OpError):  # what is wrong with a gradient is the business of test_records
                op.gradient(emit, op.make_attrs(case.attrs), inputs, outputs, *dys)
    return found


def all_cases() -> list[Any]:
    found = [(op, case, f"{op.name}-{case.label or i}")
             for op in all_ops() if op.native for i, case in enumerate(cases_of(op))]  # fmt: skip
    return [pytest.param(op, case, id=name) for op, case, name in [*found, *recorded()]]


ALL = all_cases()


def run_native(op: Op, case: Case, threads: int = 1) -> Any:
    inputs = as_float32(case)
    if op.quantize is not None and inputs and inputs[0] is not None and inputs[0].dtype == np.int8:
        pytest.skip("an int8 kernel needs scales: test_int8 gives them")
    results = apply_native(op, op.make_attrs(case.attrs), inputs, threads=threads)
    if results is NotImplemented:
        pytest.skip(f"no kernel for {[None if x is None else str(x.dtype) for x in inputs]}")
    return results


@pytest.mark.parametrize("op,case", ALL)
def test_native_agrees_with_reference(op: Op, case: Case) -> None:
    """Shapes and dtypes are those of `infer`; floats within the case's tolerance of the largest result, ints equal."""
    got = run_native(op, case)
    inputs = as_float32(case)
    want = op.compute(np, op.make_attrs(case.attrs), *inputs)
    # The exact answer, for the size of the error: float64 all the way where the case is.
    exact = op.compute(np, op.make_attrs(case.attrs), *case.inputs)
    assert len(got) == len(want)
    for g, w, e in zip(got, want, exact):
        assert (g.shape, g.dtype) == (w.shape, w.dtype)
        if g.dtype.kind != "f":
            np.testing.assert_array_equal(g, w)
            continue
        finite = np.isfinite(e)
        scale = float(np.max(np.abs(e), where=finite, initial=0.0)) or 1.0
        np.testing.assert_allclose(g, w, rtol=case.tolerance, atol=case.tolerance * scale)


@pytest.fixture
def restore_isa() -> Iterator[None]:
    before = current_isa()
    yield
    set_isa(before)


@pytest.mark.parametrize("op,case", ALL)
def test_same_bytes_on_every_isa_and_thread_count(op: Op, case: Case, restore_isa: None) -> None:
    first: list[bytes] = []
    for isa in isas():
        set_isa(isa)
        for threads in (1, 2, 3):
            got = [g.tobytes() for g in run_native(op, case, threads)]
            first = first or got
            assert got == first, f"{isa}, {threads} threads"


@pytest.mark.parametrize("op,case", ALL)
def test_same_bytes_when_inputs_are_constants(op: Op, case: Case) -> None:
    """Kernels pack constant weights while preparing: that may not change a bit."""
    inputs = as_float32(case)
    if len(inputs) < 2 or op.updates:
        pytest.skip("nothing to pack")
    fed = run_native(op, case)
    prepared = prepare_single(op, op.make_attrs(case.attrs), inputs, constants=range(1, len(inputs)))
    assert prepared is not None
    assert [y.tobytes() for y in prepared.run(inputs)] == [y.tobytes() for y in fed]


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in all_ops() if op.native])
def test_the_kernel_that_a_record_names_exists(op: Op) -> None:
    dtypes = [np.dtype(t) for t in (np.float32, np.int8, np.int32, np.int64, np.bool_, np.float64, np.uint8)]
    assert any(has_kernel(op, d) for d in dtypes), f"{op.name} names native={op.native!r}; kernels.inc has none for it"
