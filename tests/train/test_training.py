"""Whole networks: one region a step, the same bits for any thread count and after resume, inference as exported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from nets import Net, convolutional, perceptron, state, transformer_block

from rillet.lite.library import is_available
from rillet.shared_ops.program import run_reference
from rillet.train import Saver, Session, freeze, optimizers

native = pytest.mark.skipif(not is_available(), reason="no native library")

BUILDS = pytest.mark.parametrize(
    "build",
    [
        pytest.param(lambda: convolutional(dropout=0.25), id="convolutional"),
        pytest.param(transformer_block, id="transformer"),
        pytest.param(perceptron, id="perceptron"),
    ],
)


def run_steps(session: Session, net: Net, steps: range, batch: int = 8) -> list[float]:
    return [float(session.run([net.train, net.loss], net.feeds(s, batch))[1]) for s in steps]


@pytest.mark.parametrize("build", [convolutional, transformer_block])
def test_training_lowers_the_loss(build: Callable[..., Net]) -> None:
    net = build()
    session = net.session()
    feeds = net.feeds(0)
    losses = [float(session.run([net.train, net.loss], feeds)[1]) for _ in range(40)]
    assert losses[-1] < 0.5 * losses[0]


@native
@BUILDS
def test_a_training_step_is_one_region(build: Callable[..., Net]) -> None:
    net = build()
    session = net.session()
    run_steps(session, net, range(1))
    (executable,) = session.executables()
    foreign = [o.kind for stage in executable.plan.stages if not stage.native for o in stage.operations]
    assert foreign == [] and len(executable.regions) == 1


@native
@BUILDS
def test_the_same_bits_for_any_number_of_threads(build: Callable[..., Net]) -> None:
    states = []
    for threads in (1, 2, 3):
        net = build()
        session = net.session(threads)
        losses = run_steps(session, net, range(3), batch=64)
        states.append((losses, state(session)))
    assert states[0] == states[1] == states[2]


def test_an_operation_more_changes_no_number() -> None:
    plain, more = convolutional(seed=1, dropout=0.25), convolutional(seed=1, dropout=0.25, extra=True)
    a, b = plain.session(), more.session()
    assert state(a) == state(b)
    assert run_steps(a, plain, range(2)) == run_steps(b, more, range(2))


def test_seeds_differ() -> None:
    a, b = convolutional(seed=1).session(), convolutional(seed=2).session()
    assert state(a)["conv/kernel"] != state(b)["conv/kernel"]


def test_resuming_equals_not_stopping(tmp_path: Path) -> None:
    """Dropout, schedule, Adam's powers and the moving averages all go on where they were."""

    def build() -> Net:
        return convolutional(seed=3, dropout=0.5, optimizer=optimizers.Adam(optimizers.cosine(1e-2, 6, 2)))

    net = build()
    whole = net.session()
    losses = run_steps(whole, net, range(6))

    net = build()
    first = net.session()
    run_steps(first, net, range(3))
    path = Saver().save(first, tmp_path / "model")

    net = build()
    second = net.session()
    Saver().restore(second, path)
    assert run_steps(second, net, range(3, 6)) == losses[3:]
    assert state(second) == state(whole)


def test_inference_uses_the_moving_averages_and_no_dropout() -> None:
    net = convolutional(dropout=0.5)
    session = net.session()
    run_steps(session, net, range(5))
    before = state(session)
    feeds = {net.x: net.feeds(9)[net.x]}
    logits = session.predict(net.logits, feeds)
    assert state(session) == before and session.step == 5
    half = {net.x: feeds[net.x][:4]}
    np.testing.assert_allclose(session.predict(net.logits, half), logits[:4], rtol=1e-5, atol=1e-6)

    program = freeze(session, {"image": net.x}, {"logits": net.logits})
    assert program.inputs == ["image"] and program.outputs == ["logits"]
    assert {a.op.name for a in program}.isdisjoint({"BatchNormTraining", "Dropout", "ReadVariable"})
    expected = run_reference(program, {"image": feeds[net.x]})["logits"]
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)


def test_prediction_follows_the_variables() -> None:
    net = convolutional()
    session = net.session()
    feeds = {net.x: net.feeds(9)[net.x]}
    before = session.predict(net.logits, feeds)
    run_steps(session, net, range(1))
    assert not np.array_equal(session.predict(net.logits, feeds), before)


def test_evaluation_weighs_batches_by_their_size() -> None:
    net = convolutional()
    session = net.session()
    run_steps(session, net, range(2))
    feeds = net.feeds(3, batch=6)
    parts = [{k: v[:4] for k, v in feeds.items()}, {k: v[4:] for k, v in feeds.items()}]
    got = session.evaluate({"loss": net.loss}, parts)["loss"]
    assert got == pytest.approx(float(session.predict(net.loss, feeds)), rel=1e-5)
