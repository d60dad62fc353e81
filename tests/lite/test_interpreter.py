"""Interpreter: what it converts, and what it refuses to guess."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from sample_models import F32, apply, int8_model

from rillet.lite import Interpreter, ModelError, write_model
from rillet.shared_ops.program import Program, run_reference
from rillet.shared_ops.quantize import quantize
from rillet.shared_ops.types import QuantParams, TensorType

I8 = np.dtype(np.int8)


def passing_on(dtype: Any, quant: QuantParams | None = None, shape: Any = ("batch", 3), **metadata: str) -> Interpreter:
    """A model whose output is its input."""
    p = Program(metadata=metadata)
    p.outputs = [p.add_input("x", TensorType(np.dtype(dtype), shape), quant)]
    return Interpreter(write_model(p))


def two_inputs() -> Interpreter:
    p = Program()
    a, b = (p.add_input(n, TensorType(F32, ("n", 2))) for n in ("left", "right"))
    p.outputs = [apply(p, "Sub", a, b), apply(p, "Add", a, b)]
    return Interpreter(write_model(p))


def test_inputs_by_position_and_by_name() -> None:
    interpreter, a, b = two_inputs(), np.ones((1, 2), np.float32), np.full((1, 2), 3, np.float32)
    difference, total = interpreter(a, b)
    np.testing.assert_array_equal(difference, [[-2, -2]])
    by_name = interpreter.run({"right": b, "left": a})
    np.testing.assert_array_equal(list(by_name.values()), [difference, total])


def test_results_are_copies() -> None:
    interpreter = two_inputs()
    first, _ = interpreter(np.ones((1, 2), np.float32), np.ones((1, 2), np.float32))
    interpreter(np.ones((1, 2), np.float32), np.zeros((1, 2), np.float32))
    np.testing.assert_array_equal(first, [[0, 0]])


def test_threads_that_share_an_interpreter_wait_for_each_other() -> None:
    interpreter = two_inputs()

    def run(k: int) -> bool:
        x = np.full((1 + k % 3, 2), k, np.float32)
        return bool(np.array_equal(interpreter(x, x)[1], 2 * x))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(1000)))


def test_a_batch_of_another_size_is_just_run() -> None:
    interpreter = passing_on(np.float32)
    for n in (2, 5, 0, 2):
        assert interpreter(np.ones((n, 3), np.float32)).shape == (n, 3)


REFUSED = [
    ("dtype", np.float32, np.ones((1, 3), np.int64), r"'x': got int64, expected float32"),
    ("rank", np.float32, np.ones(3, np.float32), r"'x': got shape \[3\], expected \[\?, 3\]"),
    ("shape", np.float32, np.ones((1, 4), np.float32), r"'x': got shape \[1, 4\], expected \[\?, 3\]"),
    ("integers of another sign", np.int32, np.ones((1, 3), np.uint32), r"got uint32, expected int32"),
    ("narrower integers", np.int32, np.ones((1, 3), np.int64), r"got int64, expected int32"),
    ("floats for integers", np.int32, np.ones((1, 3), np.float32), r"got float32, expected int32"),
]


@pytest.mark.parametrize("dtype,x,message", [pytest.param(*r[1:], id=r[0]) for r in REFUSED])
def test_refuses_wrong_feeds(dtype: Any, x: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        passing_on(dtype)(x)


def test_refuses_missing_unknown_and_too_many() -> None:
    interpreter, x = two_inputs(), np.ones((1, 2), np.float32)
    with pytest.raises(ModelError, match="missing input 'right'. The model has: left, right"):
        interpreter.run({"left": x})
    with pytest.raises(ModelError, match="unknown input 'rigth'"):
        interpreter.run({"left": x, "rigth": x})
    with pytest.raises(ModelError, match="number of inputs: got 3, expected 2"):
        interpreter(x, x, x)


def test_wider_floats_and_safe_integers_are_converted() -> None:
    assert passing_on(np.float32)([[0.5, 1, 2]]).dtype == np.float32
    assert passing_on(np.int64)(np.ones((1, 3), np.int32)).dtype == np.int64
    big_endian = np.arange(3, dtype=">f4").reshape(1, 3)
    np.testing.assert_array_equal(passing_on(np.float32)(big_endian), [[0, 1, 2]])
    strided = np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2]
    np.testing.assert_array_equal(passing_on(np.float32)(strided), strided)


def test_quantized_input_takes_floats_by_the_rule_of_quantize() -> None:
    quant = QuantParams.per_tensor(0.02, -5)
    x = np.array([[0.5, -9.0, 9.0], [0.01, 0.03, -0.01]], np.float32)
    interpreter = passing_on(I8, quant)
    raw = interpreter.run({"x": quantize(x, quant)}, raw=True)["x"]
    assert raw[0, 0] == 20 and raw.dtype == np.int8
    np.testing.assert_array_equal(raw, quantize(x, quant))
    np.testing.assert_array_equal(interpreter(x), (raw.astype(np.int32) + 5).astype(np.float32) * np.float32(0.02))


def test_quantized_input_is_never_guessed() -> None:
    interpreter = passing_on(I8, QuantParams.per_tensor(0.02, -5))
    with pytest.raises(ModelError, match=r"got float32, expected int8, int8 where real = 0.02 \* \(q - -5\)"):
        interpreter.run({"x": np.ones((1, 3), np.float32)}, raw=True)
    with pytest.raises(ModelError, match=r"got int8, expected floats \(or raw=True"):
        interpreter(np.ones((1, 3), np.int8))
    with pytest.raises(ModelError, match="NaN"):
        interpreter(np.array([[np.nan, 0, 0]], np.float32))


def test_int8_model_equals_the_references() -> None:
    program = int8_model()
    interpreter = Interpreter(write_model(program), threads=2)
    rng = np.random.default_rng(0)
    for _ in range(5):
        x = rng.normal(size=(1, 6, 6, 3)).astype(np.float32)
        np.testing.assert_array_equal(interpreter(x), run_reference(program, {"image": x})["scores"])


def test_labels_and_preprocessing_come_from_the_model() -> None:
    rule = '{"x": {"scale": 0.00392156862745098, "mean": [0.5], "std": [0.25]}}'
    interpreter = passing_on(np.float32, shape=("n", 2, 2, 1), labels='["a", "b"]', preprocessing=rule)
    assert interpreter.labels == ["a", "b"]
    pixels = np.array([[0, 255], [51, 102]], np.uint8)
    x = interpreter.preprocess(pixels)
    assert x.shape == (1, 2, 2, 1) and x.dtype == np.float32
    np.testing.assert_allclose(x.reshape(-1), [-2, 2, -1.2, -0.4], rtol=1e-6)
    assert passing_on(np.float32).labels == []
    with pytest.raises(ModelError, match="'labels' is not JSON"):
        passing_on(np.float32, labels="a, b").labels  # noqa: B018


def test_profile_lists_every_operation() -> None:
    program = int8_model()
    interpreter = Interpreter(write_model(program))
    times = interpreter.profile({"image": np.zeros((1, 6, 6, 3), np.float32)}, runs=4)
    assert [t.op for t in times] == [a.op.name for a in program.applications]
    assert all(t.runs == 4 for t in times)
