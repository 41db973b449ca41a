"""The programs that were built before: a folder each, named by all that they are made of.

Any number of processes share them. A program is put in place by one rename, and those that were not
used for long are forgotten.
"""

import os
import shutil
from pathlib import Path

from pydantic import ValidationError

from kopt.config.files import publish_folder, remove_folder

from .program_facts import SimProgram


def find_kept(folder: Path) -> SimProgram | None:
    """Return the program in `folder` if it is whole; what is left of a broken one is removed."""
    if not folder.is_dir():
        return None  # and if another process puts it there now, it stays
    try:
        program = SimProgram.model_validate_json((folder / "program.json").read_bytes())
        os.utime(folder)
        if os.access(program.executable, os.X_OK):
            return program
    except (OSError, ValidationError):
        pass  # cut off by a full disk: built again
    remove_folder(folder)
    return None


def keep(work: Path, folder: Path) -> None:
    """Put a finished build in place; another process may have been quicker."""
    for name in ("unit.cpp", "unit.s", "unit.o", "unit.tsan"):
        (work / name).unlink(missing_ok=True)
    for scratch in ("home", "tmp"):  # the sandbox's
        shutil.rmtree(work / scratch, ignore_errors=True)
    publish_folder(work, folder)
