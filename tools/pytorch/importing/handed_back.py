"""Reading what the child left in its folder: regular files of limited size, never through links.

The user's Python writes into that folder. A link there could name a file that the sandbox hides, a
pipe would never end, and a large file would fill the memory of the process that reads it.
"""

import io
import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.config.errors import ToolError

CONSTANT_BYTES = 4 << 30
"""The most that one constant may take."""


def read_regular(path: Path, limit_bytes: int) -> bytes:
    """Return the content of `path`.

    Raises:
        OSError: It is missing, a link, no regular file, or larger than `limit_bytes`.
    """
    # Without O_NONBLOCK a pipe would be waited for before it can be told from a file.
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(handle, "rb") as file:
        state = os.fstat(handle)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(f"{path.name} is no regular file")
        if state.st_size > limit_bytes:
            raise OSError(f"{path.name} has {state.st_size} bytes; {limit_bytes} are allowed")
        return file.read(limit_bytes)


def read_constant(path: Path) -> npt.NDArray[Any]:
    """Return the array in `path`.

    Raises:
        ToolError: It is none that can be read without running code.
    """
    try:
        array = np.load(io.BytesIO(read_regular(path, CONSTANT_BYTES)), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ToolError(f"the constant {path.name} cannot be taken over: {error}") from error
    return np.asarray(array)
