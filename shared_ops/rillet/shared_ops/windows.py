"""Sliding windows over rows and columns: output sizes, padding and taps of convolutions and pools.

shared_ops/native/conv_geometry.h is the same in C++.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.types import Dim, Shape

Padding = Literal["SAME", "VALID", "EXPLICIT"]
Pair = tuple[int, int]
Pads = tuple[tuple[int, int], tuple[int, int]]
AXES = ("rows", "columns")


def window_axis(
    size: int, kernel: int, stride: int, dilation: int, padding: Padding, pads: Pair = (0, 0)
) -> tuple[int, Pair]:
    """Number of windows and (before, after) padding along one axis. SAME puts the odd zero after, as TensorFlow does.

    >>> window_axis(5, 3, 2, 1, "SAME"), window_axis(4, 3, 2, 1, "SAME"), window_axis(7, 3, 2, 1, "VALID")
    ((3, (1, 1)), (2, (0, 1)), (3, (0, 0)))
    """
    reach = (kernel - 1) * dilation + 1
    if padding == "SAME":
        count = -(-size // stride)
        total = max((count - 1) * stride + reach - size, 0)
        return count, (total // 2, total - total // 2)
    before, after = pads if padding == "EXPLICIT" else (0, 0)
    return (size + before + after - reach) // stride + 1, (before, after)


def windows(attrs: Any, size: Sequence[int], kernel: Sequence[int]) -> tuple[Pair, Pads]:
    """Output (rows, columns) and the padding of both axes, for attributes with strides, dilations, padding and pads."""
    (p, rows), (q, columns) = (
        window_axis(size[i], kernel[i], attrs.strides[i], attrs.dilations[i], attrs.padding, attrs.pads[i])
        for i in range(2)
    )
    return (p, q), (rows, columns)


def check_window_attrs(op: str, attrs: Any) -> None:
    """Refuses strides and dilations below one, negative padding, and `pads` without padding="EXPLICIT"."""
    for name in ("strides", "dilations"):
        given = getattr(attrs, name)
        if min(given) < 1:
            raise OpError(op, f"{name} must be positive", got=given, expected="at least 1 each")
    if min(min(p) for p in attrs.pads) < 0:
        raise OpError(op, "pads must not be negative", got=attrs.pads, expected="at least 0 each")
    if attrs.padding != "EXPLICIT" and any(any(p) for p in attrs.pads):
        raise OpError(
            op, "pads need padding='EXPLICIT'", got=f"padding={attrs.padding!r}, pads={attrs.pads}", expected="EXPLICIT"
        )


def infer_windows(op: str, attrs: Any, size: Shape, kernel: Shape) -> tuple[Dim, Dim]:
    """Output (rows, columns); sizes may be unknown. Raises OpError for an empty window, or one beyond the image."""
    check_window_attrs(op, attrs)
    out: list[Dim] = []
    for i in range(2):
        n, k = size[i], kernel[i]
        if isinstance(k, int) and k < 1:
            raise OpError(op, f"the window has no {AXES[i]}", got=k, expected="at least 1")
        if attrs.padding == "SAME" and attrs.strides[i] == 1:
            out.append(n)
            continue
        if not isinstance(n, int) or not isinstance(k, int):
            known = attrs.padding == "SAME" and isinstance(n, int)
            out.append(-(-n // attrs.strides[i]) if known else None)  # type: ignore[operator]
            continue
        reach = (k - 1) * attrs.dilations[i] + 1
        padded = n + sum(attrs.pads[i])
        if attrs.padding != "SAME" and reach > padded:
            raise OpError(
                op,
                f"the window reaches beyond the padded image's {AXES[i]}",
                got=reach,
                expected=f"at most {padded}",
                hint="Use padding='SAME', or a smaller window or dilation.",
            )
        out.append(window_axis(n, k, attrs.strides[i], attrs.dilations[i], attrs.padding, attrs.pads[i])[0])
    return out[0], out[1]


def taps(attrs: Any, count: Sequence[int], kernel: Sequence[int]) -> Iterator[tuple[Pair, tuple[slice, slice, slice]]]:
    """Each window tap (row, column) with the slices of the padded NHWC image that it reads, in the contract's order."""
    for tap in np.ndindex(*kernel):
        rows, columns = (
            slice(t * dilation, t * dilation + (n - 1) * stride + 1 if n else t * dilation, stride)
            for t, n, stride, dilation in zip(tap, count, attrs.strides, attrs.dilations)
        )
        yield (tap[0], tap[1]), (slice(None), rows, columns)
