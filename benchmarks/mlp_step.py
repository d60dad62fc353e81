"""A training step of an MLP 784-512-512-10 at batch 128, one thread, beside PyTorch's.

    python benchmarks/mlp_step.py            # sets up a virtual environment for PyTorch on first use

Both run forward, sparse softmax cross-entropy, backward and a plain SGD update on the same random batch.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

from side_by_side import Contestant, compete, serve

HERE = Path(__file__).resolve().parent
TORCH = HERE.parent / "build" / "peers" / "torch"
BATCH, WIDTHS, RATE = 128, (784, 512, 512, 10), 0.01


def rillet_step() -> None:
    import numpy as np

    from rillet.train import Graph, Session, nn, optimizers, placeholder

    rng = np.random.default_rng(0)
    with Graph(seed=1).as_default():
        x = placeholder((BATCH, WIDTHS[0]), name="x")
        labels = placeholder((BATCH,), np.int32, name="labels")
        h = x
        for width in WIDTHS[1:-1]:
            h = nn.dense(h, width, activation="relu")
        loss = nn.sparse_softmax_cross_entropy(nn.dense(h, WIDTHS[-1]), labels)
        step = optimizers.SGD(RATE).minimize(loss)
        session = Session(threads=1)
        session.initialize()
    feeds = {
        x: rng.normal(size=(BATCH, WIDTHS[0])).astype(np.float32),
        labels: rng.integers(0, 10, BATCH).astype(np.int32),
    }
    serve(lambda: session.run([loss, step], feeds))


def torch_step() -> None:
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers: list[torch.nn.Module] = []
    for a, b in zip(WIDTHS, WIDTHS[1:]):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    model = torch.nn.Sequential(*layers[:-1])
    optimizer = torch.optim.SGD(model.parameters(), RATE)
    x, labels = torch.randn(BATCH, WIDTHS[0]), torch.randint(0, 10, (BATCH,))

    def step() -> float:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return float(loss)

    serve(step)


def torch_python() -> str:
    """The interpreter of PyTorch's own environment, set up on first use."""
    python = TORCH / "bin" / "python"
    if not (TORCH / "ready").exists():
        subprocess.check_call([sys.executable, "-m", "venv", str(TORCH)])
        subprocess.check_call([str(python), "-m", "pip", "install", "-q", "torch==2.13.0", "numpy"])
        (TORCH / "ready").touch()
    return str(python)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worker", choices=("rillet", "torch"))
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--torch-python", help="an interpreter that has PyTorch 2.13 (default: set one up)")
    args = parser.parse_args()
    if args.worker:
        return rillet_step() if args.worker == "rillet" else torch_step()
    me = str(Path(__file__).resolve())
    one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    results = compete([
        Contestant("rillet", (sys.executable, me, "--worker", "rillet")),
        Contestant("torch", (args.torch_python or torch_python(), me, "--worker", "torch"), one_thread),
    ], rounds=args.rounds)  # fmt: skip
    ratio = {k: results["rillet"][k] / results["torch"][k] for k in ("p10", "median")}
    print(json.dumps({"benchmark": "mlp_step", "us": results, "ratio rillet/torch": ratio}, indent=1))


if __name__ == "__main__":
    main()
