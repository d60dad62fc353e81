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
