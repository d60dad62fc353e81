"""`rillet export` and `rillet verify` as a user calls them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rillet.lite import Interpreter
from rillet.lite.cli import main
from rillet.lite.library import is_available
from rillet.lite.single import has_kernel
from rillet.shared_ops.registry import get_op
from rillet.train import Graph, Saver, Session

pytestmark = pytest.mark.skipif(
    not is_available() or not has_kernel(get_op("MatMul"), np.dtype(np.float32)), reason="needs native kernels"
)
SCRIPT = """
from rillet.train import get_default_graph, nn, placeholder

def build():
    x = placeholder(("batch", 6), name="x")
    y = nn.dense(nn.dense(x, 8, activation="relu", name="a"), 3, name="b")
    return get_default_graph(), {"x": x}, {"y": y}

def wrong():
    return 3
"""


@pytest.fixture
def rillet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Calls the command as its entry point does; returns what it shows, on one line."""
    monkeypatch.setenv("COLUMNS", "500")

    def run(*arguments: Any, code: int = 0) -> str:
        monkeypatch.setattr(sys, "argv", ["rillet", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        assert (ended.value.code or 0) == code, shown.out + shown.err
        return " ".join((shown.out + shown.err).split())

    return run


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A script, a checkpoint of its graph, calibration data."""
    folder = tmp_path_factory.mktemp("commands")
    (folder / "net.py").write_text(SCRIPT)
    namespace: dict[str, Any] = {}
    exec(SCRIPT, namespace)
    with Graph(seed=5).as_default():
        graph, _, _ = namespace["build"]()
    session = Session(graph)
    session.initialize()
    Saver().save(session, folder / "net").rename(folder / "net.ckpt")
    np.save(folder / "x.npy", np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32))
    np.save(folder / "bad.npy", np.zeros((40, 7), np.float32))
    return folder


def test_script_and_checkpoint_to_float_and_int8(files: Path, rillet: Callable[..., str]) -> None:
    source, f = f"{files}/net.py:build", files
    shown = rillet("export", source, "--checkpoint", f / "net.ckpt", "-o", f / "float.rlt")
    assert "float.rlt: " in shown and "fuse_bias" in shown
    shown = rillet(
        "export", source, "--checkpoint", f / "net.ckpt", "-o", f / "int8.rlt", "--int8", "--calibration", f / "x.npy"
    )
    assert "int8 values from 40 samples, 0 float islands" in shown
    x = np.load(f / "x.npy")
    wide = Interpreter(f / "float.rlt")(x)
    assert np.abs(Interpreter(f / "int8.rlt")(x) - wide).max() < 0.05 * np.abs(wide).max()
    assert "equal" in rillet("verify", source, f / "float.rlt", "--checkpoint", f / "net.ckpt", "-i", f / "x.npy")
    assert "equal" in rillet("verify", f / "int8.rlt", "--input", f / "x.npy")
    assert "the first of" in rillet("verify", f / "float.rlt", f / "int8.rlt", "-i", f / "x.npy", code=1)
    rillet(
        "export",
        f / "float.rlt",
        "-o",
        f / "again.rlt",
        "--int8",
        "--calibration",
        f / "x.npy",
        "--observer",
        "percentile",
    )
    assert "an int8 model already" in rillet("export", f / "again.rlt", "-o", f / "no.rlt", code=2)


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["net.py:build"], "has 4 variables: give --checkpoint"),
        (["net.py:build", "--checkpoint", "none.ckpt"], "no such file"),
        (["none.py:build"], "no such file"),
        (["net.py:nothing"], "has no function 'nothing'"),
        (["net.py:wrong"], "got int, expected (graph, inputs, outputs)"),
        (["net.py:build", "--checkpoint", "net.ckpt", "--int8"], "int8 needs calibration data"),
        (["net.py:build", "--checkpoint", "net.ckpt", "--int8", "--calibration", "bad.npy"], "[samples, 6]"),
        (["net.py:build", "--checkpoint", "net.ckpt", "--int8", "--calibration", "net.py"], "neither a .npy nor"),
        (["net.py:build", "--checkpoint", "net.ckpt", "--skip", "fold"], "no pass named 'fold'"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(
    files: Path, rillet: Callable[..., str], arguments: list[str], message: str
) -> None:
    full = [str(files / a) if "." in a else a for a in arguments]
    shown = rillet("export", *full, "-o", files / "never.rlt", code=2)
    assert message in shown and "Traceback" not in shown
    assert not list(files.glob("*never*"))
