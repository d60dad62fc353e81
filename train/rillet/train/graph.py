"""Graph: operations in the order of their making, with unique names, types, and the user's line for each."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from rillet.shared_ops.conversion import as_number
from rillet.shared_ops.eager import as_arrays
from rillet.shared_ops.errors import OpError, RilletError
from rillet.shared_ops.functions import snake_case
from rillet.shared_ops.op import Op
from rillet.shared_ops.registry import get_op
from rillet.shared_ops.types import DTYPE_NAMES, Array, Dim, TensorType, type_of
from rillet.train.source import user_source
from rillet.train.tensor import CONSTANT, GROUP, PLACEHOLDER, SOURCES, STEP, VARIABLE, Operation, Tensor

if TYPE_CHECKING:
    from rillet.train.variables import Variable

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-/]*\Z")


class GraphError(RilletError, ValueError):
    """The graph is used in a way it cannot be: a foreign tensor, a bad name, a fetch that is no tensor."""


def stream_of(name: str) -> int:
    """The random stream of an operation: 63 bits that depend on its name alone, so other nodes cannot change it."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little") >> 1


class Graph:
    """Operations and variables. Ops called with its tensors add nodes; nothing runs before a Session does it.

    seed: of every random operation. Its numbers depend on (seed, its name, session step) and nothing else.

    Example:
        >>> from rillet.train import Graph, Session, placeholder
        >>> with Graph().as_default():
        ...     x = placeholder((None, 2), name="x")
        ...     y = x * 2.0
        ...     Session().run(y, {x: [[1.0, 2.0]]}).tolist()
        [[2.0, 4.0]]
    """

    def __init__(self, seed: int = 0) -> None:
        self.seed = int(seed)
        self.operations: list[Operation] = []
        self.variables: list[Variable] = []
        self._by_name: dict[str, Operation] = {}
        self._scope = ""
        self._control: tuple[Operation, ...] = ()
        self._source = ""  # set while gradients are built: they carry the line of the forward operation
        self._step: Tensor | None = None
        self._repeats: dict[str, int] = {}

    # -- contexts -----------------------------------------------------------------------------------------------------

    @contextmanager
    def as_default(self) -> Iterator[Graph]:
        """Makes this the graph that placeholders, variables and layers go to."""
        stack = _default_stack()
        stack.append(self)
        try:
            yield self
        finally:
            stack.pop()

    @contextmanager
    def name_scope(self, name: str) -> Iterator[str]:
        """Puts `name/` before the names of what is made within; the scope itself is made unique."""
        before = self._scope
        self._scope = self.unique_name(name) + "/" if name else ""
        try:
            yield self._scope
        finally:
            self._scope = before

    @contextmanager
    def control_dependencies(self, operations: Iterable[Operation | Tensor]) -> Iterator[None]:
        """What is made within runs after `operations`."""
        before = self._control
        new = (o.operation if isinstance(o, Tensor) else o for o in operations)
        self._control = tuple(dict.fromkeys((*before, *new)))
        try:
            yield
        finally:
            self._control = before

    @contextmanager
    def without_control(self) -> Iterator[None]:
        """What is made within waits for nothing but its inputs."""
        before, self._control = self._control, ()
        try:
            yield
        finally:
            self._control = before

    @contextmanager
    def without_scope(self) -> Iterator[None]:
        """What is made within is named from the root."""
        before, self._scope = self._scope, ""
        try:
            yield
        finally:
            self._scope = before

    @contextmanager
    def source_of(self, operation: Operation) -> Iterator[None]:
        """What is made within carries the line of `operation`."""
        before, self._source = self._source, operation.source
        try:
            yield
        finally:
            self._source = before

    # -- names --------------------------------------------------------------------------------------------------------

    def unique_name(self, name: str) -> str:
        """`name` under the current scope, with _1, _2, ... where it is taken; then it is taken."""
        if not _NAME.match(name):
            raise GraphError(f"bad name {name!r}: letters, digits and _ . - / only, and no leading dash, dot or slash.")
        name = self._scope + name
        count = self._repeats.get(name, 0)
        self._repeats[name] = count + 1
        if count == 0:
            return name
        while f"{name}_{count}" in self._repeats:
            count += 1
        self._repeats[name] = count + 1
        self._repeats[f"{name}_{count}"] = 1
        return f"{name}_{count}"

    def get_operation(self, name: str) -> Operation:
        if name not in self._by_name:
            raise GraphError(f"no operation named {name!r} in the graph.")
        return self._by_name[name]

    def get_tensor(self, name: str) -> Tensor:
        """The tensor of this name: its operation's, with `:i` behind it where the operation has several outputs."""
        stem, _, index = name.partition(":")
        outputs = self.get_operation(stem).outputs
        i = int(index or 0)
        if i >= len(outputs):
            raise GraphError(f"operation {stem!r} has {len(outputs)} outputs; there is no {name!r}.")
        return outputs[i]

    # -- building -----------------------------------------------------------------------------------------------------

    def emit(self, op: str, *inputs: Any, name: str | None = None, **attrs: Any) -> Any:
        """Applies an op: its output tensor, a tuple of them if it has several, the Operation if it has none.

        Inputs: tensors, variables (their value is read), numbers (of the dtype of the first tensor), arrays, None for
        an optional one. Raises OpError, with the node's name and the user's line, where the op refuses its inputs.
        """
        record = get_op(op)
        node = self.unique_name(name or snake_case(op))
        source = self._source or user_source()
        if "stream" in record.attr_types and "stream" not in attrs:
            attrs = {"seed": self.seed, **attrs, "stream": stream_of(node)}
        try:
            tensors = self._as_inputs(record, inputs)
            made = record.make_attrs(attrs)
            types = record.infer_types(made, tuple(None if t is None else t.type for t in tensors))
        except OpError as error:
            raise error.located(node, source) from None
        operation = self.add(node, op, record, made, tensors, types, source)
        return operation.outputs[0] if len(types) == 1 else operation.outputs or operation

    def add(
        self,
        name: str,
        kind: str,
        op: Op | None,
        attrs: Any,
        inputs: tuple[Tensor | None, ...],
        types: Iterable[TensorType],
        source: str = "",
    ) -> Operation:
        """Appends an operation whose name is unique and whose types are known. `emit` is the way in for users."""
        source = source or self._source or user_source()
        control = () if kind in SOURCES else self._control
        operation = Operation(self, len(self.operations), name, kind, op, attrs, inputs, control, source)
        types = tuple(types)
        operation.outputs = tuple(
            Tensor(operation, i, t, name if len(types) == 1 else f"{name}:{i}") for i, t in enumerate(types)
        )
        self.operations.append(operation)
        self._by_name[name] = operation
        return operation

    def _as_inputs(self, record: Op, inputs: tuple[Any, ...]) -> tuple[Tensor | None, ...]:
        from rillet.train.variables import Variable

        updated = [n.rstrip("?") in record.updates or record.name == "ReadVariable" for n in record.inputs]
        given: list[Any] = []
        for i, x in enumerate(inputs):
            if isinstance(x, Variable):
                x = x.handle if i < len(updated) and updated[i] else x.value
            given.append(x)
        dtype = next((x.dtype for x in given if hasattr(x, "dtype") and not np.isscalar(x)), None)
        return tuple(self._as_tensor(x, dtype, record) for x in given)

    def _as_tensor(self, x: Any, dtype: np.dtype[Any] | None, record: Op) -> Tensor | None:
        if isinstance(x, Tensor):
            if x.graph is not self:
                raise GraphError(f"{record.name} mixes tensors of two graphs: {x!r} belongs to the other one.")
            return x
        if x is None:
            return None
        if isinstance(x, (bool, int, float)) and dtype is not None:
            return self.constant(as_number(record.name, x, dtype))
        return self.constant(x)

    def constant(self, value: Any, name: str = "constant", dtype: Any = None) -> Tensor:
        """A constant of the graph; Python floats and float64 lists become float32."""
        if dtype is None and not isinstance(value, (np.ndarray, np.generic)):
            array = as_arrays((value,))[0]
        else:
            array = np.array(value, dtype)
        if array is None or array.dtype not in DTYPE_NAMES:
            raise GraphError(f"a constant cannot hold {value!r}; the dtypes are {', '.join(DTYPE_NAMES.values())}.")
        operation = self.add(self.unique_name(name), CONSTANT, None, None, (), (type_of(array),))
        array = np.array(array, order="C")
        array.flags.writeable = False
        operation.constant = array
        return operation.outputs[0]

    def placeholder(self, shape: Iterable[Dim], dtype: Any = np.float32, name: str = "placeholder") -> Tensor:
        """A tensor that every run feeds. Dimensions may be None (unknown) or a name; equal names are equal numbers."""
        type = TensorType(np.dtype(dtype), _dims(shape, name))
        if type.dtype not in DTYPE_NAMES:
            raise GraphError(f"no tensor has dtype {type.dtype}; the dtypes are {', '.join(DTYPE_NAMES.values())}.")
        return self.add(self.unique_name(name), PLACEHOLDER, None, None, (), (type,)).outputs[0]

    def group(self, operations: Iterable[Operation | Tensor], name: str = "group") -> Operation:
        """An operation that computes nothing and is done when all of `operations` are: a target for `run`."""
        with self.control_dependencies(operations):
            return self.add(self.unique_name(name), GROUP, None, None, (), ())

    def add_variable(self, name: str, type: TensorType) -> Tensor:
        """The handle of a variable; Variable calls this."""
        return self.add(name, VARIABLE, None, None, (), (type,)).outputs[0]

    @property
    def step(self) -> Tensor:
        """The session's step, an int64 scalar: how many runs have updated variables. Schedules are functions of it."""
        if self._step is None:
            with self.without_scope():
                type = TensorType(np.dtype(np.int64), ())
                self._step = self.add(self.unique_name("step"), STEP, None, None, (), (type,)).outputs[0]
        return self._step

    def as_tensor(self, x: Any) -> Tensor:
        """A tensor as it is, a variable's value, anything else as a constant."""
        from rillet.train.variables import Variable

        if isinstance(x, Variable):
            x = x.value
        return x if isinstance(x, Tensor) else self.constant(x)


# -- the default graph ------------------------------------------------------------------------------------------------

_global_graph = Graph()
_local = threading.local()


def _dims(shape: Iterable[Dim], name: str) -> tuple[Dim, ...]:
    """The dimensions of a placeholder; refuses what is no size and no name of one."""
    if isinstance(shape, str) or not isinstance(shape, Iterable):
        raise GraphError(f"shape of the placeholder {name!r}: got {shape!r}, expected a tuple of dimensions.")
    dims = tuple(int(d) if isinstance(d, np.integer) else d for d in shape)
    for d in dims:
        is_size = isinstance(d, int) and not isinstance(d, bool) and d >= 0
        if not (d is None or is_size or (isinstance(d, str) and d)):
            expected = "a size of 0 or more, a name, or None where it is not known"
            raise GraphError(f"dimension of the placeholder {name!r}: got {d!r} in {dims}, expected {expected}.")
    return dims


def _default_stack() -> list[Graph]:
    if not hasattr(_local, "stack"):
        _local.stack = []
    return _local.stack


def get_default_graph() -> Graph:
    """The graph of the innermost `as_default` of this thread, else one that lasts as long as the process."""
    stack = _default_stack()
    return stack[-1] if stack else _global_graph


def placeholder(shape: Iterable[Dim], dtype: Any = np.float32, name: str = "placeholder") -> Tensor:
    """`Graph.placeholder` of the default graph."""
    return get_default_graph().placeholder(shape, dtype, name)


def constant(value: Any, name: str = "constant", dtype: Any = None) -> Tensor:
    """`Graph.constant` of the default graph."""
    return get_default_graph().constant(value, name, dtype)


def group(*operations: Operation | Tensor, name: str = "group") -> Operation:
    """`Graph.group` of the default graph."""
    return get_default_graph().group(operations, name)


def name_scope(name: str) -> Any:
    """`Graph.name_scope` of the default graph: `with name_scope("block1"): ...`."""
    return get_default_graph().name_scope(name)


def control_dependencies(operations: Iterable[Operation | Tensor]) -> Any:
    """`Graph.control_dependencies` of the default graph."""
    return get_default_graph().control_dependencies(operations)


__all__ = ["Array", "Graph", "GraphError", "Operation", "Tensor", "constant", "control_dependencies",
           "get_default_graph", "group", "name_scope", "placeholder", "stream_of"]  # fmt: skip
