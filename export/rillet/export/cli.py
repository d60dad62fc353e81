"""Sub-commands `rillet export` and `rillet verify`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def add_commands(app: typer.Typer) -> None:
    """Adds this folder's sub-commands."""
    app.command("export")(_export)
    app.command("verify")(_verify)


def _export(
    source: Annotated[
        str,
        typer.Argument(help="FILE.py:FUNCTION, which returns (graph, inputs, outputs); or a float .rlt file."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file to write.")],
    checkpoint: Annotated[Path | None, typer.Option(help="Values of the variables.")] = None,
    int8: Annotated[bool, typer.Option("--int8", help="Quantize; needs --calibration.")] = False,
    calibration: Annotated[Path | None, typer.Option(help="Samples: .npy, or .npz with one array an input.")] = None,
    observer: Annotated[str, typer.Option(help="How ranges are found; a wrong name lists them.")] = "min_max",
    labels: Annotated[Path | None, typer.Option(help="A text file: one class name a line.")] = None,
    skip: Annotated[list[str] | None, typer.Option(help="A pass to leave out.")] = None,
    report: Annotated[bool, typer.Option(help="Show what every pass and the quantization did.")] = True,
) -> None:
    """Write a trained graph, or a float model, as a model file."""
    from rillet.export import commands

    commands.export(source, output, checkpoint, int8, calibration, observer, labels, skip or [], report)


def _verify(
    first: Annotated[str, typer.Argument(help="A model file, or FILE.py:FUNCTION with --checkpoint.")],
    second: Annotated[
        Path | None, typer.Argument(help="The model file to compare with; without it, FIRST by the references.")
    ] = None,
    input: Annotated[Path | None, typer.Option("--input", "-i", help=".npy, or .npz with one array an input.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Values of the variables, for FILE.py:FUNCTION.")] = None,
    tolerance: Annotated[float, typer.Option(help="Relative difference allowed; 0: equal bits.", min=0.0)] = 0.0,
    limit: Annotated[int, typer.Option(help="How many differing values to show.", min=1)] = 10,
) -> None:
    """Compare two models value by value and name the first that differs. Exit code 1 where one does."""
    from rillet.export import commands

    if not commands.verify(first, second, input, checkpoint, tolerance, limit):
        raise typer.Exit(1)
