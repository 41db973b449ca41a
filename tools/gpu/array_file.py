"""Named arrays in one file, each at an aligned offset: how inputs and outputs reach a worker.

Elements travel as unsigned integers of their width, since numpy itself knows neither bfloat16 nor
fp8; the problem's dtypes give the view back. The file says nothing about itself: names, shapes and
offsets are in the message that names it, and every entry is held against the file before it is
read, because the other side may be broken.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.config.errors import InfraError
from kopt.kernels.dtypes import numpy_dtype
from kopt.tools.device import Arrays

from .messages import ArrayEntry, ArrayFile

ALIGNMENT_BYTES = 256
_STORAGE = {f"uint{8 * size}": size for size in (1, 2, 4, 8)}


def write_arrays(
    folder: Path, file: str, arrays: Iterable[tuple[str, npt.NDArray[Any]]]
) -> ArrayFile:
    """Write `arrays` to `folder / file` and return what a message says about them.

    Args:
        folder: The worker's folder.
        file: A name without folders; a file of that name is replaced.
        arrays: Elements of 1, 2, 4 or 8 bytes; any number of axes, also none or an empty one.
    """
    entries: list[ArrayEntry] = []
    offset = 0
    (folder / file).unlink(missing_ok=True)  # never write into a file that somebody may be reading
    with (folder / file).open("xb") as target:
        for name, array in arrays:
            offset = -(-offset // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
            target.seek(offset)
            bits = np.ascontiguousarray(array).reshape(-1).view(f"u{array.dtype.itemsize}")
            target.write(bits.data)
            entries.append(
                ArrayEntry(name=name, dtype=bits.dtype.name, shape=array.shape, offset_bytes=offset)
            )
            offset += bits.nbytes
        target.truncate(offset)  # an empty array at the end lies within the file too
    return ArrayFile(file=file, entries=tuple(entries))


def read_arrays(folder: Path, file: ArrayFile, dtypes: Mapping[str, str]) -> Arrays:
    """Return every array of `file`, copied, so that nobody can change it later.

    Args:
        folder: The worker's folder.
        file: What the other side said.
        dtypes: Problem dtype of each name; names that do not occur in `file` are ignored.

    Raises:
        InfraError: There is no such plain file in the folder, an entry lies outside it, or its
            name or width is not one of `dtypes`.
    """
    names = [entry.name for entry in file.entries]
    if len(set(names)) != len(names):
        raise InfraError(f"{file.file}: two arrays have the same name")
    descriptor = _open(folder, file.file)
    with os.fdopen(descriptor, "rb") as source:
        size = os.fstat(descriptor).st_size
        arrays: Arrays = {}
        for entry in file.entries:
            dtype = _checked_dtype(file.file, entry, dtypes)
            count = prod(entry.shape)
            if (
                min((entry.offset_bytes, *entry.shape)) < 0
                or entry.offset_bytes + count * dtype.itemsize > size
            ):
                raise InfraError(f"{file.file}: array {entry.name} lies outside the file")
            source.seek(entry.offset_bytes)
            elements = np.fromfile(source, f"u{dtype.itemsize}", count)
            if elements.size != count:
                raise InfraError(f"{file.file}: the file shrinks while it is read")
            arrays[entry.name] = elements.view(dtype).reshape(entry.shape)
    return arrays


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
