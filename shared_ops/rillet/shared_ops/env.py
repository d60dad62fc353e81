"""Every environment variable that rillet's Python reads. (The native library reads one: RILLET_ISA, in isa.cc.)

RILLET_LIBRARY  path of the native library to load instead of the installed one (tests: sanitizers, emulation).
RILLET_ISA      scalar, avx2, avx512, avx512vnni, neon or neondot: the instruction set, instead of the best available.
"""

from __future__ import annotations

import os

NAMES = ("RILLET_LIBRARY", "RILLET_ISA")


def library_override() -> str | None:
    """RILLET_LIBRARY, or None."""
    return os.environ.get("RILLET_LIBRARY") or None
