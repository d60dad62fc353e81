"""The command `rillet`: run, inspect, bench; other folders add theirs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import rillet
from rillet.shared_ops.errors import RilletError

GROUP = "rillet.commands"
HERE = "rillet.lite.cli"

ModelPath = Annotated[Path, typer.Argument(help="A .rlt file.", metavar="MODEL")]
Threads = Annotated[int, typer.Option(help="Threads that a run may use.", min=1, max=1024)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def add_commands(app: typer.Typer) -> None:
    """Adds this folder's sub-commands: what the entry points of group `rillet.commands` name."""
    app.command("run")(_run)
    app.command("inspect")(_inspect)
    app.command("bench")(_bench)


def _run(
    model: ModelPath,
    input: Annotated[list[str], typer.Option("--input", "-i", help="FILE or NAME=FILE: .npy, or an image.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write: .npy, or .npz if several.")
    ] = None,
    top: Annotated[int, typer.Option(help="Show that many of the best classes.", min=0)] = 0,
    threads: Threads = 1,
    raw: Annotated[bool, typer.Option(help="Pass quantized values as they are.")] = False,
) -> None:
    """Run a model on arrays or images.

    Integer arrays and images go through the preprocessing that the model carries; float arrays are passed as they are.
    """
    from rillet.lite import commands

    commands.run(model, input, output, top, threads, raw)


def _inspect(model: ModelPath, json: Json = False) -> None:
    """Show what a model holds: operations, shapes, quantization, sizes, metadata."""
    from rillet.lite import commands

    commands.inspect(model, json)


def _bench(
    model: ModelPath,
    threads: Threads = 1,
    runs: Annotated[int, typer.Option(help="Measured runs.", min=1)] = 50,
    batch: Annotated[int, typer.Option(help="Size of dimensions that the model leaves open.", min=1)] = 1,
    profile: Annotated[bool, typer.Option(help="Show the time of every operation.")] = False,
    json: Json = False,
) -> None:
    """Measure a model on random input: time of a run (median and fastest tenth), memory, time of each operation."""
    from rillet.lite import commands

    commands.bench(model, threads, runs, batch, profile, json)


def _providers() -> dict[str, str]:
    """Modules with an `add_commands`, as name of the package: entry points, and in a source checkout the folders."""
    found = {}
    for folder in map(Path, rillet.__path__):
        for path in sorted(folder.glob("*/cli.py")):
            found[f"rillet.{path.parent.name}.cli"] = f"rillet.{path.parent.name}"
    for entry in entry_points(group=GROUP):
        module = entry.value.partition(":")[0]
        found[module] = module.rpartition(".")[0]
    return found


def _load(module: str, package: str) -> Callable[[typer.Typer], None] | None:
    """A provider's `add_commands`; None where the package it belongs to, or one that it needs, is not installed."""
    try:
        add: Callable[[typer.Typer], None] = importlib.import_module(module).add_commands
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("rillet.") and not package.startswith(error.name):
            raise
        return None
    return add


def _show_version(wanted: bool) -> None:
    if not wanted:
        return
    try:
        text = version("rillet")
    except PackageNotFoundError:
        from rillet.lite.library import library

        text = str(library().rillet_version().decode())
    typer.echo(f"rillet {text}")
    raise typer.Exit


def make_app() -> typer.Typer:
    """The whole command, with the sub-commands of every folder that is installed."""
    app = typer.Typer(
        name="rillet",
        help="Train, export, run: one graph from cluster to device. `rillet COMMAND --help` says more.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )

    @app.callback()
    def rillet_(
        show_version: Annotated[
            bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
        ] = False,
    ) -> None: ...

    for module, package in sorted(_providers().items(), key=lambda p: p[0] != HERE):
        if add := _load(module, package):
            add(app)
    return app


def main() -> Any:
    """Entry point of `rillet`. What the user can mend is one red line and exit code 2; no traceback."""
    try:
        make_app()()
    except (RilletError, OSError) as error:
        Console(stderr=True, soft_wrap=True).print(f"error: {error}", style="bold red", markup=False, highlight=False)
        sys.exit(2)


if __name__ == "__main__":
    main()
