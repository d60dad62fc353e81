"""Updates of some rows of a variable: ScatterUpdate (the last one wins) and ScatterAdd (all add up, in order)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.functions import snake_case
from rillet.shared_ops.op import Case, NoAttrs, Op, Reject
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import merge_shapes, require_same_dtype
from rillet.shared_ops.types import TensorType


def infer_scatter(op: str) -> Callable[..., tuple[TensorType, ...]]:
    def infer(attrs: NoAttrs, var: TensorType, indices: TensorType, updates: TensorType) -> tuple[TensorType, ...]:
        if indices.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
            raise OpError(op, "dtype of indices", got=indices.dtype, expected="i32 or i64")
        require_same_dtype(op, var, updates)
        if var.rank < 1 or updates.rank != indices.rank + var.rank - 1:
            raise OpError(
                op,
                "rank of updates",
                got=updates.rank,
                expected=f"{indices.rank + max(var.rank - 1, 0)}: one row of var for each index",
            )
        merge_shapes(op, (*indices.shape, *var.shape[1:]), updates.shape, "updates: dimension")
        return ()

    return infer


def _rows(op: str, var: Any, indices: Any) -> Any:
    flat = np.asarray(indices).reshape(-1)
    bad = np.flatnonzero((flat < 0) | (flat >= var.shape[0]))
    if bad.size:
        raise OpError(op, f"index {int(bad[0])}", got=int(flat[bad[0]]), expected=f"a row from 0 to {var.shape[0] - 1}")
    return flat


def scatter_update(xp: Any, attrs: NoAttrs, var: Any, indices: Any, updates: Any) -> Any:
    result, rows = var.copy(), updates.reshape(-1, *var.shape[1:])
    for i, row in enumerate(_rows("ScatterUpdate", var, indices)):
        result[row] = rows[i]
    return result


def scatter_add(xp: Any, attrs: NoAttrs, var: Any, indices: Any, updates: Any) -> Any:
    result, rows = var.copy(), updates.reshape(-1, *var.shape[1:])
    for i, row in enumerate(_rows("ScatterAdd", var, indices)):
        result[row] += rows[i]
    return result


def cases(rng: np.random.Generator) -> Iterable[Case]:
    def case(label: str, var: tuple[int, ...], indices: Any) -> Case:
        rows = rng.normal(size=(*np.shape(indices), *var[1:]))
        return Case((rng.normal(size=var), np.array(indices), rows), label=label)

    yield case("rows, one twice", (5, 3), [4, 0, 4])
    yield case("a matrix of indices", (6, 2, 2), [[1, 2], [5, 1]])
    yield case("numbers", (7,), [3])
    yield case("nothing", (4, 2), np.zeros(0, np.int32))
    counters, ones = np.zeros(3, np.int64), np.ones(2, np.int64)
    yield Case((counters, np.array([2, 2], np.int32), ones), label="i64 counters")


def define(name: str, reference: Any, doc: str) -> Op:
    return define_op(
        Op(
            name,
            inputs=("var", "indices", "updates"),
            outputs=(),
            infer=infer_scatter(name),
            reference=reference,
            native=snake_case(name),
            updates=("var",),
            cases=cases,
            rejects=(
                Reject(((4, 3), (2,), (2, 4)), match="updates", dtypes=("f32", "i32")),
                Reject(((4, 3), (2,), (3,)), match="rank of updates", dtypes=("f32", "i32")),
                Reject(((4, 3), (2,), (2, 3)), match="dtype of indices"),
            ),
            doc=doc,
        )
    )


SCATTER_UPDATE = define(
    "ScatterUpdate",
    scatter_update,
    """var[indices[i]] = updates[i] for each row i in order, in place: of equal indices the last one wins.

    Args: indices: i32 or i64, any rank. updates: indices.shape + var.shape[1:].
    Raises: OpError where shapes disagree; an error that names the index where one is no row of var.
    """,
)
SCATTER_ADD = define(
    "ScatterAdd",
    scatter_add,
    """var[indices[i]] += updates[i] for each row i in order, in place: of equal indices all add up.

    Args: indices: i32 or i64, any rank. updates: indices.shape + var.shape[1:].
    Raises: OpError where shapes disagree; an error that names the index where one is no row of var.
    """,
)
