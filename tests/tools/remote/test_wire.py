"""Frames: arrays arrive as they were, parts that are there already are not sent again."""

import hashlib
import io
import struct
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from kopt.tools.remote.wire import DIGEST_BYTES, BrokenFrame, Frame, FrameReader, FrameWriter

Array = npt.NDArray[Any]


class _Wire:
    """A writer and a reader with the bytes between them."""

    def __init__(self, remembered_bytes: int = 1 << 20) -> None:
        self._bytes = io.BytesIO()
        self.writer = FrameWriter(self._bytes, remembered_bytes)
        self._reader = FrameReader(self._bytes, remembered_bytes)

    def pass_on(self, **arrays: Array) -> Frame:
        start = self._bytes.tell()
        self.writer.write(7, b"message", arrays)
        self._bytes.seek(start)
        frame = self._reader.read()
        assert frame is not None
        return frame


def _rows(rows: int, row_bytes: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(0, 256, (rows, row_bytes), np.uint8)


@pytest.mark.parametrize("remembered_bytes", [1 << 20, 0], ids=["digests", "whole"])
@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.arange(6, dtype=np.float32).reshape(2, 3).T,
        np.array(2.5),
        np.zeros((0, 5), np.int64),
        np.array([True, False]),
        np.array([1.5, -2.0], ml_dtypes.bfloat16),
        np.array([[0.5], [448.0]], ml_dtypes.float8_e4m3fn),
        _rows(5, 3000),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_an_array_arrives_as_it_was(array: Array, remembered_bytes: int) -> None:
    frame = _Wire(remembered_bytes).pass_on(x=array, other=np.zeros(3))
    assert (frame.lane, frame.message) == (7, b"message")
    arrived = frame.arrays["x"]
    assert (arrived.dtype, arrived.shape) == (array.dtype, array.shape)
    assert arrived.tobytes() == array.tobytes()


def test_what_is_there_goes_by_its_digest() -> None:
    wire, array = _Wire(), _rows(8, 2048)
    wire.pass_on(x=array)
    before = wire.writer.array_bytes
    assert wire.pass_on(y=array).arrays["y"].tobytes() == array.tobytes()
    assert wire.writer.array_bytes - before == 8 * DIGEST_BYTES


def test_whole_arrays_are_bytes_alone_each_time() -> None:
    wire, array = _Wire(remembered_bytes=0), _rows(8, 2048)
    for sends in (1, 2):
        wire.pass_on(x=array)
        assert wire.writer.array_bytes == sends * array.nbytes


def test_a_whole_array_longer_than_its_frame_is_broken() -> None:
    target = io.BytesIO()
    FrameWriter(target, 0).write(1, b"m", {"x": np.zeros(64, np.uint8)})
    frame = target.getvalue().replace(b'"shape":[64]', b'"shape":[99]')
    with pytest.raises(BrokenFrame, match="array x is longer than its frame"):
        FrameReader(io.BytesIO(frame + bytes(64))).read()


def test_few_bytes_that_stand_for_many_are_broken() -> None:
    """A digest stands for a row that came before: 16 sets of 32 kB are 32 kB on the wire."""
    target, array = io.BytesIO(), _rows(16, 2048)
    FrameWriter(target).write(1, b"m", {str(k): np.roll(array, k, axis=0) for k in range(16)})
    assert len(target.getvalue()) < 2 * array.nbytes
    frame = io.BytesIO(target.getvalue())
    assert FrameReader(frame, most_bytes=16 * array.nbytes).read() is not None
    frame.seek(0)
    with pytest.raises(BrokenFrame, match=f"with array 15 more than {16 * array.nbytes - 1} bytes"):
        FrameReader(frame, most_bytes=16 * array.nbytes - 1).read()


def test_rotated_rows_are_not_sent_again() -> None:
    wire, array = _Wire(), _rows(16, 2048)
    sets = {f"{k}/x": np.roll(array, k, axis=0) for k in range(16)}
    arrived = wire.pass_on(**sets).arrays
    assert all(arrived[name].tobytes() == one.tobytes() for name, one in sets.items())
    assert wire.writer.array_bytes == array.nbytes + 16 * 16 * DIGEST_BYTES


def test_both_ends_forget_alike() -> None:
    wire = _Wire(remembered_bytes=5000)
    arrays = [_rows(3, 1024, seed) for seed in range(3)]
    for order in ([0, 1, 0], [2, 2, 1], [0, 1, 2]):
        for one in order:
            assert wire.pass_on(x=arrays[one]).arrays["x"].tobytes() == arrays[one].tobytes()


def test_an_array_that_is_larger_than_what_is_remembered_arrives() -> None:
    array = _rows(9, 4096)
    assert _Wire(remembered_bytes=5000).pass_on(x=array).arrays["x"].tobytes() == array.tobytes()


def _written(**arrays: Array) -> bytes:
    target = io.BytesIO()
    FrameWriter(target).write(1, b"m", arrays)
    return target.getvalue()


def test_the_end_is_no_frame_and_an_end_within_one_is_broken() -> None:
    frame = _written(x=_rows(2, 2048))
    assert FrameReader(io.BytesIO(b"")).read() is None
    for length in (5, 20, len(frame) - 1):
        with pytest.raises(BrokenFrame, match=r"end of a frame is missing|longer than its frame"):
            FrameReader(io.BytesIO(frame[:length])).read()


def test_an_array_longer_than_its_frame_is_broken() -> None:
    frame = _written(x=np.zeros(64, np.uint8)).replace(b'"shape":[64]', b'"shape":[99]')
    with pytest.raises(BrokenFrame, match="array x is longer than its frame"):
        FrameReader(io.BytesIO(frame + bytes(64))).read()


def test_what_is_no_frame_is_broken_and_allocates_nothing() -> None:
    with pytest.raises(BrokenFrame, match=r"a text of \d+ bytes"):
        FrameReader(io.BytesIO(b"Welcome to box, where all is well")).read()


_LARGE = str(1 << 62)


@pytest.mark.parametrize(
    ("sent", "instead"),
    [
        ('"shape":[64]', f'"shape":[{_LARGE}]'),
        ('"shape":[64]', f'"shape":[{_LARGE},{_LARGE}]'),
        ('"shape":[64]', '"shape":[-1]'),
        ('"shape":[64]', f'"shape":[{",".join(["1"] * 70)}]'),
        ('"dtype":"uint8"', '"dtype":"object"'),
        ('"dtype":"uint8"', '"dtype":"no_such_type"'),
        ('"dtype":"uint8"', '"dtype":"V0"'),
        ('"chunk_bytes":1048576', '"chunk_bytes":-1'),
        ('"chunk_bytes":1048576', f'"chunk_bytes":{_LARGE}'),
    ],
)
def test_an_array_of_no_form_is_broken(sent: str, instead: str) -> None:
    frame = _written(x=np.zeros(64, np.uint8))
    lengths = list(struct.unpack_from("<IIQ", frame))
    assert sent.encode() in frame
    lengths[0] += len(instead) - len(sent)
    changed = frame.replace(sent.encode(), instead.encode())[struct.calcsize("<IIQ") :]
    with pytest.raises(BrokenFrame, match=r"array x"):
        FrameReader(io.BytesIO(struct.pack("<IIQ", *lengths) + changed + bytes(64))).read()


def test_a_part_that_is_there_in_another_length_is_broken() -> None:
    first = np.arange(64, dtype=np.uint8)
    frames = _written(x=first)
    digest = hashlib.blake2b(first.data, digest_size=DIGEST_BYTES).digest()
    head = frames[struct.calcsize("<IIQ") :][: struct.unpack_from("<IIQ", frames)[0]]
    longer = head.replace(b'"shape":[64]', b'"shape":[99]')
    again = struct.pack("<IIQ", len(longer), 0, len(digest)) + longer + digest
    reader = FrameReader(io.BytesIO(frames + again))
    assert reader.read() is not None
    with pytest.raises(BrokenFrame, match="another length"):
        reader.read()


def test_each_part_of_a_long_frame_is_heard() -> None:
    heard: list[None] = []
    frame = _written(x=_rows(50, 4096))
    assert FrameReader(io.BytesIO(frame), heard=lambda: heard.append(None)).read() is not None
    assert len(heard) > 50
