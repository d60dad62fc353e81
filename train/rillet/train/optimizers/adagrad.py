"""Adagrad."""

from __future__ import annotations

from rillet.train.optimizers.optimizer import Optimizer, Rate
from rillet.train.tensor import Operation, Tensor
from rillet.train.variables import Variable


class Adagrad(Optimizer):
    """a += g^2; w -= lr * g / (sqrt(a) + epsilon). The accumulator starts at `initial`."""

    def __init__(
        self, learning_rate: Rate = 1e-2, initial: float = 0.1, epsilon: float = 0.0, clip_norm: float | None = None
    ) -> None:
        super().__init__(learning_rate, clip_norm)
        self.initial, self.epsilon = initial, epsilon

    def _apply(self, variable: Variable, gradient: Tensor, rate: Tensor) -> Operation:
        accumulator = self._slot(variable, "accum", self.initial)
        return self._emit("ApplyAdagrad", variable, accumulator, rate, gradient, epsilon=self.epsilon)
