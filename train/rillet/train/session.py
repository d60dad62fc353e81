"""Session: holds the variables of a graph and runs parts of it."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from rillet.shared_ops.conversion import convert
from rillet.shared_ops.types import Array, TensorType
from rillet.train.executor import Executable
from rillet.train.graph import Graph, GraphError, get_default_graph
from rillet.train.inference import Predictor, mean_over
from rillet.train.schedule import prune
from rillet.train.tensor import VARIABLE, Operation, Tensor
from rillet.train.variables import Variable

_ALIGNMENT = 64
_MAX_THREADS = 1024  # what the engine takes
_SIGNATURES = 64  # how many planned runs are kept; the oldest goes
_GROWTH = 10  # how often a graph may grow between runs before the user hears of it


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """An uninitialised array whose memory starts at a multiple of 64 bytes, with 64 readable bytes behind it."""
    size = math.prod(shape) * dtype.itemsize
    raw = np.empty(size + 2 * _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + size].view(dtype).reshape(shape)


class Session:
    """Runs a graph. Variables live as long as the session does.

    threads: of the engine. Results do not depend on it. One run at a time: concurrent callers wait for each other.

    Example:
        >>> from rillet.train import Graph, Session, Variable, placeholder
        >>> with Graph().as_default() as graph:
        ...     x = placeholder((2,), name="x")
        ...     w = Variable([1.0, 10.0], name="w")
        ...     y = x * w
        >>> session = Session(graph)
        >>> session.initialize()
        >>> session.run({"product": y, "parts": [x, w]}, {x: [3.0, 4.0]})["product"]
        array([ 3., 40.], dtype=float32)
    """

    def __init__(self, graph: Graph | None = None, threads: int = 1) -> None:
        if not isinstance(threads, (int, np.integer)) or not 1 <= threads <= _MAX_THREADS:
            raise GraphError(f"threads is {threads!r}: expected a whole number from 1 to {_MAX_THREADS}.")
        self.graph = graph or get_default_graph()
        self.threads = int(threads)
        self.step = 0  # how many runs have updated variables; random ops and schedules see it
        self.compilations = 0  # how many signatures have been planned: a repeated run adds none
        self.variable_version = 0  # rises with every change of a variable
        self._buffers: dict[Tensor, Array] = {}
        self._executables: dict[Any, Executable] = {}
        self._size, self._grown = 0, 0  # operations at the last planning, and how often there were more since
        self._predictors: dict[Any, Predictor] = {}
        self._lock = threading.RLock()

    # -- variables ----------------------------------------------------------------------------------------------------

    def initialize(self, force: bool = False) -> None:
        """Gives every variable of the graph that has none its initial value (with `force`, all of them)."""
        for v in self.graph.variables:
            if force or v.handle not in self._buffers:
                self._write(v, v.initial_value())

    def is_initialized(self, variable: Variable) -> bool:
        return variable.handle in self._buffers

    def get(self, variable: Variable) -> Array:
        """A copy of what the variable holds."""
        return self._buffer(variable).copy()

    def set(self, variable: Variable, value: Any) -> None:
        """Overwrites the variable. Raises GraphError where shape or dtype cannot hold `value`."""
        given = np.asarray(value)
        if given.shape != variable.shape:
            raise GraphError(f"{variable.name!r} holds {variable.type}: got shape {given.shape}.")
        fitting = convert(given, variable.dtype)
        if fitting is None:
            raise GraphError(f"{variable.name!r} holds {variable.type}: got {given.dtype} values that do not fit.")
        self._write(variable, fitting)

    def _write(self, variable: Variable, value: Array) -> None:
        with self._lock:
            if variable.handle not in self._buffers:
                self._buffers[variable.handle] = aligned_empty(variable.shape, variable.dtype)
            self._buffers[variable.handle][...] = value
            self.variable_version += 1

    def _buffer(self, variable: Variable) -> Array:
        if variable.handle not in self._buffers:
            raise GraphError(_uninitialized(variable.name, variable.source))
        return self._buffers[variable.handle]

    # -- running ------------------------------------------------------------------------------------------------------

    def run(self, fetches: Any, feed_dict: Mapping[Any, Any] | None = None) -> Any:
        """Computes `fetches` and returns their values in the same structure (lists, tuples, dicts, nested).

        fetches: tensors, variables (their value) and operations (run for their effect; the value is None).
        feed_dict: values of placeholders, or of any other tensor: what produces it then does not run.
        Raises GraphError where a placeholder is not fed, a fed value does not fit, or a variable has no value yet.
        """
        with self._lock:
            flat: list[Operation | Tensor] = []
            rebuild = self._flatten(fetches, flat)
            feeds = self._feeds(feed_dict) if feed_dict else {}
            key = (tuple(flat), tuple((t, a.shape) for t, a in feeds.items()))
            executable = self._executables.get(key)
            if executable is None:
                executable = self._executables[key] = self._compile(flat, feeds)
            if executable.needs_step:
                feeds[self.graph.step] = np.asarray(self.step, np.int64)
            try:
                values = executable.run(feeds)
            finally:  # a run that stops half-way may have updated some
                self.variable_version += executable.updates
            self.step += executable.updates
            return rebuild(iter(values))

    def predict(self, fetches: Any, feed_dict: Mapping[Any, Any]) -> Any:
        """Computes `fetches` in inference mode: batch norm by its moving averages, no dropout. Nothing is updated.

        The bits are those of the exported model: the same freeze, the same passes, the same kernels. fetches: tensors
        in any structure. feed_dict: as in `run`; what is fed is the model's input.
        """
        with self._lock:
            flat: list[Operation | Tensor] = []
            rebuild = self._flatten(fetches, flat)
            tensors = [f for f in flat if isinstance(f, Tensor)]
            feeds = self._feeds(feed_dict)
            return rebuild(iter(self._predictor(tensors, list(feeds)).run(feeds)))

    def evaluate(self, fetches: Any, feed_dicts: Iterable[Mapping[Any, Any]]) -> Any:
        """The means of scalar `fetches` in inference mode over batches, each weighted by its first fed dimension."""

        def results() -> Iterator[tuple[int, list[Array]]]:
            for feed_dict in feed_dicts:
                first = np.shape(next(iter(feed_dict.values())))
                flat: list[Any] = []
                self._flatten(fetches, flat)
                yield (first[0] if first else 1), self.predict(flat, feed_dict)

        flat: list[Operation | Tensor] = []
        rebuild = self._flatten(fetches, flat)
        return rebuild(iter(mean_over(results(), len(flat))))

    def _predictor(self, tensors: list[Tensor], inputs: list[Tensor]) -> Predictor:
        key = tuple(tensors), tuple(inputs)
        found = self._predictors.get(key)
        if found is None or found.version != self.variable_version:
            found = self._predictors[key] = Predictor(self, inputs, tensors)
        return found

    def executables(self) -> list[Executable]:
        """What the signatures run so far have become: their plans, and the regions that the engine runs."""
        return list(self._executables.values())

    def _compile(self, flat: list[Operation | Tensor], feeds: dict[Tensor, Array]) -> Executable:
        self._watch_growth()
        types = {t: TensorType(a.dtype, a.shape) for t, a in feeds.items()}
        for operation in prune(flat, types):
            if operation.kind == VARIABLE and operation.outputs[0] not in self._buffers:
                raise GraphError(_uninitialized(operation.name, operation.source))
        executable = Executable(flat, types, self._buffers, self.threads)
        while len(self._executables) >= _SIGNATURES:
            self._executables.pop(next(iter(self._executables)))
        self.compilations += 1
        return executable

    def _watch_growth(self) -> None:
        """Warns, once, of operations that are made in the loop that runs them."""
        operations = self.graph.operations
        self._grown += len(operations) > self._size
        self._size = len(operations)
        if self._grown == _GROWTH:
            self._grown += 1  # said
            last = operations[-1]
            warnings.warn(
                f"the graph has grown before {_GROWTH} runs, last by [{last.kind} at {last.name!r} ({last.source})]: "
                "every such run is planned anew. Build the graph before the loop.",
                stacklevel=4,
            )

    def _flatten(self, fetches: Any, flat: list[Operation | Tensor]) -> Callable[[Any], Any]:
        """Appends the tensors and operations of a structure; returns what puts their values back into it."""
        if isinstance(fetches, Variable):
            fetches = fetches.value
        if isinstance(fetches, (Tensor, Operation)):
            if fetches.graph is not self.graph:
                raise GraphError(f"{fetches!r} belongs to another graph than the session.")
            flat.append(fetches)
            return next if isinstance(fetches, Tensor) else lambda values: None
        if isinstance(fetches, dict):
            parts = {k: self._flatten(v, flat) for k, v in fetches.items()}
            return lambda values: {k: p(values) for k, p in parts.items()}
        if isinstance(fetches, (list, tuple)):
            inner = [self._flatten(f, flat) for f in fetches]
            if hasattr(fetches, "_fields"):
                return lambda values: type(fetches)(*(p(values) for p in inner))
            return lambda values: type(fetches)(p(values) for p in inner)
        raise GraphError(f"cannot fetch {fetches!r}; fetch tensors, variables, operations, or structures of these.")

    def _feeds(self, feed_dict: Mapping[Any, Any]) -> dict[Tensor, Array]:
        feeds: dict[Tensor, Array] = {}
        names: dict[str, int] = {}
        if not isinstance(feed_dict, Mapping):
            raise GraphError(f"feed_dict is a {type(feed_dict).__name__}: expected a dict of tensors and their values.")
        for key, value in feed_dict.items():
            tensor = key.value if isinstance(key, Variable) else key
            if not isinstance(tensor, Tensor) or tensor.graph is not self.graph:
                raise GraphError(f"cannot feed {key!r}; feed tensors of the session's graph.")
            feeds[tensor] = _as_feed(tensor, value, names)
        return feeds


def _as_feed(tensor: Tensor, value: Any, names: dict[str, int]) -> Array:
    """`value` as an array of the tensor's dtype; refuses what would lose digits or does not fit the shape."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise GraphError(f"{_where(tensor)} is fed lists of unequal lengths; it holds {tensor.type}.") from None
    if array.dtype != tensor.type.dtype:
        if not np.can_cast(array.dtype, tensor.dtype, "same_kind"):
            raise GraphError(f"{_where(tensor)} is fed values of dtype {array.dtype}; it holds {tensor.dtype}.")
        fitting = convert(array, tensor.dtype)
        if fitting is None:
            raise GraphError(f"{_where(tensor)} is fed {array.dtype} values beyond the range of {tensor.dtype}.")
        array = fitting
    shape = tensor.type.shape
    fits = len(array.shape) == len(shape)
    for got, want in zip(array.shape, shape):
        if isinstance(want, str):
            fits = fits and names.setdefault(want, got) == got
        elif want is not None:
            fits = fits and got == want
    if not fits:
        known = f" (where {names})" if names else ""
        raise GraphError(f"{_where(tensor)} is fed shape {array.shape}; it holds {tensor.type}{known}.")
    return array


def _where(tensor: Tensor) -> str:
    operation = tensor.operation
    return f"[{operation.kind} at {operation.name!r} ({operation.source})]"


def _uninitialized(name: str, source: str) -> str:
    return f"the variable {name!r} ({source}) has no value yet: call session.initialize(), or restore a checkpoint."
