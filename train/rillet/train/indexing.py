"""`x[1, 2:, ..., None]` as the attributes of StridedSlice."""

from __future__ import annotations

from typing import Any

import numpy as np


def strided_slice_attrs(key: Any, rank: int) -> dict[str, Any]:
    """The attributes of StridedSlice for an index: integers, slices, `...` and None.

    >>> strided_slice_attrs((0, slice(2, None)), 2)["end_mask"]
    2
    """
    keys = list(key) if isinstance(key, tuple) else [key]
    used = sum(k is not None and k is not Ellipsis for k in keys)
    if used > rank:
        raise IndexError(f"{used} indices for a tensor of rank {rank}.")
    if Ellipsis not in [k for k in keys if k is None or k is Ellipsis]:
        keys.append(Ellipsis)
    at = next(i for i, k in enumerate(keys) if k is Ellipsis)
    keys[at : at + 1] = [slice(None)] * (rank - used)
    begin, end, strides = [], [], []
    masks = {"begin_mask": 0, "end_mask": 0, "new_axis_mask": 0, "shrink_axis_mask": 0}
    for i, k in enumerate(keys):
        b, e, s, names = _one(k)
        begin.append(b)
        end.append(e)
        strides.append(s)
        for name in names:
            masks[name] |= 1 << i
    return {"begin": tuple(begin), "end": tuple(end), "strides": tuple(strides), **masks}


def _one(k: Any) -> tuple[int, int, int, list[str]]:
    """begin, end, stride and the masks to set for one index."""
    if k is None:
        return 0, 1, 1, ["new_axis_mask"]
    if isinstance(k, (int, np.integer)) and not isinstance(k, (bool, np.bool_)):
        return int(k), int(k) + 1, 1, ["shrink_axis_mask"]
    if isinstance(k, slice):
        open_ends = [n for n, bound in (("begin_mask", k.start), ("end_mask", k.stop)) if bound is None]
        return int(k.start or 0), int(k.stop or 0), int(1 if k.step is None else k.step), open_ends
    raise IndexError(f"cannot index a tensor with {k!r}; integers, slices, ... and None can be used (ops.gather else).")
