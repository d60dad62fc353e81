"""MobileNetV2-1.0-224, batch 1, float32 and int8: rillet beside LiteRT's default CPU path, same weights, one thread.

    python benchmarks/mobilenet_v2.py [--threads 1] [--rounds 15] [--json out.json]

Both get the float picture and give float probabilities (the int8 files quantize at their inputs themselves). How far
the two outputs lie apart is printed too.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from litert_program import image, litert_bytes
from networks import mobilenet_v2
from side_by_side import Contestant, compete, serve

HERE = Path(__file__).resolve()


def models(folder: Path) -> dict[str, Path]:
    """The four files, written once: <float|int8>.<rlt|tflite>."""
    from rillet.lite import save_model
    from rillet.quant import quantize_program

    folder.mkdir(parents=True, exist_ok=True)
    program = mobilenet_v2()
    shape = program.values["image"].type.shape
    int8, _ = quantize_program(program, {"image": image(shape)})
    files = {}
    for name, p in (("float", program), ("int8", int8)):
        files[f"{name}.rlt"], files[f"{name}.tflite"] = folder / f"{name}.rlt", folder / f"{name}.tflite"
        save_model(files[f"{name}.rlt"], p)
        files[f"{name}.tflite"].write_bytes(litert_bytes(p))
    return files


def runner(path: Path, threads: int) -> tuple[Any, Any]:
    """A call that runs the model once, and a function that gives its output."""
    picture = image((1, 224, 224, 3))
    if path.suffix == ".rlt":
        from rillet.lite import Context, Model

        context = Context(Model(path), threads=threads)
        context.prepare()
        feed, out = context.input(0), context.output(0)

        def run() -> None:
            feed[...] = picture
            context.run()

        return run, lambda: out.copy()
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(path), num_threads=threads)
    interpreter.allocate_tensors()
    put, get = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]

    def invoke() -> None:
        interpreter.set_tensor(put, picture)
        interpreter.invoke()

    return invoke, lambda: interpreter.get_tensor(get).copy()


def difference(files: dict[str, Path], kind: str) -> dict[str, float]:
    outputs = []
    for suffix in ("rlt", "tflite"):
        run, result = runner(files[f"{kind}.{suffix}"], 1)
        run()
        outputs.append(result().ravel())
    ours, theirs = outputs
    return {"largest": float(abs(ours - theirs).max()), "share of values that differ": float((ours != theirs).mean())}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        return serve(runner(args.worker, args.threads)[0])
    files = models(HERE.parents[1] / "build" / "benchmarks")
    report: dict[str, Any] = {"benchmark": "mobilenet_v2", "threads": args.threads}
    for kind in ("float", "int8"):
        command = [sys.executable, str(HERE), "--threads", str(args.threads), "--worker"]
        contestants = [
            Contestant(name, [*command, str(files[f"{kind}.{suffix}"])])
            for name, suffix in (("rillet", "rlt"), ("litert", "tflite"))
        ]
        us = compete(contestants, args.rounds)
        ratio = {k: us["rillet"][k] / us["litert"][k] for k in ("p10", "median")}
        report[kind] = {"us": us, "ratio rillet/litert": ratio, "outputs": difference(files, kind)}
    text = json.dumps(report, indent=1)
    if args.json:
        args.json.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
