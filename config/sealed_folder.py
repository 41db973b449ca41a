"""Folders of a cache that are believed only as long as they are what was put there.

A manifest lies in each: the SHA-256 of every file. It is held against the files when a process
first uses the folder; one that does not fit is removed, noted for `kopt doctor`, and made again.
"""

import hashlib
import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from .files import publish_folder, remove_folder

logger = logging.getLogger(__name__)

MANIFEST = "manifest.json"
_NOTES = "damaged.log"
_NOTES_LIMIT_BYTES = 1 << 16


def publish_sealed(staging: Path, folder: Path, *, durable: bool = False) -> bool:
    """Write the manifest of `staging` and publish it; see `publish_folder`."""
    text = json.dumps(_digests(staging), indent=1)
    (staging / MANIFEST).write_text(f"{_digest(text.encode())}\n{text}", "utf-8")
    return publish_folder(staging, folder, durable=durable)


def is_sealed(folder: Path) -> bool:
    """Return whether `folder` lies there as it was published; a damaged one is removed.

    The files are read once per process and folder.
    """
    inode = _inode(folder)
    if inode is None:
        return False
    try:
        _check(folder, inode)
    except (OSError, ValueError) as error:
        if _inode(folder) == inode:  # else another process was quicker
            _note(folder, str(error))
            remove_folder(folder)
        return False
    return True


def damage_notes(cache: Path) -> tuple[str, ...]:
    """Return what was found damaged below `cache`, a folder of caches, one line each."""
    found: list[str] = []
    for path in (*cache.glob(f"*/{_NOTES}"), *cache.glob(f"*/*/{_NOTES}")):
        with suppress(OSError):
            found += path.read_text("utf-8", errors="replace").splitlines()
    return tuple(sorted(found))


@lru_cache(maxsize=4096)  # what is raised is not kept: the folder is looked at again
def _check(folder: Path, inode: int) -> None:
    """Return if `folder`, known by its inode, fits its manifest."""
    del inode
    said, _, text = (folder / MANIFEST).read_text("utf-8").partition("\n")
    if said != _digest(text.encode()):
        raise ValueError("its manifest was changed")
    expected: Mapping[str, str] = json.loads(text)
    found = _digests(folder)
    for name in sorted({*expected, *found}):
        if expected.get(name) != found.get(name):
            raise ValueError(f"{name} is not what was written")


def _inode(folder: Path) -> int | None:
    try:
        return folder.stat().st_ino
    except (FileNotFoundError, NotADirectoryError):
        return None


def _digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): _file_digest(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path != folder / MANIFEST
    }


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _note(folder: Path, why: str) -> None:
    logger.info("%s: %s; it is made again", folder, why)
    if not (folder / MANIFEST).exists():  # of an older kopt
        return
    path = folder.parent / _NOTES
    with suppress(OSError):  # a note is not worth a failure
        if path.exists() and path.stat().st_size > _NOTES_LIMIT_BYTES:
            path.unlink()
        handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(handle, "a", encoding="utf-8") as file:
            file.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {folder}: {why}; made again\n")
