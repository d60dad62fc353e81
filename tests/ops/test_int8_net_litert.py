"""A whole network: post-training int8 MobileNetV2 in small gives LiteRT's very bytes, on every ISA and thread count."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "oracles"))
sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
from int8_native import ISAS, run_native
from litert import run_litert
from litert_program import litert_bytes
from networks import mobilenet_v2

from rillet.quant import quantize_program


def test_mobilenet_v2_equals_litert() -> None:
    rng = np.random.default_rng(0)
    program = mobilenet_v2(resolution=64, width=0.35, classes=101)
    shape = program.values["image"].type.shape
    int8, _ = quantize_program(program, {"image": rng.uniform(-1, 1, (8, *shape[1:])).astype(np.float32)})
    first = next(iter(int8))
    assert first.op.name == "Quantize"
    q = int8.values[first.outputs[0]].quant
    assert q is not None
    tflite = litert_bytes(int8)
    answers = set()
    for _ in range(4):
        # Pictures that quantize exactly: LiteRT divides by the scale in another way, which only near-ties can show.
        codes = rng.integers(-128, 128, shape)
        picture = ((codes - q.zero_point) * q.scale[0]).astype(np.float32)
        (want,) = run_litert(tflite, [picture])
        answers.add(want.tobytes())
        for isa in ISAS:
            for threads in (1, 3):
                (got,) = run_native(int8, [picture], isa, threads)
                assert np.array_equal(got, want.reshape(got.shape)), f"{isa}, {threads} threads"
    assert len(answers) == 4
