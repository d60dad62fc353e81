"""RMSProp."""

from __future__ import annotations

from rillet.train.optimizers.optimizer import Optimizer, Rate
from rillet.train.tensor import Operation, Tensor
from rillet.train.variables import Variable


class RMSProp(Optimizer):
    """s += (g^2 - s)(1 - decay); m = momentum * m + lr * g / sqrt(s + epsilon); w -= m.

    epsilon_inside=False: divide by sqrt(s) + epsilon, as torch does.
    """

    def __init__(
        self,
        learning_rate: Rate = 1e-3,
        decay: float = 0.9,
        momentum: float = 0.0,
        epsilon: float = 1e-7,
        *,
        epsilon_inside: bool = True,
        clip_norm: float | None = None,
    ) -> None:
        super().__init__(learning_rate, clip_norm)
        self.attrs = {"decay": decay, "momentum": momentum, "epsilon": epsilon, "epsilon_inside": epsilon_inside}

    def _apply(self, variable: Variable, gradient: Tensor, rate: Tensor) -> Operation:
        slots = self._slot(variable, "ms"), self._slot(variable, "mom")
        return self._emit("ApplyRMSProp", variable, *slots, rate, gradient, **self.attrs)
