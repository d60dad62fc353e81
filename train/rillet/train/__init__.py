"""Training: build a graph, let optimizers add the gradients, run it in a session.

    import numpy as np
    from rillet.train import Graph, Session, input, nn, ops, optimizers, placeholder

    with Graph(seed=1).as_default():
        x = placeholder((None, 4), name="x")
        labels = placeholder((None,), np.int32, name="labels")
        logits = nn.dense(nn.dense(x, 16, activation="relu"), 3)
        loss = nn.sparse_softmax_cross_entropy(logits, labels)
        train = optimizers.Adam(1e-3).minimize(loss)
        session = Session(threads=2)
        session.initialize()
        for images, targets in input.batches(xs, ys, 32, seed=1, epoch=0):
            _, value = session.run([train, loss], {x: images, labels: targets})

`ops` holds one function an op, for graph tensors and for arrays alike.
"""

from __future__ import annotations

from rillet.shared_ops import functions as ops
from rillet.shared_ops.registry import add_op_package

add_op_package("rillet.train.state_ops")

from rillet.train import initializers, input, nn, optimizers  # noqa: E402
from rillet.train.eager import use_engine  # noqa: E402
from rillet.train.freeze import FreezeError, freeze  # noqa: E402
from rillet.train.gradients import GradientError, gradients  # noqa: E402
from rillet.train.graph import (  # noqa: E402
    Graph,
    GraphError,
    constant,
    control_dependencies,
    get_default_graph,
    group,
    name_scope,
    placeholder,
)
from rillet.train.saver import Saver  # noqa: E402
from rillet.train.session import Session  # noqa: E402
from rillet.train.tensor import Operation, Tensor  # noqa: E402
from rillet.train.variables import Variable, trainable_variables  # noqa: E402

__all__ = [
    "FreezeError",
    "GradientError",
    "Graph",
    "GraphError",
    "Operation",
    "Saver",
    "Session",
    "Tensor",
    "Variable",
    "constant",
    "control_dependencies",
    "freeze",
    "get_default_graph",
    "gradients",
    "group",
    "initializers",
    "input",
    "name_scope",
    "nn",
    "ops",
    "optimizers",
    "placeholder",
    "trainable_variables",
    "use_engine",
]

use_engine()
