"""What a model file carries beside its Program: labels, preprocessing, who made it. All of it is text."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from rillet.shared_ops.errors import RilletError, describe
from rillet.shared_ops.program import Program

# {"scale": 1 / 255, "mean": [...], "std": [...]}: (x * scale - mean) / std, as Interpreter.preprocess applies it.
Rule = Mapping[str, Any]
_RULE_KEYS = {"scale", "mean", "std"}


class ExportError(RilletError, ValueError):
    """The model cannot be exported as asked; no file was written."""


def make_metadata(
    program: Program, labels: Sequence[str] | None, preprocessing: Rule | Mapping[str, Rule] | None
) -> dict[str, str]:
    """The metadata of a model file; refuses labels and rules that do not fit the Program."""
    found = {"producer": f"rillet {_version()}"}
    if labels is not None:
        _check_labels(program, labels)
        found["labels"] = json.dumps(list(labels))
    if preprocessing is not None:
        found["preprocessing"] = json.dumps(_rules(program, preprocessing))
    return found


def _version() -> str:
    try:
        return version("rillet")
    except PackageNotFoundError:
        return "from a working copy"


def _check_labels(program: Program, labels: Sequence[str]) -> None:
    classes = {program.values[n].type.shape[-1] for n in program.outputs if program.values[n].type.rank}
    sizes = sorted(d for d in classes if isinstance(d, int))
    if sizes and len(labels) not in sizes:
        raise ExportError(describe("labels", len(labels), f"one a class, {' or '.join(map(str, sizes))}"))


def _rules(program: Program, given: Rule | Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Rules by input name; one rule alone is that of the only input."""
    if set(given) <= _RULE_KEYS and len(program.inputs) == 1:
        given = {program.inputs[0]: given}
    if unknown := sorted(set(given) - set(program.inputs)):
        hint = f"A rule has the keys {', '.join(sorted(_RULE_KEYS))}."
        raise ExportError(describe("preprocessing", unknown, f"names of inputs, {program.inputs}", hint))
    rules = {}
    for name, rule in given.items():
        if not isinstance(rule, Mapping) or (unknown := sorted(set(rule) - _RULE_KEYS)):
            raise ExportError(describe(f"preprocessing of {name!r}", rule, f"the keys {sorted(_RULE_KEYS)}"))
        rules[name] = {key: np.asarray(value, np.float64).tolist() for key, value in rule.items()}
    return rules
