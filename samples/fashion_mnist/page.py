"""The demo's report as one HTML file: pictures are inline, nothing is loaded, it opens offline."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from dataset import LABELS

STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1b1f24; --soft: #667; --paper: #fff; --line: #d8dce2; --blue: #2166ac; --red: #b2182b;
}
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --soft: #9aa3ad; --paper: #15181c; --line: #333a42; --blue: #6aaed6; --red: #f4866f; }
}
body {
  font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
}
h1 { font-size: 1.5rem; }
h2 { font-size: 1.1rem; margin-top: 2.2rem; }
p { color: var(--soft); }
table { border-collapse: collapse; }
td, th { padding: .3rem .8rem; border-bottom: 1px solid var(--line); text-align: right; }
td:first-child, th:first-child { text-align: left; }
svg text { fill: var(--ink); font: 11px system-ui, sans-serif; }
.images { display: grid; grid-template-columns: repeat(auto-fill, minmax(6.2rem, 1fr)); gap: .8rem; }
figure { margin: 0; text-align: center; font-size: .8rem; }
figure img { width: 84px; image-rendering: pixelated; }
.wrong { color: var(--red); }
.scroll { overflow-x: auto; }
"""


@dataclass
class Page:
    """Everything that the report shows."""

    result: dict[str, float]
    curve: list[dict[str, float]]
    images: np.ndarray
    labels: np.ndarray
    int8: np.ndarray
    float_layers: list[Any]
    int8_layers: list[Any]

    def html(self) -> str:
        """The whole page."""
        parts = [
            ("The numbers", self._table()),
            ("Some test images", self._pictures()),
            ("Where the int8 model errs", self._confusion()),
            ("Training", self._curves()),
            ("Time of each layer, one image, one thread", self._layers()),
        ]
        body = "".join(f"<h2>{escape(title)}</h2>{content}" for title, content in parts)
        head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        return (
            f"<!doctype html><html lang=en><head>{head}<title>rillet: Fashion-MNIST</title>"
            f"<style>{STYLE}</style></head>"
            f"<body><h1>Fashion-MNIST, from training to int8 on the device</h1>{body}</body></html>\n"
        )

    def _table(self) -> str:
        r = self.result
        rows = [
            ("test accuracy", *(f"{r[f'{k}_accuracy']:.2%}" for k in ("trainer", "float", "int8"))),
            ("bytes of the file", "", f"{r['float_bytes']:,}", f"{r['int8_bytes']:,}"),
            ("ms an image", "", f"{r['float_ms']:.3f}", f"{r['int8_ms']:.3f}"),
            ("output bytes that differ", "", f"{r['float_differing_bytes']:,}", f"{r['int8_differing_bytes']:,}"),
        ]
        cells = "".join("<tr>" + "".join(f"<td>{escape(str(c))}</td>" for c in row) + "</tr>" for row in rows)
        note = (
            "Differing bytes are counted over all 10,000 outputs: float file against the trainer's inference mode, "
            f"int8 file against the NumPy references. Peak memory of a device process: {r['peak_mb']:.1f} MB. "
            f"Whole demo: {r['seconds']:.0f} s."
        )
        head = "<tr><th></th><th>trainer</th><th>float file</th><th>int8 file</th></tr>"
        return f"<table>{head}{cells}</table><p>{note}</p>"

    def _pictures(self, right: int = 12, wrong: int = 12) -> str:
        guesses = self.int8.argmax(axis=1)
        hit = guesses == self.labels
        chosen = np.concatenate([np.flatnonzero(hit)[:right], np.flatnonzero(~hit)[:wrong]])
        figures = []
        for i in chosen:
            name, truth = LABELS[guesses[i]], LABELS[self.labels[i]]
            text = f"{escape(name)} {self.int8[i].max():.0%}"
            if not hit[i]:
                text = f'<span class="wrong">{text}</span><br>is {escape(truth)}'
            figures.append(
                f'<figure><img alt="{escape(truth)}" src="{png(self.images[i, :, :, 0])}"><br>{text}</figure>'
            )
        return (
            f'<div class="images">{"".join(figures)}</div><p>The int8 file\'s answers; the second half are errors.</p>'
        )

    def _confusion(self) -> str:
        counts = np.zeros((10, 10), int)
        np.add.at(counts, (self.labels, self.int8.argmax(axis=1)), 1)
        size, left, top = 46, 90, 74
        parts = []
        for row in range(10):
            y = top + row * size
            parts.append(f'<text x="{left - 8}" y="{y + size / 2 + 4}" text-anchor="end">{escape(LABELS[row])}</text>')
            tilt = f'transform="translate({left + row * size + size / 2},{top - 8}) rotate(-40)"'
            parts.append(f"<text {tilt}>{escape(LABELS[row])}</text>")
            for column in range(10):
                share = counts[row, column] / max(counts[row].sum(), 1)
                color = "var(--blue)" if row == column else "var(--red)"
                opacity = share if row == column else min(1.0, 4 * share)
                x = left + column * size
                parts.append(
                    f'<rect x="{x}" y="{y}" width="{size - 2}" height="{size - 2}" fill="{color}" '
                    f'fill-opacity="{opacity:.3f}" stroke="var(--line)"/>'
                )
                if counts[row, column]:
                    at = f'x="{x + size / 2 - 1}" y="{y + size / 2 + 3}"'
                    ink = ' style="fill: var(--paper)"' if opacity > 0.5 else ""
                    parts.append(f'<text {at} text-anchor="middle"{ink}>{counts[row, column]}</text>')
        drawing = svg(left + 10 * size + 60, top + 10 * size + 4, parts)
        return f"{drawing}<p>Rows: what it is; columns: what the int8 file says.</p>"

    def _curves(self) -> str:
        losses, hits = [e["loss"] for e in self.curve], [e["accuracy"] for e in self.curve]
        return (
            line_chart(losses, "training loss", "var(--blue)", "{:.3f}")
            + line_chart(hits, "validation accuracy", "var(--red)", "{:.1%}")
            + "<p>By epoch. Validation: training images that were held back.</p>"
        )

    def _layers(self) -> str:
        return "".join(
            f"<p>{name}, microseconds</p>{bars(layers)}"
            for name, layers in (("float file", self.float_layers), ("int8 file", self.int8_layers))
        )


def png(pixels: np.ndarray) -> str:
    """A grey image as a data address (PNG: header, one filter byte a row, deflate)."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = pixels.shape
    rows = b"".join(b"\0" + row.tobytes() for row in 255 - pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(data).decode()


def svg(width: float, height: float, parts: list[str]) -> str:
    """An inline drawing that scrolls where the window is narrow."""
    return f'<div class="scroll"><svg width="{width:.0f}" height="{height:.0f}">{"".join(parts)}</svg></div>'


def line_chart(values: list[float], title: str, color: str, form: str) -> str:
    """One line over epochs, with its first and last number."""
    width, height, margin = 420, 150, 40
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    points = [
        (
            margin + i * (width - 2 * margin) / max(len(values) - 1, 1),
            height - margin - (v - low) / span * (height - 2 * margin),
        )
        for i, v in enumerate(values)
    ]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    parts = [
        f'<text x="{margin}" y="16">{escape(title)}</text>',
        f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>',
    ]
    for i, (x, y) in enumerate(points):
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>')
        parts.append(f'<text x="{x:.1f}" y="{height - 14}" text-anchor="middle">{i + 1}</text>')
        if i in (0, len(values) - 1):
            parts.append(f'<text x="{x:.1f}" y="{y - 8:.1f}" text-anchor="middle">{form.format(values[i])}</text>')
    return svg(width, height, parts)


def bars(layers: list[Any]) -> str:
    """One bar an operation, in the order in which they run."""
    step, left, width = 19, 330, 380
    longest = max((t for _, _, t in layers), default=1.0)
    parts = []
    for i, (op, name, microseconds) in enumerate(layers):
        y, length = i * step, width * microseconds / longest
        label = escape(f"{op}  {name}"[:54])
        parts.append(f'<text x="{left - 8}" y="{y + 13}" text-anchor="end">{label}</text>')
        parts.append(f'<rect x="{left}" y="{y + 3}" width="{length:.1f}" height="{step - 6}" fill="var(--blue)"/>')
        parts.append(f'<text x="{left + length + 5:.1f}" y="{y + 13}">{microseconds:.1f}</text>')
    return svg(left + width + 60, len(layers) * step + 4, parts)
