"""Export and verify as functions: files that hold what they should, and no file where something is wrong."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from programs import Build, floats, ops_of, outputs

from rillet.export import ExportError, export, verify
from rillet.lite import Interpreter
from rillet.lite.library import is_available
from rillet.lite.reader import read_file, read_model
from rillet.lite.single import has_kernel
from rillet.quant import CalibrationError
from rillet.shared_ops.passes import inference_passes
from rillet.shared_ops.program import Program, Value
from rillet.shared_ops.registry import get_op
from rillet.train import FreezeError, Graph, Session, nn, ops, placeholder

pytestmark = pytest.mark.skipif(
    not is_available() or not has_kernel(get_op("MatMul"), np.dtype(np.float32)), reason="needs native kernels"
)
RNG = np.random.default_rng(11)


def program() -> Program:
    """MatMul, bias, relu, MatMul, softmax: fused to three operations."""
    b = Build(x=("batch", 6))
    h = b("Relu", b("BiasAdd", b("MatMul", "x", floats(RNG, 6, 8), name="first"), floats(RNG, 8)), name="hidden")
    b("Softmax", b("MatMul", h, floats(RNG, 8, 3), name="second"), name="scores")
    return b.program


def graph() -> tuple[Session, Any, Any]:
    with Graph(seed=3).as_default() as g:
        x = placeholder(("batch", 6), name="x")
        y = ops.softmax(nn.dense(nn.dense(x, 8, activation="relu", name="a"), 3, name="b"))
    session = Session(g)
    session.initialize()
    return session, x, y


def test_a_session_becomes_a_file_with_the_same_bits(tmp_path: Path) -> None:
    session, x, y = graph()
    report = export(session, {"x": x}, {"scores": y}, tmp_path / "m.rlt")
    data = floats(RNG, 7, 6)
    assert np.array_equal(Interpreter(report.path)(data), session.predict(y, {x: data}))
    assert report.bytes == report.path.stat().st_size and os.listdir(tmp_path) == ["m.rlt"]
    assert "fuse_activation" in str(report) and ops_of(report.program) == ["MatMul", "MatMul", "Softmax"]


def test_int8_file_is_its_program_byte_for_byte(tmp_path: Path) -> None:
    p = program()
    x = floats(RNG, 64, 6)
    report = export(p, path=tmp_path / "m.rlt", quantize="int8", calibration=x)
    file = read_file(report.path)
    assert file.quant_profile == "rq_f32"
    assert verify(report.path, None, x).equal  # references against engine
    assert verify(report.program, report.path, x).equal
    assert report.quantization is not None and not report.quantization.islands
    assert np.abs(Interpreter(report.path)(x) - outputs(p, x=x)[0]).max() < 0.1


def test_labels_and_preprocessing_travel_along(tmp_path: Path) -> None:
    export(program(), path=tmp_path / "m.rlt", labels=["a", "b", "c"], preprocessing={"scale": 0.5, "mean": [1.0]})
    interpreter = Interpreter(tmp_path / "m.rlt")
    assert interpreter.labels == ["a", "b", "c"]
    assert np.array_equal(interpreter.preprocess(np.full(6, 6, np.uint8)), np.full((1, 6), 2, np.float32))
    assert json.loads(interpreter.metadata["preprocessing"]) == {"x": {"scale": 0.5, "mean": [1.0]}}


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"labels": ["a", "b"]}, "labels: got 2, expected one a class, 3"),
        ({"preprocessing": {"y": {"scale": 1}}}, r"preprocessing: got \['y'\], expected names of inputs"),
        ({"preprocessing": {"x": {"gamma": 1}}}, "expected the keys"),
        ({"quantize": "int8"}, "int8 needs calibration data"),
        ({"quantize": "int4", "calibration": np.zeros((4, 6), np.float32)}, "quantize: got 'int4', expected None or"),
        ({"calibration": np.zeros((4, 6), np.float32)}, "nothing is to be quantized"),
        ({"path": "nowhere/m.rlt"}, "there is no folder nowhere"),
        ({"inputs": ["x"]}, "a Program has its own"),
    ],
)
def test_wrong_arguments_write_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ExportError, match=message):
        export(program(), **{"path": "m.rlt", **arguments})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("calibration", [np.zeros((9, 5), np.float32), np.full((9, 6), np.nan, np.float32)])
def test_wrong_calibration_writes_nothing(tmp_path: Path, calibration: Any) -> None:
    with pytest.raises(CalibrationError, match=r"input 'x': got float32 \[9, 5\]|tensor 'x', calibration sample 0"):
        export(program(), path=tmp_path / "m.rlt", quantize="int8", calibration=calibration)
    assert os.listdir(tmp_path) == []


def test_everything_unsupported_is_listed_at_once(tmp_path: Path) -> None:
    b = Build(x=(2, 3))
    h = b("Mul", "x", np.array([1, np.inf, 2], np.float32), name="scale")
    for name in ("first", "second"):  # an op that has a meaning, and no kernel
        h = b("Requantize", h, name=name)
    with pytest.raises(ExportError) as caught:
        export(b.program, path=tmp_path / "m.rlt")
    for part in (
        "[Requantize at 'first' (net.py:1)] has no native kernel",
        "at 'second'",
        "1 of 3 values are NaN or infinite",
    ):
        assert part in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_what_only_trains_is_refused_with_its_line(tmp_path: Path) -> None:
    session, x, _ = graph()
    with session.graph.as_default():
        labels = placeholder(("batch",), np.int32, name="labels")
        loss = nn.sparse_softmax_cross_entropy(nn.dense(x, 3, name="c"), labels)
    session.initialize()
    with pytest.raises(FreezeError, match=r"'labels' \(.*test_export.py:\d+\)"):
        export(session, [x], [loss], tmp_path / "m.rlt")


def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.rlt"
    export(program(), path=path)
    before = path.read_bytes()

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ExportError, match="cannot write .*m.rlt: No space left on device.*Free some space"):
        export(program(), path=path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["m.rlt"]


def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    device = Path("/dev/full")
    if not device.exists() or os.geteuid() != 0 or os.system(f"mount -t tmpfs -o size=4k none {tmp_path} 2>/dev/null"):
        pytest.skip("this machine lets nobody mount")
    try:
        b = Build(x=(2, 400))
        b("MatMul", "x", floats(RNG, 400, 400))
        with pytest.raises(ExportError, match="No space left on device"):
            export(b.program, path=tmp_path / "m.rlt")
        assert os.listdir(tmp_path) == []
    finally:
        os.system(f"umount {tmp_path}")


def test_verify_names_the_first_value_that_differs(tmp_path: Path) -> None:
    p = program()
    export(p, path=tmp_path / "a.rlt")
    name, weights = next((n, v) for n, v in p.values.items() if v.constant is not None and v.constant.shape == (8, 3))
    changed = weights.constant.copy()
    changed[:, 1] += 0.25
    p.values[name] = Value(name, weights.type, None, changed)
    export(p, path=tmp_path / "b.rlt")
    x = np.abs(floats(RNG, 5, 6))
    result = verify(tmp_path / "a.rlt", tmp_path / "b.rlt", x)
    first = result.differences[0]
    assert (first.name, first.operation, first.size) == ("second", "MatMul", 15)
    assert first.index[1] == 1 and 1 <= first.differing <= 5
    kept = read_model(tmp_path / "a.rlt")
    hidden = outputs(_with_output(kept, "hidden"), x=x)[0]
    assert first.largest == pytest.approx(0.25 * hidden.sum(axis=1).max(), rel=1e-5)
    assert "the first of 2 that differ (of 3): second (MatMul)" in str(result)
    assert verify(tmp_path / "a.rlt", tmp_path / "b.rlt", x, tolerance=10).equal


def _with_output(p: Program, name: str) -> Program:
    p = p.copy()
    p.outputs = [name]
    return p


def test_verify_sees_the_sign_of_zero_and_takes_nan_for_nan() -> None:
    from rillet.export.verify import _difference

    assert _difference("x", "Op", np.float32([0.0]), np.float32([-0.0]), 0.0) is not None
    nan = np.float32([np.nan, 1])
    assert _difference("x", "Op", nan, nan.copy(), 0.0) is None and _difference("x", "Op", nan, nan, 1e-3) is None
    assert _difference("x", "Op", nan, np.float32([1, 1]), 1e-3) is not None


def test_verify_sets_float_and_int8_side_by_side(tmp_path: Path) -> None:
    p, x = program(), floats(RNG, 32, 6)
    export(p, path=tmp_path / "f.rlt")
    export(p, path=tmp_path / "q.rlt", quantize="int8", calibration=x)
    loose, tight = (verify(tmp_path / "f.rlt", tmp_path / "q.rlt", x, tolerance=t) for t in (0.05, 1e-6))
    assert loose.equal and {"hidden", "second", "scores"} <= set(loose.compared)
    assert not tight.equal and tight.differences[0].name == "hidden"


def test_verify_refuses_inputs_that_do_not_fit(tmp_path: Path) -> None:
    export(program(), path=tmp_path / "m.rlt")
    with pytest.raises(ExportError, match=r"input 'x': got float32\[5, 7\], expected f32\[batch, 6\]"):
        verify(tmp_path / "m.rlt", None, floats(RNG, 5, 7))
    with pytest.raises(ExportError, match="no such file"):
        verify(tmp_path / "other.rlt", None, floats(RNG, 5, 6))


def test_verify_refuses_models_with_other_outputs(tmp_path: Path) -> None:
    """Nothing would be compared, and nothing compared is not equal."""
    p = program()
    export(p, path=tmp_path / "a.rlt")
    export(_with_output(p, "hidden"), path=tmp_path / "b.rlt")
    with pytest.raises(ExportError, match="outputs of the two models"):
        verify(tmp_path / "a.rlt", tmp_path / "b.rlt", floats(RNG, 5, 6))


def test_an_unknown_observer_is_refused_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rillet.export.pipeline.inference_passes", lambda *given, **named: pytest.fail("too late"))
    with pytest.raises(CalibrationError, match="got 'middle', expected one of min_max, moving_average, percentile"):
        export(program(), path=tmp_path / "m.rlt", quantize="int8", calibration=floats(RNG, 4, 6), observer="middle")


def test_a_program_given_to_export_stays_as_it_was(tmp_path: Path) -> None:
    p, skip = program(), [e.name for e in inference_passes(program())[1].entries]
    export(p, path=tmp_path / "m.rlt", skip=skip)
    assert p.metadata == {}
