"""The examples in the docstrings of the trainer run and print what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import rillet.train

MODULES = sorted(m.name for m in pkgutil.walk_packages(rillet.train.__path__, "rillet.train."))


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
