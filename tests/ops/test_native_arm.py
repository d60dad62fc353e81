"""The same bytes on 64-bit ARM as here: every native case, on emulated CPUs with and without dot product."""

from __future__ import annotations

import subprocess
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from native_builds import build_for_arm
from test_native import ALL, as_float32

from rillet.lite.library import is_available
from rillet.lite.single import prepare_single

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not is_available(), reason="the native library is not built")]


def write_bundle(folder: Path) -> tuple[Path, dict[str, list[str]]]:
    """Models and inputs of all cases, the list that rillet-run reads, and what it must print for each model."""
    lines, expected = [], {}
    for n, param in enumerate(ALL):
        op, case = param.values
        inputs: tuple[Any, ...] = as_float32(case)
        if op.quantize is not None and inputs and inputs[0] is not None and inputs[0].dtype == np.int8:
            continue
        prepared = prepare_single(op, op.make_attrs(case.attrs), inputs)
        if prepared is None:
            continue
        model = folder / f"{n}.rlt"
        model.write_bytes(prepared.data)
        words = [str(model)]
        for i in [*prepared.fed, *prepared.updated]:
            words.append(str(folder / f"{n}.{i}"))
            Path(words[-1]).write_bytes(np.ascontiguousarray(inputs[i]).tobytes())
        lines.append(" ".join(words))
        expected[str(model)] = [f"{zlib.crc32(y.tobytes()):08x}" for y in prepared.run(inputs)] + [str(param.id)]
    (folder / "list").write_text("\n".join(lines))
    return folder / "list", expected


@pytest.mark.parametrize("cpu,isas", [("cortex-a72", ["scalar", "neon"]), ("cortex-a76", ["neondot"])])
def test_same_bytes_as_here(cpu: str, isas: list[str], tmp_path: Path) -> None:
    folder, emulate = build_for_arm(training=True)
    listed, expected = write_bundle(tmp_path)
    assert len(expected) > 500
    for isa in isas:
        command = [*emulate(cpu), folder / "rillet-run", "--isa", isa, "--threads", "2", "--list", listed]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
        got = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
        wrong = [f"{want[-1]}: {got.get(model)} here {want[:-1]}" for model, want in expected.items()
                 if got.get(model) != want[:-1]]  # fmt: skip
        assert not wrong, (
            f"{isa} on {cpu}, {len(wrong)} of {len(expected)}:\n" + "\n".join(wrong[:20]) + done.stderr[:500]
        )
