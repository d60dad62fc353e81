"""Keeps the folders apart: who may import whom, how long a file may grow, and the lists that must agree."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAY_IMPORT = {
    "shared_ops": set(),
    "lite": {"shared_ops"},
    "quant": {"lite", "shared_ops"},
    "train": {"lite", "shared_ops"},
    "export": {"lite", "shared_ops", "quant", "train"},
}
# What `import rillet.lite` may load from outside (typer and rich serve the command line only).
LITE_MAY_IMPORT = {"numpy", "flatbuffers", "rillet"}
LINE_LIMIT = 400

PYTHON = [p for d in MAY_IMPORT for p in sorted((ROOT / d).rglob("*.py")) if p.name != "_model_fbs.py"]
NATIVE = [p for d in MAY_IMPORT for s in ("*.cc", "*.h") for p in sorted((ROOT / d).rglob(s)) if "build" not in p.parts]


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names.update(a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(str(node.module))
            if node.module == "rillet":
                names.update(f"rillet.{a.name}" for a in node.names)
    return names


@pytest.mark.parametrize("path", PYTHON, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_follow_the_arrows(path: Path) -> None:
    home = path.relative_to(ROOT).parts[0]
    ours = {n.split(".")[1] for n in imported(path) if n.startswith("rillet.")}
    assert not ours - MAY_IMPORT[home] - {home}


@pytest.mark.parametrize("path", PYTHON + NATIVE, ids=lambda p: str(p.relative_to(ROOT)))
def test_files_stay_short(path: Path) -> None:
    lines = path.read_text().count("\n")
    assert lines <= LINE_LIMIT, f"{lines} lines: split it, one file for one purpose"


def test_no_vague_module_names() -> None:
    banned = {"utils", "helpers", "misc", "common", "manager", "handler", "data"}
    assert not [p for p in PYTHON if p.stem in banned]


def test_namespace_has_no_root() -> None:
    assert not list(ROOT.glob("*/rillet/__init__.py"))


def test_pyproject_lists_the_packages_twice_alike() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    poetry = set(re.findall(r'include = "rillet", from = "(\w+)"', text))
    wheel = set(re.findall(r'"rillet/(\w+)" = "\w+/rillet/\w+"', text))
    assert poetry == wheel == set(MAY_IMPORT)


def test_libraries_do_not_print() -> None:
    for path in PYTHON:
        if path.name == "cli.py":
            continue
        calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
        assert not [n for n in calls if isinstance(n.func, ast.Name) and n.func.id == "print"], path
