"""The plan of a run, without running it: stages, reads that must be copied, the order of reads and updates."""

from __future__ import annotations

import numpy as np
import pytest

from rillet.train import Graph, Variable, control_dependencies, group, ops, placeholder
from rillet.train.schedule import Plan, infer, plan, prune
from rillet.train.tensor import Operation, Tensor

ONES = np.ones((2, 3), np.float32)
FOREIGN = ("Exp",)
VIEWS = ("Reshape", "ExpandDims")


def planned(*targets: Operation | Tensor) -> Plan:
    operations = prune(targets, [])
    _, known = infer(operations, {})
    fetched = [t for t in targets if isinstance(t, Tensor)]
    return plan(operations, set(), known, fetched, lambda o: (o.kind not in FOREIGN, o.kind in VIEWS))


def kinds(p: Plan) -> list[tuple[bool, list[str]]]:
    return [(s.native, [o.kind for o in s.operations]) for s in p.stages]


def test_regions_are_as_large_as_can_be() -> None:
    """Two branches, each with a foreign op in its middle: one region before both, one after both."""
    with Graph().as_default():
        v = Variable(ONES, name="v")
        a, b = ops.exp(ops.neg(v)), ops.exp(ops.abs(v))
        p = planned(ops.neg(a) + ops.neg(b))
    assert [native for native, _ in kinds(p)] == [True, False, True]
    assert [len(names) for _, names in kinds(p)] == [3, 2, 3]


def test_a_view_of_a_variable_counts_as_the_variable() -> None:
    """The reshaped old value is wanted after the update, so the read is copied."""
    with Graph().as_default():
        v = Variable(ONES, name="v")
        flat = ops.reshape(v, np.array([6]))
        with control_dependencies([v.assign_add(ONES)]):
            late = ops.neg(flat)
        assert planned(late).copied_reads == {v.value.operation}
        assert planned(flat, v.assign_add(ONES)).copied_reads == {v.value.operation}
        assert planned(flat).copied_reads == set()


def test_a_read_that_is_used_before_the_update_is_not_copied() -> None:
    with Graph().as_default():
        v = Variable(ONES, name="v")
        update = v.assign_add(ONES)
        used = ops.neg(v)
        p = planned(update, used)
    order = [o.kind for o in p.operations]
    assert p.copied_reads == set() and order.index("Neg") < order.index("AssignAdd")


def test_shapes_are_computed_when_planning() -> None:
    with Graph().as_default() as graph:
        x = graph.constant(ONES)
        p = planned(ops.reshape(ops.neg(x), ops.reverse(ops.shape(x), axes=(0,))))
    assert kinds(p) == [(True, ["Neg", "Reshape"])]


def test_a_chain_of_updates_keeps_its_order() -> None:
    with Graph().as_default():
        v = Variable(ONES, name="v")
        first = v.assign_add(ONES)
        with control_dependencies([first]):
            second = v.assign(ops.exp(v.read_value()))
        p = planned(group(first, second))
    assert kinds(p) == [(True, ["AssignAdd", "ReadVariable"]), (False, ["Exp"]), (True, ["Assign"])]


def test_what_is_not_needed_is_not_planned() -> None:
    with Graph().as_default():
        x = placeholder((2,), name="x")
        v = Variable(ONES, name="v")
        ops.neg(x)
        p = planned(ops.abs(v))
        assert kinds(p) == [(True, ["ReadVariable", "Abs"])]
        with pytest.raises(ValueError, match="'x'"):
            planned(ops.neg(x))
