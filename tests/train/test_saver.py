"""Checkpoints: whole or not at all, damage found, mismatches listed together and nothing changed."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from rillet.train import Graph, Saver, Session, Variable
from rillet.train.saver import CheckpointError, read_checkpoint


def make(**values: object) -> Session:
    with Graph().as_default() as graph:
        for name, value in values.items():
            Variable(value, name=name)
    session = Session(graph)
    session.initialize()
    return session


def test_round_trip_of_every_dtype(tmp_path: Path) -> None:
    values = {
        "f": np.array([[1.5, np.nan], [-0.0, np.inf]], np.float32),
        "d": np.array(0.1, np.float64),
        "i": np.arange(5, dtype=np.int64),
        "b": np.array([True, False]),
        "none": np.zeros((0, 3), np.float32),
    }
    session = make(**values)
    session.step = 41
    path = Saver().save(session, tmp_path / "a" / "model")
    assert path.name == "model-41.ckpt"
    other = make(**{k: np.zeros_like(v) for k, v in values.items()})
    Saver().restore(other, path)
    assert other.step == 41
    for v in other.graph.variables:
        assert other.get(v).tobytes() == values[v.name].tobytes()


def test_all_mismatches_are_listed_and_nothing_changes(tmp_path: Path) -> None:
    path = Saver().save(make(a=np.ones((3, 4), np.float32), b=np.ones(2, np.float32)), tmp_path / "m")
    session = make(a=np.zeros((4, 3), np.float32), c=np.zeros(2, np.float32))
    with pytest.raises(CheckpointError) as caught:
        Saver().restore(session, path)
    text = str(caught.value)
    assert "'a' has shape (4, 3), in the checkpoint (3, 4)" in text
    assert "'c' is not in the checkpoint. Did the checkpoint call it 'b'?" in text
    assert "'b' is in the checkpoint and not in the graph" in text
    assert all(not session.get(v).any() for v in session.graph.variables)


def test_another_dtype_is_a_mismatch(tmp_path: Path) -> None:
    path = Saver().save(make(a=np.ones(3, np.float32)), tmp_path / "m")
    with pytest.raises(CheckpointError, match="'a' has dtype float64, in the checkpoint float32"):
        Saver().restore(make(a=np.ones(3)), path)


def test_every_damaged_byte_is_found(tmp_path: Path) -> None:
    path = Saver().save(make(a=np.arange(4, dtype=np.float32)), tmp_path / "m")
    whole = path.read_bytes()
    used = len(whole) - 48  # the rest is padding behind the 16 bytes of the one tensor
    for at in list(range(0, used, 7)) + [used - 1]:
        if 20 <= at < 24:
            continue  # reserved
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(CheckpointError):
            read_checkpoint(path)
    for size in (0, 10, 30, used - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(CheckpointError):
            read_checkpoint(path)


def test_a_failed_save_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = make(a=np.ones(3, np.float32))
    path = Saver().save(session, tmp_path / "m")
    before = path.read_bytes()

    def full(handle: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        Saver().save(session, tmp_path / "m")
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    session, saver = make(a=np.ones(3, np.float32)), Saver(keep_max=2)
    for step in (9, 10, 101):
        session.step = step
        saver.save(session, tmp_path / "m")
    (tmp_path / "m-other.ckpt").touch()
    assert sorted(p.name for p in tmp_path.glob("m-*")) == ["m-10.ckpt", "m-101.ckpt", "m-other.ckpt"]
    latest = saver.latest(tmp_path / "m")
    assert latest is not None and latest.name == "m-101.ckpt"


def test_tensors_lie_at_multiples_of_64(tmp_path: Path) -> None:
    path = Saver().save(make(a=np.full(3, 7, np.int8), b=np.full(5, 9, np.int8)), tmp_path / "m")
    whole = path.read_bytes()
    assert whole.index(b"\7\7\7") % 64 == 0 and whole.index(b"\t\t\t\t\t") % 64 == 0


def test_the_checkpoint_just_written_stays_whatever_its_step(tmp_path: Path) -> None:
    """A run that starts anew in the folder of a longer one."""
    session, saver = make(a=np.ones(3, np.float32)), Saver(keep_max=2)
    for step in (100, 200, 10):
        session.step = step
        path = saver.save(session, tmp_path / "m")
    assert sorted(p.name for p in tmp_path.glob("m-*")) == ["m-10.ckpt", "m-200.ckpt"]
    assert path.name == "m-10.ckpt"
    with pytest.raises(CheckpointError, match="keep_max is 0"):
        Saver(keep_max=0)


def test_a_checkpoint_is_as_readable_as_any_file(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    path = Saver().save(make(a=np.ones(3, np.float32)), tmp_path / "m")
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


MANIFESTS = [
    b"{",
    b"[]",
    b"3",
    b"\xff\xfe",
    b"{}",
    b'{"step": 0, "tensors": []}',
    b'{"step": "x", "tensors": {}}',
    b'{"step": 0, "tensors": {"w": {}}}',
    b'{"step": 0, "tensors": {"w": {"dtype": "f9", "shape": [1], "offset": 0, "crc32": 0}}}',
    b'{"step": 0, "tensors": {"w": {"dtype": "f32", "shape": [-1], "offset": 0, "crc32": 0}}}',
    b'{"step": 0, "tensors": {"w": {"dtype": "f32", "shape": [1], "offset": -1000000, "crc32": 0}}}',
    b'{"step": 0, "tensors": {"w": {"dtype": "f32", "shape": [1099511627776], "offset": 0, "crc32": 0}}}',
]


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_a_manifest_with_a_valid_checksum_is_not_believed(tmp_path: Path, manifest: bytes) -> None:
    path = tmp_path / "hostile.ckpt"
    header = struct.pack("<8sQI4x", b"RLTCKPT1", len(manifest), zlib.crc32(manifest))
    path.write_bytes(header + manifest + bytes(4096))
    session = make(w=np.ones(1, np.float32))
    with pytest.raises(CheckpointError, match="damaged"):
        Saver().restore(session, path)
    assert session.get(session.graph.variables[0]) == 1


def test_another_process_may_remove_old_checkpoints_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = make(w=1.0)
    gone = [tmp_path / f"model-{step}.ckpt" for step in (1, 2)]
    monkeypatch.setattr("rillet.train.saver.checkpoints", lambda prefix: gone)
    assert Saver(keep_max=1).save(session, tmp_path / "model").exists()
