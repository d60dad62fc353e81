"""A MobileNetV2 in small: depthwise-separable blocks with residuals, for images of 28 x 28."""

from __future__ import annotations

from typing import Any

from rillet.train import Graph, Tensor, nn, ops, placeholder

# (channels, stride, expansion) of each inverted residual block.
BLOCKS = ((16, 1, 1), (40, 2, 4), (40, 1, 4), (40, 1, 4))
MOMENTUM = 0.95


def conv(x: Tensor, filters: int, size: int, strides: int, activation: str | None, name: str) -> Tensor:
    """Convolution, batch norm, activation."""
    y = nn.conv2d(x, filters, size, strides=strides, use_bias=False, name=name)
    return nn.batch_norm(y, momentum=MOMENTUM, activation=activation, name=f"{name}_norm")


def inverted_residual(x: Tensor, channels: int, strides: int, expansion: int, name: str) -> Tensor:
    """1x1 to more channels, 3x3 depthwise, 1x1 back without activation; plus x where the shapes agree."""
    width = x.shape[-1]
    assert isinstance(width, int)
    with x.graph.name_scope(name):
        y = conv(x, width * expansion, 1, 1, "relu6", "expand")
        y = nn.depthwise_conv2d(y, 3, strides=strides, use_bias=False, name="depthwise")
        y = nn.batch_norm(y, momentum=MOMENTUM, activation="relu6", name="depthwise_norm")
        y = conv(y, channels, 1, 1, None, "project")
        return ops.add(x, y) if width == channels and strides == 1 else y


def classifier(image: Tensor) -> Tensor:
    """Logits [batch, 10] of images [batch, 28, 28, 1] with values from 0 to 1."""
    x = conv(image, 24, 3, 2, "relu6", "stem")
    for i, (channels, strides, expansion) in enumerate(BLOCKS):
        x = inverted_residual(x, channels, strides, expansion, f"block{i + 1}")
    x = conv(x, 160, 1, 1, "relu6", "head")
    return nn.dense(nn.global_average_pool(x), 10, name="logits")


def build() -> tuple[Graph, dict[str, Any], dict[str, Any]]:
    """What `rillet export samples/fashion_mnist/net.py:build` calls: the graph, its inputs and its outputs."""
    with Graph(seed=1).as_default() as graph:
        image = placeholder(("batch", 28, 28, 1), name="image")
        probabilities = ops.softmax(classifier(image))
    return graph, {"image": image}, {"probabilities": probabilities}
