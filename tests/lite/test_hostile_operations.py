"""Operations whose operands or attributes would lead a kernel out of its memory: refused when they are prepared.

The models are well formed in every way that the loader checks by itself; only kernels can tell what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import rillet.train  # noqa: F401  (defines the ops that update variables)
from rillet.lite import Context, Model, ModelError, Status, write_model
from rillet.lite.library import kernel_flags
from rillet.lite.single import apply_native
from rillet.shared_ops.op import Op
from rillet.shared_ops.program import Application, Program, Value
from rillet.shared_ops.registry import all_ops, get_op
from rillet.shared_ops.types import Array, TensorType, type_of

F32, I8, U8 = (np.dtype(t) for t in (np.float32, np.int8, np.uint8))
SHAPE_FIRST = 8  # kShapeFirst of kernel.h


def prepare(
    op: Op,
    attrs: Any,
    inputs: Sequence[TensorType | Array | str | None],
    outputs: Sequence[TensorType],
    variables: dict[str, TensorType] | None = None,
    threads: int = 1,
) -> None:
    """One operation, unchecked by Python; a type is an input, an array a constant, a string a variable."""
    program = Program(op.name)
    names: list[str | None] = []
    for i, x in enumerate(inputs):
        if x is None:
            names.append(None)
        elif isinstance(x, str):
            names.append(program.add_variable(x, (variables or {})[x]))
        elif isinstance(x, TensorType):
            names.append(program.add_input(f"in{i}", x))
        else:
            names.append(program.add_constant(f"in{i}", x))
    made = [program.add_value(Value(f"out{i}", t)) for i, t in enumerate(outputs)]
    program.applications.append(Application(op, op.make_attrs(attrs), tuple(names), tuple(made)))
    program.outputs = made
    Context(Model(write_model(program)), threads)


def refusal(*args: Any, **kwargs: Any) -> ModelError:
    with pytest.raises(ModelError) as caught:
        prepare(*args, **kwargs)
    return caught.value


def any_case(op: Op) -> Any:
    return next(iter(op.cases(np.random.default_rng(0))), None)


def first_case(op: Op) -> Any:
    """The first case, in the dtypes of kernels."""
    case = any_case(op)
    arrays = [x.astype(F32) if x is not None and x.dtype == np.float64 else x for x in case.inputs]
    return replace(case, inputs=tuple(arrays))


REAL_KERNELS = [(op, dtype) for (op, _, dtype), f in sorted(kernel_flags().items()) if dtype in ("f32", "i8")
                and not f & SHAPE_FIRST]  # fmt: skip


@pytest.mark.parametrize("name,dtype", REAL_KERNELS)
def test_kernels_of_real_numbers_are_not_handed_bytes_first(name: str, dtype: str) -> None:
    """A kernel is chosen by the first real input; were that not the one it reads first, it would write beyond a u8."""
    op = get_op(name)
    case = any_case(op)
    real = TensorType(F32 if dtype == "f32" else I8, (4,))
    error = refusal(op, case.attrs if case else {}, [TensorType(U8, (4,)), real, real], [TensorType(U8, (4,))])
    assert error.status is Status.BAD_OPERATION
    assert f"input 0: expected {dtype}" in str(error)


UPDATES = [(op, i) for op in all_ops() if op.native for i, name in enumerate(op.inputs) if name in op.updates]


@pytest.mark.parametrize("op,i", [pytest.param(op, i, id=f"{op.name}-{op.inputs[i]}") for op, i in UPDATES])
def test_only_variables_are_updated(op: Op, i: int) -> None:
    """Constants of a mapped file lie in read-only memory, and what aliases them is not told apart at run."""
    case = first_case(op)
    outputs = op.infer_types(op.make_attrs(case.attrs), tuple(None if x is None else type_of(x) for x in case.inputs))
    variables = {n: type_of(x) for n, x in zip(op.inputs, case.inputs) if n in op.updates}
    inputs = [n if n in op.updates else x for n, x in zip(op.inputs, case.inputs)]
    prepare(op, case.attrs, inputs, outputs, variables)
    for other in (case.inputs[i], type_of(case.inputs[i])):
        error = refusal(op, case.attrs, [*inputs[:i], other, *inputs[i + 1 :]], outputs, variables)
        assert error.status is Status.BAD_OPERATION
        assert f"input {i}: expected a variable" in str(error)


ROWS, CHANNEL = TensorType(F32, (2, 4)), TensorType(F32, (4,))
# Gradients have no cases of their own.
GRADIENTS: list[tuple[str, list[TensorType], list[TensorType]]] = [
    ("LayerNormGrad", [ROWS, CHANNEL, ROWS], [ROWS, CHANNEL, CHANNEL]),
    ("RMSNormGrad", [ROWS, CHANNEL, ROWS], [ROWS, CHANNEL]),
    ("BatchNormTrainingGrad", [ROWS, *[CHANNEL] * 3, ROWS, CHANNEL, CHANNEL], [ROWS, CHANNEL, CHANNEL]),
]


@pytest.mark.parametrize("name,inputs,outputs", [pytest.param(*g, id=g[0]) for g in GRADIENTS])
def test_gradients_with_operands_of_another_dtype_or_outputs_left_out(
    name: str, inputs: list[TensorType], outputs: list[TensorType]
) -> None:
    """Bytes read as floats end beyond the tensor; an output that the file does not list would be a wild pointer."""
    op = get_op(name)
    attrs: dict[str, Any] = {}
    prepare(op, attrs, inputs, outputs)
    for i in range(len(inputs)):
        wrong = [*inputs[:i], replace(inputs[i], dtype=U8), *inputs[i + 1 :]]
        assert refusal(op, attrs, wrong, outputs).status is Status.BAD_OPERATION
    assert refusal(op, attrs, inputs, outputs[:-1]).status is Status.BAD_OPERATION


MANY_OUTPUTS = [op for op in all_ops() if op.native and len(op.outputs) > 1 and not op.updates and any_case(op)]


@pytest.mark.parametrize("op", [pytest.param(op, id=op.name) for op in MANY_OUTPUTS])
def test_outputs_left_out(op: Op) -> None:
    case = first_case(op)
    outputs = op.infer_types(op.make_attrs(case.attrs), tuple(None if x is None else type_of(x) for x in case.inputs))
    prepare(op, case.attrs, case.inputs, outputs)
    assert refusal(op, case.attrs, case.inputs, outputs[:-1]).status is Status.BAD_OPERATION


I64_MAX, I64_MIN, LIMIT = 2**63 - 1, -(2**63), 2**31 - 1
EMPTY = (1 << 30, 1 << 30, 0)


@pytest.mark.parametrize("shape", [EMPTY, EMPTY[::-1], (1 << 40, 0, 1 << 40)])
def test_dimensions_beside_a_zero_are_bounded(shape: tuple[int, ...]) -> None:
    """Kernels multiply some of the dimensions: those must fit 64 bits though the tensor holds nothing."""
    x = TensorType(F32, shape)
    assert refusal(get_op("Relu"), {}, [x], [x]).status is Status.BAD_TENSOR


def test_empty_outputs_beside_huge_dimensions() -> None:
    x = TensorType(F32, (0, 1 << 30))
    error = refusal(get_op("Tile"), {"multiples": (1, 1 << 30)}, [x], [TensorType(F32, (0, None))])
    assert "too large" in str(error)


IMAGE, IMAGE_I8 = TensorType(F32, (1, 4, 4, 8)), TensorType(I8, (1, 4, 4, 8))
ANY4 = TensorType(F32, (None,) * 4)
FILTER = np.ones((2, 2, 8, 8), np.float32)
PADS = ((LIMIT, LIMIT), (LIMIT, LIMIT))
BEYOND: list[tuple[str, str, list[Any], dict[str, Any]]] = [
    # The strip of 2^62 floats would have wrapped to a workspace of nothing.
    ("Conv2D", "too large", [IMAGE, FILTER], {"dilations": (LIMIT, LIMIT), "padding": "EXPLICIT", "pads": PADS}),
    ("Conv2D", "too large", [IMAGE, FILTER], {"dilations": (LIMIT, LIMIT), "padding": "SAME"}),
    ("Conv2DTranspose", "too large", [IMAGE, FILTER], {"dilations": (LIMIT, LIMIT), "padding": "SAME"}),
    ("Conv2DTranspose", "too large", [IMAGE, FILTER], {"strides": (LIMIT, LIMIT)}),
    ("Conv2DBackpropInput", "too large", [np.array([1, 4, 4, 8], np.int32), FILTER, IMAGE],
     {"dilations": (LIMIT, LIMIT), "padding": "SAME"}),
    ("Conv2DBackpropFilter", "too large", [IMAGE, np.array([2, 2, 8, 8], np.int32), IMAGE],
     {"dilations": (LIMIT, LIMIT), "padding": "SAME"}),
    ("MaxPool", "at most", [IMAGE], {"ksize": (I64_MAX, 1), "padding": "SAME"}),
    ("AvgPool", "at least 1", [IMAGE], {"ksize": (I64_MIN, 1), "padding": "SAME"}),
    ("SpaceToDepth", "too large", [TensorType(F32, (1, 0, 0, 1 << 36))], {"block_size": 65536}),
    ("Pad", "too large", [TensorType(F32, (0, 4, 4, 4))], {"paddings": ((LIMIT, 0),) * 4}),
    ("Slice", "expected a block", [IMAGE], {"begin": (I64_MIN, 0, 0, 0), "size": (-1,) * 4}),
]  # fmt: skip


@pytest.mark.parametrize("name,match,inputs,attrs", [pytest.param(*b, id=f"{b[0]}{i}") for i, b in enumerate(BEYOND)])
def test_attributes_beyond_64_bits(name: str, match: str, inputs: list[Any], attrs: dict[str, Any]) -> None:
    error = refusal(get_op(name), attrs, inputs, [ANY4], threads=2)
    assert error.status in (Status.BAD_OPERATION, Status.OUT_OF_MEMORY)
    assert match in str(error)


def test_steps_and_windows_that_only_the_first_place_takes() -> None:
    """Huge strides and windows that are legal: the same results as the smallest that does the same."""
    x = np.random.default_rng(0).normal(size=(1, 4, 4, 8)).astype(np.float32)

    def run(name: str, *arrays: Array, **attrs: Any) -> Array:
        (y,) = apply_native(get_op(name), attrs, arrays, threads=2)
        return y

    for name, rest in (("Conv2D", (FILTER,)), ("DepthwiseConv2D", (FILTER[..., :1],))):
        far = run(name, x, *rest, strides=(LIMIT, LIMIT), padding="VALID")
        np.testing.assert_array_equal(far, run(name, x, *rest, strides=(4, 4), padding="VALID"))
    image = np.arange(1024, dtype=np.float32).reshape(1, 32, 32, 1)  # more taps than the slack behind a workspace holds
    for name in ("MaxPool", "AvgPool"):
        far = run(name, image, ksize=(1 << 30, 1 << 30), padding="SAME")
        np.testing.assert_array_equal(far, run(name, image, ksize=(99, 99), padding="SAME"))
    far = run("StridedSlice", x, begin=(0, 0, 0, 1), end=(1, 4, 4, 8), strides=(1, 1, 1, I64_MAX))
    np.testing.assert_array_equal(far, x[..., 1:2])
