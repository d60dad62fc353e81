"""Loads the native library and declares its C functions (rillet.h)."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_float, c_int32, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path

from rillet.lite.status import ModelError, Status
from rillet.shared_ops.env import library_override
from rillet.shared_ops.errors import RilletError

MAX_RANK = 8


class LibraryMissing(RilletError, ImportError):
    """The native library is not beside the package, or cannot be loaded."""


class TensorInfoStruct(ctypes.Structure):
    """rillet_tensor_info"""

    _fields_ = [
        ("name", c_char_p),
        ("dtype", c_int32),
        ("rank", c_int32),
        ("dims", c_int64 * MAX_RANK),
        ("quantized", c_int32),
        ("scale", c_float),
        ("zero_point", c_int32),
        ("bytes", c_size_t),
    ]


class ProfileStruct(ctypes.Structure):
    """rillet_profile_entry"""

    _fields_ = [
        ("op", c_char_p),
        ("name", c_char_p),
        ("kernel", c_char_p),
        ("nanoseconds", c_uint64),
        ("runs", c_uint64),
    ]


_INFO, _SIZE = POINTER(TensorInfoStruct), POINTER(c_size_t)
_TEXT, _DIMS = POINTER(c_char_p), POINTER(c_int64)
# name: (result, arguments); c_int32 results called `status` in rillet.h are checked by `check`.
_FUNCTIONS: dict[str, tuple[object, list[object]]] = {
    "version": (c_char_p, []),
    "error": (c_char_p, []),
    "status_name": (c_char_p, [c_int32]),
    "model_load_file": (c_int32, [c_char_p, POINTER(c_void_p)]),
    "model_load_memory": (c_int32, [c_void_p, c_size_t, POINTER(c_void_p)]),
    "model_free": (None, [c_void_p]),
    "model_metadata_count": (c_int32, [c_void_p]),
    "model_metadata": (c_int32, [c_void_p, c_int32, _TEXT, _TEXT]),
    "context_new": (c_int32, [c_void_p, c_int32, POINTER(c_void_p)]),
    "context_free": (None, [c_void_p]),
    "input_count": (c_int32, [c_void_p]),
    "output_count": (c_int32, [c_void_p]),
    "variable_count": (c_int32, [c_void_p]),
    "tensor_count": (c_int32, [c_void_p]),
    "input_info": (c_int32, [c_void_p, c_int32, _INFO]),
    "output_info": (c_int32, [c_void_p, c_int32, _INFO]),
    "variable_info": (c_int32, [c_void_p, c_int32, _INFO]),
    "resize": (c_int32, [c_void_p, c_int32, _DIMS, c_int32]),
    "prepare": (c_int32, [c_void_p]),
    "input_data": (c_void_p, [c_void_p, c_int32]),
    "output_data": (c_void_p, [c_void_p, c_int32]),
    "bind_variable": (c_int32, [c_void_p, c_int32, c_void_p, c_size_t, _DIMS, c_int32]),
    "run": (c_int32, [c_void_p]),
    "keep_all": (c_int32, [c_void_p, c_int32]),
    "tensor": (c_int32, [c_void_p, c_int32, _INFO, POINTER(c_void_p)]),
    "profile": (c_int32, [c_void_p, c_int32]),
    "profile_count": (c_int32, [c_void_p]),
    "profile_get": (c_int32, [c_void_p, c_int32, POINTER(ProfileStruct)]),
    "memory": (c_int32, [c_void_p, _SIZE, _SIZE, _SIZE]),
    "set_memory_limit": (None, [c_size_t]),
    "kernel_count": (c_int32, []),
    "kernel_info": (c_int32, [c_int32, _TEXT, POINTER(c_int32), _TEXT, POINTER(c_uint32)]),
    "isa": (c_char_p, []),
    "isa_available": (c_int32, [c_char_p]),
    "set_isa": (c_int32, [c_char_p]),
}


def library_path() -> Path:
    """Where the native library of this installation lies, unless RILLET_LIBRARY names another."""
    return Path(library_override() or Path(__file__).with_name("librillet.so"))


@cache
def library() -> ctypes.CDLL:
    """The loaded library. Raises LibraryMissing, with what to do, where there is none."""
    path = library_path()
    if not path.exists():
        raise LibraryMissing(f"no native library at {path}. In a source checkout run `python build_native.py`.")
    try:
        lib = ctypes.CDLL(str(path))
    except OSError as error:
        raise LibraryMissing(f"cannot load {path}: {error}. Was it built for this machine?") from None
    for name, (result, arguments) in _FUNCTIONS.items():
        function = getattr(lib, f"rillet_{name}")
        function.restype, function.argtypes = result, arguments
    return lib


def is_available() -> bool:
    """Whether the native library can be used."""
    try:
        library()
    except LibraryMissing:
        return False
    return True


def check(status: int) -> None:
    """Raises ModelError with the engine's words where a call has failed."""
    if status:
        raise ModelError(Status(status), library().rillet_error().decode(errors="replace"))


@cache
def kernel_flags() -> dict[tuple[str, int, str], int]:
    """Flags (kernel.h) of every kernel in the library, by (op, version, dtype); dtype "any" takes all."""
    lib, found = library(), {}
    op, dtype, version, flags = c_char_p(), c_char_p(), c_int32(), c_uint32()
    for i in range(lib.rillet_kernel_count()):
        check(lib.rillet_kernel_info(i, op, version, dtype, flags))
        found[(op.value or b"").decode(), version.value, (dtype.value or b"").decode()] = flags.value
    return found


@cache
def kernels() -> frozenset[tuple[str, int, str]]:
    """(op, version, dtype) of every kernel in the library; dtype "any" takes all."""
    return frozenset(kernel_flags())


def isas() -> list[str]:
    """The instruction sets that this build has code for and this CPU can run, the plainest first."""
    names = ("scalar", "avx2", "avx512", "avx512vnni", "neon", "neondot")
    return [name for name in names if library().rillet_isa_available(name.encode())]


def current_isa() -> str:
    """The instruction set that contexts prepared from now on use."""
    return str(library().rillet_isa().decode())


def set_isa(name: str) -> None:
    """Makes contexts prepared from now on use an instruction set. Raises ModelError if this CPU or build lacks it."""
    check(library().rillet_set_isa(name.encode()))
