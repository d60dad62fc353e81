"""What the cases of the array ops do not show: fuzz against NumPy, index errors, int8 parameters, known values."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rillet.lite.library import is_available
from rillet.lite.single import apply_native
from rillet.lite.status import ModelError
from rillet.shared_ops.errors import OpError
from rillet.shared_ops.quantize import dequantize, quantize
from rillet.shared_ops.registry import get_op
from rillet.shared_ops.types import DTYPES, Array, QuantParams, TensorType, type_of

native = pytest.mark.skipif(not is_available(), reason="the native library is not built")
Run = Callable[..., tuple[Array, ...]]


def by_reference(name: str, *inputs: Any, **attrs: Any) -> tuple[Array, ...]:
    """The reference, with infer held against it."""
    op = get_op(name)
    record = op.make_attrs(attrs)
    types = op.infer_types(record, tuple(type_of(x) for x in inputs))
    results = op.compute(np, record, *inputs)
    assert [(t.dtype, t.shape) for t in types] == [(y.dtype, y.shape) for y in results]
    return results


def by_native(name: str, *inputs: Any, threads: int = 1, **attrs: Any) -> tuple[Array, ...]:
    results = apply_native(get_op(name), attrs, inputs, threads=threads)
    assert results is not NotImplemented
    return tuple(results)


BOTH = pytest.mark.parametrize("run", [by_reference, pytest.param(by_native, marks=native)])


def infer(name: str, *types: TensorType, **attrs: Any) -> TensorType:
    op = get_op(name)
    return op.infer_types(op.make_attrs(attrs), types)[0]


# -- strided slices -------------------------------------------------------------------------------------------------


def random_index(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Any index that Python allows on an array of this shape: slices, numbers, None, one ellipsis."""
    named = int(rng.integers(0, len(shape) + 1))
    index: list[Any] = []
    for dim in shape[:named]:
        if dim and rng.random() < 0.25:
            index.append(int(rng.integers(-dim, dim)))
            continue
        bounds = [None if rng.random() < 0.3 else int(rng.integers(-dim - 2, dim + 3)) for _ in range(2)]
        index.append(slice(*bounds, int(rng.choice([-3, -2, -1, 1, 2, 3]))))
    for _ in range(int(rng.integers(0, 3))):
        index.insert(int(rng.integers(0, len(index) + 1)), None)
    if named == len(shape) and rng.random() < 0.3:
        index.append(Ellipsis)  # stands for nothing
    elif rng.random() < 0.3 and index:
        index.append(Ellipsis)
    return tuple(index)


def masks_of(index: tuple[Any, ...]) -> dict[str, Any]:
    """Python's index in the attributes of StridedSlice."""
    begin, end, strides = [], [], []
    masks = dict.fromkeys(("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0)
    for i, entry in enumerate(index):
        b, e, s = 0, 0, 1
        if isinstance(entry, slice):
            b, e, s = entry.start or 0, entry.stop or 0, entry.step
            masks["begin_mask"] |= (entry.start is None) << i
            masks["end_mask"] |= (entry.stop is None) << i
        elif entry is None or entry is Ellipsis:
            masks["new_axis_mask" if entry is None else "ellipsis_mask"] |= 1 << i
        else:
            b = entry
            masks["shrink_axis_mask"] |= 1 << i
        begin.append(b), end.append(e), strides.append(s)
    return {"begin": tuple(begin), "end": tuple(end), "strides": tuple(strides), **masks}


@BOTH
def test_strided_slice_is_python_indexing(run: Run) -> None:
    rng = np.random.default_rng(7)
    for _ in range(300 if run is by_reference else 120):
        shape = tuple(int(d) for d in rng.integers(0, 6, size=int(rng.integers(1, 5))))
        x = rng.integers(0, 1000, size=shape).astype(np.int32)
        index = random_index(rng, shape)
        (y,) = run("StridedSlice", x, **masks_of(index))
        np.testing.assert_array_equal(y, x[index], err_msg=f"{shape} {index}", strict=True)
        dy = rng.normal(size=y.shape).astype(np.float32)
        want = np.zeros(shape, np.float32)
        want[index] = dy
        (dx,) = run("StridedSliceGrad", np.array(shape, np.int32), dy, **masks_of(index))
        np.testing.assert_array_equal(dx, want, strict=True)


# -- strided copies -------------------------------------------------------------------------------------------------


@native
@pytest.mark.parametrize("dtype", ["f32", "i8", "i64", "bool"])
def test_transposes_of_every_element_size(dtype: str) -> None:
    """Shapes around the 4 x 4 registers and the 32 x 32 tiles, on one and three threads."""
    rng = np.random.default_rng(3)
    shapes = [(33, 70), (4, 4), (64, 32), (3, 129, 5), (2, 35, 34, 3), (2, 3, 5, 7, 2), (1, 40, 1, 40), (17, 2, 16)]
    for shape in shapes:
        x = rng.integers(0, 100, size=shape).astype(DTYPES[dtype])
        perms = list(itertools.permutations(range(len(shape))))
        for perm in [perms[i] for i in rng.permutation(len(perms))[:6]]:
            for threads in (1, 3):
                (y,) = by_native("Transpose", x, threads=threads, perm=perm)
                np.testing.assert_array_equal(y, x.transpose(perm), err_msg=f"{shape} {perm}")


@BOTH
def test_zero_in_every_dimension(run: Run) -> None:
    """A tensor without elements is a tensor: every dimension 0 in turn."""
    for axis in range(4):
        shape = tuple(0 if a == axis else d for a, d in enumerate((2, 4, 6, 4)))
        x = np.zeros(shape, np.float32)
        for name, attrs in (
            ("Identity", {}), ("Transpose", {"perm": (3, 1, 0, 2)}), ("Reverse", {"axes": (0, 2)}),
            ("Tile", {"multiples": (1, 2, 3, 1)}), ("Pad", {"paddings": ((1, 0), (0, 0), (0, 2), (0, 0))}),
            ("ExpandDims", {"axis": 1}), ("Flatten", {}), ("Cumsum", {"axis": 1}), ("TopK", {"k": 0}),
            ("SpaceToDepth", {"block_size": 2}), ("DepthToSpace", {"block_size": 2}), ("ZerosLike", {}),
            ("Split", {"num": 2, "axis": 3}), ("SplitV", {"sizes": (-1, 0), "axis": 2}), ("Shape", {}),
            ("SpaceToBatchND", {"block_shape": (2,), "paddings": ((0, 0),)}),
            ("BatchToSpaceND", {"block_shape": (2,), "crops": ((0, 0),)}),
            ("StridedSlice", {"begin": (0,), "end": (9,), "strides": (2,)}),
        ):  # fmt: skip
            for got, want in zip(run(name, x, **attrs), by_reference(name, x, **attrs), strict=True):
                np.testing.assert_array_equal(got, want, strict=True)
        for name in ("Concat", "Pack"):
            assert run(name, x, x, axis=1)[0].size == 0
        (y,) = run("Gather", x, np.zeros((0,), np.int32), axis=axis)
        assert y.shape == shape


# -- indices --------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("index", [999, -1, 3])
def test_an_index_outside_the_table_is_named(run: Run, index: int) -> None:
    """With its value, its position and the limit: alike in the reference and in the engine."""
    table, ids = np.zeros((3, 12), np.float32), np.array([[0, 1], [index, 2]], np.int32)
    wrong = rf"position \(1, 0\) of indices: got {index}, expected 0 to 2"
    with pytest.raises((OpError, ModelError), match=wrong):
        run("Gather", table, ids)
    with pytest.raises((OpError, ModelError), match=wrong):
        run("GatherGrad", np.array([3, 12]), ids, np.zeros((2, 2, 12), np.float32))
    with pytest.raises((OpError, ModelError), match=wrong):
        run("GatherNd", table, ids[:, :1])
    with pytest.raises((OpError, ModelError), match=wrong):
        run("ScatterNd", ids[:, :1], np.zeros((2,), np.float32), np.array([3]))
    if index > 0:
        with pytest.raises((OpError, ModelError), match=wrong):
            run("UnsortedSegmentSum", np.zeros((2, 2), np.float32), ids, num_segments=3)


@BOTH
def test_scattered_sums_against_a_loop(run: Run) -> None:
    rng = np.random.default_rng(5)
    ids = rng.integers(-1, 7, size=(40,))
    data = rng.integers(-50, 50, size=(40, 33)).astype(np.float32)
    want = np.zeros((7, 33), np.float32)
    for row, i in zip(data, ids):
        if i >= 0:
            want[i] += row
    np.testing.assert_array_equal(run("UnsortedSegmentSum", data, ids, num_segments=7)[0], want)


@native
def test_scattered_sums_have_one_order_of_additions() -> None:
    """Rows are added in the order of the indices: the same bits on any number of threads."""
    rng = np.random.default_rng(6)
    ids, data = rng.integers(0, 3, size=(500,)), rng.normal(size=(500, 70)).astype(np.float32)
    want = np.zeros((3, 70), np.float32)
    for row, i in zip(data, ids):
        want[i] += row
    for threads in (1, 2, 3):
        (got,) = by_native("UnsortedSegmentSum", data, ids, threads=threads, num_segments=3)
        assert got.tobytes() == want.tobytes()


# -- blocks ---------------------------------------------------------------------------------------------------------


@BOTH
def test_space_to_batch_against_a_loop(run: Run) -> None:
    rng = np.random.default_rng(8)
    for _ in range(20):
        b = [int(v) for v in rng.integers(1, 4, size=2)]
        pads = [[int(v) for v in rng.integers(0, 4, size=2)] for _ in range(2)]
        size = [int(rng.integers(1, 5)) * b[i] - sum(pads[i]) for i in range(2)]
        if min(size) < 1:
            continue
        x = rng.integers(1, 99, size=(2, *size, 3)).astype(np.int32)
        full = np.pad(x, ((0, 0), *pads, (0, 0)))
        want = np.concatenate([full[:, i :: b[0], j :: b[1]] for i in range(b[0]) for j in range(b[1])])
        (y,) = run("SpaceToBatchND", x, block_shape=b, paddings=pads)
        np.testing.assert_array_equal(y, want)
        np.testing.assert_array_equal(run("BatchToSpaceND", y, block_shape=b, crops=pads)[0], x)


# -- int8 -----------------------------------------------------------------------------------------------------------

Q = QuantParams.per_tensor(0.05, -17)


def int8_reference(name: str, *inputs: Array, out: tuple[QuantParams | None, ...] = (Q,), **attrs: Any) -> Any:
    op = get_op(name)
    assert op.quantize is not None
    quants = tuple(Q if x.dtype == np.int8 else None for x in inputs)
    return op.quantize.run(op, op.make_attrs(attrs), inputs, quants, out)


@native
@pytest.mark.parametrize(
    "name,attrs",
    [
        ("Pad", {"paddings": ((0, 0), (1, 2), (2, 0), (0, 0))}),
        ("Pad", {"paddings": ((0, 0), (1, 2), (2, 0), (0, 0)), "value": 1.03}),
        ("Pad", {"paddings": ((0, 0), (1, 2), (2, 0), (0, 0)), "value": -1e9}),
        ("SpaceToBatchND", {"block_shape": (2, 2), "paddings": ((0, 0), (1, 1))}),
        ("MirrorPad", {"paddings": ((0, 0), (1, 2), (2, 0), (0, 0))}),
        ("Transpose", {"perm": (0, 3, 1, 2)}),
        ("SpaceToDepth", {"block_size": 2}),
    ],
)
def test_int8_moves_values_and_pads_with_the_zero_point(name: str, attrs: dict[str, Any]) -> None:
    x = np.random.default_rng(2).normal(size=(2, 4, 6, 3))
    q = quantize(x, Q)
    (want,) = int8_reference(name, q, **attrs)
    (got,) = apply_native(get_op(name), attrs, (q,), in_q=(Q,), out_q=(Q,))
    np.testing.assert_array_equal(got, want, strict=True)
    real = get_op(name).compute(np, get_op(name).make_attrs(attrs), dequantize(q, Q))[0]
    clipped = np.clip(real, (-128 - Q.zero_point) * Q.scale[0], (127 - Q.zero_point) * Q.scale[0])
    assert np.abs(dequantize(want, Q) - clipped).max() <= Q.scale[0] * 0.51


def test_int8_concat_of_different_scales_is_refused() -> None:
    """Never a raw copy; one input is fine."""
    op, q = get_op("Concat"), np.zeros((2, 3), np.int8)
    assert op.quantize is not None
    other = QuantParams.per_tensor(12 / 255, 0)
    with pytest.raises(OpError, match="different parameters"):
        op.quantize.run(op, op.make_attrs({"axis": 0}), (q, q), (Q, other), (Q,))
    np.testing.assert_array_equal(int8_reference("Concat", q, axis=0)[0], q)
    if is_available():
        with pytest.raises(ModelError, match="different quantization parameters"):
            apply_native(op, {"axis": 0}, (q, q), in_q=(Q, other), out_q=(Q,))
        np.testing.assert_array_equal(apply_native(op, {"axis": 0}, (q,), in_q=(Q,), out_q=(Q,))[0], q)


# -- what is known while a graph is built ---------------------------------------------------------------------------


def test_shapes_are_followed_through_arithmetic_on_shapes() -> None:
    """reshape(x, pack([shape(x)[0], -1])) keeps the batch dimension and works out the other."""
    x = TensorType(np.dtype(np.float32), ("batch", 7, 7, 3))
    dims = infer("Shape", x)
    assert dims.value == ("batch", 7, 7, 3)
    batch = infer("StridedSlice", dims, begin=(0,), end=(0,), strides=(1,), shrink_axis_mask=1)
    target = infer("Pack", batch, TensorType(np.dtype(np.int32), ()))
    assert target.value == ("batch", None)
    assert infer("Reshape", x, target).shape == ("batch", None)
    target = infer("Pack", batch, type_of(np.array(-1, np.int32)))
    assert infer("Reshape", x, target).shape == ("batch", 147)
    target = infer("Concat", infer("ExpandDims", batch), type_of(np.array([-1], np.int32)), axis=0)
    assert infer("Reshape", x, target).shape == ("batch", 147)
    assert infer("Slice", dims, begin=(1,), size=(2,)).value == (7, 7)
    assert infer("Gather", dims, type_of(np.array([3, 0]))).value == (3, "batch")


@pytest.mark.parametrize(
    "shape,target,want",
    [
        (("n", 28, 28), (-1, 784), ("n", 784)),
        (("n", 4), ("n", -1, 2), ("n", 2, 2)),
        ((None, 4), (-1, 4), (None, 4)),
        ((None, 4), (-1,), (None,)),
        (("n", "m"), ("m", -1), ("m", "n")),
        ((6,), (None, 2), (None, 2)),
    ],
)
def test_reshape_works_with_names(shape: Any, target: Any, want: Any) -> None:
    given = TensorType(np.dtype(np.int32), (len(target),), target)
    assert infer("Reshape", TensorType(np.dtype(np.float32), shape), given).shape == want


@native
@pytest.mark.parametrize("name", ["ArgMax", "ArgMin"])
def test_the_first_extreme_of_rows_around_the_lanes(name: str) -> None:
    """Many equal values, and NaN, in rows around the 16 lanes: NumPy's answer."""
    rng = np.random.default_rng(4)
    for n, dtype in itertools.product((1, 2, 15, 16, 17, 33, 100), ("f32", "i8", "u8", "i64")):
        x = rng.integers(0, 5, size=(50, n)).astype(DTYPES[dtype])
        if dtype == "f32":
            x[rng.random(x.shape) < 0.02] = np.nan
        want = np.argmax(x, axis=1) if name == "ArgMax" else np.argmin(x, axis=1)
        np.testing.assert_array_equal(by_native(name, x)[0], want, err_msg=f"{n} {dtype}")
