"""Reverse-mode differentiation of a graph: adds the nodes that compute d(sum of ys) / dxs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from rillet.shared_ops.errors import OpError, RilletError
from rillet.train.graph import Graph, GraphError
from rillet.train.tensor import Operation, Tensor
from rillet.train.variables import Variable


class GradientError(RilletError, ValueError):
    """There is no gradient: the path is cut, or an op on it has none."""


def gradients(
    ys: Tensor | Variable | Sequence[Tensor | Variable],
    xs: Sequence[Tensor | Variable],
    grad_ys: Sequence[Any] | None = None,
    stop_gradients: Iterable[Tensor] = (),
    unconnected: Literal["error", "none"] = "error",
) -> list[Any]:
    """The gradient of the sum of `ys` with respect to each of `xs`: tensors of the shapes of `xs`.

    Only what lies on paths from `xs` to `ys` is differentiated. Where several paths meet, the contributions are added
    in one fixed order. grad_ys: the gradients that come into `ys` (default: ones). stop_gradients: tensors taken as
    constants. Raises GradientError where an x reaches no y (or gives None, with unconnected="none"), and where an op on
    the way has no gradient.

    Example:
        >>> from rillet.train import Graph, Session, placeholder
        >>> with Graph().as_default():
        ...     x = placeholder((2,))
        ...     (dx,) = gradients(x * x, [x])
        ...     Session().run(dx, {x: [1.0, 3.0]}).tolist()
        [2.0, 6.0]
    """
    given = [ys] if isinstance(ys, (Tensor, Variable)) else list(ys)
    if not given:
        raise GraphError("gradients of nothing: pass at least one y.")
    if grad_ys is not None and len(grad_ys) != len(given):
        raise GraphError(f"gradients: got {len(grad_ys)} grad_ys for {len(given)} ys; give one for each, or None.")
    graph = given[0].graph
    tensors = [graph.as_tensor(y) for y in given]
    with graph.name_scope("gradients"), graph.without_control():
        return _Backward(graph, tensors, xs, stop_gradients).run(grad_ys, unconnected)


class _Backward:
    """One call of `gradients`."""

    def __init__(
        self, graph: Graph, ys: list[Tensor], xs: Sequence[Tensor | Variable], stops: Iterable[Tensor]
    ) -> None:
        self.graph, self.ys = graph, ys
        self.given = list(xs)
        # A variable's gradient is that of its handle: every read adds to it.
        self.xs = [x.handle if isinstance(x, Variable) else x for x in self.given]
        self.stops = set(stops)
        self.flows = self._reached_from_xs()
        self.path = self._operations_between()
        self.parts: dict[Tensor, list[Tensor]] = {}
        self.cuts: dict[Operation, str] = {}

    def _reached_from_xs(self) -> set[Tensor]:
        """Tensors through which a change of an x flows, as far as floats carry it."""
        flows = set(self.xs)
        for operation in self.graph.operations:
            if any(t in flows and t not in self.stops for t in operation.inputs):
                flows.update(t for t in operation.outputs if t.type.is_float)
        return flows

    def _carries(self, operation: Operation) -> list[Tensor]:
        """The inputs through which a gradient flows on."""
        return [t for t in operation.inputs if t is not None and t in self.flows and t not in self.stops]

    def _operations_between(self) -> list[Operation]:
        """Operations on a path from an x to a y, the last first."""
        path: set[Operation] = set()
        ahead = [y for y in self.ys if y in self.flows]
        while ahead:
            operation = ahead.pop().operation
            if operation not in path and (inputs := self._carries(operation)):
                path.add(operation)
                ahead += inputs
        return sorted(path, key=lambda o: -o.id)

    def run(self, grad_ys: Sequence[Any] | None, unconnected: str) -> list[Any]:
        for i, y in enumerate(self.ys):
            if not y.type.is_float:
                raise GradientError(f"{y!r} is not a float tensor, so it has no gradient.")
            dy = None if grad_ys is None else grad_ys[i]
            self._add(y, self._ones(y) if dy is None else self.graph.as_tensor(dy))
        for operation in self.path:
            self._differentiate(operation)
        result: list[Any] = []
        for given, x in zip(self.given, self.xs):
            total = self._total(x)
            if total is None and unconnected == "error":
                raise GradientError(self._why_unconnected(given, x))
            result.append(total)
        return result

    def _differentiate(self, operation: Operation) -> None:
        dys = [self._total(t) for t in operation.outputs]
        if all(dy is None for dy in dys):
            return
        if operation.kind == "ReadVariable":
            self._add(operation.inputs[0], dys[0])
            return
        if operation.op is None:
            return
        if operation.op.gradient is None:
            raise GradientError(
                f"{self._where(operation)} the op has no gradient, and it lies between {self.ys[0].name!r} and what is "
                "differentiated. Put ops.stop_gradient around it if it is meant as a constant."
            )
        scope = operation.name
        with self.graph.name_scope(scope), self.graph.source_of(operation):
            found = operation.op.gradient(self.graph.emit, operation.attrs, operation.inputs, operation.outputs, *dys)
        for tensor, dx in zip(operation.inputs, found):
            if tensor in self.flows and tensor not in self.stops:
                if dx is None:
                    self.cuts[operation] = "passes no gradient to this input"
                else:
                    self._add(tensor, self.graph.as_tensor(dx))

    def _add(self, tensor: Tensor | None, part: Tensor | None) -> None:
        if tensor is not None and part is not None:
            self.parts.setdefault(tensor, []).append(part)

    def _total(self, tensor: Tensor) -> Tensor | None:
        """The sum of what has come in, in the order in which it came."""
        parts = self.parts.get(tensor, [])
        if len(parts) > 1:
            with self.graph.source_of(tensor.operation):
                self.parts[tensor] = parts = [self.graph.emit("AddN", *parts, name=f"{tensor.operation.name}/sum")]
        return parts[0] if parts else None

    def _ones(self, like: Tensor) -> Tensor:
        if like.type.is_static:
            return self.graph.constant(np.ones(like.shape, like.dtype))
        ones: Tensor = self.graph.emit("OnesLike", like)
        return ones

    def _why_unconnected(self, given: Tensor | Variable, x: Tensor) -> str:
        """Names the first operation behind which nothing of x arrives."""
        head = f"{given!r} has no gradient: no path from it to {self.ys[0].name!r} carries one."
        reached, last = {x}, None
        for operation in self.graph.operations:
            if not any(t in reached for t in operation.inputs):
                continue
            if operation in self.cuts:
                return f"{head} {self._where(operation)} {self.cuts[operation]}."
            stopped = any(t in self.stops for t in operation.inputs if t in reached)
            floats = [t for t in operation.outputs if t.type.is_float]
            if operation.outputs and not floats or stopped:
                last = operation
            if not stopped:
                reached.update(floats)
        if last is None:
            return f"{head} Nothing that leads there reads it. Pass unconnected='none' to get None instead."
        reason = "is cut by stop_gradients" if any(t in self.stops for t in last.inputs) else "gives no float"
        return f"{head} The path ends at {self._where(last)}, which {reason}."

    @staticmethod
    def _where(operation: Operation) -> str:
        return f"[{operation.kind} at {operation.name!r} ({operation.source})]"


__all__ = ["GradientError", "OpError", "gradients"]
