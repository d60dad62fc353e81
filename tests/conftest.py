"""Tests import the working copy: the folders of the namespace come first on the path, installed or not."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
for folder in ("export", "quant", "train", "lite", "shared_ops"):
    sys.path.insert(0, str(ROOT / folder))


@pytest.fixture(autouse=True)
def same_random_numbers(request: pytest.FixtureRequest) -> None:
    """A module's generator RNG starts anew for each test, so that no test hangs on those before it."""
    generator = getattr(request.module, "RNG", None)
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = np.random.default_rng(0).bit_generator.state
