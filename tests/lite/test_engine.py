"""The engine through its client: shapes, memory, variables, threads, errors."""

from __future__ import annotations

import re
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample_models import F32, apply, float_model, weights

from rillet.lite import Context, Model, ModelError, Status, write_model
from rillet.lite.library import library
from rillet.shared_ops.program import Program, run_reference
from rillet.shared_ops.registry import get_op
from rillet.shared_ops.types import TensorType

ROOT = Path(__file__).resolve().parents[2]


def image(batch: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(size=(batch, 6, 6, 3)).astype(np.float32)


def run(context: Context, x: Any) -> Any:
    context.resize(0, x.shape)
    context.input(0)[...] = x
    context.run()
    return context.output(0).copy()


def test_status_list_is_that_of_the_header() -> None:
    text = (ROOT / "lite/engine/rillet.h").read_text()
    listed = {name: int(n) for name, n in re.findall(r"^  RILLET_([A-Z_]+) = (\d+),?(?: |$)", text, re.M)}
    listed = {name: n for name, n in listed.items() if name in Status.__members__}
    assert listed == {s.name: s.value for s in Status}
    for status in Status:
        assert library().rillet_status_name(status).decode() == status.name


def test_float_model_agrees_with_references() -> None:
    program = float_model()
    x = image(2)
    want = run_reference(program, {"image": x})[program.outputs[0]]
    np.testing.assert_allclose(run(Context(Model(write_model(program))), x), want, rtol=1e-5, atol=1e-6)


def test_dynamic_dimension_is_planned_again_for_each_shape() -> None:
    program = float_model(batch="batch")
    context = Context(Model(write_model(program)))
    assert context.inputs[0].shape == (-1, 6, 6, 3) and context.outputs[0].shape == (-1, 4)
    with pytest.raises(ModelError, match="'image': dimension 0 is not known") as caught:
        context.run()
    assert caught.value.status is Status.BAD_ARGUMENT
    first = run(context, image(3))
    assert context.outputs[0].shape == (3, 4)
    np.testing.assert_array_equal(run(context, image(5))[:0], first[:0])
    np.testing.assert_array_equal(run(context, image(3)), first)
    want = run_reference(program, {"image": image(3)})[program.outputs[0]]
    np.testing.assert_allclose(first, want, rtol=1e-5, atol=1e-6)


def test_resize_refuses_what_the_model_does_not_leave_open() -> None:
    context = Context(Model(write_model(float_model(batch="batch"))))
    for shape in [(1, 7, 6, 3), (1, 6, 6), (-1, 6, 6, 3), (2**40, 6, 6, 3)]:
        with pytest.raises(ModelError) as caught:
            context.resize(0, shape)
        assert caught.value.status is Status.BAD_ARGUMENT


def test_dimensions_of_one_name_must_agree() -> None:
    p = Program()
    for name in "ab":
        p.add_input(name, TensorType(F32, ("n",)))
    p.outputs = [apply(p, "Add", "a", "b")]
    context = Context(Model(write_model(p)))
    context.resize(0, (3,))
    context.resize(1, (1,))
    with pytest.raises(ModelError, match="dimension 'n' of 'b': got 1, expected 3 as in 'a'"):
        context.prepare()


def test_model_at_any_address() -> None:
    data, x = write_model(float_model()), image(2)
    want = run(Context(Model(data)), x)
    for shift in range(17):
        buffer = np.zeros(len(data) + 64, np.uint8)
        start = -buffer.ctypes.data % 64 + shift
        buffer[start : start + len(data)] = np.frombuffer(data, np.uint8)
        np.testing.assert_array_equal(run(Context(Model(buffer[start : start + len(data)])), x), want)


def test_memory_limit_is_exact() -> None:
    """The least limit that suffices is what `memory` says; every smaller one is refused with the bytes needed."""
    model = Model(write_model(float_model()))
    memory = Context(model).memory()
    try:
        library().rillet_set_memory_limit(memory.total)
        Context(model)
        for limit in [*range(1, memory.total, 97), memory.total - 1]:
            library().rillet_set_memory_limit(limit)
            with pytest.raises(ModelError, match=rf"the limit is {limit}\b") as caught:
                Context(model)
            assert caught.value.status is Status.OUT_OF_MEMORY
    finally:
        library().rillet_set_memory_limit(0)


def test_zero_size_tensors() -> None:
    p = Program()
    x = p.add_input("x", TensorType(F32, ("n", 3)))
    p.outputs = [apply(p, "Relu", apply(p, "Add", x, p.add_constant("c", weights(3))))]
    context = Context(Model(write_model(p)))
    assert run(context, np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert run(context, np.ones((2, 3), np.float32)).shape == (2, 3)


def test_keep_all_holds_every_value() -> None:
    program = float_model()
    context = Context(Model(write_model(program)))
    context.keep_all()
    x = image(2)
    run(context, x)
    want = run_reference(program, {"image": x}, keep=True)
    got = context.tensors()
    assert set(got) == set(program.values)
    for name, value in got.items():
        np.testing.assert_allclose(value, want[name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_profile_counts_runs_of_every_operation() -> None:
    program = float_model()
    context = Context(Model(write_model(program)))
    context.profile()
    for _ in range(3):
        run(context, image(2))
    times = context.times()
    assert [(t.op, t.name) for t in times] == [(a.op.name, a.name) for a in program.applications]
    for t in times:
        assert t.runs == (0 if t.op in ("Shape", "Slice", "Concat", "Reshape") else 3), t
    assert all(t.nanoseconds > 0 for t in times if t.op == "Conv2D")
    context.profile(False)
    run(context, image(2))
    assert sum(t.runs for t in context.times()) == sum(t.runs for t in times)


def test_contexts_of_one_model_in_two_threads() -> None:
    model, program = Model(write_model(float_model())), float_model()
    del program
    want = [run(Context(model), image(2, seed)) for seed in range(2)]
    failures: list[str] = []

    def work(seed: int) -> None:
        context = Context(model, threads=2)
        for _ in range(200):
            if not np.array_equal(run(context, image(2, seed)), want[seed]):
                failures.append(f"seed {seed}")

    workers = [threading.Thread(target=work, args=(seed,)) for seed in range(2)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    assert not failures


def test_error_names_op_node_and_line() -> None:
    p = Program()
    x = p.add_input("x", TensorType(F32, ("n", 4)))
    w = p.add_input("w", TensorType(F32, ("m", 4)))
    p.outputs = list(p.apply(get_op("MatMul"), [x, w], name="block3/dense", source="train.py:41"))
    context = Context(Model(write_model(p)))
    context.resize(0, (2, 4))
    context.resize(1, (3, 4))
    with pytest.raises(ModelError, match=r"^\[MatMul at 'block3/dense' \(train.py:41\)\] ") as caught:
        context.prepare()
    assert caught.value.status is Status.BAD_OPERATION
    context.resize(1, (4, 4))
    context.run()  # a refused shape leaves the context usable


def test_data_dependent_error_names_the_operation_and_leaves_the_context_usable() -> None:
    p = Program()
    table = p.add_constant("table", weights(5, 2))
    i = p.add_input("ids", TensorType(np.dtype(np.int32), (3,)))
    p.outputs = list(p.apply(get_op("Gather"), [table, i], name="embed", source="t.py:7"))
    context = Context(Model(write_model(p)))
    for bad in (5, -6, 2**31 - 1):
        context.input(0)[...] = [0, bad, 1]
        with pytest.raises(ModelError, match=rf"\[Gather at 'embed' \(t.py:7\)\].*{bad}") as caught:
            context.run()
        assert caught.value.status is Status.BAD_DATA
    context.input(0)[...] = [0, 4, 1]
    context.run()
    np.testing.assert_array_equal(context.output(0), weights(5, 2)[[0, 4, 1]])


def test_many_small_loops_on_many_threads() -> None:
    p = Program()
    x = p.add_input("x", TensorType(F32, (64, 1024)))
    for _ in range(50):
        x = apply(p, "Neg", x)
    p.outputs = [x]
    context = Context(Model(write_model(p)), threads=5)
    x_value = np.random.default_rng(0).normal(size=(64, 1024)).astype(np.float32)
    for _ in range(40):
        np.testing.assert_array_equal(run(context, x_value), x_value)


def test_bad_arguments_of_the_c_interface() -> None:
    context = Context(Model(write_model(float_model())))
    for call in (lambda: context.input(1), lambda: context.output(-1), lambda: context.resize(7, (1,))):
        with pytest.raises(ModelError) as caught:
            call()
        assert caught.value.status is Status.BAD_ARGUMENT
    for threads in (0, -1, 5000):
        with pytest.raises(ModelError, match="threads"):
            Context(context.model, threads)
    assert library().rillet_run(None) == Status.BAD_ARGUMENT
    assert library().rillet_model_load_file(None, None) == Status.BAD_ARGUMENT
