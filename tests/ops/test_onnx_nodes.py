"""The outside yardstick for meaning: every ONNX node test of an op that rillet has, by reference and native kernel."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from onnx_translators import Node, Unsupported, discover

from rillet.shared_ops import eager
from rillet.shared_ops.registry import get_op
from rillet.shared_ops.types import DTYPES, type_of

TRANSLATORS = discover()


def node_cases() -> list[Any]:
    from onnx.backend.test.loader import load_model_tests

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = load_model_tests(kind="node")
    return [c for c in cases if len(c.model.graph.node) == 1 and c.model.graph.node[0].op_type in TRANSLATORS
            and c.model.graph.node[0].domain in ("", "ai.onnx") and plain(c)]  # fmt: skip


def plain(case: Any) -> bool:
    """Whether all its data are dense arrays of dtypes that rillet has."""
    known = set(DTYPES.values())
    return all(isinstance(a, np.ndarray) and a.dtype in known
               for inputs, outputs in case.data_sets for a in (*inputs, *outputs))  # fmt: skip


CASES = node_cases()


def by_reference(name: str, *inputs: Any, **attrs: Any) -> Any:
    """The reference, with infer held against it."""
    op, arrays = get_op(name), eager.as_arrays(inputs)
    record = op.make_attrs(attrs)
    types = op.infer_types(record, tuple(None if x is None else type_of(x) for x in arrays))
    results = op.compute(np, record, *arrays)
    for got, want in zip(results, types, strict=True):
        assert got.dtype == want.dtype and all(w in (None, g) for w, g in zip(want.shape, got.shape, strict=True))
    return results if len(results) != 1 else results[0]


def by_native(name: str, *inputs: Any, **attrs: Any) -> Any:
    """The native kernel where there is one for this dtype, else the reference."""
    from rillet.lite.single import apply_native

    op, arrays = get_op(name), eager.as_arrays(inputs)
    results = apply_native(op, op.make_attrs(attrs), arrays)
    if results is NotImplemented:
        return by_reference(name, *inputs, **attrs)
    return results if len(results) != 1 else results[0]


def node_inputs(case: Any, arrays: list[Any]) -> list[Any]:
    graph = case.model.graph
    given = iter(arrays)
    values = {i.name: next(given) for i in graph.input}
    return [values[name] if name else None for name in graph.node[0].input]


@pytest.mark.parametrize("emit", [by_reference, by_native])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_node(case: Any, emit: Any) -> None:
    node = Node(case.model.graph.node[0], case.model.opset_import[0].version, emit)
    for arrays, expected in case.data_sets:
        try:
            got = TRANSLATORS[node.proto.op_type](node, *node_inputs(case, list(arrays)))
        except Unsupported as reason:
            pytest.skip(str(reason))
        got = got if isinstance(got, tuple) else (got,)
        got = tuple(g for g, name in zip(got, node.proto.output) if name)
        for g, e in zip(got, expected, strict=True):
            assert g.dtype == e.dtype and g.shape == e.shape
            np.testing.assert_allclose(g, e, rtol=case.rtol, atol=max(case.atol, 1e-6))


def test_skips_are_few() -> None:
    """What is left out stays the exception: for every op with node tests, at least one of them runs."""
    ran: Counter[str] = Counter()
    for case in CASES:
        node = Node(case.model.graph.node[0], case.model.opset_import[0].version, by_reference)
        arrays, _ = case.data_sets[0]
        try:
            TRANSLATORS[node.proto.op_type](node, *node_inputs(case, list(arrays)))
            ran[node.proto.op_type] += 1
        except Unsupported:
            continue
    tested = {c.model.graph.node[0].op_type for c in CASES}
    assert not tested - set(ran)
