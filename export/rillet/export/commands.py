"""What `rillet export` and `rillet verify` do. Imported when one of them is called."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from rillet.export.metadata import ExportError
from rillet.export.pipeline import export as export_model
from rillet.export.verify import Source
from rillet.export.verify import verify as verify_models
from rillet.lite.reader import read_model
from rillet.lite.single import apply_native
from rillet.shared_ops.errors import describe
from rillet.shared_ops.passes import inference_passes
from rillet.shared_ops.program import Program
from rillet.shared_ops.types import Array
from rillet.train import Graph, Session, freeze
from rillet.train.saver import Saver

_console = Console(soft_wrap=True, highlight=False, markup=False)


def export(
    source: str,
    output: Path,
    checkpoint: Path | None,
    int8: bool,
    calibration: Path | None,
    observer: str,
    labels: Path | None,
    skip: list[str],
    report: bool,
) -> None:
    """Writes a model file from a graph's script or from a float model."""
    result = export_model(
        load_program(source, checkpoint),
        path=output,
        quantize="int8" if int8 else None,
        calibration=None if calibration is None else load_arrays(calibration),
        observer=observer,
        labels=None if labels is None else _file(labels).read_text().splitlines(),
        skip=skip,
    )
    _console.print(str(result) if report else str(result).split("\n")[0])


def verify(
    first: str, second: Path | None, input: Path | None, checkpoint: Path | None, tolerance: float, limit: int
) -> bool:
    """Shows the comparison; says whether all is equal."""
    if input is None:
        raise ExportError("nothing to run on: give --input with a .npy or .npz file.")
    left: Source = first
    if ".py:" in first or checkpoint is not None:
        left, _ = inference_passes(load_program(first, checkpoint), evaluate=apply_native)
    result = verify_models(left, second, load_arrays(input), tolerance)
    _console.print(str(result))
    for difference in result.differences[1:limit]:
        _console.print(f"  {difference}")
    if result.skipped:
        _console.print(f"not compared (in one of the two only): {', '.join(result.skipped[:limit])}")
    return result.equal


def load_program(source: str, checkpoint: Path | None) -> Program:
    """The Program of `FILE.py:FUNCTION` with a checkpoint's variables, or of a model file."""
    if ".py:" not in source:
        if checkpoint is not None:
            raise ExportError("--checkpoint goes with FILE.py:FUNCTION; a model file holds its weights.")
        program = read_model(_file(Path(source)))
        if any(v.quant is not None for v in program.values.values()):
            raise ExportError(f"{source} is an int8 model already; export starts from a float one.")
        return program
    graph, inputs, outputs = _build(source)
    session = Session(graph)
    if checkpoint is not None:
        Saver().restore(session, _file(checkpoint))
    elif graph.variables:
        raise ExportError(f"the graph of {source} has {len(graph.variables)} variables: give --checkpoint.")
    return freeze(session, inputs, outputs)


def _build(source: str) -> tuple[Graph, Any, Any]:
    """Calls FUNCTION of FILE.py under a new default graph."""
    path, _, name = source.rpartition(":")
    spec = importlib.util.spec_from_file_location("rillet_export_source", _file(Path(path)))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(Path(path).resolve().parent))
    try:
        spec.loader.exec_module(module)
        function = getattr(module, name, None)
        if not callable(function):
            raise ExportError(f"{path} has no function {name!r}.")
        with Graph().as_default():
            result = function()
    finally:
        sys.path.pop(0)
    if not (isinstance(result, tuple) and len(result) == 3 and isinstance(result[0], Graph)):
        raise ExportError(describe(f"result of {source}", type(result).__name__, "(graph, inputs, outputs)"))
    return result


def load_arrays(path: Path) -> Array | dict[str, Array]:
    """One array of a .npy file, or the arrays of a .npz file by name."""
    try:
        loaded = np.load(_file(path), allow_pickle=False)
    except (ValueError, EOFError, OSError) as error:
        raise ExportError(f"{path} is neither a .npy nor a .npz file: {error}") from None
    return loaded if isinstance(loaded, np.ndarray) else {name: loaded[name] for name in loaded.files}


def _file(path: Path) -> Path:
    if not path.is_file():
        raise ExportError(f"no such file: {path}.")
    return path
