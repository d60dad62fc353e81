"""Checkpoints: every variable and the step in one file, written whole or not at all.

The file: the magic `RLTCKPT1`, the length of a JSON manifest (uint64, little-endian), its CRC-32 (uint32), four zero
bytes, the manifest, then each tensor's bytes at a multiple of 64 from the file's start. The manifest names for every
tensor dtype, shape, offset and CRC-32.
"""

from __future__ import annotations

import difflib
import json
import math
import os
import re
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from rillet.lite.whole_file import whole_file
from rillet.shared_ops.errors import RilletError
from rillet.shared_ops.types import DTYPE_NAMES, DTYPES, Array
from rillet.train.session import Session
from rillet.train.variables import Variable

_MAGIC = b"RLTCKPT1"
_HEADER = struct.Struct("<8sQI4x")
_ALIGNMENT = 64
_Entry = tuple[np.dtype[Any], tuple[int, ...], int, int]  # dtype, shape, offset, checksum


class CheckpointError(RilletError, ValueError):
    """A checkpoint is damaged, or does not fit the graph; the message lists everything that is wrong."""


class Saver:
    """Saves and restores the variables of a session, its step with them.

    variables: which (default: all of the graph). keep_max: how many checkpoints of one prefix are kept (None: all).

    Example:
        saver = Saver(keep_max=3)
        saver.save(session, "run/model")        # run/model-1200.ckpt
        saver.restore(session, saver.latest("run/model"))
    """

    def __init__(self, variables: Iterable[Variable] | None = None, keep_max: int | None = 5) -> None:
        if keep_max is not None and keep_max < 1:
            raise CheckpointError(f"keep_max is {keep_max}: expected 1 or more, or None to keep all.")
        self._variables = None if variables is None else list(variables)
        self.keep_max = keep_max

    def save(self, session: Session, prefix: str | os.PathLike[str]) -> Path:
        """Writes `<prefix>-<step>.ckpt` and removes those of the lowest steps beyond keep_max, but never the one just
        written (a run that starts anew beside older files begins with low steps). Returns the path."""
        path = Path(f"{os.fspath(prefix)}-{session.step}.ckpt")
        path.parent.mkdir(parents=True, exist_ok=True)
        tensors = {v.name: session.get(v) for v in self._chosen(session)}
        write_checkpoint(path, tensors, {"step": session.step, "seed": session.graph.seed})
        if self.keep_max is not None:
            others = [p for p in checkpoints(prefix) if p != path]
            for old in others[: max(len(others) + 1 - self.keep_max, 0)]:
                old.unlink(missing_ok=True)  # another process may rotate the same prefix
        return path

    def latest(self, prefix: str | os.PathLike[str]) -> Path | None:
        """The checkpoint of the highest step under a prefix, or None."""
        found = checkpoints(prefix)
        return found[-1] if found else None

    def restore(self, session: Session, path: str | os.PathLike[str]) -> None:
        """Sets every variable and the session's step. Raises CheckpointError, with all that does not fit and nothing
        changed, where names, shapes or dtypes differ or the file is damaged."""
        variables = {v.name: v for v in self._chosen(session)}
        tensors, about = read_checkpoint(path)
        if faults := _mismatches(variables, tensors):
            raise CheckpointError(f"{os.fspath(path)} does not fit the graph:\n  " + "\n  ".join(faults))
        for name, v in variables.items():
            session.set(v, tensors[name])
        session.step = about["step"]

    def _chosen(self, session: Session) -> list[Variable]:
        return session.graph.variables if self._variables is None else self._variables


def checkpoints(prefix: str | os.PathLike[str]) -> list[Path]:
    """The checkpoints `<prefix>-<step>.ckpt`, by step."""
    base = Path(prefix)
    pattern = re.compile(re.escape(base.name) + r"-(\d+)\.ckpt\Z")
    found = [(int(m[1]), p) for p in base.parent.glob("*.ckpt") if (m := pattern.match(p.name))]
    return [p for _, p in sorted(found)]


def _mismatches(variables: dict[str, Variable], tensors: dict[str, Array]) -> list[str]:
    extra = [n for n in tensors if n not in variables]
    faults = []
    for name, v in variables.items():
        if name not in tensors:
            close = difflib.get_close_matches(name, extra, 1) or [
                n for n in extra if tensors[n].shape == v.shape and tensors[n].dtype == v.dtype
            ]
            hint = f" Did the checkpoint call it {close[0]!r}?" if close else ""
            faults.append(f"{name!r} is not in the checkpoint.{hint}")
        elif tensors[name].shape != v.shape:
            faults.append(f"{name!r} has shape {v.shape}, in the checkpoint {tensors[name].shape}.")
        elif tensors[name].dtype != v.dtype:
            faults.append(f"{name!r} has dtype {v.dtype}, in the checkpoint {tensors[name].dtype}.")
    return faults + [f"{name!r} is in the checkpoint and not in the graph." for name in extra]


def write_checkpoint(path: Path, tensors: dict[str, Array], about: dict[str, Any]) -> None:
    """Writes a checkpoint of `tensors` by name, whole or not at all; `about` goes into its manifest."""
    entries, offset = {}, 0
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        entries[name] = {
            "dtype": DTYPE_NAMES[array.dtype],
            "shape": list(array.shape),
            "offset": offset,  # from the first tensor, since the manifest's own length is not known yet
            "crc32": zlib.crc32(raw.data),
        }
        offset += -(-raw.nbytes // _ALIGNMENT) * _ALIGNMENT
    manifest = json.dumps({"format": 1, **about, "tensors": entries}, separators=(",", ":")).encode()
    manifest += b" " * (-(len(manifest) + _HEADER.size) % _ALIGNMENT)
    with whole_file(path) as file:
        file.write(_HEADER.pack(_MAGIC, len(manifest), zlib.crc32(manifest)) + manifest)
        for array in tensors.values():
            raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            file.write(raw.data)
            file.write(b"\0" * (-raw.nbytes % _ALIGNMENT))


def read_checkpoint(path: str | os.PathLike[str]) -> tuple[dict[str, Array], dict[str, Any]]:
    """The tensors by name, and the manifest. Raises CheckpointError where a byte is not what was written."""
    where = os.fspath(path)
    with open(path, "rb") as file:
        header = file.read(_HEADER.size)
        if len(header) < _HEADER.size or header[:8] != _MAGIC:
            raise CheckpointError(f"{where} is no checkpoint.")
        _, size, crc = _HEADER.unpack(header)
        remaining = os.fstat(file.fileno()).st_size - _HEADER.size
        manifest = file.read(size) if size <= remaining else b""
        if len(manifest) != size or zlib.crc32(manifest) != crc:
            raise CheckpointError(f"{where} is damaged: its manifest does not match its checksum.")
        about, entries = _parse(where, manifest, remaining - size)
        start, tensors = _HEADER.size + size, {}
        for name, (dtype, shape, offset, expected) in entries.items():
            array = np.empty(shape, dtype)
            raw = array.reshape(-1).view(np.uint8)
            file.seek(start + offset)
            if file.readinto(raw.data) != raw.nbytes or zlib.crc32(raw.data) != expected:
                raise CheckpointError(f"{where} is damaged: {name!r} does not match its checksum.")
            tensors[name] = array
        return tensors, about


def _parse(where: str, manifest: bytes, room: int) -> tuple[dict[str, Any], dict[str, _Entry]]:
    """The manifest, and (dtype, shape, offset, checksum) by name: nothing in it is believed before it is checked."""
    entries: dict[str, _Entry] = {}
    try:
        about = json.loads(manifest)
        about["step"] = int(about["step"])
        for name, e in about["tensors"].items():
            entry = DTYPES[e["dtype"]], tuple(int(d) for d in e["shape"]), int(e["offset"]), int(e["crc32"])
            dtype, shape, offset, _ = entry
            if min(shape, default=0) < 0 or not 0 <= offset <= room - math.prod(shape) * dtype.itemsize:
                raise CheckpointError(
                    f"{where} is damaged: {name!r} of shape {shape} at {offset} reaches beyond the file."
                )
            entries[name] = entry
    except CheckpointError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        raise CheckpointError(f"{where} is damaged: its manifest is not one of a checkpoint ({error!r}).") from None
    return about, entries
