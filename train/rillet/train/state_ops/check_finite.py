"""CheckFinite: lets a number pass, and stops the run where it is not finite. By reference only: it raises."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rillet.shared_ops.errors import OpError
from rillet.shared_ops.op import Case, Op, Reject
from rillet.shared_ops.registry import define_op
from rillet.shared_ops.shapes import require_float
from rillet.shared_ops.types import TensorType


@dataclass(frozen=True)
class CheckFiniteAttrs:
    """labels: what `peaks` belong to, separated by commas."""

    labels: str = ""


def infer(attrs: CheckFiniteAttrs, x: TensorType, *peaks: TensorType) -> tuple[TensorType, ...]:
    require_float("CheckFinite", "x", x)
    if len(peaks) != len(attrs.labels.split(",")):
        raise OpError("CheckFinite", "number of labels", got=len(attrs.labels.split(",")), expected=len(peaks))
    return (x.plain(),)


def reference(xp: Any, attrs: CheckFiniteAttrs, x: Any, *peaks: Any) -> Any:
    if xp.isfinite(x).all():
        return x.copy()
    bad = [label for label, p in zip(attrs.labels.split(","), peaks) if not xp.isfinite(p).all()]
    raise OpError(
        "CheckFinite",
        f"not finite: {', '.join(bad) or 'the sum over finite values'}",
        got=float(np.asarray(x).ravel()[0]),
        expected="a finite number",
        hint="No variable was updated by these gradients. Lower the learning rate, or look for a division by zero.",
    )


def cases(rng: np.random.Generator) -> Iterable[Case]:
    yield Case((np.array(2.0), np.array(1.0), np.array(0.5)), {"labels": "a,b"}, label="finite")


CHECK_FINITE = define_op(
    Op(
        "CheckFinite",
        inputs=("x", "*peaks"),
        outputs=("y",),
        attrs=CheckFiniteAttrs,
        infer=infer,
        reference=reference,
        gradient=lambda emit, attrs, inputs, outputs, dy: (dy, *(emit("ZerosLike", p) for p in inputs[1:])),
        cases=cases,
        rejects=(
            Reject(((), ()), {"labels": "a,b"}, match="labels"),
            Reject(((),), match="expected f32", dtypes=("i32",)),
        ),
        doc="x unchanged; raises OpError where x is not finite, and names those of `labels` whose peak is not.",
    )
)
