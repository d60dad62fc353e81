"""Freezing: names and lines survive, what only trains is gone, and everything impossible is listed at once."""

from __future__ import annotations

import numpy as np
import pytest
from nets import convolutional, fill_randomly

from rillet.lite.engine import Context, Model
from rillet.lite.library import is_available
from rillet.lite.writer import write_model
from rillet.shared_ops.program import run_reference
from rillet.train import FreezeError, Graph, Session, Variable, freeze, ops, placeholder
from rillet.train.inference import inference_program


def test_names_and_lines_are_the_users() -> None:
    with Graph().as_default():
        x = placeholder((None, 2), name="x")
        w = Variable(np.eye(2, dtype=np.float32), name="w")
        y = ops.relu(ops.matmul(x, w, name="product"), name="y")
        session = Session()
        session.initialize()
        program = freeze(session, [x], [y])
    assert [(a.op.name, a.name) for a in program] == [("MatMul", "product"), ("Relu", "y")]
    assert all(a.source.startswith("test_freeze.py:") for a in program)
    assert program.inputs == ["x"] and program.outputs == ["y"] and program.values["x"].type.shape == (None, 2)
    assert program.values["w"].constant is not None


def test_outputs_may_be_inputs_shared_or_named_like_others() -> None:
    with Graph().as_default():
        x = placeholder((2,), name="x")
        a = ops.neg(x, name="a")
        b = ops.square(a, name="b")
        program = freeze(Session(), [x], {"same": x, "b": a, "a": b, "twice": b})
    got = run_reference(program, {"x": np.array([1.0, 3.0], np.float32)})
    assert {k: v.tolist() for k, v in got.items()} == {"same": [1, 3], "b": [-1, -3], "a": [1, 9], "twice": [1, 9]}


def test_everything_impossible_is_listed() -> None:
    with Graph().as_default():
        x, z = placeholder((2,), name="x"), placeholder((2,), name="z")
        v = Variable(np.zeros(2, np.float32), name="v")
        checked = ops.check_finite(ops.sum(x), ops.sum(z), labels="z")
        session = Session()
        session.initialize()
        with pytest.raises(FreezeError) as caught:
            freeze(session, [x], {"y": checked * v.value})
    text = str(caught.value)
    assert "[Placeholder at 'z' (test_freeze.py:" in text and "not among the inputs" in text
    assert "CheckFinite" not in text  # it only follows from the first


def test_statistics_of_the_batch_have_no_meaning_in_inference() -> None:
    net = convolutional()
    session = Session(net.graph)
    for v in net.graph.variables:
        session.set(v, np.ones(v.shape))
    norm = next(o for o in net.graph.operations if o.kind == "BatchNormTraining")
    with pytest.raises(FreezeError, match=r"\[BatchNormTraining at 'norm/.*its output 'norm/.*:1' has no meaning"):
        freeze(session, [net.x], [norm.outputs[1]])


@pytest.mark.skipif(not is_available(), reason="no native library")
def test_prediction_has_the_bits_of_the_file() -> None:
    net = convolutional(dropout=0.5)
    session = Session(net.graph, threads=2)
    for v in net.graph.variables:
        session.set(v, np.ones(v.shape) if "variance" in v.name else np.zeros(v.shape))
    fill_randomly(session)
    at = net.feeds(0)[net.x]
    program = inference_program(session, {"image": net.x}, {"logits": net.logits})
    assert "BatchNorm" not in {a.op.name for a in program}  # folded into the convolutions
    context = Context(Model(write_model(program)), threads=1)
    context.resize(0, at.shape)
    context.prepare()
    context.input(0)[...] = at
    context.run()
    assert context.output(0).tobytes() == session.predict(net.logits, {net.x: at}).tobytes()


def test_an_output_does_not_take_the_name_of_an_input() -> None:
    with Graph().as_default():
        x = placeholder((2,), name="x")
        with pytest.raises(FreezeError, match="cannot be the output 'x': an input has that name"):
            freeze(Session(), [x], {"x": ops.neg(x)})
