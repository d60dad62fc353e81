"""Batches of arrays: shuffled by (seed, epoch) alone, so that a resumed run sees the same order."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rillet.shared_ops.types import Array
from rillet.train.graph import GraphError


def shuffled(count: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """The order of `count` examples in an epoch: a permutation that depends on the arguments only."""
    return np.random.Generator(np.random.Philox(key=[seed, epoch])).permutation(count)


def batches(
    images: Array,
    labels: Array,
    batch_size: int,
    *,
    seed: int = 0,
    epoch: int = 0,
    shuffle: bool = True,
    keep_rest: bool = False,
    first: int = 0,
    progress: bool = False,
) -> Iterator[tuple[Array, Array]]:
    """(images, labels) of each batch of one epoch.

    keep_rest: also gives the smaller batch at the end. first: skips that many batches (to resume within an epoch).
    progress: shows a bar on a terminal.

    Example:
        >>> import numpy as np
        >>> xs = np.arange(10.0).reshape(5, 2)
        >>> [x.shape for x, y in batches(xs, np.arange(5), 2, keep_rest=True)]
        [(2, 2), (2, 2), (1, 2)]
    """
    if len(images) != len(labels) or batch_size < 1:
        raise GraphError(f"batches: {len(images)} images, {len(labels)} labels, batch_size {batch_size}.")
    order = shuffled(len(images), seed, epoch) if shuffle else np.arange(len(images))
    end = len(images) if keep_rest else len(images) // batch_size * batch_size
    starts = range(first * batch_size, end, batch_size)
    for start in _with_bar(starts, f"epoch {epoch}") if progress else starts:
        chosen = order[start : start + batch_size]
        yield images[chosen], labels[chosen]


def _with_bar(steps: range, text: str) -> Iterator[int]:
    from tqdm import tqdm

    yield from tqdm(steps, desc=text, unit="batch", disable=not sys.stderr.isatty())


def random_shift_flip(
    images: Array, seed: int, step: int, *, shift: int = 2, flip: bool = True, fill: float = 0.0
) -> Array:
    """NHWC images, each moved by up to `shift` pixels both ways and, every other one, mirrored.

    The choice depends on (seed, step) and the place in the batch only.
    """
    random = np.random.Generator(np.random.Philox(key=[seed, step]))
    n, rows, columns, _ = images.shape
    padded = np.pad(images, ((0, 0), (shift, shift), (shift, shift), (0, 0)), constant_values=fill)
    down, right = random.integers(0, 2 * shift + 1, (2, n))
    mirrored = np.asarray(random.integers(0, 2, n))
    moved = np.empty_like(images)
    for i in range(n):
        window = padded[i, down[i] : down[i] + rows, right[i] : right[i] + columns]
        moved[i] = window[:, ::-1] if flip and mirrored[i] else window
    return moved
