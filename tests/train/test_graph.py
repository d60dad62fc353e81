"""Construction: names, scopes, sources, types, and the errors that say where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rillet.shared_ops.errors import OpError
from rillet.train import (
    Graph,
    GraphError,
    Variable,
    constant,
    control_dependencies,
    group,
    name_scope,
    ops,
    placeholder,
)
from rillet.train.graph import stream_of


def test_names_are_unique_and_scoped() -> None:
    with Graph().as_default():
        a, b = placeholder((1,), name="x"), placeholder((1,), name="x")
        with name_scope("block"):
            c = placeholder((1,), name="x")
            v = Variable([1.0], name="w")
        with name_scope("block"):
            d = placeholder((1,), name="x")
        assert [t.name for t in (a, b, c, d)] == ["x", "x_1", "block/x", "block_1/x"]
        assert (v.name, v.value.name) == ("block/w", "block/w/read")
        assert placeholder((1,), name="x_1").name == "x_1_1"


def test_an_error_names_the_node_and_the_users_line() -> None:
    with Graph().as_default(), name_scope("head"):
        w = Variable(np.zeros((3,), np.float32), name="w")
        with pytest.raises(OpError, match=r"\[AssignAdd at 'head/assign_add' \(test_graph.py:\d+\)\].*got"):
            w.assign_add(np.zeros((4,), np.float32))


def test_an_operation_keeps_the_users_line() -> None:
    with Graph().as_default():
        x = placeholder((2, 3))
        line = ops.sum(x, axes=(0,)).operation.source
    assert line.startswith("test_graph.py:")


def test_bad_names_and_foreign_tensors_are_refused() -> None:
    with Graph().as_default():
        with pytest.raises(GraphError, match="bad name"):
            placeholder((1,), name="a b")
        foreign = placeholder((2, 2))
    with Graph().as_default() as graph:
        graph.emit("Sum", placeholder((2, 2)))
        with pytest.raises(GraphError, match="two graphs"):
            graph.emit("SumTo", foreign, placeholder((1,), np.int32))


def test_a_tensor_has_no_value_while_the_graph_is_built() -> None:
    with Graph().as_default():
        x = placeholder((2,), name="x")
    for use in (bool, iter, np.asarray, len):
        with pytest.raises(TypeError, match="'x'"):
            use(x)


def test_a_stream_depends_on_the_name_alone() -> None:
    assert stream_of("a") == stream_of("a") != stream_of("b")
    assert 0 <= stream_of("dense/kernel") < 2**63


def test_control_inputs_are_kept() -> None:
    with Graph().as_default():
        v = Variable(np.zeros((), np.float32), name="v")
        first = v.assign_add(1.0)
        with control_dependencies([first]):
            second = v.assign_add(1.0)
        assert second.control_inputs == (first,)
        assert group(first, second).control_inputs == (first, second)


def test_shapes_are_refined_and_contradictions_refused() -> None:
    with Graph().as_default():
        x = placeholder((None, 3))
        x.set_shape((2, None))
        assert x.shape == (2, 3)
        with pytest.raises(OpError, match="set_shape"):
            x.set_shape((4, 3))


def test_integer_constants_carry_their_value() -> None:
    with Graph().as_default() as graph:
        x = placeholder((5, 3))
        assert ops.sum_to(x, graph.constant(np.array([1, 3], np.int32))).shape == (1, 3)


@pytest.mark.parametrize("shape", [(-1, 2), (2.5,), "abc", None, 5, ((1,),), (True,), ("",)])
def test_dimensions_of_placeholders_are_sizes_or_names(shape: Any) -> None:
    with Graph().as_default() as graph, pytest.raises(GraphError, match="placeholder 'x'"):
        placeholder(shape, name="x")
    assert not graph.operations


@pytest.mark.parametrize("shape", [(-4,), (2.5,)])
def test_shapes_of_variables_are_sizes(shape: Any) -> None:
    with Graph().as_default(), pytest.raises(GraphError, match="variable 'w'"):
        Variable(lambda *_: np.zeros(3), shape, name="w")


def test_a_variable_has_no_value_while_the_graph_is_built() -> None:
    """Iteration by index would add nodes for ever."""
    with Graph().as_default() as graph:
        v = Variable(np.ones(2, np.float32), name="v")
        before = len(graph.operations)
        for use in (bool, len, list, np.asarray):
            with pytest.raises(TypeError, match="while the graph is built|cannot be iterated|no length"):
                use(v)  # type: ignore[operator]
        assert len(graph.operations) == before


def test_a_missing_attribute_is_named_with_its_node() -> None:
    with Graph().as_default() as graph:
        with pytest.raises(OpError, match=r"\[Cast at 'cast' \(test_graph.py:\d+\)\] attribute 'dtype' is missing"):
            graph.emit("Cast", constant([1.0]))
