"""Folders that code is run from: nobody but the user may be able to put anything there.

It is not for folders of data. Who can write to the folder of a launcher, or to one above it within
KOPT_HOME, decides what the next command of this user runs.
"""

import os
import shlex
import stat
from pathlib import Path

from .errors import SetupError
from .settings import ensure_folder

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def ensure_trusted_folder(path: Path, home: Path) -> Path:
    """Create `path` below `home` (mode 0700), check both and what lies between, and return it.

    Raises:
        SetupError: It cannot be created, or another user owns or can write one of them.
    """
    ensure_folder(path)
    chain = [path, *path.parents]
    folders = chain[: chain.index(home) + 1] if home in chain else [path]
    foreign = [folder for folder in folders if folder.stat().st_uid not in (0, os.geteuid())]
    if foreign:
        raise SetupError(
            f"{_listed(foreign)} belongs to another user, and kopt runs code from there: set"
            " KOPT_HOME to a folder of your own"
        )
    loose = [folder for folder in folders if folder.stat().st_mode & _OTHERS_WRITE]
    if loose:
        raise SetupError(
            f"other users can write to {_listed(loose)}, and kopt runs code from there: if you"
            f" know all that is in it, chmod go-w {_listed(loose)}; else remove it"
        )
    return path


def is_trusted_file(path: Path) -> bool:
    """Return whether `path` is an ordinary file that only the user, or root, can have written."""
    try:
        status = path.lstat()
    except OSError:
        return False
    is_own = status.st_uid in (0, os.geteuid())
    return is_own and stat.S_ISREG(status.st_mode) and not status.st_mode & _OTHERS_WRITE


def _listed(folders: list[Path]) -> str:
    return " ".join(shlex.quote(str(folder)) for folder in folders)
