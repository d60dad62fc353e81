"""One user function an op, derived from its record: `conv2d(x, w, strides=(2, 2), padding="SAME")`.

The same function adds a node where an argument is a graph tensor, and runs at once where all are arrays. Signature and
docstring come from the record; the name is the op's in snake_case.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Any

from rillet.shared_ops import eager
from rillet.shared_ops.op import Op
from rillet.shared_ops.registry import all_ops, get_op

_made: dict[str, Callable[..., Any]] = {}


def snake_case(name: str) -> str:
    """Conv2DBackpropInput -> conv2d_backprop_input, MatMul -> matmul, GatherNd -> gather_nd.

    >>> snake_case("Conv2DBackpropInput"), snake_case("LogSoftmax"), snake_case("BatchMatMul"), snake_case("Relu6")
    ('conv2d_backprop_input', 'log_softmax', 'batch_matmul', 'relu6')
    """
    name = name.replace("MatMul", "Matmul").replace("2D", "2d")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _signature(op: Op) -> inspect.Signature:
    parameters = []
    for name in op.inputs:
        if name.startswith("*"):
            parameters.append(inspect.Parameter(name[1:], inspect.Parameter.VAR_POSITIONAL))
        else:
            default = None if name.endswith("?") else inspect.Parameter.empty
            kind = inspect.Parameter.POSITIONAL_ONLY if op.is_variadic else inspect.Parameter.POSITIONAL_OR_KEYWORD
            parameters.append(inspect.Parameter(name.rstrip("?"), kind, default=default))
    for f in fields(op.attrs):
        default = inspect.Parameter.empty if f.default is MISSING else f.default
        parameters.append(inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=f.type))
    parameters.append(inspect.Parameter("name", inspect.Parameter.KEYWORD_ONLY, default=None, annotation="str | None"))
    return inspect.Signature(parameters)


def _make(op: Op) -> Callable[..., Any]:
    signature = _signature(op)
    attr_names = {f.name for f in fields(op.attrs)}

    def function(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs).arguments
        name = bound.pop("name", None)
        attrs = {k: bound.pop(k) for k in attr_names if k in bound}
        inputs: list[Any] = []
        for declared in op.inputs:
            if declared.startswith("*"):
                inputs.extend(bound.get(declared[1:], ()))
            else:
                inputs.append(bound.get(declared.rstrip("?")))
        while inputs and inputs[-1] is None and not op.is_variadic:
            inputs.pop()
        for x in inputs:
            if hasattr(x, "__rillet_emit__"):
                return x.__rillet_emit__(op.name, *inputs, name=name, **attrs)
        return eager.apply(op.name, *inputs, **attrs)

    function.__name__ = function.__qualname__ = snake_case(op.name)
    function.__doc__ = op.doc or f"The op {op.name}."
    function.__signature__ = signature  # type: ignore[attr-defined]
    return function


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("_"):
        raise AttributeError(name)
    if name not in _made:
        op = next((o for o in all_ops() if snake_case(o.name) == name), None)
        if op is None:
            raise AttributeError(f"no op function named {name!r}; rillet.shared_ops.registry.all_ops() lists the ops.")
        _made[name] = _make(get_op(op.name))
    return _made[name]


def __dir__() -> list[str]:
    return sorted(snake_case(op.name) for op in all_ops())
