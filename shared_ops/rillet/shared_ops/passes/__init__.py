"""Passes: pure functions from Program to Program that make it smaller and faster.

The trainer's inference mode and export run the same ones, so that both compute the same bits.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from rillet.shared_ops.errors import ProgramError
from rillet.shared_ops.passes.drop_identities import drop_identities
from rillet.shared_ops.passes.fold_batch_norm import fold_batch_norm
from rillet.shared_ops.passes.fold_constants import Evaluate, fold_constants
from rillet.shared_ops.passes.fuse_activation import fuse_activation
from rillet.shared_ops.passes.fuse_bias import fuse_bias
from rillet.shared_ops.passes.merge_equal_subexpressions import merge_equal_subexpressions
from rillet.shared_ops.program import Program

__all__ = [
    "Evaluate",
    "PassEntry",
    "Report",
    "drop_identities",
    "fold_batch_norm",
    "fold_constants",
    "fuse_activation",
    "fuse_bias",
    "inference_passes",
    "merge_equal_subexpressions",
]

_log = logging.getLogger(__name__)

# In this order: what is dropped or computed first brings the ops together that are fused after it.
_ORDER: tuple[Callable[..., Program], ...] = (
    drop_identities,
    fold_constants,
    fuse_bias,
    fold_batch_norm,
    fuse_activation,
    merge_equal_subexpressions,
)


@dataclass(frozen=True)
class PassEntry:
    """What one pass did: how long it took, how many applications it met and left, and each change in a sentence."""

    name: str
    seconds: float
    before: int
    after: int
    changes: tuple[str, ...]

    def __str__(self) -> str:
        head = f"{self.name}: {self.before} -> {self.after} operations, {self.seconds * 1e3:.1f} ms"
        return "\n".join([head, *(f"  {c}" for c in self.changes)])


@dataclass(frozen=True)
class Report:
    """The entries of the passes that ran, in order; `str` shows every change."""

    entries: tuple[PassEntry, ...] = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self.entries))


def inference_passes(
    program: Program, evaluate: Evaluate | None = None, skip: Iterable[str] = ()
) -> tuple[Program, Report]:
    """Runs every pass over an inference Program (frozen: weights are constants); the given Program stays as it is.

    Args:
        evaluate: computes one op on constants. Pass the engine where bits matter; the default is the references.
        skip: names of passes to leave out.

    Raises ProgramError for a name in `skip` that is no pass.

    Example:
        >>> import numpy as np
        >>> from rillet.shared_ops.registry import get_op
        >>> from rillet.shared_ops.types import TensorType
        >>> p = Program()
        >>> x = p.add_input("x", TensorType(np.dtype(np.float32), (2,)))
        >>> (y,) = p.apply(get_op("Identity"), [x])
        >>> p.outputs = list(p.apply(get_op("Neg"), [y]))
        >>> smaller, report = inference_passes(p)
        >>> [a.op.name for a in smaller]
        ['Neg']
    """
    program, skip = program.copy(), set(skip)
    known = [p.__name__ for p in _ORDER]
    if unknown := sorted(skip - set(known)):
        raise ProgramError(f"no pass named {unknown[0]!r}: got {unknown}, expected names among {known}.")
    entries = []
    for one in _ORDER:
        if one.__name__ in skip:
            continue
        changes: list[str] = []
        run = partial(one, evaluate=evaluate) if one is fold_constants else one
        start, before = time.perf_counter(), len(program.applications)
        program = run(program, note=changes.append)
        seconds = time.perf_counter() - start
        entries.append(PassEntry(one.__name__, seconds, before, len(program.applications), tuple(changes)))
        _log.debug("%s", entries[-1])
    program.check()
    return program, Report(tuple(entries))
