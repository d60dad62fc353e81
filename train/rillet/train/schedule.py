"""What a run executes, and in which order: pruning, types for the shapes fed, regions for the engine.

A region is a maximal set of operations that have native kernels and that nothing foreign has to run between. Reads of
variables are values: operations that use what a variable held come before those that overwrite it, and where they
cannot, the read is marked to be copied.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.types import Array, TensorType, type_of
from rillet.train.graph import GraphError
from rillet.train.tensor import CONSTANT, GROUP, PLACEHOLDER, STEP, VARIABLE, Operation, Tensor

Types = dict[Tensor, TensorType]


def prune(targets: Iterable[Operation | Tensor], fed: Iterable[Tensor]) -> list[Operation]:
    """What must run for `targets` when the tensors `fed` are given: in the order of construction.

    Raises GraphError, with name and line, where a placeholder is needed and not fed.
    """
    fed = set(fed)
    ahead = [t if isinstance(t, Operation) else t.operation for t in targets if t not in fed]
    needed: set[Operation] = set()
    while ahead:
        operation = ahead.pop()
        if operation in needed:
            continue
        needed.add(operation)
        if operation.kind == PLACEHOLDER:
            raise GraphError(
                f"[Placeholder at {operation.name!r} ({operation.source})] is needed and not fed: pass a value of type "
                f"{operation.outputs[0].type} in feed_dict."
            )
        ahead += [t.operation for t in operation.inputs if t is not None and t not in fed]
        ahead += operation.control_inputs
    return sorted(needed, key=lambda o: o.id)


def infer(operations: Iterable[Operation], fed: Mapping[Tensor, TensorType]) -> tuple[Types, dict[Tensor, Array]]:
    """Types for the shapes fed; and the tensors whose contents thereby are known (shapes, mostly), as constants."""
    types: Types = dict(fed)
    known: dict[Tensor, Array] = {}
    for operation in operations:
        if operation.kind == CONSTANT and operation.outputs[0] not in fed:
            assert operation.constant is not None
            known[operation.outputs[0]] = operation.constant
            types[operation.outputs[0]] = type_of(operation.constant)
        elif operation.op is None:
            for tensor in operation.outputs:
                types.setdefault(tensor, tensor.type)
        else:
            try:
                inferred = operation.op.infer_types(
                    operation.attrs, tuple(None if t is None else types[t] for t in operation.inputs)
                )
            except OpError as error:
                raise error.located(operation.name, operation.source) from None
            for tensor, type in zip(operation.outputs, inferred):
                if tensor in fed:
                    continue
                types[tensor] = type
                if (contents := type.contents()) is not None:
                    known[tensor] = contents
            if _is_arithmetic_on_shapes(operation, types, known):
                results = operation.op.compute(
                    np, operation.attrs, *(None if t is None else known[t] for t in operation.inputs)
                )
                known.update((t, np.array(r)) for t, r in zip(operation.outputs, results) if t not in fed)
    return types, known


def _is_arithmetic_on_shapes(operation: Operation, types: Types, known: Mapping[Tensor, Array]) -> bool:
    """A few integers, all known: their result is known too, and the same whoever computes it."""
    inputs = [t for t in operation.inputs if t is not None]
    assert operation.op is not None
    return (
        bool(inputs)
        and not operation.op.updates
        and all(t in known and known[t].dtype.kind == "i" and known[t].size <= 64 for t in inputs)
        and all(types[t].is_static and math.prod(types[t].shape) <= 64 for t in operation.outputs)  # type: ignore
        and "stream" not in operation.op.attr_types
    )


@dataclass
class Stage:
    """Operations that run together: as one region of the engine, or one by one by their references."""

    native: bool
    operations: list[Operation] = field(default_factory=list)


@dataclass
class Plan:
    """The stages of a run, and the ReadVariable operations whose result must be copied."""

    stages: list[Stage]
    copied_reads: set[Operation]

    @property
    def operations(self) -> list[Operation]:
        return [o for stage in self.stages for o in stage.operations]


def plan(
    operations: list[Operation],
    fed: set[Tensor],
    known: Mapping[Tensor, Array],
    fetched: Iterable[Tensor],
    native: Callable[[Operation], tuple[bool, bool]],
) -> Plan:
    """Orders pruned operations into stages. `native` says of an operation: runs in the engine, output is an alias."""
    work = [o for o in operations if o.op is not None and not (o.outputs and all(t in known for t in o.outputs))]
    is_native = {o: native(o) for o in work}
    before = _predecessors(operations, set(work), fed, known)
    users = _users_of_reads(work, fed, {o for o in work if is_native[o][1]})
    stages = _stages(work, before, _soft_order(work, before, users), {o: n for o, (n, _) in is_native.items()})
    order = [o for stage in stages for o in stage.operations]
    return Plan(stages, _reads_to_copy(order, users, set(fetched)))


def _predecessors(
    operations: list[Operation], work: set[Operation], fed: set[Tensor], known: Mapping[Tensor, Array]
) -> dict[Operation, set[Operation]]:
    """Who must run before whom. Control inputs that only group others stand for those."""
    behind: dict[Operation, set[Operation]] = {}
    for o in operations:
        found = {t.operation for t in o.inputs if t is not None and t not in fed and t not in known}
        found |= set(o.control_inputs)
        expanded: set[Operation] = set()
        for p in found:
            expanded |= {p} if p in work else behind.get(p, set())
        behind[o] = expanded
    return {o: behind[o] for o in operations if o in work}


def _users_of_reads(
    work: list[Operation], fed: set[Tensor], aliases: set[Operation]
) -> dict[Operation, set[Operation | Tensor]]:
    """For every ReadVariable: the operations that look at the variable's memory through it, and the tensors in it."""
    roots: dict[Tensor, Operation] = {}
    users: dict[Operation, set[Operation | Tensor]] = {}
    for o in work:
        if o.kind == "ReadVariable":
            roots[o.outputs[0]] = o
            users[o] = {o.outputs[0]}
            continue
        for i, t in enumerate(o.inputs):
            if t in roots and t not in fed:
                users[roots[t]].add(o)
                if i == 0 and o in aliases:
                    roots[o.outputs[0]] = roots[t]
                    users[roots[t]].add(o.outputs[0])
    return users


def _soft_order(
    work: list[Operation],
    before: dict[Operation, set[Operation]],
    users: dict[Operation, set[Operation | Tensor]],
) -> dict[Operation, set[Operation]]:
    """For every update of a variable, who had better run first: what uses its old value and does not depend on it."""
    bit = {o: 1 << i for i, o in enumerate(x for x in work if x.updated_inputs())}
    behind: dict[Operation, int] = {}  # which updates an operation depends on
    for o in work:
        mask = bit.get(o, 0)
        for p in before[o]:
            mask |= behind[p]
        behind[o] = mask
    reads: dict[Tensor, list[Operation]] = {}
    for o in users:
        reads.setdefault(o.inputs[0], []).append(o)  # type: ignore[arg-type]
    first: dict[Operation, set[Operation]] = {}
    for update, mask in bit.items():
        for handle in update.updated_inputs():
            for read in reads.get(handle, []):
                if not behind[read] & mask:
                    ones = {read} | {u for u in users[read] if isinstance(u, Operation)}
                    first.setdefault(update, set()).update(u for u in ones if u is not update and not behind[u] & mask)
    return first


def _stages(
    work: list[Operation],
    before: dict[Operation, set[Operation]],
    soft: dict[Operation, set[Operation]],
    native: dict[Operation, bool],
) -> list[Stage]:
    """Takes turns: all that the engine can run now, then all that it cannot, in order of construction."""
    waiting = {o: len(before[o] | soft.get(o, set())) for o in work}
    after: dict[Operation, list[Operation]] = {o: [] for o in work}
    for o in work:
        for p in before[o] | soft.get(o, set()):
            after[p].append(o)
    ready: dict[bool, list[int]] = {True: [], False: []}
    by_id = {o.id: o for o in work}
    for o in work:
        if waiting[o] == 0:
            heapq.heappush(ready[native[o]], o.id)
    stages: list[Stage] = []
    done: set[Operation] = set()
    kind = False
    while len(done) < len(work):
        if not ready[kind]:
            kind = not kind
        if not ready[kind]:  # the wishes contradict each other: drop those of one; its reads are copied then
            free = [o for o in work if o not in done and before[o] <= done]
            stuck = min(free, key=lambda o: (bool(o.updated_inputs()), o.id))
            waiting[stuck] = 0
            heapq.heappush(ready[native[stuck]], stuck.id)
            continue
        if not stages or stages[-1].native != kind:
            stages.append(Stage(kind))
        o = by_id[heapq.heappop(ready[kind])]
        if o in done:
            continue
        stages[-1].operations.append(o)
        done.add(o)
        for later in after[o]:
            waiting[later] -= 1
            if waiting[later] == 0:
                heapq.heappush(ready[native[later]], later.id)
    return stages


def _reads_to_copy(
    order: list[Operation], users: dict[Operation, set[Operation | Tensor]], fetched: set[Tensor]
) -> set[Operation]:
    """Reads whose value is still wanted when, or after, the variable is overwritten."""
    position = {o: i for i, o in enumerate(order)}
    updates: dict[Tensor, list[int]] = {}
    for i, o in enumerate(order):
        for handle in o.updated_inputs():
            updates.setdefault(handle, []).append(i)
    copied = set()
    for read, seen in users.items():
        overwritten = [i for i in updates.get(read.inputs[0], []) if i > position[read]]  # type: ignore[arg-type]
        last = max((len(order) if isinstance(u, Tensor) and u in fetched else position.get(u, -1)) for u in seen)  # type: ignore
        if overwritten and last >= min(overwritten):
            copied.add(read)
    return copied


__all__ = ["GROUP", "STEP", "VARIABLE", "Plan", "Stage", "infer", "plan", "prune"]
