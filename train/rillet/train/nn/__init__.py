"""Layers, losses and metrics: functions over graph tensors."""

from rillet.train.nn.layers import (
    activate,
    avg_pool,
    batch_norm,
    conv2d,
    dense,
    depthwise_conv2d,
    dropout,
    embedding,
    flatten,
    global_average_pool,
    layer_norm,
    max_pool,
    separable_conv2d,
)
from rillet.train.nn.losses import (
    l2,
    mean_squared_error,
    sigmoid_cross_entropy,
    softmax_cross_entropy,
    sparse_softmax_cross_entropy,
)
from rillet.train.nn.metrics import accuracy

__all__ = [
    "accuracy",
    "activate",
    "avg_pool",
    "batch_norm",
    "conv2d",
    "dense",
    "depthwise_conv2d",
    "dropout",
    "embedding",
    "flatten",
    "global_average_pool",
    "l2",
    "layer_norm",
    "max_pool",
    "mean_squared_error",
    "separable_conv2d",
    "sigmoid_cross_entropy",
    "softmax_cross_entropy",
    "sparse_softmax_cross_entropy",
]
