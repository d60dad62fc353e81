"""What every optimizer shares: gradients of a loss, slots, one Apply operation a variable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Union

import numpy as np

from rillet.shared_ops.types import DTYPE_NAMES
from rillet.train.gradients import gradients
from rillet.train.graph import Graph, GraphError
from rillet.train.optimizers.clipping import clip_by_global_norm
from rillet.train.tensor import Operation, Tensor
from rillet.train.variables import Variable, trainable_variables

# A learning rate: a number, a scalar tensor, or a schedule: a function of the step tensor.
Rate = Union[float, Tensor, Callable[[Tensor], Tensor]]
GradientsAndVariables = Sequence[tuple[Tensor, Variable]]


class Optimizer:
    """Adds to a graph what trains its variables. Subclasses say how one variable is updated (`_apply`).

    learning_rate: a number, a scalar tensor, or a schedule (see `schedules`). clip_norm: gradients are scaled down
    together where their global norm is larger; a norm that is not finite stops the run and names the variable. (Moving
    averages of batch norm belong to the forward pass: they have taken the batch in by then.)

    A user's own optimizer is a subclass of a dozen lines: slots by `_slot`, the update by any operations.
    """

    def __init__(self, learning_rate: Rate, clip_norm: float | None = None) -> None:
        self.learning_rate, self.clip_norm = learning_rate, clip_norm
        self.slots: dict[tuple[Variable, str], Variable] = {}
        self._rates: dict[Graph, Tensor] = {}

    def minimize(self, loss: Tensor, variables: Iterable[Variable] | None = None) -> Operation:
        """The operation that makes one step down the gradient of `loss`: run it once a batch.

        variables: what to train; by default every trainable variable of the graph. Raises GradientError where the loss
        does not depend on one of them.
        """
        return self.apply_gradients(self.compute_gradients(loss, variables))

    def compute_gradients(
        self, loss: Tensor, variables: Iterable[Variable] | None = None
    ) -> list[tuple[Tensor, Variable]]:
        """(gradient, variable) pairs, to be changed at will and handed to `apply_gradients`."""
        if loss.ndim != 0:
            raise GraphError(f"{loss!r} cannot be minimized: a loss is a scalar. Take its mean with ops.mean.")
        trained = trainable_variables(loss.graph) if variables is None else list(variables)
        if not trained:
            raise GraphError("nothing to train: the graph has no trainable variables.")
        return list(zip(gradients(loss, trained), trained))

    def apply_gradients(self, pairs: GradientsAndVariables) -> Operation:
        """The operation that updates the variables by these gradients. Raises GraphError where one is named twice."""
        twice = [v.name for v, n in Counter(v for _, v in pairs).items() if n > 1]
        if not pairs or twice:
            raise GraphError(f"{twice[0]!r} would be updated twice in one step." if twice else "nothing to train.")
        graph = pairs[0][1].graph
        with graph.without_scope(), graph.name_scope(type(self).__name__.lower()):
            if self.clip_norm is not None:
                clipped, _ = clip_by_global_norm([g for g, _ in pairs], self.clip_norm, [v.name for _, v in pairs])
                pairs = [(g, v) for g, (_, v) in zip(clipped, pairs)]
            rate = self.rate(graph)
            updates = [self._apply(v, g, self._rate_as(rate, v)) for g, v in pairs]
            return graph.group(updates, name="train")

    def rate(self, graph: Graph) -> Tensor:
        """The learning rate of the coming step, as a float32 scalar tensor."""
        if graph not in self._rates:
            given = self.learning_rate
            rate = given(graph.step) if callable(given) and not isinstance(given, Tensor) else given
            self._rates[graph] = rate if isinstance(rate, Tensor) else graph.constant(np.float32(rate), "learning_rate")
        return self._rates[graph]

    @staticmethod
    def _rate_as(rate: Tensor, variable: Variable) -> Tensor:
        same = rate.dtype == variable.dtype
        return rate if same else rate.graph.emit("Cast", rate, dtype=DTYPE_NAMES[variable.dtype])

    def _apply(self, variable: Variable, gradient: Tensor, rate: Tensor) -> Operation:
        raise NotImplementedError

    def _slot(self, variable: Variable, slot: str, initial: float = 0.0) -> Variable:
        """A variable of the shape of `variable` that the optimizer keeps for it."""
        key = (variable, slot)
        if key not in self.slots:
            with variable.graph.without_scope():
                self.slots[key] = Variable(
                    np.full(variable.shape, initial, variable.dtype),
                    name=f"{variable.name}/{type(self).__name__.lower()}_{slot}",
                    trainable=False,
                    graph=variable.graph,
                )
        return self.slots[key]

    def _emit(self, op: str, variable: Variable, *inputs: Any, **attrs: Any) -> Operation:
        """An update of `variable`, named after it."""
        operation: Operation = variable.graph.emit(op, variable, *inputs, name=variable.name, **attrs)
        return operation
