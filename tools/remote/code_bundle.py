"""kopt's own code as one archive, named by its content: what another machine runs, too.

Only what is imported or read by a device goes: no manual, no tests.
"""

import gzip
import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import kopt

_FOLDERS = ("config", "kernels", "tools", "search", "server")
_TOPS = tuple((name,) for name in _FOLDERS)
_ROOT_FILES = ("__init__.py",)
_LEFT_OUT = ("__pycache__",)


@dataclass(frozen=True)
class CodeBundle:
    """The code of one version, and its name."""

    digest: str
    """SHA-256 over paths and contents, 32 hex digits."""
    root: Path

    def archive(self) -> bytes:
        """Return the files as `kopt/...` in a compressed tar; equal files give equal bytes."""
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for path in _files(self.root):
                data = path.read_bytes()
                entry = tarfile.TarInfo(f"kopt/{path.relative_to(self.root).as_posix()}")
                entry.size, entry.mode = len(data), 0o644
                tar.addfile(entry, io.BytesIO(data))
        return gzip.compress(raw.getvalue(), mtime=0)


@lru_cache
def code_bundle(root: Path | None = None) -> CodeBundle:
    """Return the code below `root`; None: the kopt that runs here."""
    folder = Path(next(iter(kopt.__path__))) if root is None else root
    digest = hashlib.sha256()
    for path in _files(folder):
        data = path.read_bytes()
        name = path.relative_to(folder).as_posix().encode()
        for part in (name, data):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    return CodeBundle(digest.hexdigest()[:32], folder)


def code_stamp(root: Path | None = None) -> str:
    """Return 32 hex digits that are others once a file of the code has changed; reads none.

    On one machine it tells versions apart as `CodeBundle.digest` does, in a tenth of the time: the
    kernel renews the time of change of a file with whatever is done to it. An equal copy of the
    code has another one.

    Args:
        root: Where the code lies; None: the kopt that runs here.
    """
    folder = Path(next(iter(kopt.__path__))) if root is None else root
    seen = hashlib.sha256()
    for entry in _entries(folder):
        found = entry.stat()
        told = (entry.path, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        seen.update(repr(told).encode())
    return seen.hexdigest()[:32]


def _entries(root: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the files of `_files`, sorted by folder."""
    with os.scandir(root) as top:
        yield from (entry for entry in top if entry.name in _ROOT_FILES)
    waiting = [str(root / name) for name in _FOLDERS]
    while waiting:
        with os.scandir(waiting.pop()) as folder:
            for entry in sorted(folder, key=lambda one: one.name):
                if entry.name in _LEFT_OUT:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
                elif entry.is_file():
                    yield entry


def bundled_path(folder: Path) -> str | None:
    """Return where a folder is within the code that is sent; None if it is not a part of it."""
    for root in map(Path, kopt.__path__):
        for seen, base in ((folder.absolute(), root), (folder.resolve(), root.resolve())):
            if seen.is_relative_to(base) and seen.relative_to(base).parts[:1] in _TOPS:
                return seen.relative_to(base).as_posix()
    return None


def _files(root: Path) -> Iterator[Path]:
    yield from (root / name for name in _ROOT_FILES)
    for folder in _FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and not any(part in _LEFT_OUT for part in path.parts):
                yield path
