"""Source files of a folder of the user. Links in it are not followed: it cannot lead elsewhere."""

import os
from collections.abc import Iterator
from pathlib import Path

from .archives import Member
from .file_filter import is_wanted_path, is_wanted_text
from .unavailable import SourceUnavailable

MAX_ENTRIES = 200_000
"""Files and folders looked at; a home folder or a model cache has more, a project less."""
MAX_BYTES = 200_000_000
"""Of the wanted files; all pinned libraries together have 46 MB."""
_NO_SOURCES = frozenset({"__pycache__", "node_modules", "site-packages"})


def folder_members(folder: Path) -> Iterator[Member]:
    """Yield the wanted files below `folder`, in the order of their paths.

    Hidden entries and files that cannot be read are left out.

    Raises:
        SourceUnavailable: There is no such folder, or it is too large.
    """
    if not os.path.isdir(folder):
        raise SourceUnavailable(f"{folder} is not a folder")
    total_bytes = 0
    for path, file in _files(folder.resolve()):
        try:
            data = file.read_bytes() if is_wanted_path(path, file.stat().st_size) else None
        except OSError:
            continue
        if data is not None and is_wanted_text(path, data):
            total_bytes += len(data)
            if total_bytes > MAX_BYTES:
                raise SourceUnavailable(
                    f"{folder} has more than {MAX_BYTES:,} bytes of sources: name a smaller folder"
                )
            yield path, data


def _files(root: Path) -> Iterator[tuple[str, Path]]:
    seen = 0
    for parent, folders, names in os.walk(root, followlinks=False):
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and name not in _NO_SOURCES
        )
        seen += len(folders) + len(names)
        if seen > MAX_ENTRIES:
            raise SourceUnavailable(
                f"{root} has more than {MAX_ENTRIES:,} files: name a smaller folder"
            )
        for name in sorted(names):
            file = Path(parent, name)
            if not (name.startswith(".") or file.is_symlink()) and file.is_file():
                yield file.relative_to(root).as_posix(), file
