"""The trainer: graphs, variables, gradients, optimizers, sessions. Importing it makes its state ops known."""

from rillet.shared_ops.registry import add_op_package

add_op_package("rillet.train.state_ops")
