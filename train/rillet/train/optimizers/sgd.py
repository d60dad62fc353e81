"""Gradient descent, plain and with momentum."""

from __future__ import annotations

from rillet.train.optimizers.optimizer import Optimizer, Rate
from rillet.train.tensor import Operation, Tensor
from rillet.train.variables import Variable


class SGD(Optimizer):
    """w -= lr * g."""

    def _apply(self, variable: Variable, gradient: Tensor, rate: Tensor) -> Operation:
        return self._emit("ApplyGradientDescent", variable, rate, gradient)


class Momentum(Optimizer):
    """a = momentum * a + g; w -= lr * a. With nesterov: w -= lr * (g + momentum * a)."""

    def __init__(
        self, learning_rate: Rate, momentum: float = 0.9, nesterov: bool = False, clip_norm: float | None = None
    ) -> None:
        super().__init__(learning_rate, clip_norm)
        self.momentum, self.nesterov = momentum, nesterov

    def _apply(self, variable: Variable, gradient: Tensor, rate: Tensor) -> Operation:
        return self._emit(
            "ApplyMomentum",
            variable,
            self._slot(variable, "accum"),
            rate,
            gradient,
            momentum=self.momentum,
            nesterov=self.nesterov,
        )
