"""Files and folders that are whole or absent, folders that code may be run from, content hashes.

What is new is written beside its place and renamed into it, so that a reader sees the old content
or the new, never half of it, whichever process is killed when.
"""

import hashlib
import os
import re
import shlex
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import SetupError

TEMPORARY_PREFIX = ".new-"
"""Begins the names of what is being written; the number of its process follows."""
_ABANDONED_AFTER_S = 3600.0
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def content_hash(parts: Iterable[str | bytes]) -> str:
    """Return the SHA-256 over `parts` and their lengths, 64 hex digits: the key of a cache."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


def write_atomically(
    path: Path, data: str | bytes, *, durable: bool = True, mode: int | None = None
) -> None:
    """Replace the file at `path` by `data`; see `replacing_file`."""
    with replacing_file(path, durable=durable, mode=mode) as fresh:
        fresh.write_bytes(data.encode() if isinstance(data, str) else data)


@contextmanager
def replacing_file(path: Path, *, durable: bool = True, mode: int | None = None) -> Generator[Path]:
    """Give an empty file beside `path` that takes its place when the `with` ends without an error.

    Args:
        path: The file to replace or to create; its folder exists.
        durable: Also survive a power loss: the data is on the disk before the name, and the name
            before the return.
        mode: Permissions of the file; 0600 if None.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=_prefix(), suffix=path.suffix)
    os.close(handle)
    fresh = Path(name)
    try:
        yield fresh
        if mode is not None:
            fresh.chmod(mode)
        if durable:
            put_in_place(fresh, path)
        else:
            fresh.replace(path)
    except BaseException:  # a full disk: trying again must not leave a file each time
        fresh.unlink(missing_ok=True)
        raise


def put_in_place(fresh: Path, path: Path) -> None:
    """Rename `fresh`, a finished file, to `path`: its data is on the disk before the name is."""
    fsync_path(fresh)
    fresh.replace(path)
    fsync_path(path.parent)


def create_file(path: Path, data: bytes) -> None:
    """Create the file `path` (mode 0600) with `data`; one that is there already stays as it is.

    The data is on the disk before the name, and the name before the return.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=_prefix())
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        fsync_path(Path(name))
        with suppress(FileExistsError):
            os.link(name, path)
    finally:
        os.unlink(name)
    fsync_path(path.parent)


@contextmanager
def staging_folder(folder: Path) -> Generator[Path]:
    """Give an empty folder (mode 0700) beside `folder`, to fill and then to `publish_folder`.

    What was not published is removed at the end.
    """
    staging = Path(tempfile.mkdtemp(dir=folder.parent, prefix=_prefix()))
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def publish_folder(
    staging: Path, folder: Path, *, replaces: bool = False, durable: bool = False
) -> bool:
    """Rename `staging` to `folder`, unless another process was first: its folder stays.

    Args:
        staging: The finished folder, on the same file system.
        folder: Its place; an empty folder there gives way.
        replaces: A folder there gives way although it is not empty.
        durable: Its files are on the disk before the name, and the name before the return.

    Returns:
        Whether this process was first.
    """
    if durable:
        for path in (*staging.rglob("*"), staging):
            fsync_path(path)
    if replaces:
        remove_folder(folder)
    try:
        staging.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
        return False
    if durable:
        fsync_path(folder.parent)
    return True


def remove_folder(folder: Path) -> None:
    """Remove `folder`, at once as others see it; what a process has mapped of it stays mapped."""
    with suppress(OSError), staging_folder(folder) as grave:  # another process may be quicker
        folder.rename(grave / folder.name)


def evict_least_used(root: Path, limit: int, size_of: Callable[[Path], int] = lambda _: 1) -> None:
    """Remove folders of `root`, those not touched for longest first, down to `limit` in all.

    Args:
        root: A cache; each folder in it is an entry whose time of modification is its last use.
        limit: The largest sum of sizes that may stay.
        size_of: Gives the size of an entry; the number of entries is limited without it.
    """
    entries: list[tuple[float, int, Path]] = []
    for path in root.iterdir():
        with suppress(OSError):  # removed by another process in the meantime
            is_staging = path.name.startswith(TEMPORARY_PREFIX)
            if path.is_dir() and not (is_staging and _is_written(path.name)):
                used_s = 0.0 if is_staging else path.stat().st_mtime
                entries.append((used_s, size_of(path), path))
    total = sum(size for _, size, _ in entries)
    for _, size, path in sorted(entries):
        if total <= limit:
            return
        remove_folder(path)
        total -= size


def folder_size(folder: Path) -> tuple[int, int]:
    """Return the bytes and the number of the files below `folder`, which others may change."""
    size = count = 0
    for place, _folders, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                size += Path(place, name).lstat().st_size
                count += 1
    return size, count


def fsync_path(path: Path) -> None:
    """Wait until a file's data, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def ensure_folder(path: Path) -> Path:
    """Create `path` with its parents, each of mode 0700, and return it.

    Raises:
        SetupError: It cannot be created or written; the message names KOPT_HOME.
    """
    try:
        # Path.mkdir gives its mode to the last folder alone; the umask would decide on the others.
        for folder in (*reversed(path.parents), path):
            if not folder.is_dir():
                folder.mkdir(exist_ok=True, mode=0o700)
    except OSError as error:
        raise SetupError(
            f"cannot create {path}: {error.strerror}; set KOPT_HOME to a folder you can write"
        ) from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise SetupError(f"cannot write to {path}; set KOPT_HOME to a folder you can write")
    return path


def ensure_trusted_folder(path: Path, home: Path) -> Path:
    """Create `path` below `home` (mode 0700), check both and what lies between, and return it.

    It is for folders that code is run from: a user who can write to the folder of a launcher, or to
    one above it within KOPT_HOME, decides what the next command of this user runs.

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


def sweep_abandoned(parent: Path, pattern: str = f"{TEMPORARY_PREFIX}*") -> None:
    """Remove what killed processes left in `parent`: untouched for an hour, its writer is dead.

    An hour, because the writer may live in another container, where it is not seen.
    """
    oldest = time.time() - _ABANDONED_AFTER_S
    for path in parent.glob(pattern):
        with suppress(OSError):  # another process was quicker
            if path.stat().st_mtime > oldest or _is_written(path.name):
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


def _prefix() -> str:
    return f"{TEMPORARY_PREFIX}{os.getpid()}-"


def _is_written(name: str) -> bool:
    """Return whether the process that made the temporary folder called `name` still lives."""
    found = re.search(r"-(\d+)-", name)
    return found is not None and Path("/proc", found[1]).exists()


def _listed(folders: list[Path]) -> str:
    return " ".join(shlex.quote(str(folder)) for folder in folders)
