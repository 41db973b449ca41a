"""Frames between two machines: a message with named arrays, of which no part is sent twice.

An array is cut into chunks, one a row where rows are long enough. A chunk goes by its digest alone
where the other side has it: inputs that are executed again, outputs that are as before, and the
sets of a timing, which are one set with its rows rotated. Both ends remember the same chunks,
because both see the same chunks in the same order. Between processes of one machine a digest takes
longer than the bytes: there arrays go whole.

A frame is three lengths (head, message, body; little endian), the head (JSON of `FrameHead`), the
message, which this file does not look into, and for each array its digests and the new chunks.
"""

import hashlib
import struct
import threading
from collections.abc import Callable
from dataclasses import dataclass
from io import BufferedIOBase
from math import prod
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.record import Record
from kopt.tools.devices.device import Arrays
from kopt.tools.sandbox.policy import machine_memory_bytes

REMEMBERED_BYTES = 256 << 20
"""At most so many bytes of chunks are remembered in each direction."""
DIGEST_BYTES = 16
_LENGTHS = struct.Struct("<IIQ")
_LONGEST_TEXT_BYTES = 64 << 20
_SHORTEST_ROW_BYTES = 1 << 10
_LONGEST_CHUNK_BYTES = 1 << 20
_PIECE_BYTES = 16 << 20  # of a whole array: each waits for the interpreter's lock


class BrokenFrame(Exception):
    """What came is no frame; nothing after it can be read either."""


class SentArray(Record):
    """One array of a frame."""

    name: str
    dtype: str
    """A name of kernels/dtypes.py, or another of numpy's."""
    shape: tuple[int, ...]
    chunk_bytes: int
    """0: the array is sent whole, with no digests."""


class FrameHead(Record):
    """What a frame says about itself."""

    lane: int
    """Thread of the caller; answers go back to it. 0: of no thread."""
    arrays: tuple[SentArray, ...] = ()


@dataclass(frozen=True)
class Frame:
    """One frame as it was received."""

    lane: int
    message: bytes
    arrays: Arrays


class _Chunks:
    """Chunks by their digests; the oldest go first."""

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        self._held: dict[bytes, tuple[int, bytes]] = {}
        self._total_bytes = 0

    def __contains__(self, digest: bytes) -> bool:
        return digest in self._held

    def content(self, digest: bytes) -> bytes:
        return self._held[digest][1]

    def add(self, digest: bytes, size_bytes: int, content: bytes = b"") -> None:
        self._held[digest] = (size_bytes, content)
        self._total_bytes += size_bytes
        while self._total_bytes > self._limit_bytes:
            oldest = next(iter(self._held))
            self._total_bytes -= self._held.pop(oldest)[0]


class FrameWriter:
    """One direction's sending end; safe from several threads."""

    def __init__(self, target: BinaryIO, remembered_bytes: int = REMEMBERED_BYTES) -> None:
        """Nothing is sent yet; `remembered_bytes` 0 sends all arrays whole."""
        self._target = target
        self._is_whole = remembered_bytes == 0
        self._sent = _Chunks(remembered_bytes)
        self._turn = threading.Lock()
        self.array_bytes = 0
        """Bytes of arrays that have gone over the wire."""

    def write(self, lane: int, message: bytes, arrays: Arrays | None = None) -> None:
        """Send one frame.

        Raises:
            OSError: The other end is gone.
        """
        with self._turn:
            parts: list[bytes | memoryview] = []
            entries: list[SentArray] = []
            for name, array in (arrays or {}).items():
                chunk_bytes = 0 if self._is_whole else _chunk_bytes(array)
                entries.append(_entry(name, array, chunk_bytes))
                parts += self._new_parts(array, chunk_bytes) if chunk_bytes else [_raw(array)]
            head = FrameHead(lane=lane, arrays=tuple(entries)).model_dump_json().encode()
            body_bytes = sum(len(part) for part in parts)
            self._target.write(_LENGTHS.pack(len(head), len(message), body_bytes) + head + message)
            for part in parts:
                self._target.write(part)
            self._target.flush()
            self.array_bytes += body_bytes

    def close(self, wait_s: float) -> None:
        """Close the sending end, unless it is stuck in a frame for longer than `wait_s`."""
        if self._turn.acquire(timeout=wait_s):
            try:
                self._target.close()
            finally:
                self._turn.release()

    def _new_parts(self, array: npt.NDArray[Any], chunk_bytes: int) -> list[bytes | memoryview]:
        """Return the digests of an array, then those of its chunks that are not there yet."""
        digests: list[bytes] = []
        new: list[memoryview] = []
        raw = _raw(array)
        for start in range(0, len(raw), chunk_bytes):
            chunk = raw[start : start + chunk_bytes]
            digest = hashlib.blake2b(chunk, digest_size=DIGEST_BYTES).digest()
            digests.append(digest)
            if digest not in self._sent:
                self._sent.add(digest, len(chunk))
                new.append(chunk)
        return [b"".join(digests), *new]


class FrameReader:
    """One direction's receiving end, for one thread."""

    def __init__(
        self,
        source: BinaryIO,
        remembered_bytes: int = REMEMBERED_BYTES,
        heard: Callable[[], None] = lambda: None,
        most_bytes: int | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            source: Frames.
            remembered_bytes: As the sender's.
            heard: Called with each part of a frame that has come.
            most_bytes: What the arrays of one frame may be together, few as its bytes may be: a
                digest stands for a megabyte. None: half of this machine's memory.
        """
        self._most_bytes = most_bytes or machine_memory_bytes() // 2
        self._source = source
        self._known = _Chunks(remembered_bytes)
        self._heard = heard

    def read(self) -> Frame | None:
        """Return the next frame; None once the other end has closed.

        Raises:
            BrokenFrame: Something else came, or the end within a frame.
        """
        lengths = self._source.read(_LENGTHS.size)
        if not lengths:
            return None
        if len(lengths) < _LENGTHS.size:
            raise BrokenFrame("the end of a frame is missing")
        head_bytes, message_bytes, body_bytes = _LENGTHS.unpack(lengths)
        if max(head_bytes, message_bytes) > _LONGEST_TEXT_BYTES:
            raise BrokenFrame(f"a frame with a text of {max(head_bytes, message_bytes)} bytes")
        text = self._exactly(head_bytes)
        message = self._exactly(message_bytes)
        try:
            head = FrameHead.model_validate_json(text)
        except ValidationError as error:
            raise BrokenFrame(f"a frame whose head is {text[:80]!r}") from error
        arrays: Arrays = {}
        for entry in head.arrays:
            held_bytes = sum(array.nbytes for array in arrays.values())
            if _form(entry)[1] > self._most_bytes - held_bytes:
                raise BrokenFrame(f"with array {entry.name} more than {self._most_bytes} bytes")
            try:
                arrays[entry.name], taken_bytes = self._array(entry, body_bytes)
            except (MemoryError, OverflowError, ValueError) as error:  # no memory, or too many axes
                raise _unfit(entry) from error
            body_bytes -= taken_bytes
        if body_bytes:
            raise BrokenFrame(f"a frame with {body_bytes} bytes too many")
        return Frame(head.lane, message, arrays)

    def _array(self, entry: SentArray, most_bytes: int) -> tuple[npt.NDArray[Any], int]:
        """Return an array, and how many bytes of the body it took."""
        dtype, size_bytes = _form(entry)
        if not entry.chunk_bytes:
            return self._whole(entry, dtype, size_bytes, most_bytes), size_bytes
        chunks = -(-size_bytes // entry.chunk_bytes)
        taken_bytes = DIGEST_BYTES * chunks
        if taken_bytes > most_bytes:
            raise _too_long(entry)
        digests = self._exactly(taken_bytes)
        # Only now, with one digest a chunk received: a length alone allocates nothing.
        raw = np.empty(size_bytes, np.uint8)
        for place in range(chunks):
            start = place * entry.chunk_bytes
            length = min(entry.chunk_bytes, size_bytes - start)
            digest = digests[place * DIGEST_BYTES : (place + 1) * DIGEST_BYTES]
            if digest not in self._known:
                taken_bytes += length
                if taken_bytes > most_bytes:
                    raise _too_long(entry)
                content = self._exactly(length)
                self._known.add(digest, length, content)
            else:
                content = self._known.content(digest)
                if len(content) != length:
                    raise BrokenFrame(f"a part of array {entry.name} has another length")
            raw[start : start + length] = np.frombuffer(content, np.uint8)
        return raw.view(dtype).reshape(entry.shape), taken_bytes

    def _whole(
        self, entry: SentArray, dtype: np.dtype[Any], size_bytes: int, most_bytes: int
    ) -> npt.NDArray[Any]:
        """Return an array that is sent without digests, received a piece at a time."""
        if size_bytes > most_bytes:
            raise _too_long(entry)
        raw = np.empty(size_bytes, np.uint8)  # memory is taken as it is written
        for start in range(0, size_bytes, _PIECE_BYTES):
            self._fill(raw[start : start + _PIECE_BYTES].data)
        return raw.view(dtype).reshape(entry.shape)

    def _fill(self, target: memoryview) -> None:
        """Read `target` full: without a copy on the way, which takes as long as the wire."""
        if cast("BufferedIOBase", self._source).readinto(target) != len(target):  # it ended
            raise BrokenFrame("the end of a frame is missing")
        self._heard()

    def _exactly(self, size_bytes: int) -> bytes:
        content = self._source.read(size_bytes) if size_bytes else b""
        if len(content) != size_bytes:
            raise BrokenFrame("the end of a frame is missing")
        self._heard()
        return content


def _entry(name: str, array: npt.NDArray[Any], chunk_bytes: int) -> SentArray:
    return SentArray(name=name, dtype=array.dtype.name, shape=array.shape, chunk_bytes=chunk_bytes)


def _raw(array: npt.NDArray[Any]) -> memoryview:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _chunk_bytes(array: npt.NDArray[Any]) -> int:
    """Return the bytes of a row, unless rows are short or very long."""
    row_bytes = array.nbytes // array.shape[0] if array.ndim > 1 and array.shape[0] else 0
    is_fit = _SHORTEST_ROW_BYTES <= row_bytes <= _LONGEST_CHUNK_BYTES
    return row_bytes if is_fit else _LONGEST_CHUNK_BYTES


def _form(entry: SentArray) -> tuple[np.dtype[Any], int]:
    """Return the dtype and the bytes of an array that another machine announces.

    Raises:
        BrokenFrame: No array has this form.
    """
    try:
        dtype = numpy_dtype(entry.dtype)
    except (TypeError, ValueError):
        dtype = np.dtype(object)
    is_fit = 0 <= entry.chunk_bytes <= _LONGEST_CHUNK_BYTES and min(entry.shape, default=0) >= 0
    if dtype.hasobject or not dtype.itemsize or not is_fit:
        raise _unfit(entry)
    return dtype, dtype.itemsize * prod(entry.shape)


def _unfit(entry: SentArray) -> BrokenFrame:
    return BrokenFrame(f"an array {entry.name} of the form {entry.dtype} {entry.shape}")


def _too_long(entry: SentArray) -> BrokenFrame:
    return BrokenFrame(f"array {entry.name} is longer than its frame")
