"""Which line of the user's program made an operation: the first frame outside rillet."""

from __future__ import annotations

import os
import sys

import rillet

_OURS = tuple(os.path.join(os.path.abspath(folder), "") for folder in rillet.__path__)


def user_source() -> str:
    """`train.py:41`, or "" where every frame is rillet's own."""
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith(_OURS) and not file.startswith(("<frozen", "<string>")):
            return f"{os.path.basename(file)}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return ""
