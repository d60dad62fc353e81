"""Every benchmark, one after the other, beside the peer: prints one table, writes out/benchmarks.json.

    make bench                       # or: python benchmarks/run.py [--rounds 15] [--torch-python PYTHON]

Let nothing else run meanwhile. Each line is one run in which the two take turns (side_by_side.py): the ratio is the
figure.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).resolve().parent
OUT = HERE.parent / "out" / "benchmarks.json"


def report_of(script: str, *arguments: str) -> dict[str, Any]:
    """What one benchmark prints, in a process of its own."""
    command = [sys.executable, str(HERE / script), *arguments]
    return dict(json.loads(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout))


def reports(rounds: int, torch_python: str | None) -> dict[str, dict[str, Any]]:
    """{what was timed: {"us": {contestant: {"p10", "median"}}, ...}}, for each line of the table."""
    found = {}
    for threads in (1, 2):
        report = report_of("mobilenet_v2.py", "--threads", str(threads), "--rounds", str(rounds))
        for kind in ("float", "int8"):
            found[f"MobileNetV2-1.0-224, batch 1, {kind}, {threads} thread{'s'[: threads - 1]}"] = report[kind]
    torch = ["--torch-python", torch_python] if torch_python else []
    found["MLP 784-512-512-10, batch 128, training step, 1 thread"] = report_of(
        "mlp_step.py", "--rounds", str(rounds), *torch
    )
    return found


def table_of(found: dict[str, dict[str, Any]]) -> Table:
    table = Table("what", "rillet ms", "peer", "peer ms", "ratio (median)", "ratio (p10)")
    for what, report in found.items():
        ours, (peer, theirs) = report["us"]["rillet"], next(x for x in report["us"].items() if x[0] != "rillet")
        milliseconds = [f"{t['median'] / 1000:.2f}" for t in (ours, theirs)]
        ratios = [f"{ours[k] / theirs[k]:.2f}" for k in ("median", "p10")]
        table.add_row(what, milliseconds[0], peer, milliseconds[1], *ratios)
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--torch-python", help="an interpreter that has PyTorch 2.13 (default: set one up)")
    args = parser.parse_args()
    found = reports(args.rounds, args.torch_python)
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(found, indent=1))
    Console().print(table_of(found))
    print(f"written to {OUT}")


if __name__ == "__main__":
    main()
