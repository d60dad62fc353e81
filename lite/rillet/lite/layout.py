"""What writer and reader share of the .rlt layout (lite/format/README.md): header, alignment, names of enum values."""

from __future__ import annotations

import struct
import typing
from typing import Any

from rillet.lite import _model_fbs as fbs
from rillet.shared_ops.types import DTYPE_NAMES, DTYPES

MAGIC = b"RILLET\r\n"
FORMAT_VERSION = 1
IDENTIFIER = b"RLT1"
# magic, version, CRC-32 of the 16 bytes that follow and of the structure, size of the structure, size of the file
HEADER = struct.Struct("<8sIIQQ32x")
ALIGNMENT = 64
MAX_BYTES = 1 << 40

# The schema spells the dtypes as the rest of rillet does, but for a capital: F32, Bool.
DTYPE_CODES: dict[Any, int] = {dtype: getattr(fbs.DType, name.capitalize()) for dtype, name in DTYPE_NAMES.items()}
CODE_DTYPES: dict[int, Any] = {DTYPE_CODES[dtype]: dtype for dtype in DTYPES.values()}


def padded(size: int) -> int:
    """`size`, rounded up to the alignment of sections."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def is_float_list(annotation: Any) -> bool:
    """Whether the numbers in a (nested) tuple attribute are floats."""
    return annotation is float or any(is_float_list(a) for a in typing.get_args(annotation))


def nest(values: list[Any], annotation: Any) -> Any:
    """A flat list of numbers as the nested tuples that the annotation of an attribute asks for.

    Example:
        >>> nest([1, 2, 3, 4], tuple[tuple[int, int], ...])
        ((1, 2), (3, 4))
    """
    args = [a for a in typing.get_args(annotation) if a is not type(None)]
    if typing.get_origin(annotation) is not tuple:
        return next((nest(values, a) for a in args if typing.get_origin(a) is tuple), tuple(values))
    inner = args[0] if args else int
    if typing.get_origin(inner) is not tuple:
        return tuple(values)
    width = len(typing.get_args(inner))
    return tuple(nest(values[i : i + width], inner) for i in range(0, len(values), width))
