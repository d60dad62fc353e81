"""The examples in the ops' documentation run, and give what they say."""

from __future__ import annotations

import doctest

import numpy as np
import pytest

import rillet.train  # noqa: F401 - its state ops are documented too
from rillet.shared_ops import functions
from rillet.shared_ops.op import Op
from rillet.shared_ops.registry import all_ops

NAMES = {name: getattr(functions, name) for name in dir(functions)}


@pytest.mark.parametrize("op", [op for op in all_ops() if ">>>" in op.doc], ids=lambda op: op.name)
def test_example(op: Op) -> None:
    example = doctest.DocTestParser().get_doctest(op.doc, {"np": np, **NAMES}, op.name, None, None)
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0
