"""Named arrays in one file, each at an aligned offset: how inputs and outputs reach a worker.

Elements travel as unsigned integers of their width, since numpy itself knows neither bfloat16 nor
fp8; the problem's dtypes give the view back. The file says nothing about itself: names, shapes and
offsets are in the message that names it, and every entry is held against the file before it is
read, because the other side may be broken.

Outputs of timed calls are hundreds of MB. They are not copied by their reader (`MappedFile`), and
written over what the file held before (`overwrite_arrays`): pages that are new cost several times
the copy itself.
"""

import mmap
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from kopt.config.errors import InfraError
from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.wide_work import PIECE_BYTES, copy_wide, run_wide, slices
from kopt.tools.devices.device import Arrays

from .described_arrays import ArrayEntry, ArrayFile

ALIGNMENT_BYTES = 256
KEPT_BYTES = 1 << 30
"""A larger file does not stay for its pages to be used again."""
LARGE_BYTES = 64 << 20
"""An array of as many bytes is written by several threads."""
_STORAGE = {f"uint{8 * size}": size for size in (1, 2, 4, 8)}

NamedArrays = Iterable[tuple[str, npt.NDArray[Any]]]


def write_arrays(folder: Path, file: str, arrays: NamedArrays) -> ArrayFile:
    """Write `arrays` to `folder / file` and return what a message says about them.

    Args:
        folder: The worker's folder.
        file: A name without folders; a file of that name is replaced.
        arrays: Elements of 1, 2, 4 or 8 bytes; any number of axes, also none or an empty one.
    """
    (folder / file).unlink(missing_ok=True)  # never write into a file that may be read
    with (folder / file).open("x+b") as target:
        return ArrayFile(file=file, entries=_write(target, arrays))


def overwrite_arrays(folder: Path, file: str, arrays: NamedArrays) -> ArrayFile:
    """Do as `write_arrays`, over a file of that name if there is one.

    Its reader has let go of it: `MappedFile.release` takes the name away from one in use. The file
    never gets smaller, so that nothing that is mapped can end before its mapping.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(folder / file, flags, 0o666), "r+b") as target:
        return ArrayFile(file=file, entries=_write(target, arrays))


def _write(target: IO[bytes], arrays: NamedArrays) -> tuple[ArrayEntry, ...]:
    entries: list[ArrayEntry] = []
    offset = 0
    for name, array in arrays:
        offset = -(-offset // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        bits = np.ascontiguousarray(array).reshape(-1).view(f"u{array.dtype.itemsize}")
        if bits.nbytes < LARGE_BYTES:
            target.seek(offset)
            target.write(bits.data)
        else:
            target.flush()
            _write_wide(target.fileno(), offset, bits.view(np.uint8))
        entries.append(
            ArrayEntry(name=name, dtype=bits.dtype.name, shape=array.shape, offset_bytes=offset)
        )
        offset += bits.nbytes
    target.flush()
    if os.fstat(target.fileno()).st_size < offset:
        target.truncate(offset)  # an empty array at the end lies within the file too
    return tuple(entries)


def _write_wide(descriptor: int, offset: int, content: npt.NDArray[np.uint8]) -> None:
    """Write `content` to a file by several threads: one waits for each new page.

    Raises:
        OSError: There is no room for it; a mapping alone would end the process then.
    """
    os.posix_fallocate(descriptor, offset, content.size)
    start = offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
    # The mapping ends with its last reference, which a thread of the copy may hold a moment longer.
    memory = mmap.mmap(descriptor, offset - start + content.size, offset=start)
    copy_wide(np.frombuffer(memory, np.uint8)[offset - start :], content)


def read_arrays(folder: Path, file: ArrayFile, dtypes: Mapping[str, str]) -> Arrays:
    """Return every array of `file`, copied, so that no other process can change it later.

    Args:
        folder: The worker's folder.
        file: What the other side said.
        dtypes: Problem dtype of each name; names that do not occur in `file` are ignored.

    Raises:
        InfraError: There is no such plain file in the folder, an entry lies outside it, or its
            name or width is not one of `dtypes`.
    """
    descriptor = _open(folder, file.file)
    with os.fdopen(descriptor, "rb"):
        arrays: Arrays = {}
        for entry, dtype in _checked(file, dtypes, os.fstat(descriptor).st_size):
            elements = np.empty(prod(entry.shape), f"u{dtype.itemsize}")
            if not _read_wide(descriptor, entry.offset_bytes, elements.view(np.uint8)):
                raise InfraError(f"{file.file}: the file shrinks while it is read")
            arrays[entry.name] = elements.view(dtype).reshape(entry.shape)
    return arrays


def _read_wide(descriptor: int, offset: int, target: npt.NDArray[np.uint8]) -> bool:
    """Fill `target` from a file by several threads; return whether the file has as much."""

    def read(part: slice) -> bool:
        at = part.start
        while at < part.stop:
            count = os.preadv(descriptor, [target[at : part.stop].data], offset + at)
            if not count:
                return False
            at += count
        return True

    return all(run_wide(read, slices(target.size, PIECE_BYTES)))


class MappedFile:
    """Arrays read where the other side wrote them, until `release`.

    For a worker's own output, which it does not touch between two requests; what must stand against
    a broken worker's later writes is copied by `read_arrays`.
    """

    def __init__(self, folder: Path, file: ArrayFile) -> None:
        """Map the file.

        Raises:
            InfraError: There is no such plain file in the folder.
        """
        self._file = file
        self._path = folder / file.file
        self._memory: mmap.mmap | None = None
        descriptor = _open(folder, file.file)
        try:
            self._size = os.fstat(descriptor).st_size
            if self._size:  # nothing cannot be mapped
                self._memory = mmap.mmap(descriptor, self._size, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:
            raise InfraError(f"array file {file.file!r} cannot be mapped: {error}") from error
        finally:
            os.close(descriptor)

    def arrays(self, dtypes: Mapping[str, str]) -> Arrays:
        """Return every array, read-only; values stand for as long as the array is referenced.

        Args:
            dtypes: Problem dtype of each name; names that do not occur in the file are ignored.

        Raises:
            InfraError: An entry lies outside the file, or its name or width is not one of `dtypes`.
        """
        content = np.frombuffer(b"" if self._memory is None else self._memory, np.uint8)
        arrays: Arrays = {}
        for entry, dtype in _checked(self._file, dtypes, self._size):
            size_bytes = prod(entry.shape) * dtype.itemsize
            raw = content[entry.offset_bytes : entry.offset_bytes + size_bytes]
            arrays[entry.name] = raw.view(dtype).reshape(entry.shape)
        return arrays

    def release(self) -> None:
        """Leave the file to be written over; take its name away if an array of it is in use."""
        try:
            if self._memory is not None:
                self._memory.close()
            in_use = False
        except BufferError:  # an array still refers to it
            in_use = True
        if in_use or self._size > KEPT_BYTES:
            self._path.unlink(missing_ok=True)


def _checked(
    file: ArrayFile, dtypes: Mapping[str, str], size_bytes: int
) -> Iterator[tuple[ArrayEntry, np.dtype[Any]]]:
    """Give each entry with its dtype, held against a file of this size."""
    names = [entry.name for entry in file.entries]
    if len(set(names)) != len(names):
        raise InfraError(f"{file.file}: two arrays have the same name")
    for entry in file.entries:
        dtype = _checked_dtype(file.file, entry, dtypes)
        end = entry.offset_bytes + prod(entry.shape) * dtype.itemsize
        if min((entry.offset_bytes, *entry.shape)) < 0 or end > size_bytes:
            raise InfraError(f"{file.file}: array {entry.name} lies outside the file")
        yield entry, dtype


def _open(folder: Path, file: str) -> int:
    """Open a plain file of the folder: no link out of it, no FIFO that would block."""
    if Path(file).name != file:
        raise InfraError(f"array file {file!r} is not a name in the worker's folder")
    try:
        descriptor = os.open(folder / file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise InfraError(f"array file {file!r} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InfraError(f"array file {file!r} is not a plain file")
    return descriptor


def _checked_dtype(file: str, entry: ArrayEntry, dtypes: Mapping[str, str]) -> np.dtype[Any]:
    if entry.name not in dtypes:
        raise InfraError(f"{file}: nobody asked for an array {entry.name!r}")
    dtype = numpy_dtype(dtypes[entry.name])
    if _STORAGE.get(entry.dtype) != dtype.itemsize:
        raise InfraError(
            f"{file}: array {entry.name} is stored as {entry.dtype}, not as {dtypes[entry.name]} is"
        )
    return dtype


_FILE = "inputs"


class WrittenInputs:
    """The last arrays that were written, known by identity: inputs never change in place."""

    def __init__(self) -> None:
        """Nothing is written yet."""
        self._folder: Path | None = None
        self._arrays: Arrays = {}  # kept, so that no other array can have the identity of one
        self._written: ArrayFile | None = None

    def file_in(self, folder: Path, arrays: Arrays) -> ArrayFile:
        """Return what a message says about `arrays`, written to `folder` unless they are there."""
        if self._written is None or folder != self._folder or not self._holds(arrays):
            self._written = None  # until all of it lies there
            self._folder, self._arrays = folder, dict(arrays)
            self._written = write_arrays(folder, _FILE, arrays.items())
        return self._written

    def _holds(self, arrays: Arrays) -> bool:
        return self._arrays.keys() == arrays.keys() and all(
            self._arrays[name] is array for name, array in arrays.items()
        )
