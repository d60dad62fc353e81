"""Runs the stages of a plan: regions in the engine, the rest by their references."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.lite.single import kernel_dtype
from rillet.shared_ops.errors import OpError
from rillet.shared_ops.types import Array
from rillet.train.lower import RegionProgram
from rillet.train.native import Region, kernel_of
from rillet.train.schedule import Plan, Stage, Types, infer, plan, prune
from rillet.train.tensor import STEP, Operation, Tensor

Env = dict[Tensor, Array]


def runs_natively(operation: Operation, types: Types, known: Mapping[Tensor, Array]) -> tuple[bool, bool]:
    """(the engine has a kernel for the operation, and can prepare it; its output may share its input's memory)."""
    assert operation.op is not None
    inputs = [None if t is None else types[t] for t in operation.inputs]
    dtype = kernel_dtype(inputs, [types[t] for t in operation.outputs])
    kernel = None if dtype is None else kernel_of(operation.op, dtype)
    if kernel is None:
        return False, False
    # Kernels read shapes when they are prepared, so these must be known by then.
    for name, tensor in zip(operation.op.inputs, operation.inputs):
        if name.endswith("shape") and tensor is not None and tensor not in known:
            return False, False
    # A dimension that depends on values is known only after the operation before has run.
    static = all(types[t].is_static for t in operation.inputs if t is not None)
    return static, kernel.may_alias


@dataclass
class _Region:
    """A region bound to the tensors that go in and come out."""

    program: RegionProgram
    region: Region
    inputs: list[Tensor]
    outputs: list[Tensor]

    def run(self, env: Env, buffers: Mapping[Tensor, Array]) -> None:
        env.update(zip(self.outputs, self.region.run([env[t] for t in self.inputs])))


@dataclass
class _ByReference:
    """One operation in Python."""

    operation: Operation
    copy_read: bool
    outputs: list[Tensor | None]  # None where the run was given the value

    def run(self, env: Env, buffers: Mapping[Tensor, Array]) -> None:
        o = self.operation
        assert o.op is not None
        if o.kind == "ReadVariable":
            buffer = buffers[o.inputs[0]]  # type: ignore[index]
            if self.outputs[0] is not None:
                env[self.outputs[0]] = buffer.copy() if self.copy_read else buffer
            return
        handles = o.updated_inputs()
        given = [None if t is None else buffers[t] if t in handles else env[t] for t in o.inputs]
        try:
            results = o.op.compute(np, o.attrs, *given)
        except OpError as error:
            raise error.located(o.name, o.source) from None
        count = len(o.outputs)
        for tensor, result in zip(self.outputs, results):
            if tensor is None:
                continue
            result = np.asarray(result)
            # A reference may return a view of what it was given, and that may be a variable.
            env[tensor] = result if result.base is None and not any(result is g for g in given) else result.copy()
        for handle, new in zip(handles, results[count:]):
            buffers[handle][...] = new


class Executable:
    """What one signature of `Session.run` has become: stages, ready to run again and again."""

    def __init__(
        self,
        fetches: Sequence[Operation | Tensor],
        fed: Mapping[Tensor, Any],
        buffers: dict[Tensor, Array],
        threads: int,
    ) -> None:
        operations = prune(fetches, fed)
        types, known = infer(operations, fed)
        self.fetches = [t for t in fetches if isinstance(t, Tensor)]
        self.plan: Plan = plan(operations, set(fed), known, self.fetches, lambda o: runs_natively(o, types, known))
        self.needs_step = any(o.kind == STEP and o.outputs[0] not in fed for o in operations)
        self.updates = any(o.updated_inputs() for o in self.plan.operations)
        self._buffers, self._constants, self._fed = buffers, known, set(fed)
        # Reads that are the variable's buffer itself: handed out only as copies, the next run would change them.
        self._direct = {
            o.outputs[0] for o in self.plan.operations if o.kind == "ReadVariable" and o not in self.plan.copied_reads
        } - self._fed
        self._steps: list[_Region | _ByReference] = []
        self.regions: list[RegionProgram] = []
        for i, stage in enumerate(self.plan.stages):
            later = {t for s in self.plan.stages[i + 1 :] for o in s.operations for t in o.inputs if t is not None}
            self._steps += self._build(stage, later.union(self.fetches), types, threads)
        read = {t for s in self._steps if isinstance(s, _ByReference) for t in s.operation.inputs}
        self._initial: Env = {t: a for t, a in known.items() if t in read or t in self.fetches}  # regions have theirs

    def _build(self, stage: Stage, later: set[Tensor], types: Types, threads: int) -> list[_Region | _ByReference]:
        direct = self._direct
        by_hand = [o for o in stage.operations if not stage.native or direct.intersection(o.outputs)]
        steps: list[_Region | _ByReference] = [
            _ByReference(o, not direct.intersection(o.outputs), [None if t in self._fed else t for t in o.outputs])
            for o in by_hand
            if not stage.native or later.intersection(o.outputs)
        ]
        if len(by_hand) < len(stage.operations):
            wanted = later - direct - self._fed
            outputs = [t for o in stage.operations for t in o.outputs if t in wanted]
            lowered = RegionProgram(types, self._constants, direct, self._fed).lower(stage.operations, outputs)
            region = Region(lowered.program, threads, [self._buffers[h] for h in lowered.variables])
            self.regions.append(lowered)
            steps.append(_Region(lowered, region, lowered.inputs, outputs))
        return steps

    def run(self, feeds: Env) -> list[Array]:
        """The values of the fetched tensors. `feeds`: arrays of the types that the executable was made for."""
        env = {**self._initial, **feeds}
        buffers = self._buffers
        for step in self._steps:
            step.run(env, buffers)
        # What outlives the run, or is the caller's own, is handed out as a copy.
        kept = self._direct.union(self._initial, feeds)
        return [env[t].copy() if t in kept else env[t] for t in self.fetches]
