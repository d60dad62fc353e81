"""Values in another dtype where nothing is lost that counts: one rule for constants, feeds and variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.types import DTYPE_NAMES, Array


def convert(value: Any, dtype: np.dtype[Any]) -> Array | None:
    """`value` as an array of `dtype`, or None where that would make other numbers of it.

    Floats take any number, rounded to their digits. Integers take what they can hold: no fraction, no NaN, nothing out
    of range. bool takes 0 and 1.

    Example:
        >>> convert([1.0, 2.0], np.dtype(np.int32)), convert(0.5, np.dtype(np.int32)), convert(300, np.dtype(np.int8))
        (array([1, 2], dtype=int32), None, None)
    """
    array = np.asarray(value)
    if array.dtype == dtype:
        return array
    if array.dtype.kind not in "fiub":
        return None
    with np.errstate(invalid="ignore"):
        made = array.astype(dtype)
    return made if dtype.kind == "f" or np.array_equal(made, array) else None


def as_number(op: str, number: Any, dtype: np.dtype[Any]) -> Array:
    """A Python number among the inputs of an op, in the dtype of the tensors beside it.

    Raises OpError where the dtype cannot hold it: `x * 0.5` on integers is not `x * 0`.
    """
    made = convert(number, dtype)
    if made is None:
        name = DTYPE_NAMES.get(dtype, str(dtype))
        hint = f"Cast the tensor to a dtype that holds {number!r} first."
        raise OpError(op, "a number beside a tensor", got=repr(number), expected=f"one that {name} can hold", hint=hint)
    return made
