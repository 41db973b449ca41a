"""Remembers which inputs lie in a worker's folder already: a case runs twice on the same arrays."""

from pathlib import Path

from kopt.tools.devices.device import Arrays

from .array_file import write_arrays
from .messages import ArrayFile

_FILE = "inputs"


class WrittenInputs:
    """The last arrays that were written, known by identity: nobody changes inputs in place."""

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
