"""Passes over hand-made Programs: what each changes, what it must leave, and that results stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from programs import Build, floats, ops_of, outputs

from rillet.lite.engine import Context, Model
from rillet.lite.single import apply_native, has_kernel
from rillet.lite.writer import write_model
from rillet.shared_ops.errors import ProgramError
from rillet.shared_ops.passes import (
    drop_identities,
    fold_batch_norm,
    fold_constants,
    fuse_activation,
    fuse_bias,
    inference_passes,
    merge_equal_subexpressions,
)
from rillet.shared_ops.types import TensorType

RNG = np.random.default_rng(7)
KINDS = ["Conv2D", "DepthwiseConv2D", "Conv2DTranspose", "MatMul", "MatMul transposed"]


def layer(kind: str, channels: int = 6) -> tuple[Build, str, Any]:
    """A Program with one linear layer of `channels` outputs, its result, and data for input x."""
    if kind.startswith("MatMul"):
        b = Build(x=("n", 5))
        transposed = kind.endswith("transposed")
        w = floats(RNG, channels, 5) if transposed else floats(RNG, 5, channels)
        return b, b("MatMul", "x", w, transpose_b=transposed), floats(RNG, 3, 5)
    b = Build(x=("n", 5, 5, 3))
    shape = {"Conv2D": (3, 3, 3, channels), "DepthwiseConv2D": (3, 3, 3, channels // 3)}.get(kind, (3, 3, channels, 3))
    return b, b(kind, "x", floats(RNG, *shape), padding="SAME"), floats(RNG, 2, 5, 5, 3)


def norm(channels: int = 6) -> list[Any]:
    """scale (one zero, one negative), offset, mean, variance (one zero, one large)."""
    scale, offset, mean = floats(RNG, channels), floats(RNG, channels), floats(RNG, channels)
    scale[0], scale[1] = 0.0, -abs(scale[1])
    variance = np.abs(floats(RNG, channels)) + np.float32(0.1)
    variance[2], variance[3] = 0.0, 1e4
    return [scale, offset, mean, variance]


@pytest.mark.parametrize("bias", [False, True], ids=["plain", "after bias"])
@pytest.mark.parametrize("kind", KINDS)
def test_batch_norm_folds_into_weights(kind: str, bias: bool) -> None:
    b, y, x = layer(kind)
    if bias:
        y = b("BiasAdd", y, floats(RNG, 6))
    b("BatchNorm", y, *norm(), epsilon=1e-3)
    folded = fold_batch_norm(b.program)
    assert ops_of(folded) == [kind.split()[0]]
    (before,), (after,) = outputs(b.program, x=x), outputs(folded, x=x)
    scale = np.abs(before).max(axis=tuple(range(before.ndim - 1)))  # a channel at a time: one is 30 times the others
    assert np.all(np.abs(after - before) <= 2e-6 * (scale + 1))


def test_batch_norm_stays_where_others_read_the_layer() -> None:
    b, y, _ = layer("Conv2D")
    z = b("BatchNorm", y, *norm())
    b("Add", z, y)
    assert ops_of(fold_batch_norm(b.program)) == ["Conv2D", "BatchNorm", "Add"]


def test_batch_norm_stays_behind_an_activation() -> None:
    b, y, _ = layer("Conv2D")
    b("BatchNorm", b("Relu", y), *norm())
    assert ops_of(fold_batch_norm(fuse_activation(b.program))) == ["Conv2D", "BatchNorm"]


@pytest.mark.parametrize("form", ["BiasAdd", "Add", "Add reversed", "Add row", "Add number"])
@pytest.mark.parametrize("kind", KINDS)
def test_bias_and_activation_fuse_and_keep_every_bit(kind: str, form: str) -> None:
    b, y, x = layer(kind)
    constant = floats(RNG, 6)
    if form == "BiasAdd":
        y = b("BiasAdd", y, constant)
    elif form == "Add reversed":
        y = b("Add", constant, y)
    else:
        y = b(
            "Add", y, {"Add": constant, "Add row": constant.reshape((1,) * (x.ndim - 1) + (6,))}.get(form, constant[0])
        )
    b("Relu6", y)
    fused = fuse_activation(fuse_bias(b.program))
    assert ops_of(fused) == [kind.split()[0]]
    assert fused.applications[0].attrs.activation == "RELU6"
    assert np.array_equal(outputs(b.program, x=x), outputs(fused, x=x))
    if has_kernels(fused) and has_kernels(b.program):
        for threads in (1, 2):
            assert native(b.program, x, threads) == native(fused, x, threads)


def has_kernels(program: Any) -> bool:
    return all(has_kernel(a.op, np.dtype(np.float32)) for a in program)


def native(program: Any, x: Any, threads: int) -> bytes:
    context = Context(Model(write_model(program)), threads)
    context.resize(0, x.shape)
    context.input(0)[...] = x
    context.run()
    return context.output(0).tobytes()


@pytest.mark.parametrize(
    "constant", [(5, 1), (2, 5, 5, 6), (1, 5, 5, 1)], ids=["a number a column", "whole", "an image"]
)
def test_bias_along_other_axes_stays(constant: tuple[int, ...]) -> None:
    b, y, _ = layer("Conv2D")
    b("Add", y, floats(RNG, *constant))
    assert ops_of(fuse_bias(b.program)) == ["Conv2D", "Add"]


def test_bias_along_a_spatial_axis_of_the_same_size_stays() -> None:
    b = Build(x=("n", 5, 6, 3))
    b("Add", b("Conv2D", "x", floats(RNG, 1, 1, 3, 6)), floats(RNG, 6, 1))
    assert ops_of(fuse_bias(b.program)) == ["Conv2D", "Add"]


def test_bias_stays_where_the_plain_sum_is_read_too() -> None:
    b, y, x = layer("Conv2D")
    b("Mul", b("BiasAdd", y, floats(RNG, 6)), y)
    assert ops_of(fuse_bias(b.program)) == ["Conv2D", "BiasAdd", "Mul"]


def test_activation_stays_where_the_sum_is_read_too() -> None:
    b, y, _ = layer("Conv2D")
    b("Add", b("Relu", y), y)
    assert ops_of(fuse_activation(b.program)) == ["Conv2D", "Relu", "Add"]


def test_activation_stays_behind_an_output() -> None:
    b, y, x = layer("Conv2D")
    z = b("Relu", y)
    b.program.outputs = [y, z]
    assert ops_of(fuse_activation(b.program)) == ["Conv2D", "Relu"]


def test_a_second_activation_is_not_lost() -> None:
    b, y, x = layer("Conv2D")
    b("Relu6", b("Relu", y))
    fused = fuse_activation(b.program)
    assert ops_of(fused) == ["Conv2D", "Relu6"]
    assert np.array_equal(outputs(b.program, x=x), outputs(fused, x=x))


def test_activation_fuses_into_a_residual_sum() -> None:
    b = Build(x=(2, 3), y=(2, 3))
    b("Relu", b("Add", "x", "y"))
    fused = fuse_activation(b.program)
    assert ops_of(fused) == ["Add"]
    feeds = {"x": floats(RNG, 2, 3), "y": floats(RNG, 2, 3)}
    assert np.array_equal(outputs(b.program, **feeds), outputs(fused, **feeds))


def test_identities_go_and_names_of_outputs_stay() -> None:
    b = Build(x=(2, 3))
    y = b("StopGradient", b("Identity", "x"))
    y = b("Reshape", b("Transpose", y, perm=(0, 1)), np.array([2, 3], np.int32))
    y = b("Cast", b("Pad", b("Neg", y), paddings=((0, 0), (0, 0))), dtype="f32")
    last = b("Identity", y, name="answer")
    dropped = drop_identities(b.program)
    assert ops_of(dropped) == ["Neg"] and dropped.outputs == [last]
    x = floats(RNG, 2, 3)
    assert np.array_equal(outputs(dropped, x=x), outputs(b.program, x=x))


def test_an_output_that_is_an_input_stays_a_copy() -> None:
    b = Build(x=(2, 3))
    first, second = b("Identity", "x"), b("Identity", "x")
    b.program.outputs = [first, second]
    assert ops_of(drop_identities(b.program)) == ["Identity", "Identity"]


def test_two_outputs_of_one_value_stay_two() -> None:
    b = Build(x=(2, 3))
    y = b("Neg", "x")
    b.program.outputs = [b("Identity", y, name="a"), b("Identity", y, name="b")]
    dropped = drop_identities(b.program)
    assert ops_of(dropped) == ["Neg", "Identity"] and dropped.outputs == ["a", "b"]
    x = floats(RNG, 2, 3)
    assert all(np.array_equal(v, -x) for v in outputs(dropped, x=x))


def test_reshape_that_may_change_the_shape_stays() -> None:
    b = Build(x=(None, None))
    b("Neg", b("Reshape", "x", np.array([-1, 3], np.int32)))
    assert ops_of(drop_identities(b.program)) == ["Reshape", "Neg"]
    b = Build(x=(None, None))
    b.program.add_input("shape", TensorType(np.dtype(np.int32), (2,)))
    b("Neg", b("Reshape", "x", "shape"))
    assert ops_of(drop_identities(b.program)) == ["Reshape", "Neg"]


def test_constants_fold_and_known_shapes_are_constants() -> None:
    b = Build(x=(2, 3))
    two = b("Add", np.float32(1), np.float32(1))
    b("Reshape", b("Mul", "x", two), b("Shape", "x"))
    folded = fold_constants(b.program)
    assert ops_of(folded) == ["Mul", "Reshape"]
    x = floats(RNG, 2, 3)
    assert np.array_equal(outputs(folded, x=x)[0], 2 * x)


def test_folding_uses_the_evaluator_it_is_given() -> None:
    b = Build(x=(3,))
    b("Add", "x", b("Exp", np.array([0.3, -1.7, 20.0], np.float32)))
    seen = []

    def evaluate(op: Any, attrs: Any, arrays: Any) -> Any:
        seen.append(op.name)
        return (np.zeros(3, np.float32),)

    x = floats(RNG, 3)
    assert np.array_equal(outputs(fold_constants(b.program, evaluate=evaluate), x=x)[0], x) and seen == ["Exp"]
    folded = fold_constants(b.program, evaluate=apply_native)
    if has_kernels(b.program):
        assert native(folded, x, 1) == native(b.program, x, 1)


def test_folding_does_not_blow_up_the_file() -> None:
    b = Build(x=(1000, 100))
    b("Add", "x", b("Tile", np.ones((1, 100), np.float32), multiples=(1000, 1)))
    assert ops_of(fold_constants(b.program)) == ["Tile", "Add"]


def test_equal_subexpressions_merge() -> None:
    b = Build(x=(2, 3))
    a = b("Mul", b("Exp", "x"), np.float32(2))
    c = b("Mul", b("Exp", "x"), np.float32(2))
    b("Sub", a, b("Add", c, b("LeakyRelu", a, alpha=0.1)))
    merged = merge_equal_subexpressions(b.program)
    assert ops_of(merged) == ["Exp", "Mul", "LeakyRelu", "Add", "Sub"]
    assert sum(v.constant is not None for v in merged.values.values()) == 1
    x = floats(RNG, 2, 3)
    assert np.array_equal(outputs(merged, x=x), outputs(b.program, x=x))


def test_attributes_and_dtypes_keep_expressions_apart() -> None:
    b = Build(x=(2, 3))
    b("Add", b("LeakyRelu", "x", alpha=0.1), b("LeakyRelu", "x", alpha=0.2))
    b("Add", b.program.outputs[0], b("Cast", b("Cast", "x", dtype="i32"), dtype="f32"))
    assert ops_of(merge_equal_subexpressions(b.program)) == ops_of(b.program)


def test_all_passes_together_leave_the_given_program_alone() -> None:
    b, y, x = layer("Conv2D")
    y = b("Relu", b("BatchNorm", b("BiasAdd", b("Identity", y), floats(RNG, 6)), *norm()))
    b("Add", b("DepthwiseConv2D", y, floats(RNG, 3, 3, 6, 1), padding="SAME"), y)
    before = ops_of(b.program)
    after, report = inference_passes(b.program)
    assert ops_of(b.program) == before and ops_of(after) == ["Conv2D", "DepthwiseConv2D", "Add"]
    assert np.allclose(outputs(after, x=x)[0], outputs(b.program, x=x)[0], rtol=1e-5, atol=1e-5)
    entry = {e.name: e for e in report.entries}["fold_batch_norm"]
    assert (entry.before, entry.after, len(entry.changes)) == (5, 4, 1)
    assert "BatchNorm: into the weights of Conv2D" in str(report)


def test_passes_can_be_skipped_by_name() -> None:
    b, y, x = layer("Conv2D")
    b("Relu", b("BatchNorm", y, *norm()))
    kept, report = inference_passes(b.program, skip=["fold_batch_norm", "fuse_activation"])
    assert ops_of(kept) == ["Conv2D", "BatchNorm", "Relu"]
    assert "fold_batch_norm" not in [e.name for e in report.entries]
    with pytest.raises(ProgramError, match="no pass named 'fold_batchnorm'"):
        inference_passes(b.program, skip=["fold_batchnorm"])


def test_shared_weights_fold_for_each_reader_alone() -> None:
    """Two layers share weights; only one is normalised. The other must keep the old weights."""
    b = Build(x=(2, 5))
    w = b.program.add_constant("w", floats(RNG, 5, 6))
    y = b("BatchNorm", b("MatMul", "x", w), *norm())
    b("Add", y, b("MatMul", "x", w))
    folded = fold_batch_norm(b.program)
    x = floats(RNG, 2, 5)
    assert ops_of(folded) == ["MatMul", "MatMul", "Add"]
    assert np.allclose(outputs(folded, x=x)[0], outputs(b.program, x=x)[0], rtol=1e-5, atol=1e-5)


def test_source_lines_survive_fusion() -> None:
    b, y, _ = layer("Conv2D")
    b("Relu", y)
    b.program.applications[0] = replace(b.program.applications[0], source="train.py:41")
    assert fuse_activation(b.program).applications[0].source == "train.py:41"


def test_a_broadcast_between_unknown_dimensions_stays() -> None:
    """Both are unknown, and only one of them may be 1: a Reshape could not do that, BroadcastTo and SumTo can."""
    b = Build(x=(None, 3), like=(None, 3))
    b("Neg", b("BroadcastTo", "x", b("Shape", "like")))
    x, like = floats(RNG, 1, 3), floats(RNG, 4, 3)
    assert outputs(drop_identities(b.program), x=x, like=like)[0].shape == (4, 3)
    b = Build(x=(None, 3), like=(None, 3))
    b("Neg", b("SumTo", "x", b("Shape", "like")))
    assert outputs(drop_identities(b.program), x=like, like=x)[0].shape == (1, 3)
    b = Build(x=("n", 3))
    b("Neg", b("BroadcastTo", "x", b("Shape", "x")))
    assert "BroadcastTo" not in ops_of(drop_identities(b.program))


def test_a_known_scalar_folds_to_a_scalar() -> None:
    b = Build(x=(2, 3))
    b("Cast", b("Rank", "x"), dtype="f32")
    b.program.outputs = [b("Neg", b.program.outputs[0])]
    folded = fold_constants(b.program)
    assert outputs(folded, x=floats(RNG, 2, 3))[0].shape == ()
    assert all(
        v.constant is None or v.constant.shape == v.type.shape == () for v in folded.values.values() if v.name != "x"
    )
