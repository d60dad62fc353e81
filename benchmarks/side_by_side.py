"""Times several runtimes in one run: each in its own process, taking turns round by round, so that a change of the
machine's clock or load meets all of them alike. The figure is the ratio; absolute times are for orientation.

A contestant is a command that prepares, prints `ready`, and then answers each line `N` on its standard input with the
microseconds of N calls, as one JSON list (`serve` does this for a Python function).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field


@dataclass
class Contestant:
    name: str
    command: Sequence[str]
    env: dict[str, str] = field(default_factory=dict)


def serve(call: Callable[[], object]) -> None:
    """The worker's side: answers requests until its input ends."""
    call()
    print("ready", flush=True)
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            start = time.perf_counter_ns()
            call()
            times.append((time.perf_counter_ns() - start) / 1000)
        print(json.dumps(times), flush=True)


def percentile(times: Sequence[float], fraction: float) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))]


class Worker:
    """One contestant's process."""

    def __init__(self, contestant: Contestant) -> None:
        self.times: list[float] = []
        self.process = subprocess.Popen(list(contestant.command), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env={**os.environ, **contestant.env})  # fmt: skip
        assert self.process.stdin and self.process.stdout
        self.ask, self.answer = self.process.stdin, self.process.stdout
        if (line := self.answer.readline()).strip() != "ready":
            raise RuntimeError(f"{contestant.name} did not start: it said {line!r}")

    def turn(self, calls: int) -> list[float]:
        self.ask.write(f"{calls}\n")
        self.ask.flush()
        return list(json.loads(self.answer.readline()))

    def stop(self) -> None:
        self.ask.close()
        self.process.wait(timeout=30)


def compete(contestants: Sequence[Contestant], rounds: int = 15, seconds: float = 0.3) -> dict[str, dict[str, float]]:
    """Runs all in turns of about `seconds` each; returns {name: {"p10": us, "median": us, "calls": n}}."""
    workers = {c.name: Worker(c) for c in contestants}
    try:
        calls = {n: max(1, int(seconds * 1e6 / statistics.median(w.turn(5)))) for n, w in workers.items()}
        for _ in range(rounds):
            for name, worker in workers.items():
                worker.times += worker.turn(calls[name])
    finally:
        for worker in workers.values():
            worker.stop()
    return {n: {"p10": percentile(w.times, 0.1), "median": statistics.median(w.times), "calls": len(w.times)}
            for n, w in workers.items()}  # fmt: skip
