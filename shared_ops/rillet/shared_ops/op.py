"""What an op *is*: one frozen record holds every facet, and nothing else in rillet describes an op."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, field, fields
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.types import Array, QuantParams, TensorType


class Emit(Protocol):
    """Applies an op by name. In tests it computes on arrays at once; in a graph it adds a node and returns tensors.

    A Python number among the inputs becomes a scalar constant of the dtype of the first tensor input; an array becomes
    a constant. An op with one output returns it; an op with several returns a tuple.
    """

    def __call__(self, op: str, *inputs: Any, **attrs: Any) -> Any: ...


class Int8Family(Protocol):
    """How a float op becomes an int8 op; the families are in quantize.py."""

    def run(
        self,
        op: Op,
        attrs: Any,
        inputs: tuple[Array | None, ...],
        in_q: tuple[QuantParams | None, ...],
        out_q: tuple[QuantParams | None, ...],
    ) -> tuple[Array, ...]: ...


@dataclass(frozen=True)
class Case:
    """One example of an op. Tests, gradient checks, int8 checks, native checks, benchmarks and docs all read these.

    inputs: arrays in the order of the op's inputs, float ones in float64 (the native check casts them to float32);
    None stands for an optional input left out. tolerance: relative, of the native float32 kernel against the reference.
    differentiable: indices of the inputs that the gradient check moves (default: every float input).
    """

    inputs: tuple[Array | None, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    tolerance: float = 1e-5
    label: str = ""
    differentiable: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Reject:
    """What `infer` (or `make_attrs`) must refuse, and words that its error must contain.

    shapes: one a input; float32 unless `dtypes` says otherwise.
    """

    shapes: tuple[tuple[int | None, ...] | None, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    match: str = ""
    dtypes: tuple[str, ...] = ()
    values: tuple[tuple[int, ...] | None, ...] = ()


@dataclass(frozen=True)
class NoAttrs:
    """The attributes of an op that has none."""


def no_cases(rng: np.random.Generator) -> Iterable[Case]:
    return ()


@dataclass(frozen=True)
class Op:
    """The record of one op.

    name: CamelCase as in TensorFlow. version: rises when the meaning changes.
    inputs, outputs: names in order; `"bias?"` is optional, `"*values"` (the last one) stands for any number.
    attrs: a frozen dataclass: schema, defaults, serialised form and the user function's keywords in one.
    infer(attrs, *types) -> output types: the only place that refuses; dimensions may be unknown; absent optional: None.
    reference(xp, attrs, *arrays) -> array, or tuple of arrays if there are several outputs: the op's meaning, in plain
        array code over numpy or cupy. For an op with `updates`, the new values of these inputs follow.
    gradient(emit, attrs, inputs, outputs, *dy) -> one gradient (or None) an input. No function: not differentiable.
    quantize: the int8 family, or None where the op stays float.
    native: stem of the C++ kernels; "" where the reference is all there is.
    updates: names of the inputs (variables) that the op overwrites.
    inference(emit, attrs, inputs) -> outputs: what stands in for the op in an inference Program (batch norm, dropout).
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    infer: Callable[..., tuple[TensorType, ...]]
    reference: Callable[..., Any]
    gradient: Callable[..., tuple[Any, ...]] | None = None
    attrs: type = NoAttrs
    version: int = 1
    quantize: Int8Family | None = None
    native: str = ""
    cases: Callable[[np.random.Generator], Iterable[Case]] = no_cases
    rejects: tuple[Reject, ...] = ()
    updates: tuple[str, ...] = ()
    inference: Callable[..., Any] | None = None
    doc: str = ""

    def make_attrs(self, given: dict[str, Any]) -> Any:
        """The attrs record from keywords; refuses unknown and missing names, wrong types, words outside a Literal."""
        known = self.attr_types
        if unknown := sorted(set(given) - set(known)):
            raise OpError(self.name, f"unknown attribute {unknown[0]!r}", got=unknown, expected=sorted(known))
        if missing := [f.name for f in fields(self.attrs) if f.default is MISSING and f.name not in given]:
            raise OpError(self.name, f"attribute {missing[0]!r} is missing", expected=known[missing[0]])
        return self.attrs(**{k: coerce(self.name, k, v, known[k]) for k, v in given.items()})

    @cached_property
    def attr_types(self) -> dict[str, Any]:
        hints = typing.get_type_hints(self.attrs)
        return {f.name: hints[f.name] for f in fields(self.attrs)}

    @property
    def is_variadic(self) -> bool:
        return bool(self.inputs) and self.inputs[-1].startswith("*")

    @property
    def min_inputs(self) -> int:
        return sum(not (n.endswith("?") or n.startswith("*")) for n in self.inputs)

    def check_arity(self, count: int) -> None:
        """Refuses a number of inputs that the op cannot take."""
        if count < self.min_inputs or (count > len(self.inputs) and not self.is_variadic):
            raise OpError(self.name, "wrong number of inputs", got=count, expected=f"({', '.join(self.inputs)})")

    def infer_types(self, attrs: Any, inputs: tuple[TensorType | None, ...]) -> tuple[TensorType, ...]:
        """`infer`, with the number of inputs checked and absent optional inputs filled in with None."""
        self.check_arity(len(inputs))
        if not self.is_variadic:
            inputs = inputs + (None,) * (len(self.inputs) - len(inputs))
        for name, given in zip(self.inputs, inputs):
            if given is None and not name.endswith("?"):
                raise OpError(self.name, f"input {name!r} is missing")
        return tuple(self.infer(attrs, *inputs))

    def compute(self, xp: Any, attrs: Any, *inputs: Any) -> tuple[Any, ...]:
        """The reference's outputs (and updated variables) as a tuple, absent optional inputs filled in."""
        if not self.is_variadic:
            inputs = inputs + (None,) * (len(self.inputs) - len(inputs))
        result = self.reference(xp, attrs, *inputs)
        return result if isinstance(result, tuple) else (result,)


def coerce(op: str, name: str, value: Any, want: Any) -> Any:
    """`value` as the annotation `want` says: int, float, bool, str, Literal, X | None or (nested) tuples of these."""
    origin, args = typing.get_origin(want), typing.get_args(want)
    if origin is typing.Literal:
        if value not in args:
            raise OpError(op, f"attribute {name!r}", got=repr(value), expected=f"one of {', '.join(map(repr, args))}")
        return value
    if origin in (typing.Union, types.UnionType):
        if value is None:
            return None
        return coerce(op, name, value, next(a for a in args if a is not type(None)))
    if origin is tuple:
        return _coerce_tuple(op, name, value, args)
    if want is bool and isinstance(value, (bool, np.bool_, int)):
        return bool(value)
    if want is int and isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    if want is float and isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool):
        return float(value)
    if want is str and isinstance(value, str):
        return value
    raise OpError(op, f"attribute {name!r}", got=repr(value), expected=getattr(want, "__name__", str(want)))


def _coerce_tuple(op: str, name: str, value: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, (tuple, list, np.ndarray)):
        raise OpError(op, f"attribute {name!r}", got=repr(value), expected="a tuple")
    if len(args) == 2 and args[1] is Ellipsis:
        inner = args[0]
        if typing.get_origin(inner) is tuple and value and not isinstance(value[0], (tuple, list, np.ndarray)):
            width = len(typing.get_args(inner))  # flat, as it is stored on disk
            value = [value[i : i + width] for i in range(0, len(value), width)]
        return tuple(coerce(op, name, v, inner) for v in value)
    if len(value) != len(args):
        raise OpError(op, f"attribute {name!r}", got=repr(value), expected=f"{len(args)} numbers")
    return tuple(coerce(op, name, v, a) for v, a in zip(value, args))
