"""What `rillet run`, `inspect` and `bench` do. Imported when one of them is called."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from rillet.lite.engine import OpTime, TensorInfo
from rillet.lite.interpreter import Interpreter
from rillet.lite.library import current_isa
from rillet.lite.reader import read_file
from rillet.lite.status import ModelError, Status
from rillet.shared_ops.program import Program, Value
from rillet.shared_ops.types import Array

_console = Console(soft_wrap=True)
_IMAGES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"}


def _bad(text: str) -> ModelError:
    return ModelError(Status.BAD_ARGUMENT, text)


def run(model: Path, inputs: list[str], output: Path | None, top: int, threads: int, raw: bool) -> None:
    """Runs a model on files and shows, or writes, what it answers."""
    interpreter = Interpreter(model, threads)
    results = interpreter.run(_feeds(interpreter, inputs, raw), raw=raw)
    if output is not None:
        _write(output, results)
    for name, y in results.items():
        if top and y.ndim >= 1:
            _show_top(name, y, top, interpreter.labels)
        else:
            numbers = np.array2string(y, threshold=32, precision=6)
            _console.print(f"{name} {y.dtype}{list(y.shape)}\n{numbers}", markup=False, highlight=False)


def _feeds(interpreter: Interpreter, inputs: list[str], raw: bool) -> dict[str, Array]:
    names = [i.name for i in interpreter.inputs]
    feeds: dict[str, Array] = {}
    for given in inputs:
        name, equals, path = given.partition("=")
        if not equals or Path(given).exists():
            name, path = next((n for n in names if n not in feeds), ""), given
        if name not in names:
            raise _bad(f"--input {given}: the model's inputs are {', '.join(names)}")
        info = interpreter.inputs[names.index(name)]
        array, is_image = _load(Path(path), info)
        is_pixels = is_image or array.dtype == np.uint8
        wants_floats = info.dtype == np.float32 or info.scale is not None
        feeds[name] = interpreter.preprocess(array, name) if is_pixels and wants_floats and not raw else array
    return feeds


def _load(path: Path, info: TensorInfo) -> tuple[Array, bool]:
    """A file as an array, and whether it is an image (then it has the height, width and channels of the input)."""
    if path.suffix.lower() in _IMAGES:
        return _load_image(path, info), True
    try:
        return np.load(path, allow_pickle=False), False
    except (ValueError, EOFError):
        raise _bad(f"{path}: neither a .npy file nor an image with a known suffix") from None


def _load_image(path: Path, info: TensorInfo) -> Array:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise _bad(f"{path}: reading images needs Pillow; `pip install pillow`, or give a .npy file") from None
    if len(info.shape) != 4:
        raise _bad(f"{path}: input {info.name!r} has shape {list(info.shape)}: not [batch, height, width, channels]")
    _, height, width, channels = info.shape
    if channels not in (1, 3):
        raise _bad(f"{path}: input {info.name!r} has {channels} channels; an image has 1 or 3")
    try:
        with Image.open(path) as opened:
            image = opened.convert("L" if channels == 1 else "RGB")
            size = (width if width > 0 else image.width, height if height > 0 else image.height)
            pixels = np.asarray(image.resize(size, Image.Resampling.BILINEAR))
    except UnidentifiedImageError:
        raise _bad(f"{path}: not an image that Pillow can read") from None
    return pixels.reshape(1, size[1], size[0], channels)


def _write(path: Path, results: dict[str, Array]) -> None:
    if len(results) == 1 and path.suffix != ".npz":
        np.save(path, next(iter(results.values())))
    elif path.suffix == ".npz":
        np.savez(path, **results)  # type: ignore[arg-type]
    else:
        raise _bad(f"--output {path}: the model has {len(results)} outputs; name a .npz file")


def _show_top(name: str, y: Array, top: int, labels: list[str]) -> None:
    for i, scores in enumerate(y.reshape(-1, y.shape[-1])):
        table = Table(title=f"{name}[{i}]", title_justify="left")
        table.add_column("class")
        table.add_column("score", justify="right")
        for k in np.argsort(-scores.astype(np.float64), kind="stable")[:top]:
            table.add_row(labels[k] if k < len(labels) else str(k), f"{scores[k]:.4f}")
        _console.print(table)


# -- inspect ----------------------------------------------------------------------------------------------------------


def inspect(model: Path, as_json: bool) -> None:
    """Shows what a model holds."""
    file = read_file(model)
    program = file.programs[0]
    report = {
        "file": str(model),
        "bytes": model.stat().st_size,
        "weights": sum(v.constant.nbytes for v in program.values.values() if v.constant is not None),
        "quant_profile": file.quant_profile,
        "inputs": [_describe(program.values[n]) for n in program.inputs],
        "outputs": [_describe(program.values[n]) for n in program.outputs],
        "operations": [_describe_operation(program, i) for i in range(len(program.applications))],
        "metadata": file.metadata,
    }
    if as_json:
        typer.echo(json.dumps(report, indent=1))
        return
    profile = f", int8 profile {file.quant_profile}" if file.quant_profile else ""
    text = f"{model}: {report['bytes']:,} bytes, {report['weights']:,} of them weights{profile}"
    _console.print(text, markup=False, highlight=False)
    for kind in ("inputs", "outputs"):
        for v in report[kind]:  # type: ignore[attr-defined]
            _console.print(f"{kind[:-1]} {v['name']}: {_type_text(v)}", markup=False, highlight=False)
    table = Table("#", "op", "name", "inputs", "outputs", "weights")
    for i, o in enumerate(report["operations"]):  # type: ignore[arg-type, var-annotated]
        ins = "\n".join("-" if v is None else _type_text(v) for v in o["inputs"])
        outs = "\n".join(_type_text(v) for v in o["outputs"])
        table.add_row(str(i), o["op"], o["name"], ins, outs, f"{o['weights']:,}")
    _console.print(table)
    for key, value in file.metadata.items():
        _console.print(f"{key}: {value if len(value) < 200 else value[:200] + '...'}", markup=False, highlight=False)


def _describe(value: Value) -> dict[str, Any]:
    """A value as plain data."""
    found: dict[str, Any] = {"name": value.name, "dtype": value.type.dtype.name, "shape": list(value.type.shape)}
    if value.constant is not None:
        found["constant"] = True
    if q := value.quant:
        found["quant"] = {"scale": [float(s) for s in q.scale], "zero_point": q.zero_point, "axis": q.axis}
    return found


def _describe_operation(program: Program, i: int) -> dict[str, Any]:
    a = program.applications[i]
    values = program.input_values(a)
    return {
        "op": a.op.name,
        "version": a.op.version,
        "name": a.name,
        "source": a.source,
        "attrs": {k: getattr(a.attrs, k) for k in a.op.attr_types},
        "inputs": [None if v is None else _describe(v) for v in values],
        "outputs": [_describe(v) for v in program.output_values(a)],
        "weights": sum(v.constant.nbytes for v in values if v is not None and v.constant is not None),
    }


def _type_text(v: dict[str, Any]) -> str:
    shape = ", ".join("?" if d is None else str(d) for d in v["shape"])
    text = f"{v['dtype']}[{shape}]"
    if q := v.get("quant"):
        scales = f"{q['scale'][0]:.4g}" if len(q["scale"]) == 1 else f"{len(q['scale'])} scales"
        text += f" ({scales}, {q['zero_point']})"
    return text


# -- bench ------------------------------------------------------------------------------------------------------------


def bench(model: Path, threads: int, runs: int, batch: int, profile: bool, as_json: bool) -> None:
    """Measures a model on random input."""
    interpreter = Interpreter(model, threads)
    feeds = {i.name: _random(i, batch) for i in interpreter.inputs}
    times = interpreter.profile(feeds, runs=max(1, runs // 5), raw=True)  # it warms the machine up, too
    took = []
    for _ in range(runs):
        start = time.perf_counter()
        interpreter.run(feeds, raw=True)
        took.append((time.perf_counter() - start) * 1e3)
    memory = interpreter.memory()
    report = {
        "file": str(model),
        "threads": threads,
        "isa": current_isa(),
        "runs": runs,
        "p10_ms": float(np.percentile(took, 10)),
        "median_ms": float(np.median(took)),
        "arena_bytes": memory.arena,
        "prepared_bytes": memory.prepared,
        "workspace_bytes": memory.workspace,
    }
    if profile:
        report["operations"] = [
            {"op": t.op, "name": t.name, "kernel": t.kernel, "ms": t.nanoseconds / 1e6 / max(t.runs, 1)} for t in times
        ]
    if as_json:
        typer.echo(json.dumps(report, indent=1))
        return
    text = f"{model}: {report['p10_ms']:.3f} ms (p10), {report['median_ms']:.3f} ms (median) of {runs} runs"
    _console.print(f"{text}, {threads} threads, {report['isa']}", markup=False, highlight=False)
    parts = f"values {memory.arena:,}, packed weights {memory.prepared:,}, scratch {memory.workspace:,}"
    _console.print(f"memory: {memory.total:,} bytes ({parts})", markup=False, highlight=False)
    if profile:
        _show_times(times)


def _random(info: TensorInfo, batch: int) -> Array:
    rng = np.random.default_rng(0)
    shape = tuple(batch if d < 0 else d for d in info.shape)
    if info.dtype.kind == "f":
        return rng.standard_normal(shape).astype(info.dtype)
    if info.dtype == np.int8:
        return rng.integers(-128, 128, shape).astype(np.int8)
    return np.zeros(shape, info.dtype)  # zero is an index that every table has


def _show_times(times: list[OpTime]) -> None:
    total = sum(t.nanoseconds / max(t.runs, 1) for t in times) or 1.0
    table = Table("op", "name", "kernel", "ms", "%")
    for t in times:
        ns = t.nanoseconds / max(t.runs, 1)
        table.add_row(t.op, t.name, t.kernel if t.runs else "(no work)", f"{ns / 1e6:.4f}", f"{100 * ns / total:.1f}")
    _console.print(table)
