"""A file with secrets, read only where nobody but its user can have read or written it."""

import os
import stat
from pathlib import Path

from .errors import ToolError

MAX_BYTES = 64 * 1024


def private_text(path: Path, how: str) -> str:
    """Return what is in the file.

    Args:
        path: The file.
        how: How one is made, for messages.

    Raises:
        ToolError: It is no file, too large, cannot be read, or others can read or change it.
    """
    try:
        # Without O_NONBLOCK a named pipe would be waited for.
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(file, "rb") as stream:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise ToolError(f"{path} is not a file; {how}")
            if status.st_mode & 0o077:
                mode = stat.S_IMODE(status.st_mode)
                raise ToolError(f"others can read {path} (mode {mode:04o}): chmod 600 {path}")
            if status.st_uid not in (0, os.geteuid()):
                raise ToolError(f"{path} belongs to another user, who can read and change it")
            data = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ToolError(f"cannot read {path}: {error.strerror}; {how}") from error
    if len(data) > MAX_BYTES:
        raise ToolError(f"{path} is no token file: it has more than {MAX_BYTES} bytes")
    return data.decode("ascii", errors="replace")


def lines_of(text: str) -> list[tuple[int, str]]:
    """Return the lines of a file with their numbers from 1, without blank ones and remarks (#)."""
    stripped = ((number, line.strip()) for number, line in enumerate(text.splitlines(), start=1))
    return [(number, line) for number, line in stripped if line and not line.startswith("#")]
