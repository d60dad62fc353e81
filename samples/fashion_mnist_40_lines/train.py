"""Trains a small convolutional network on Fashion-MNIST: python train.py FOLDER (of the four .gz files) [EPOCHS]."""

import gzip
import sys
from pathlib import Path

import numpy as np

from rillet.train import Graph, Saver, Session, input, nn, optimizers, placeholder

folder, epochs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3


def load(part):
    images = np.frombuffer(gzip.decompress((folder / f"{part}-images-idx3-ubyte.gz").read_bytes())[16:], np.uint8)
    labels = np.frombuffer(gzip.decompress((folder / f"{part}-labels-idx1-ubyte.gz").read_bytes())[8:], np.uint8)
    return images.reshape(-1, 28, 28, 1).astype(np.float32) / 255, labels.astype(np.int32)


with Graph(seed=1).as_default():
    image = placeholder(("batch", 28, 28, 1), name="image")
    label = placeholder(("batch",), np.int32, name="label")
    x = nn.conv2d(image, 16, use_bias=False)
    x = nn.max_pool(nn.batch_norm(x, momentum=0.9, activation="relu6"))
    x = nn.conv2d(x, 32, use_bias=False)
    x = nn.max_pool(nn.batch_norm(x, momentum=0.9, activation="relu6"))
    logits = nn.dense(nn.dropout(nn.flatten(x), 0.3), 10)
    loss = nn.sparse_softmax_cross_entropy(logits, label)
    accuracy = nn.accuracy(logits, label)
    train = optimizers.Adam(optimizers.cosine(2e-3, total=468 * epochs, warmup=50)).minimize(loss)

    session = Session(threads=2)
    session.initialize()
    (xs, ys), (test_xs, test_ys) = load("train"), load("t10k")
    for epoch in range(epochs):
        for a, b in input.batches(xs, ys, 128, seed=1, epoch=epoch, progress=True):
            session.run(train, {image: input.random_shift_flip(a, 1, session.step), label: b})
        tests = ({image: a, label: b} for a, b in input.batches(test_xs, test_ys, 500, shuffle=False))
        print(f"epoch {epoch + 1}: test accuracy {session.evaluate(accuracy, tests):.4f}")
    Saver().save(session, "checkpoints/fashion")
