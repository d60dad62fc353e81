"""The memory plan of random programs: checked by an independent reading of the rules, and by what they compute."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_models import F32, apply, float_model

from rillet.lite import Context, Model, write_model
from rillet.lite.library import kernel_flags
from rillet.shared_ops.program import Program, run_reference
from rillet.shared_ops.types import TensorType

ALIAS, IN_PLACE = 1, 2


def flags_of(op: str) -> int:
    """The flags of an op's kernel on floats (or on anything)."""
    found = kernel_flags()
    return found[op, 1, "f32"] if (op, 1, "f32") in found else found[op, 1, "any"]


def addresses(context: Context, program: Program) -> dict[str, tuple[int, int]]:
    """First and last byte of every value, in the order of the file's tensors."""
    context.prepare()
    found = {}
    for i in range(len(program.values)):
        info, address = context._info("tensor", i)
        size = int(np.prod(info.shape)) * info.dtype.itemsize
        found[info.name] = (address, address + size)
    return found


def check_plan(program: Program, context: Context) -> None:
    """No operation's output lies on a value that is read later, unless it is the same bytes under another shape."""
    where = addresses(context, program)
    end = len(program.applications)
    last = {n: i for i, a in enumerate(program.applications) for n in a.inputs if n is not None}
    last.update(dict.fromkeys([*program.outputs, *program.inputs], end))
    same: dict[str, str] = {n: n for n in program.values}  # the value whose bytes these are
    written = list(program.inputs) + [n for n, v in program.values.items() if v.constant is not None]
    for i, a in enumerate(program.applications):
        flags = flags_of(a.op.name)
        (out,) = a.outputs
        if flags & ALIAS and where[out] == where[a.inputs[0] or ""]:
            same[out] = same[a.inputs[0] or ""]
        for other in written:
            overlap = where[out][0] < where[other][1] and where[other][0] < where[out][1]
            if not overlap or same[other] == same[out] or last.get(other, -1) < i:
                continue
            exact = flags & IN_PLACE and other in (a.inputs[0], *aliases(same, a.inputs[0])) and last[other] == i
            assert exact and where[out] == where[other], (
                f"{a.name} writes {out!r} over {other!r}, which is still needed"
            )
            assert a.inputs.count(a.inputs[0]) == 1
            assert not any(same[n] == same[a.inputs[0] or ""] for n in a.inputs[1:] if n is not None)
        written.append(out)


def aliases(same: dict[str, str], name: str | None) -> list[str]:
    return [n for n in same if same[n] == same[name or ""]]


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Elementwise ops (in place where they may), reshapes (aliases), copies, reuse of early values, several outputs."""
    p = Program()
    live = [p.add_input(f"x{i}", TensorType(F32, (2, 6))) for i in range(draw(st.integers(1, 2)))]
    live.append(p.add_constant("c", np.arange(12, dtype=np.float32).reshape(2, 6)))
    for _ in range(draw(st.integers(1, 14))):
        op = draw(st.sampled_from(["Neg", "Relu", "Add", "Mul", "Reshape", "Identity", "Transpose", "Concat"]))
        x = draw(st.sampled_from(live))
        if op in ("Add", "Mul"):
            same = [n for n in live if p.values[n].type.shape == p.values[x].type.shape]
            live.append(apply(p, op, x, draw(st.sampled_from(same))))
        elif op == "Reshape":
            rows, columns = p.values[x].type.shape
            target = np.array([columns, rows], np.int32)
            live.append(apply(p, op, x, p.add_constant(p.fresh("shape"), target)))
        elif op == "Transpose":
            live.append(apply(p, op, x, perm=(1, 0)))
        elif op == "Concat":
            live.append(apply(p, op, x, x, axis=0))
        else:
            live.append(apply(p, op, x))
    p.outputs = draw(st.lists(st.sampled_from(live), min_size=1, max_size=3, unique=True))
    return p


@settings(max_examples=150, deadline=None)
@given(programs())
def test_random_programs(program: Program) -> None:
    context = Context(Model(write_model(program)))
    check_plan(program, context)
    rng = np.random.default_rng(0)
    feeds = {n: rng.normal(size=(2, 6)).astype(np.float32) for n in program.inputs}
    want = run_reference(program, feeds)
    for _ in range(2):  # inputs survive a run
        for i, n in enumerate(program.inputs):
            if _ == 0:
                context.input(i)[...] = feeds[n]
        context.run()
        for i, n in enumerate(program.outputs):
            np.testing.assert_array_equal(context.output(i), want[n])


def test_a_planted_overlap_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker itself: told that a value lies where a later one does, it objects."""
    program = float_model()
    context = Context(Model(write_model(program)))
    check_plan(program, context)
    real = addresses(context, program)
    residual = [a for a in program.applications if a.op.name == "Conv2D"][1]
    real[residual.outputs[0]] = real[residual.inputs[0] or ""]
    monkeypatch.setattr("test_planner.addresses", lambda *_: real)
    with pytest.raises(AssertionError, match="still needed"):
        check_plan(program, context)


def test_arena_is_close_to_the_most_that_lives_at_once() -> None:
    program = float_model()
    context = Context(Model(write_model(program)))
    end = len(program.applications)
    born = {n: i for i, a in enumerate(program.applications) for n in a.outputs}
    born.update(dict.fromkeys(program.inputs, -1))
    last = {n: i for i, a in enumerate(program.applications) for n in a.inputs if n in born}
    last.update(dict.fromkeys([*program.outputs, *program.inputs], end))

    def size(name: str) -> int:
        t = program.values[name].type
        return int(np.prod([d for d in t.shape if isinstance(d, int)])) * t.dtype.itemsize

    peak = max(sum(size(n) for n in born if born[n] <= i <= last.get(n, born[n])) for i in range(end))
    # In place, the arena may even be smaller; alignment and slack may add a little.
    assert context.memory().arena <= 1.05 * peak + 64 * len(born)
