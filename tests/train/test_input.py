"""Batches and augmentation: every example once an epoch, the same order for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from rillet.train.input import batches, random_shift_flip


def test_every_example_comes_once_and_the_seed_decides_the_order() -> None:
    xs, ys = np.arange(10) * 10, np.arange(10)
    one = list(batches(xs, ys, 3, seed=1, epoch=2, keep_rest=True))
    assert [len(y) for _, y in one] == [3, 3, 3, 1]
    order = np.concatenate([y for _, y in one])
    assert sorted(order) == list(range(10)) and all((x == 10 * y).all() for x, y in one)
    again = np.concatenate([y for _, y in batches(xs, ys, 3, seed=1, epoch=2, keep_rest=True)])
    other = np.concatenate([y for _, y in batches(xs, ys, 3, seed=1, epoch=3, keep_rest=True)])
    assert (order == again).all() and (order != other).any()


def test_an_epoch_can_be_entered_in_the_middle() -> None:
    xs = np.arange(10)
    whole = [y.tolist() for _, y in batches(xs, xs, 2, seed=4)]
    assert [y.tolist() for _, y in batches(xs, xs, 2, seed=4, first=3)] == whole[3:]


def test_arrays_of_two_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="3 images, 4 labels"):
        next(batches(np.zeros(3), np.zeros(4), 2))


def test_augmentation_moves_and_mirrors() -> None:
    images = np.zeros((64, 7, 7, 1), np.float32)
    images[:, 3, 2] = 1
    moved = random_shift_flip(images, seed=0, step=5, shift=1)
    rows, columns = np.nonzero(moved.sum(axis=(0, 3)))
    assert set(rows) == {2, 3, 4} and set(columns) == {1, 2, 3, 4, 5}
    assert moved.sum() == 64
    assert (moved == random_shift_flip(images, seed=0, step=5, shift=1)).all()
    still = random_shift_flip(images, seed=0, step=5, shift=0, flip=False)
    assert (still == images).all()
