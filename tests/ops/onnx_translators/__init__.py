"""How ONNX nodes read as rillet ops: one translator an ONNX op, in one module an area. Discovered, never listed.

A translator gets the node and its inputs as arrays, and applies rillet ops through `node.emit`:

    @translate("LeakyRelu")
    def leaky_relu(node: Node, x: Array) -> Array:
        return node.emit("LeakyRelu", x, alpha=node.attr("alpha", 0.01))

It returns one array, or a tuple in the order of the node's outputs; absent optional inputs come as None. What rillet
leaves out on purpose (an attribute value, a dtype) raises Unsupported with the reason; the harness lists these.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from onnx import NodeProto, helper

Translator = Callable[..., Any]
TRANSLATORS: dict[str, Translator] = {}


class Unsupported(Exception):
    """This form of the op is left out of rillet on purpose; the text says why."""


@dataclass(frozen=True)
class Node:
    """One ONNX node: its attributes, the opset it is written in, and the way to apply rillet ops."""

    proto: NodeProto
    opset: int
    emit: Callable[..., Any]

    def attr(self, name: str, default: Any = None) -> Any:
        for a in self.proto.attribute:
            if a.name == name:
                value = helper.get_attribute_value(a)
                return value.decode() if isinstance(value, bytes) else value
        return default

    @property
    def outputs(self) -> int:
        return len(self.proto.output)


def translate(*onnx_ops: str) -> Callable[[Translator], Translator]:
    def register(f: Translator) -> Translator:
        for name in onnx_ops:
            assert name not in TRANSLATORS, f"two translators for {name}"
            TRANSLATORS[name] = f
        return f

    return register


def discover() -> dict[str, Translator]:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return TRANSLATORS
