"""Decides which applications become int8, and with which parameters: by int8 family, never by op name."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from rillet.lite.library import is_available
from rillet.lite.single import has_kernel
from rillet.quant.calibrate import Calibration
from rillet.quant.observers import Range
from rillet.quant.parameters import activation_params
from rillet.quant.weights import multiplier_refusal, range_refusal
from rillet.shared_ops.int8 import Accumulate, AddSub, Lookup, Product, SameScale
from rillet.shared_ops.program import Application, Program
from rillet.shared_ops.quantize import requantize_scale
from rillet.shared_ops.types import Array, QuantParams

# A constant that reaches further than this beside the real values would leave them less than one step of 256.
SENTINEL = 256.0


@dataclass
class Assignment:
    """What `assign_params` decided.

    params: of every activation that some int8 application reads or writes; a constant operand has its parameters here
    too, unless it is the weights or the bias of an Accumulate. shared: the parameters of each same-scale application.
    islands: why an application stays float, by its first output. notes: whatever else the user should know.
    """

    params: dict[str, QuantParams] = field(default_factory=dict)
    shared: dict[str, QuantParams] = field(default_factory=dict)
    islands: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def is_island(self, a: Application) -> bool:
        return a.outputs[0] in self.islands


def assign_params(program: Program, calibration: Calibration) -> Assignment:
    """Parameters for every value that int8 applications touch.

    Values that a same-scale op ties together form one group, with the range of the values that *enter* it: what such an
    op moves about lies within. Prescribed outputs (Sigmoid, Softmax) keep their parameters; where one meets a group of
    other values, `rewrite` puts a Requantize between. An application without an int8 form is an island, with a reason.
    """
    result = Assignment()
    for a in program:
        if reason := _refusal(program, a, calibration):
            result.islands[a.outputs[0]] = reason
    _leave_between_islands(program, result)
    groups = _Groups(program, result, calibration)
    groups.assign()
    for a in program:
        if not result.is_island(a) and (reason := _scale_refusal(program, a, result)):
            result.islands[a.outputs[0]] = reason
    return result


def float_inputs(program: Program, a: Application) -> list[str]:
    """Names of the float operands."""
    return [n for n in a.inputs if n is not None and program.values[n].type.is_float]


def float_outputs(program: Program, a: Application) -> list[str]:
    return [n for n in a.outputs if program.values[n].type.is_float]


def _refusal(program: Program, a: Application, calibration: Calibration) -> str:
    """Why an application cannot be int8; "" where it can, or where it touches no float at all."""
    floats = float_inputs(program, a) + float_outputs(program, a)
    if not floats:
        return "no float values"
    family = a.op.quantize
    if family is None:
        return f"{a.op.name} has no int8 family"
    if not isinstance(family, Lookup) and is_available() and not has_kernel(a.op, np.dtype(np.int8)):
        return f"this library has no int8 kernel of {a.op.name}"
    if any(program.values[n].type.dtype != np.float32 for n in floats):
        return f"works on {program.values[floats[0]].type.dtype}, int8 comes from float32"
    if not float_inputs(program, a) or a.inputs[0] not in floats:
        return "its first operand is not float"
    if all(n is None or program.values[n].constant is not None for n in a.inputs):
        return "its operands are constants"
    unseen = [n for n in floats if program.values[n].constant is None and n not in calibration.ranges]
    if unseen:
        return f"calibration gave no range for {unseen[0]}"
    return _accumulate_refusal(program, a) if isinstance(family, Accumulate) else ""


def _leave_between_islands(program: Program, result: Assignment) -> None:
    """Ops that only move values stay float where islands stand on both sides: int8 would cost accuracy for nothing.

    Starts from all of them and strikes out, again and again, those with an int8 neighbour.
    """
    producers, readers = program.producers(), program.consumers()
    moving = {a for a in program if getattr(a.op.quantize, "same_scale", False) and not result.is_island(a)}

    def stays(a: Application) -> bool:
        made = [producers[n] for n in float_inputs(program, a) if n in producers]
        read = [r for n in float_outputs(program, a) for r in readers[n]]
        return bool(made) and all(result.is_island(b) or b in moving for b in made + read)

    while struck := {a for a in moving if not stays(a)}:
        moving -= struck
    for a in moving:
        result.islands[a.outputs[0]] = "only moves values between float islands"


def _accumulate_refusal(program: Program, a: Application) -> str:
    assert isinstance(a.op.quantize, Accumulate)
    if a.op.quantize.channel_axis is None:
        return ""
    weights = program.values[a.inputs[1] or ""].constant
    if weights is None:
        return "its weights are not constant"
    bias = program.values[a.inputs[2]].constant if len(a.inputs) > 2 and a.inputs[2] is not None else None
    if len(a.inputs) > 2 and a.inputs[2] is not None and bias is None:
        return "its bias is not constant"
    channels = program.values[a.outputs[0]].type.shape[-1]
    products = weights.size // max(channels if isinstance(channels, int) else 1, 1)
    if products * 255 * 127 + 2**30 >= 2**31:
        return f"a sum of {products} products may leave int32"
    return ""


def _scale_refusal(program: Program, a: Application, result: Assignment) -> str:
    """Why the scales found do not suit the integer arithmetic."""
    if isinstance(a.op.quantize, Accumulate) and a.op.quantize.channel_axis is not None:
        return multiplier_refusal(program, a, result.params[a.inputs[0] or ""], result.params[a.outputs[0]])
    if isinstance(a.op.quantize, (Accumulate, Product)):
        x, w, y = (result.params[n or ""] for n in (a.inputs[0], a.inputs[1], a.outputs[0]))
        return range_refusal(requantize_scale(x, w, y))
    if not isinstance(a.op.quantize, AddSub):
        return ""
    y = result.params[a.outputs[0]].scale[0]
    for name in a.inputs[:2]:
        ratio = float(result.params[name or ""].scale[0] / y)
        if not 2.0**-10 <= ratio < 2.0**8:
            return f"scale of {name} is {ratio:.3g} times the output's, int8 addition takes 2^-10 to 2^8"
    return ""


class _Groups:
    """Union-find over values and same-scale applications."""

    def __init__(self, program: Program, result: Assignment, calibration: Calibration) -> None:
        self._program, self._result, self._ranges = program, result, calibration.ranges
        self._parent: dict[str, str] = {}
        self._fixed = self._prescribed()
        self._readers = program.consumers()

    def _prescribed(self) -> dict[str, QuantParams]:
        """Outputs whose family fixes their parameters."""
        fixed = {}
        for a in self._program:
            pair = getattr(a.op.quantize, "fixed", None)
            if pair is not None and not self._result.is_island(a):
                fixed[a.outputs[0]] = QuantParams.per_tensor(*pair)
        return fixed

    def assign(self) -> None:
        members: dict[str, list[str]] = {}
        self._tie()
        for a in self._program:
            if self._result.is_island(a):
                continue
            for name in self._activations(a):
                members.setdefault(self._find(name), [])
                if name not in members[self._find(name)]:
                    members[self._find(name)].append(name)
        params = {root: self._group_params(root, names) for root, names in members.items()}
        for root, names in members.items():
            self._result.params.update({n: self._fixed.get(n, params[root]) for n in names})
        for a in self._same_scale():
            self._result.shared[a.outputs[0]] = params[self._find(a.outputs[0])]

    def _activations(self, a: Application) -> list[str]:
        """Float values of an application that have parameters of their own: all but weights and bias."""
        is_sum = isinstance(a.op.quantize, Accumulate) and a.op.quantize.channel_axis is not None
        inputs = [a.inputs[0] or ""] if is_sum else float_inputs(self._program, a)
        return inputs + float_outputs(self._program, a)

    def _same_scale(self) -> list[Application]:
        return [
            a for a in self._program if getattr(a.op.quantize, "same_scale", False) and not self._result.is_island(a)
        ]

    def _tie(self) -> None:
        """Ties operands and results of same-scale ops. Where several operands meet, one that others read too keeps its
        own scale (a Requantize brings it over): sharing would coarsen it for all of them."""
        for a in self._same_scale():
            inputs, outputs = float_inputs(self._program, a), float_outputs(self._program, a)
            for name in outputs[1:]:
                self._union(outputs[0], name)
            alone = len(set(inputs)) == 1
            for name in inputs:
                if name in self._fixed:
                    continue
                if alone or self._program.values[name].constant is not None or len(self._readers[name]) == 1:
                    self._union(outputs[0], name)

    def _group_params(self, root: str, names: list[str]) -> QuantParams:
        """From the values that enter the group: every member but the results of its own same-scale ops, operands that
        are requantized on the way in, and fill values. A group that only prescribed values enter takes theirs."""
        ties = [a for a in self._same_scale() if self._find(a.outputs[0]) == root]
        inner = {n for a in ties for n in a.outputs}
        entering = list(
            dict.fromkeys([n for n in names if n not in inner] + [n for a in ties for n in self._floats(a)])
        )
        entering = [n for n in entering if n not in inner]
        fixed = [self._fixed[n] for n in entering if n in self._fixed]
        if fixed and len(fixed) == len(entering) and all(q.same(fixed[0]) for q in fixed):
            return fixed[0]
        found: Range | None = None
        constants: list[tuple[str, Range]] = []
        for name in entering:
            value = self._program.values[name].constant
            if value is not None:
                constants.append((name, _range_of(value)))
            else:
                found = self._ranges[name] if found is None else found.union(self._ranges[name])
        constants += [(f"the fill of {a.name}", r) for a in ties if (r := _fill(a)) is not None]
        for name, reach in constants:
            if found is not None and found.magnitude and reach.magnitude > SENTINEL * found.magnitude:
                self._result.notes.append(
                    f"{name} ({reach.low:g} to {reach.high:g}) lies outside the int8 range: clamped"
                )
            else:
                found = reach if found is None else found.union(reach)
        return activation_params(found or Range(0.0, 0.0))

    def _floats(self, a: Application) -> list[str]:
        return float_inputs(self._program, a)

    def _find(self, name: str) -> str:
        while (up := self._parent.get(name, name)) != name:
            name = up
        return name

    def _union(self, a: str, b: str) -> None:
        self._parent[self._find(b)] = self._find(a)


def _range_of(value: Array) -> Range:
    finite = value[np.isfinite(value)] if value.size else value
    if finite.size < value.size:
        return Range(-np.inf, np.inf)
    return Range(float(value.min(initial=0.0)), float(value.max(initial=0.0)))


def _fill(a: Application) -> Range | None:
    """The real number that a same-scale op puts beside the values it moves."""
    if not (isinstance(a.op.quantize, SameScale) and a.op.quantize.fill):
        return None
    fill = float(getattr(a.attrs, a.op.quantize.fill))
    return Range(min(fill, 0.0), max(fill, 0.0))
