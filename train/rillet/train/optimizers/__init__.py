"""Optimizers: each adds to the graph the nodes that update the variables. Their slots are variables too."""

from rillet.train.optimizers.adagrad import Adagrad
from rillet.train.optimizers.adam import Adam, AdamW
from rillet.train.optimizers.clipping import clip_by_global_norm, global_norm
from rillet.train.optimizers.optimizer import Optimizer
from rillet.train.optimizers.rmsprop import RMSProp
from rillet.train.optimizers.schedules import cosine, exponential, linear_warmup
from rillet.train.optimizers.sgd import SGD, Momentum

__all__ = [
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "Momentum",
    "Optimizer",
    "RMSProp",
    "clip_by_global_norm",
    "cosine",
    "exponential",
    "global_norm",
    "linear_warmup",
]
