"""A file that is written whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """A binary file to write to, beside `path`. It is brought to the disk, and only then takes the name.

    Where the block raises, or the disk is full (OSError), no file is left behind and an older one stays as it was.
    A folder, or a device such as /dev/null, is not replaced: FileExistsError.

    Example:
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with whole_file(Path(folder, "a")) as file:
        ...         _ = file.write(b"all")
        ...     os.listdir(folder)
        ['a']
    """
    if path.exists() and not path.is_file():
        raise FileExistsError(errno.EEXIST, "it is there and is no file, so it is not replaced", os.fspath(path))
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:100]}.", suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())  # as open() would have made it: mkstemp's is the owner's alone
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    _sync_folder(path.parent)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Makes the new name itself durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
