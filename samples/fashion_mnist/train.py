"""Trains the network of net.py: python samples/fashion_mnist/train.py [EPOCHS] [CHECKPOINT]."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dataset
import net
import numpy as np
from rich.console import Console
from rich.progress import track

from rillet.train import Graph, Saver, Session, input, nn, ops, optimizers, placeholder

EPOCHS, BATCH, RATE, SEED = 8, 128, 6e-3, 1
VALIDATION = 5000  # of the 60,000 training images: the test images are seen once, at the end
CACHE = Path(__file__).resolve().parents[2] / ".data" / "fashion-mnist"


@dataclass
class Trained:
    """A session with the tensors that matter, and what happened on the way."""

    session: Session
    image: Any
    probabilities: Any
    curve: list[dict[str, float]] = field(default_factory=list)

    def predict(self, images: np.ndarray, batch: int = 500) -> np.ndarray:
        """Probabilities in inference mode, for images with values from 0 to 1."""
        parts = [images[i : i + batch] for i in range(0, len(images), batch)]
        return np.concatenate([self.session.predict(self.probabilities, {self.image: x}) for x in parts])


def scaled(images: np.ndarray) -> np.ndarray:
    """Pixels 0..255 as floats from 0 to 1."""
    return images.astype(np.float32) * np.float32(1 / 255)


def train(
    images: np.ndarray, labels: np.ndarray, epochs: int = EPOCHS, say: Callable[[str], None] = print, threads: int = 2
) -> Trained:
    """Trains on all images but the last VALIDATION; images [n, 28, 28, 1] from 0 to 1."""
    kept, steps = len(images) - VALIDATION, (len(images) - VALIDATION) // BATCH
    with Graph(seed=SEED).as_default():
        image = placeholder(("batch", 28, 28, 1), name="image")
        label = placeholder(("batch",), np.int32, name="label")
        logits = net.classifier(image)
        loss, accuracy = nn.sparse_softmax_cross_entropy(logits, label), nn.accuracy(logits, label)
        rate = optimizers.cosine(RATE, total=steps * epochs, warmup=steps // 4)
        step = optimizers.AdamW(rate, weight_decay=1e-4).minimize(loss)
        trained = Trained(Session(threads=threads), image, ops.softmax(logits))
    session = trained.session
    session.initialize()
    for epoch in range(epochs):
        batches = input.batches(images[:kept], labels[:kept], BATCH, seed=SEED, epoch=epoch)
        total = 0.0
        bar = {"console": Console(stderr=True), "transient": True, "disable": not sys.stderr.isatty()}
        for x, y in track(batches, f"epoch {epoch + 1} of {epochs}", total=steps, **bar):
            x = input.random_shift_flip(x, SEED, session.step, shift=0)  # the images are centred: mirrored, not moved
            total += float(session.run([loss, step], {image: x, label: y})[0])
        tests = ({image: x, label: y} for x, y in input.batches(images[kept:], labels[kept:], 500, shuffle=False))
        found = {"loss": total / steps, "accuracy": float(session.evaluate(accuracy, tests))}
        trained.curve.append(found)
        say(f"epoch {epoch + 1}: loss {found['loss']:.4f}, validation accuracy {found['accuracy']:.2%}")
    return trained


if __name__ == "__main__":
    folder = dataset.fetch(CACHE)
    xs, ys = dataset.load(folder, "train")
    result = train(scaled(xs), ys, int(sys.argv[1]) if len(sys.argv) > 1 else EPOCHS)
    print("checkpoint:", Saver().save(result.session, sys.argv[2] if len(sys.argv) > 2 else "out/fashion_mnist"))
