"""Tests import the working copy: the folders of the namespace come first on the path, installed or not."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
for folder in ("export", "quant", "train", "lite", "shared_ops"):
    sys.path.insert(0, str(ROOT / folder))
