"""Pinned files, kept in a folder: whole or not there, checked before anyone reads them.

A cut download goes on where it ended, in this run and in the next. Of several processes that want
one file the first fetches it and the others wait.
"""

import hashlib
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO

import httpx2

from kopt.config.files import ensure_folder, put_in_place
from kopt.config.locks import file_lock
from kopt.config.settings import Settings
from kopt.tools.docs.sources import SourceUnavailable

from .package_index import failure, file_url, refuse_status, web_client
from .pins import PackagePin

MOST_ATTEMPTS = 5
"""Connections for one file; each goes on where the last was cut."""
OnBytes = Callable[[int, int | None], None]
"""Is told the bytes that are here, and how many there will be if that is known."""


def downloads_folder(settings: Settings) -> Path:
    """Return the folder of downloaded files, made if need be.

    Raises:
        SetupError: It cannot be made.
    """
    return ensure_folder(settings.docs_cache / "downloads")


def pinned_file(pin: PackagePin, settings: Settings, on_bytes: OnBytes) -> Path:
    """Return the file of `pin`, downloaded unless it is here already.

    Raises:
        SourceUnavailable: It cannot be had, or is not the pinned file.
        SetupError: There is no folder to keep it.
    """
    path = downloads_folder(settings) / pin.filename
    with kept_lock(path), writing(path.parent):
        if not (path.is_file() and _digest(path) == pin.sha256):
            _download(pin, settings.package_index, path, on_bytes)
        on_bytes(pin.size_bytes, pin.size_bytes)
    return path


@contextmanager
def kept_lock(path: Path) -> Generator[None]:
    """Hold the lock of what is kept at `path`, a file beside it.

    Raises:
        SourceUnavailable: The lock cannot be made.
    """
    with ExitStack() as held:
        with writing(path.parent):
            held.enter_context(file_lock(path.with_name(f"{path.name}.lock")))
        yield


@contextmanager
def writing(folder: Path) -> Generator[None]:
    """Turn what the disk refuses into one line.

    Raises:
        SourceUnavailable: The disk is full, or the like.
    """
    try:
        yield
    except OSError as error:
        raise SourceUnavailable(
            f"cannot write {folder}: {error.strerror or error}; "
            "make room or set KOPT_HOME to another folder"
        ) from error


def _download(pin: PackagePin, index: str, path: Path, on_bytes: OnBytes) -> None:
    part = path.with_name(f"{path.name}.part")
    resumed = part.exists()
    with web_client() as client:
        url = file_url(client, index, pin.project, pin.filename)
        _fetch(client, url, part, pin.size_bytes, on_bytes)
        if resumed and _digest(part) != pin.sha256:  # what was here was of something else
            part.unlink()
            _fetch(client, url, part, pin.size_bytes, on_bytes)
    found = _digest(part)
    if found != pin.sha256:
        part.unlink()
        raise SourceUnavailable(
            f"{pin.filename} from {url.host} has sha256 {found}, pinned is {pin.sha256}: "
            "deleted unread; set PIP_INDEX_URL to an index that has the original"
        )
    put_in_place(part, path)


def _fetch(
    client: httpx2.Client, url: httpx2.URL, part: Path, size_bytes: int, on_bytes: OnBytes
) -> None:
    """Fill `part` from `url`, going on where it ends."""
    cut: httpx2.HTTPError | None = None
    for _ in range(MOST_ATTEMPTS):
        try:
            _fetch_once(client, url, part, size_bytes, on_bytes)
        except (httpx2.ReadError, httpx2.RemoteProtocolError) as error:
            cut = error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise failure(error, url.host) from error
        if part.stat().st_size >= size_bytes:
            return
    kept = part.stat().st_size
    raise SourceUnavailable(
        f"{url.host} cut {part.stem} {MOST_ATTEMPTS} times; {kept:,} of {size_bytes:,} bytes are "
        "kept: run the build again to go on"
    ) from cut


def _fetch_once(
    client: httpx2.Client, url: httpx2.URL, part: Path, size_bytes: int, on_bytes: OnBytes
) -> None:
    with part.open("ab") as file:
        begin = file.tell()
        if begin >= size_bytes:
            return
        headers = {"Range": f"bytes={begin}-"} if begin else {}
        with client.stream("GET", url, headers=headers) as response:
            if response.status_code == 416:  # what is here is not the beginning of that file
                _empty(file)
                return
            refuse_status(response, part.stem)
            if begin and response.status_code != 206:  # all of it from the beginning
                _empty(file)
            for block in response.iter_raw():
                file.write(block)
                on_bytes(file.tell(), size_bytes)
                if file.tell() > size_bytes:
                    return  # another file: its hash will say so


def _empty(file: BinaryIO) -> None:
    file.seek(0)
    file.truncate()


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
