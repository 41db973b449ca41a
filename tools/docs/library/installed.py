"""Source files of packages that are installed here, by the lists of their distributions.

Nothing of them is imported: that would run their code and need their GPU.
"""

from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from .archives import Member
from .file_filter import is_wanted_path
from .pins import Rules, path_by


def installed_version(project: str) -> str | None:
    """Return the version of `project` that is installed; None if none is."""
    found = _found(project)
    return found.version if found else None


def installed_members(project: str, rules: Rules) -> Iterator[Member]:
    """Yield the files of the installed `project` that `rules` take and whose names are wanted.

    Files that are listed and gone, or lie outside the environment, are left out.
    """
    found = _found(project)
    for entry in (found.files if found else None) or ():
        path = path_by(rules, entry.as_posix())
        if path is None or ".." in entry.parts:
            continue
        file = Path(str(entry.locate()))
        try:
            if is_wanted_path(path, file.stat().st_size):
                yield path, file.read_bytes()
        except OSError:
            continue


def _found(project: str) -> Distribution | None:
    try:
        return distribution(project)
    except PackageNotFoundError:
        return None
