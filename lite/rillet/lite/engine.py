"""The engine through ctypes: Model and Context, thin over rillet.h. Calls release the interpreter lock."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.lite.layout import CODE_DTYPES
from rillet.lite.library import ProfileStruct, TensorInfoStruct, check, library
from rillet.lite.status import ModelError, Status
from rillet.shared_ops.types import Array


@dataclass(frozen=True)
class TensorInfo:
    """An input, output or variable: -1 in `shape` is a dimension not known until resize."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    scale: float | None = None  # real = scale * (quantized - zero_point); None: not quantized
    zero_point: int = 0


@dataclass(frozen=True)
class OpTime:
    """What one operation took, over `runs` runs. No runs: it was computed while preparing, or is a mere view."""

    op: str
    name: str
    kernel: str
    nanoseconds: int
    runs: int


@dataclass(frozen=True)
class Memory:
    """Bytes that a context holds: values, packed weights and kernel state, scratch."""

    arena: int
    prepared: int
    workspace: int

    @property
    def total(self) -> int:
        return self.arena + self.prepared + self.workspace


class Model:
    """A verified model, immutable, shared by any number of contexts.

    Args:
        source: a path (the file is mapped), or the bytes of a model (kept alive, not copied).

    Raises:
        ModelError: the file is missing, damaged, or needs a kernel that this library lacks.
    """

    def __init__(self, source: str | os.PathLike[str] | bytes | bytearray | memoryview | Array) -> None:
        self._lib = library()
        self._handle = ctypes.c_void_p()
        if isinstance(source, (str, os.PathLike)):
            check(self._lib.rillet_model_load_file(os.fsencode(source), self._handle))
        else:
            self._bytes = np.frombuffer(source, np.uint8)
            data = self._bytes.ctypes.data or None
            check(self._lib.rillet_model_load_memory(data, self._bytes.nbytes, self._handle))
        self.metadata = self._read_metadata()

    def _read_metadata(self) -> dict[str, str]:
        key, value, found = ctypes.c_char_p(), ctypes.c_char_p(), {}
        for i in range(self._lib.rillet_model_metadata_count(self._handle)):
            check(self._lib.rillet_model_metadata(self._handle, i, key, value))
            found[(key.value or b"").decode(errors="replace")] = (value.value or b"").decode(errors="replace")
        return found

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._lib.rillet_model_free(self._handle)


class Context:
    """Runs a model; used by one thread at a time.

    Example:
        context = Context(Model("model.rlt"), threads=2)
        context.input(0)[...] = image
        context.run()
        scores = context.output(0).copy()
    """

    def __init__(self, model: Model, threads: int = 1) -> None:
        self.model = model
        self._lib = library()
        self._handle = ctypes.c_void_p()
        check(self._lib.rillet_context_new(model._handle, threads, self._handle))
        self._run = self._lib.rillet_run
        self._bound: dict[int, Array] = {}
        self._views: dict[tuple[str, int], Array] = {}
        self.input_names = [i.name for i in self.inputs]
        self.output_names = [o.name for o in self.outputs]
        self.variable_names = [v.name for v in self.variables]

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._lib.rillet_context_free(self._handle)

    # -- what there is ----------------------------------------------------------------------------------------------

    def _infos(self, kind: str) -> list[TensorInfo]:
        count = getattr(self._lib, f"rillet_{kind}_count")(self._handle)
        return [self._info(kind, i)[0] for i in range(count)]

    def _info(self, kind: str, i: int) -> tuple[TensorInfo, int]:
        info, data = TensorInfoStruct(), ctypes.c_void_p()
        if kind == "tensor":
            check(self._lib.rillet_tensor(self._handle, i, info, data))
        else:
            check(getattr(self._lib, f"rillet_{kind}_info")(self._handle, i, info))
        scale = info.scale if info.quantized else None
        shape = tuple(info.dims[: info.rank])
        name = info.name.decode(errors="replace")
        return TensorInfo(name, CODE_DTYPES[info.dtype], shape, scale, info.zero_point), data.value or 0

    @property
    def inputs(self) -> list[TensorInfo]:
        """The inputs, with the shapes that are set now."""
        return self._infos("input")

    @property
    def outputs(self) -> list[TensorInfo]:
        """The outputs; their shapes are known once prepared."""
        return self._infos("output")

    @property
    def variables(self) -> list[TensorInfo]:
        """The tensors whose memory belongs to the caller."""
        return self._infos("variable")

    # -- shapes and memory ------------------------------------------------------------------------------------------

    def resize(self, i: int, shape: Sequence[int]) -> None:
        """Sets the shape of input i. Views of inputs and outputs taken before are no longer valid."""
        dims = (ctypes.c_int64 * len(shape))(*shape)
        check(self._lib.rillet_resize(self._handle, i, dims, len(shape)))
        self._views.clear()

    def prepare(self) -> None:
        """Prepares kernels and plans memory now, for the shapes that are set."""
        check(self._lib.rillet_prepare(self._handle))

    def bind_variable(self, i: int, array: Array) -> None:
        """Lets variable i live in `array`, which operations update in place. It is kept alive while bound."""
        info = self._info("variable", i)[0]
        if array.dtype != info.dtype or not array.flags.c_contiguous or not array.flags.writeable:
            text = f"variable {info.name!r}: got {array.dtype}, expected a contiguous, writeable array of {info.dtype}."
            raise ModelError(Status.BAD_ARGUMENT, text)
        dims = (ctypes.c_int64 * array.ndim)(*array.shape)
        # An empty array may have no address; it has no bytes to write either.
        data = array.ctypes.data or ctypes.addressof(dims)
        check(self._lib.rillet_bind_variable(self._handle, i, data, array.nbytes, dims, array.ndim))
        self._bound[i] = array
        self._views.clear()

    def _view(self, info: TensorInfo, address: int) -> Array:
        size = int(np.prod(info.shape, dtype=np.int64)) * info.dtype.itemsize
        if not size:
            return np.zeros(info.shape, info.dtype)
        buffer: Any = (ctypes.c_char * size).from_address(address)
        return np.frombuffer(buffer, info.dtype).reshape(info.shape)

    def _cached_view(self, kind: str, i: int) -> Array:
        view = self._views.get((kind, i))
        if view is None:
            self.prepare()
            address = getattr(self._lib, f"rillet_{kind}_data")(self._handle, i)
            if not address:
                raise ModelError(
                    Status.BAD_ARGUMENT, f"no memory for {kind} {i}: out of range, or a variable not bound."
                )
            view = self._views[kind, i] = self._view(self._info(kind, i)[0], address)
        return view

    def input(self, i: int) -> Array:
        """The memory of input i, to write into. Valid until the next resize, bind, or end of the context."""
        return self._cached_view("input", i)

    def output(self, i: int) -> Array:
        """The memory of output i, to read after a run. Copy what must outlive the next run."""
        return self._cached_view("output", i)

    # -- running ----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Runs the model once. Raises ModelError, which names the operation, where data makes that impossible."""
        if status := self._run(self._handle):
            check(status)

    def keep_all(self, keep: bool = True) -> None:
        """Keeps every value of a run in memory of its own, for `tensors`."""
        check(self._lib.rillet_keep_all(self._handle, int(keep)))
        self._views.clear()

    def tensors(self) -> dict[str, Array]:
        """Copies of every tensor after a run with `keep_all` (without it, values share memory and are overwritten)."""
        found = {}
        for i in range(self._lib.rillet_tensor_count(self._handle)):
            info, address = self._info("tensor", i)
            if address and -1 not in info.shape:
                found[info.name] = self._view(info, address).copy()
        return found

    def profile(self, on: bool = True) -> None:
        """Switches timing of operations on (from zero) or off."""
        check(self._lib.rillet_profile(self._handle, int(on)))

    def times(self) -> list[OpTime]:
        """Time of each operation since `profile(True)`."""
        entry, found = ProfileStruct(), []
        for i in range(self._lib.rillet_profile_count(self._handle)):
            check(self._lib.rillet_profile_get(self._handle, i, entry))
            texts = [t.decode(errors="replace") for t in (entry.op, entry.name, entry.kernel)]
            found.append(OpTime(texts[0], texts[1], texts[2], entry.nanoseconds, entry.runs))
        return found

    def memory(self) -> Memory:
        """Bytes that this context holds beside the model file."""
        sizes = [ctypes.c_size_t() for _ in range(3)]
        check(self._lib.rillet_memory(self._handle, *sizes))
        return Memory(*(s.value for s in sizes))
