"""Every value of a Program from feeds: by the engine where it has all the kernels, else by the references."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from rillet.lite.engine import Context, Model
from rillet.lite.library import is_available
from rillet.lite.status import ModelError, Status
from rillet.lite.writer import write_model
from rillet.quant.calibrate import RunAll
from rillet.shared_ops.program import Program, run_reference
from rillet.shared_ops.types import Array

_log = logging.getLogger(__name__)


def run_all(program: Program, threads: int = 1) -> RunAll:
    """A function from feeds to every value by name."""
    engine = run_engine(program, threads)
    return engine if engine is not None else lambda feeds: run_reference(program, feeds, keep=True)


def run_engine(program: Program, threads: int = 1) -> RunAll | None:
    """The same in the engine alone; None where the library is absent or lacks a kernel."""
    if not is_available():
        return None
    try:
        context = Context(Model(write_model(program)), threads)
    except ModelError as error:
        if error.status is not Status.UNKNOWN_OP:
            raise
        _log.warning("running by the references, slowly: %s", error)
        return None
    return run_context(context)


def run_context(context: Context) -> RunAll:
    """The same for a context, whose values are all kept from now on."""
    context.keep_all()
    names = [info.name for info in context.inputs]

    def run(feeds: Mapping[str, Array]) -> Mapping[str, Array]:
        for i, name in enumerate(names):
            if context.inputs[i].shape != feeds[name].shape:
                context.resize(i, feeds[name].shape)
        context.prepare()
        for i, name in enumerate(names):
            context.input(i)[...] = feeds[name]
        context.run()
        return context.tensors()

    return run
