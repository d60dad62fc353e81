"""Writing a file whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rillet.lite.whole_file import whole_file


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # as /dev/null: a rename over it would put a file in its place
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(FileExistsError, match="no file"), whole_file(tmp_path / name) as file:
            file.write(b"model")
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "pipe"]
