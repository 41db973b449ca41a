"""What a message says about the arrays of a file (array_file.py): names, shapes, places."""

from kopt.kernels.record import Record


class ArrayEntry(Record):
    """One array of a file."""

    name: str
    dtype: str
    """numpy storage dtype of equal width: uint8, uint16, uint32 or uint64."""
    shape: tuple[int, ...]
    offset_bytes: int


class ArrayFile(Record):
    """Named arrays in one file of the worker's folder."""

    file: str
    """Name within the folder."""
    entries: tuple[ArrayEntry, ...]
