"""The errors rillet raises: each says what is wrong, what came, what was expected, and what to do."""

from __future__ import annotations


def describe(what: str, got: object = None, expected: object = None, hint: str = "") -> str:
    """`what: got X, expected Y. Hint.` with the parts that are there."""
    tail = ""
    if expected is not None:
        tail = f": got {got}, expected {expected}"
    elif got is not None:
        tail = f": got {got}"
    return f"{what}{tail}." + (f" {hint}" if hint else "")


class RilletError(Exception):
    """Every error that rillet raises on purpose derives from this one."""


class OpError(RilletError, ValueError):
    """An op was given inputs or attributes that it cannot take.

    Reads `[Conv2D at 'block3/conv' (train.py:41)] what is wrong: got X, expected Y. Hint.` The parts are kept as
    attributes, so that the graph can add the node and the user's line to an error raised by `infer`.
    """

    def __init__(
        self,
        op: str,
        what: str,
        *,
        got: object = None,
        expected: object = None,
        hint: str = "",
        node: str = "",
        source: str = "",
    ) -> None:
        self.op, self.what, self.got, self.expected, self.hint = op, what, got, expected, hint
        self.node, self.source = node, source
        at = f" at {node!r}" if node else ""
        line = f" ({source})" if source else ""
        super().__init__(f"[{op}{at}{line}] {describe(what, got, expected, hint)}")

    def located(self, node: str, source: str) -> OpError:
        """The same error, with the node's name and the user's source line in it."""
        return type(self)(
            self.op,
            self.what,
            got=self.got,
            expected=self.expected,
            hint=self.hint,
            node=self.node or node,
            source=self.source or source,
        )


class ProgramError(RilletError, ValueError):
    """A Program is malformed: a value read before it is written, an unknown op, types that disagree."""
