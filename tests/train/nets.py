"""Small networks that several tests train."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.train import Graph, Session, Variable, nn, ops, optimizers, placeholder
from rillet.train.tensor import Operation, Tensor


@dataclass
class Net:
    graph: Graph
    x: Tensor
    labels: Tensor
    logits: Tensor
    loss: Tensor
    train: Operation

    def session(self, threads: int = 1) -> Session:
        session = Session(self.graph, threads=threads)
        session.initialize()
        return session

    def feeds(self, step: int, batch: int = 8) -> dict[Tensor, Any]:
        rng = np.random.default_rng(step)
        batch = self.x.shape[0] if isinstance(self.x.shape[0], int) else batch
        shape = tuple(d if isinstance(d, int) else batch for d in self.x.shape)
        return {self.x: rng.normal(size=shape).astype(self.x.dtype), self.labels: rng.integers(0, 3, batch, np.int32)}


def convolutional(
    seed: int = 0, dropout: float = 0.0, optimizer: Any = None, extra: bool = False, dtype: Any = np.float32
) -> Net:
    """conv - batch norm - relu6, depthwise - batch norm - relu6, pooling, dense: a MobileNet in miniature.

    extra: an operation of no use among the others, which must not change a number.
    """
    with Graph(seed).as_default() as graph:
        x = placeholder(("batch", 8, 8, 3), dtype, name="x")
        labels = placeholder(("batch",), np.int32, name="labels")
        h = nn.conv2d(x, 8, strides=2, use_bias=False, name="conv")
        h = nn.batch_norm(h, momentum=0.9, activation="relu6", name="norm")
        if extra:
            ops.identity(h, name="useless")
            ops.relu(h)
        h = nn.depthwise_conv2d(h, use_bias=False, name="depthwise")
        h = nn.batch_norm(h, momentum=0.9, activation="relu6", name="norm2")
        h = nn.global_average_pool(h)
        if dropout:
            h = nn.dropout(h, dropout)
        logits = nn.dense(h, 3, name="head")
        loss = nn.sparse_softmax_cross_entropy(logits, labels)
        train = (optimizer or optimizers.Adam(1e-2)).minimize(loss)
    return Net(graph, x, labels, logits, loss, train)


def perceptron(seed: int = 0) -> Net:
    """Wide enough that its products are shared among threads."""
    with Graph(seed).as_default() as graph:
        x, labels = placeholder(("batch", 200), name="x"), placeholder(("batch",), np.int32, name="labels")
        h = nn.dense(nn.dense(x, 257, activation="relu"), 130, activation="tanh")
        logits = nn.dense(h, 3, name="head")
        loss = nn.sparse_softmax_cross_entropy(logits, labels)
        train = optimizers.Momentum(1e-2, nesterov=True).minimize(loss)
    return Net(graph, x, labels, logits, loss, train)


def transformer_block(seed: int = 0, dtype: Any = np.float32) -> Net:
    """Layer norm, two heads of attention, a Gelu network, both with residuals; mean over the sequence; dense."""
    length, width, heads = 5, 8, 2
    with Graph(seed).as_default() as graph:
        x = placeholder((4, length, width), dtype, name="x")
        labels = placeholder((4,), np.int32, name="labels")

        def split(t: Any, name: str) -> Any:
            t = nn.dense(t, width, name=name)
            return ops.transpose(ops.reshape(t, np.array([4, length, heads, width // heads])), perm=(0, 2, 1, 3))

        h = nn.layer_norm(x, name="norm1")
        q, k, v = split(h, "query"), split(h, "key"), split(h, "value")
        scores = ops.softmax(ops.batch_matmul(q, k, adj_y=True) * (width / heads) ** -0.5)
        mixed = ops.transpose(ops.batch_matmul(scores, v), perm=(0, 2, 1, 3))
        x1 = x + nn.dense(ops.reshape(mixed, np.array([4, length, width])), width, name="out")
        inner = nn.dense(nn.layer_norm(x1, name="norm2"), 2 * width, activation="gelu", name="inner")
        x2 = x1 + nn.dense(inner, width, name="outer")
        logits = nn.dense(ops.mean(x2, axes=(1,)), 3, name="head")
        loss = nn.sparse_softmax_cross_entropy(logits, labels)
        train = optimizers.AdamW(1e-2).minimize(loss)
    return Net(graph, x, labels, logits, loss, train)


def state(session: Session) -> dict[str, bytes]:
    """Every variable, bit by bit."""
    return {v.name: session.get(v).tobytes() for v in session.graph.variables}


def fill_randomly(session: Session, seed: int = 0) -> None:
    """Small random values in every trainable variable, by NumPy: for tests that do without the random ops."""
    rng = np.random.default_rng(seed)
    for v in session.graph.variables:
        if isinstance(v, Variable) and v.trainable:
            session.set(v, rng.normal(size=v.shape) * 0.3 + (1.0 if "scale" in v.name else 0.0))
