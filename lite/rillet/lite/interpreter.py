"""A model file as a function of arrays. Floats in and out, also of an int8 model, unless raw is asked for."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np

from rillet.lite.engine import Context, Memory, Model, OpTime, TensorInfo
from rillet.lite.status import ModelError, Status
from rillet.shared_ops.quantize import dequantize, quantize
from rillet.shared_ops.types import Array, QuantParams


class Interpreter:
    """Runs a model file. One run at a time: concurrent callers wait for each other; for more, one Interpreter a thread.

    Args:
        source: a path, or the bytes of a model.
        threads: how many threads a run may use; results do not depend on it.

    Raises:
        ModelError: the file is missing, damaged, or needs a kernel that this library lacks.

    Example:
        >>> from rillet.lite.writer import write_model
        >>> from rillet.shared_ops.program import Program
        >>> from rillet.shared_ops.types import TensorType
        >>> program = Program()
        >>> x = program.add_input("x", TensorType(np.dtype(np.float32), ("batch", 2)))
        >>> program.outputs = [x]
        >>> interpreter = Interpreter(write_model(program))
        >>> interpreter(np.ones((1, 2), np.float32))
        array([[1., 1.]], dtype=float32)
    """

    def __init__(self, source: str | os.PathLike[str] | bytes, threads: int = 1) -> None:
        self.model = Model(source)
        self._context = Context(self.model, threads)
        self.metadata = self.model.metadata
        self._inputs = {i.name: (n, i) for n, i in enumerate(self._context.inputs)}
        self._shapes = {name: i.shape for name, (_, i) in self._inputs.items()}  # as they are set now
        self._outputs: list[TensorInfo] | None = None  # as they are for these shapes
        self._lock = threading.RLock()

    @property
    def inputs(self) -> list[TensorInfo]:
        """Name, dtype and shape of each input; -1 is a dimension that each run may choose."""
        return [info for _, info in self._inputs.values()]

    @property
    def outputs(self) -> list[TensorInfo]:
        """Name, dtype and shape of each output, as far as it is known now."""
        return self._context.outputs

    @property
    def labels(self) -> list[str]:
        """Names of the classes, if the model carries them (metadata key "labels", a JSON list)."""
        return [str(label) for label in self._json("labels", [])]

    def _json(self, key: str, default: Any) -> Any:
        try:
            return json.loads(self.metadata.get(key) or json.dumps(default))
        except ValueError as error:
            raise ModelError(Status.MALFORMED, f"metadata {key!r} is not JSON: {error}") from None

    def preprocess(self, image: Array, name: str | None = None) -> Array:
        """Raw values (pixels 0..255, say) as the model wants them: (x * scale - mean) / std.

        scale, mean and std come from the metadata key "preprocessing": a JSON object by input name. Without it, values
        are only cast to float32. A batch axis is added where the input has one more axis than `image`.
        """
        name = name or next(iter(self._inputs))
        rule = self._json("preprocessing", {}).get(name, {})
        x = np.asarray(image).astype(np.float32) * np.float32(rule.get("scale", 1.0))
        x = (x - np.asarray(rule.get("mean", 0.0), np.float32)) / np.asarray(rule.get("std", 1.0), np.float32)
        rank = len(self._info(name).shape)
        if x.ndim == rank - 2:  # a grey image for an input with batch and channel axes
            x = x[..., None]
        return x[None] if x.ndim == rank - 1 else x

    def __call__(self, *arrays: Array, raw: bool = False) -> Any:
        """Runs on inputs in the model's order. Returns the output, or a tuple if there are several."""
        if len(arrays) != len(self._inputs):
            raise _bad(f"number of inputs: got {len(arrays)}, expected {len(self._inputs)} ({', '.join(self._inputs)})")
        results = tuple(self.run(dict(zip(self._inputs, arrays)), raw=raw).values())
        return results[0] if len(results) == 1 else results

    def run(self, feeds: Mapping[str, Array], raw: bool = False) -> dict[str, Array]:
        """Runs on inputs by name; returns outputs by name, as new arrays.

        raw: quantized inputs and outputs are passed as they are; otherwise they are converted from and to float32.

        Raises:
            ModelError: an input is missing, unknown, or of a wrong dtype or shape; a run met data it cannot take.
        """
        with self._lock:
            self._feed(feeds, raw)
            self._context.run()
            results = {}
            self._outputs = self._outputs or self._context.outputs
            for i, info in enumerate(self._outputs):
                y = self._context.output(i)
                quant = None if raw else _quant(info)
                results[info.name] = y.copy() if quant is None else dequantize(y, quant)
            return results

    def _feed(self, feeds: Mapping[str, Array], raw: bool) -> None:
        if unknown := [n for n in feeds if n not in self._inputs]:
            raise _bad(f"unknown input {unknown[0]!r}. The model has: {', '.join(self._inputs)}")
        if missing := [n for n in self._inputs if n not in feeds]:
            raise _bad(f"missing input {missing[0]!r}. The model has: {', '.join(self._inputs)}")
        ready = {name: self._convert(name, np.asarray(x), raw) for name, x in feeds.items()}
        for name, x in ready.items():
            if x.shape != self._shapes[name]:
                self._context.resize(self._inputs[name][0], x.shape)
                self._shapes[name], self._outputs = x.shape, None
        for name, x in ready.items():
            self._context.input(self._inputs[name][0])[...] = x

    def _info(self, name: str) -> TensorInfo:
        if name not in self._inputs:
            raise _bad(f"unknown input {name!r}. The model has: {', '.join(self._inputs)}")
        return self._inputs[name][1]

    def _convert(self, name: str, x: Array, raw: bool) -> Array:
        """The feed as the engine takes it; refuses what would need a guess."""
        info = self._info(name)
        fits = len(x.shape) == len(info.shape) and all(w in (-1, g) for g, w in zip(x.shape, info.shape))
        if not fits:
            expected = ", ".join("?" if d < 0 else str(d) for d in info.shape)
            raise _bad(f"input {name!r}: got shape {list(x.shape)}, expected [{expected}]")
        quant = _quant(info)
        if quant is not None and not raw:
            if x.dtype.kind != "f":
                raise _bad(f"input {name!r}: got {x.dtype}, expected floats (or raw=True and {_raw_rule(info)})")
            if not np.all(np.isfinite(x)):
                raise _bad(f"input {name!r}: holds NaN or infinity, which no quantized value stands for")
            return quantize(x, quant) if info.dtype == np.int8 else _quantize_unsigned(x, quant)
        if x.dtype == info.dtype:
            return x
        widens = x.dtype.kind == info.dtype.kind and (x.dtype.kind == "f" or np.can_cast(x.dtype, info.dtype))
        if raw or not widens:
            rule = f", {_raw_rule(info)}" if quant is not None else ""
            hint = f" Convert it with .astype({info.dtype.name!r})" if quant is None else ""
            raise _bad(f"input {name!r}: got {x.dtype}, expected {info.dtype}{rule}.{hint}")
        return x.astype(info.dtype)

    def profile(self, feeds: Mapping[str, Array] | None = None, runs: int = 10, raw: bool = False) -> list[OpTime]:
        """Times every operation over `runs` runs, on `feeds` (or on what the inputs hold), in the order they run in."""
        with self._lock:
            if feeds is not None:
                self._feed(feeds, raw)
            self._context.run()
            self._context.profile(True)
            for _ in range(runs):
                self._context.run()
            times = self._context.times()
            self._context.profile(False)
            return times

    def memory(self) -> Memory:
        """Bytes held beside the model file, for the shapes of the last run."""
        return self._context.memory()


def _bad(text: str) -> ModelError:
    return ModelError(Status.BAD_ARGUMENT, text)


def _quant(info: TensorInfo) -> QuantParams | None:
    return None if info.scale is None else QuantParams.per_tensor(info.scale, info.zero_point)


def _raw_rule(info: TensorInfo) -> str:
    return f"{info.dtype} where real = {info.scale:g} * (q - {info.zero_point})"


def _quantize_unsigned(x: Array, q: QuantParams) -> Array:
    scaled = np.rint(x.astype(np.float32) / q.scale[0]) + np.float32(q.zero_point)
    return np.clip(scaled, 0, 255).astype(np.uint8)
