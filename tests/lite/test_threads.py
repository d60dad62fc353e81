"""Threads that the system does not give, and a fork after use: the same results, no end of the process, no hang."""

from __future__ import annotations

import os
import resource
import signal

import numpy as np
from sample_models import F32, apply

from rillet.lite import Interpreter, write_model
from rillet.shared_ops.program import Program
from rillet.shared_ops.types import TensorType

X = np.ones((32, 512), np.float32)


def model() -> bytes:
    p = Program()
    p.outputs = [apply(p, "Exp", p.add_input("x", TensorType(F32, ("n", 512))))]
    return write_model(p)


def _in_child(interpreter: Interpreter | None) -> bool:
    if interpreter is None:  # room for a few stacks of 8 MB, and not for a thousand
        used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + (256 << 20), resource.RLIM_INFINITY))
        interpreter = Interpreter(model(), threads=1024)
        resource.setrlimit(resource.RLIMIT_AS, (used + (512 << 20), resource.RLIM_INFINITY))
    return bool(np.array_equal(interpreter(X), Interpreter(model())(X)))  # and it is freed at the end


def _succeeds(interpreter: Interpreter | None) -> bool:
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        ok = False
        try:
            ok = _in_child(interpreter)
            if interpreter is not None:
                interpreter._context.__del__()  # the frame of the parent holds it still
        finally:
            os._exit(0 if ok else 1)
    return os.waitpid(pid, 0)[1] == 0


def test_fewer_threads_than_asked_for_give_the_same() -> None:
    assert _succeeds(None)


def test_a_forked_child_runs_and_frees_what_its_parent_made() -> None:
    interpreter = Interpreter(model(), threads=3)
    interpreter(X)
    assert _succeeds(interpreter)
