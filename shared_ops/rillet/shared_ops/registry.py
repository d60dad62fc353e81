"""Collects the ops. Every module of `rillet.shared_ops.ops` is found by walking the folder: no list to edit by hand."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import pkgutil
import sys

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.op import Op

_OPS: dict[str, Op] = {}
_HOME: dict[str, str] = {}  # the module that defined each op
# Packages whose modules define ops. The trainer's is walked only where it is installed: a device has none.
_PACKAGES = ["rillet.shared_ops.ops"]
_walked: set[str] = set()


def define_op(op: Op) -> Op:
    """Makes an op known under its name. Raises OpError if another module has taken the name."""
    home = str(sys._getframe(1).f_globals["__name__"])
    if _HOME.get(op.name, home) != home:
        raise OpError(op.name, "defined twice", got=home, expected=f"only {_HOME[op.name]}")
    _OPS[op.name], _HOME[op.name] = op, home
    return op


def add_op_package(package: str) -> None:
    """Adds a package whose modules define further ops (the trainer's state ops; a user's own)."""
    if package not in _PACKAGES:
        _PACKAGES.append(package)


def get_op(name: str) -> Op:
    """The record of an op. Raises OpError that lists the closest names where there is none."""
    _discover()
    if name not in _OPS:
        close = difflib.get_close_matches(name, _OPS, n=5)
        raise OpError(name, "no op of this name", hint=f"Did you mean {', '.join(close)}?" if close else "")
    return _OPS[name]


def all_ops() -> list[Op]:
    """Every known op, by name."""
    _discover()
    return [_OPS[name] for name in sorted(_OPS)]


def is_exportable(op: Op) -> bool:
    """An op is exportable exactly when its record lives in shared_ops."""
    return _HOME[op.name].startswith("rillet.shared_ops.")


def _discover() -> None:
    for package in _PACKAGES:
        if package in _walked:
            continue
        _walked.add(package)  # at once: a module of the package may ask for ops itself
        try:
            for module in pkgutil.iter_modules(importlib.import_module(package).__path__):
                importlib.import_module(f"{package}.{module.name}")
        except BaseException:
            _walked.discard(package)  # or the next call would find half the ops, without a word
            raise
