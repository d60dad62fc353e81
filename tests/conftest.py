"""Tests import the working copy: the folders of the namespace come first on the path, installed or not."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
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


# What CI installs must be there: with this variable set, a skip for want of a tool or library is a failure.
REQUIRE_ALL = os.environ.get("RILLET_REQUIRE_ALL_TESTS") == "1"
WANT = re.compile(r"(Skipped: )?(needs |could not import|no native library|the (native )?library is not built)")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A slow test may not be skipped at all, another not for something that is missing."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if REQUIRE_ALL and report.skipped and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
        if item.get_closest_marker("slow") or WANT.match(reason):
            report.outcome = "failed"
            report.longrepr = f"RILLET_REQUIRE_ALL_TESTS=1, and this test was skipped: {reason}"
