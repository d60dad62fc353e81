"""The closed list of ways in which a model file or a call of the engine can fail, as in rillet.h."""

from __future__ import annotations

from enum import IntEnum

from rillet.shared_ops.errors import RilletError


class Status(IntEnum):
    """Mirrors `rillet_status` in rillet.h (a test compares the two)."""

    OK = 0
    FILE_NOT_FOUND = 1
    BAD_MAGIC = 2
    BAD_VERSION = 3
    TRUNCATED = 4
    BAD_CHECKSUM = 5
    MALFORMED = 6
    BAD_REFERENCE = 7
    BAD_TENSOR = 8
    BAD_ORDER = 9
    UNKNOWN_OP = 10
    BAD_OPERATION = 11
    BAD_ARGUMENT = 12
    OUT_OF_MEMORY = 13
    BAD_DATA = 14


class ModelError(RilletError, ValueError):
    """A model cannot be read, loaded or run. `status` says in which of the ways of the closed list.

    Example:
        >>> from rillet.lite.reader import read_model
        >>> try:
        ...     read_model(b"something else, long enough to be a header" * 2)
        ... except ModelError as error:
        ...     print(error.status.name)
        BAD_MAGIC
    """

    def __init__(self, status: Status, text: str) -> None:
        self.status = Status(status)
        super().__init__(f"{text} ({self.status.name})" if text else self.status.name)
