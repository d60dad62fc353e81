"""Adam and AdamW."""

from __future__ import annotations

from rillet.train.optimizers.optimizer import Optimizer, Rate
from rillet.train.tensor import Operation, Tensor
from rillet.train.variables import Variable


class Adam(Optimizer):
    """m += (g - m)(1 - beta1); v += (g^2 - v)(1 - beta2); w -= lr m' / (sqrt(v') + epsilon), bias-corrected.

    epsilon_hat: add epsilon before the bias correction of v, as TensorFlow does (default: after it, as the paper and
    torch do).
    """

    def __init__(
        self,
        learning_rate: Rate = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        *,
        epsilon_hat: bool = False,
        clip_norm: float | None = None,
    ) -> None:
        super().__init__(learning_rate, clip_norm)
        self.attrs = {"beta1": beta1, "beta2": beta2, "epsilon": epsilon, "epsilon_hat": epsilon_hat}

    def _apply(self, variable: Variable, gradient: Tensor, rate: Tensor) -> Operation:
        return self._adam("ApplyAdam", variable, gradient, rate)

    def _adam(self, op: str, variable: Variable, gradient: Tensor, rate: Tensor, **more: float) -> Operation:
        slots = self._slot(variable, "m"), self._slot(variable, "v")
        return self._emit(op, variable, *slots, variable.graph.step, rate, gradient, **self.attrs, **more)


class AdamW(Adam):
    """Adam with decoupled weight decay: w -= lr * weight_decay * w, then Adam (Loshchilov and Hutter 2019)."""

    def __init__(
        self,
        learning_rate: Rate = 1e-3,
        weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        *,
        clip_norm: float | None = None,
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, clip_norm=clip_norm)
        self.weight_decay = weight_decay

    def _apply(self, variable: Variable, gradient: Tensor, rate: Tensor) -> Operation:
        return self._adam("ApplyAdamW", variable, gradient, rate, weight_decay=self.weight_decay)
