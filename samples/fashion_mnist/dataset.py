"""The Fashion-MNIST images: fetched once, checked, cached.

From Debian's package dataset-fashion-mnist where apt-get reaches it (no root needed), else from the project's own site.
"""

from __future__ import annotations

import gzip
import hashlib
import shutil
import subprocess
import tempfile
import urllib.request
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.progress import wrap_file

PACKAGE = "dataset-fashion-mnist"
SITE = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
# SHA-256 of the contents: Debian packs the same bytes again, so the .gz files themselves differ between the sources.
FILES = {
    "train-images-idx3-ubyte.gz": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
    "train-labels-idx1-ubyte.gz": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
    "t10k-images-idx3-ubyte.gz": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
    "t10k-labels-idx1-ubyte.gz": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
}
LABELS = ["T-shirt", "trousers", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]

Images = NDArray[np.uint8]
Labels = NDArray[np.int32]


class DatasetError(RuntimeError):
    """The files cannot be had, or are not the files they should be."""


def load(folder: Path, part: str) -> tuple[Images, Labels]:
    """The images [n, 28, 28, 1] and labels [n] of "train" (60,000) or "t10k" (10,000, for tests)."""
    images = _contents(folder / f"{part}-images-idx3-ubyte.gz")
    labels = _contents(folder / f"{part}-labels-idx1-ubyte.gz")
    pixels = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 28, 28, 1)
    return pixels, np.frombuffer(labels, np.uint8, offset=8).astype(np.int32)


def fetch(folder: Path) -> Path:
    """Makes sure that `folder` holds the four files; returns it. Raises DatasetError with every way that failed."""
    folder.mkdir(parents=True, exist_ok=True)
    faults = []
    for source in (_from_debian, _from_site):
        if not (missing := [name for name in FILES if not (folder / name).exists()]):
            break
        try:
            source(folder, missing)
        except (OSError, subprocess.SubprocessError) as error:
            faults.append(f"{source.__name__.replace('_', ' ').strip()}: {error}")
    if missing := [name for name in FILES if not (folder / name).exists()]:
        ways = "\n  ".join(faults)
        raise DatasetError(f"no {', '.join(missing)}:\n  {ways}\nPut the files into {folder} by hand, then try again.")
    for name in FILES:
        _contents(folder / name)
    return folder


def _contents(path: Path) -> bytes:
    """The unpacked bytes of one file; refuses, and removes, a file that holds anything else."""
    try:
        content = gzip.decompress(path.read_bytes())
    except (OSError, EOFError) as error:
        content = str(error).encode()
    found = hashlib.sha256(content).hexdigest()
    if found != FILES[path.name]:
        path.unlink(missing_ok=True)
        raise DatasetError(f"{path}: SHA-256 of the contents is {found}, expected {FILES[path.name]}; removed it.")
    return content


def _from_debian(folder: Path, names: list[str]) -> None:
    """`apt-get download`; where apt knows no packages yet, with lists of its own."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise FileNotFoundError("no apt-get here")
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        (work / "lists" / "partial").mkdir(parents=True)
        own = ["-o", f"Dir::State::Lists={work}/lists", "-o", f"Dir::Cache={work}"]
        try:
            _run(["apt-get", "-qq", "download", PACKAGE], work)
        except subprocess.CalledProcessError:
            _run(["apt-get", "-qq", *own, "update"], work)
            _run(["apt-get", "-qq", *own, "download", PACKAGE], work)
        (package,) = work.glob(f"{PACKAGE}_*.deb")
        _run(["dpkg-deb", "--extract", str(package), str(work / "files")], work)
        for name in names:
            shutil.copyfile(work / "files/usr/share/datasets/fashion-mnist" / name, folder / name)


def _run(command: list[str], folder: Path) -> None:
    subprocess.run(command, cwd=folder, check=True, timeout=300, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _from_site(folder: Path, names: list[str]) -> None:
    for name in names:
        part = folder / f"{name}.part"
        with urllib.request.urlopen(f"{SITE}/{name}", timeout=30) as answer, open(part, "wb") as file:
            size = int(answer.headers.get("Content-Length", 0))
            with wrap_file(answer, size, description=name) as bar:
                shutil.copyfileobj(bar, file)
        part.replace(folder / name)
