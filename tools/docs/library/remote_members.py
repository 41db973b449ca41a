"""A few members of a wheel that is too large to download, read where it lies and kept here.

The wheel's own hash cannot be checked without all of it, so the selected members have one.
"""

import io
import zipfile
from pathlib import Path
from typing import cast

import httpx2

from kopt.config.files import replacing_file
from kopt.config.settings import Settings
from kopt.tools.docs.sources import Member, SourceUnavailable

from .archives import ALL_MEMBERS, archive_members, members_digest, wheel_members
from .download import OnBytes, downloads_folder, kept_lock, writing
from .package_index import failure, file_url, refuse_status, web_client
from .pins import PackagePin

MOST_BYTES = 50_000_000
"""Limit on the selected members, unpacked: all pinned libraries together have 46 MB."""


def remote_members(pin: PackagePin, settings: Settings, on_bytes: OnBytes) -> list[Member]:
    """Return the members of the wheel of `pin` that its rules take.

    Raises:
        SourceUnavailable: They cannot be had, or are not the pinned ones.
        SetupError: There is no folder to keep them.
    """
    kept = downloads_folder(settings) / f"{pin.filename}.members.zip"
    with kept_lock(kept):
        if (members := _kept_members(kept)) and members_digest(members) == pin.members_sha256:
            return members
        members = _fetched_members(pin, settings.package_index, on_bytes)
        found = members_digest(members)
        if found != pin.members_sha256:
            raise SourceUnavailable(
                f"the members of {pin.filename} have sha256 {found}, pinned is "
                f"{pin.members_sha256}: not used; set PIP_INDEX_URL to an index that has the "
                "original"
            )
        with writing(kept.parent):
            _keep(kept, members)
    return members


def _kept_members(kept: Path) -> list[Member]:
    """Return what an earlier call kept; nothing if that is damaged."""
    try:
        return list(archive_members(kept, ALL_MEMBERS))
    except (OSError, SourceUnavailable):
        return []


def _fetched_members(pin: PackagePin, index: str, on_bytes: OnBytes) -> list[Member]:
    with web_client() as client:
        url = file_url(client, index, pin.project, pin.filename)
        members: list[Member] = []
        unpacked_bytes = 0
        with RangeFile(client, url, pin.size_bytes) as remote:
            # BufferedReader makes whole blocks of zipfile's many small reads.
            file = io.BufferedReader(cast("io.RawIOBase", remote), BLOCK_BYTES)
            for member in wheel_members(file, pin.filename, pin.members):
                unpacked_bytes += len(member[1])
                if unpacked_bytes > MOST_BYTES:
                    raise SourceUnavailable(
                        f"the members of {pin.filename} unpack to more than {MOST_BYTES:,} bytes: "
                        "not used; set PIP_INDEX_URL to an index that has the original"
                    )
                members.append(member)
                on_bytes(remote.fetched_bytes, None)
    return members


def _keep(kept: Path, members: list[Member]) -> None:
    with (
        replacing_file(kept, durable=False) as fresh,
        zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for path, data in members:
            archive.writestr(path, data)


BLOCK_BYTES = 1 << 18
"""Least size of one request: neighboring headers of a wheel share it."""
MAX_FETCHED_BYTES = 64_000_000
"""Limit on the parts of one file: more is not worth it beside a download."""


class RangeFile(io.RawIOBase):
    """Reads `size_bytes` of `url` by HTTP range requests.

    Raises:
        SourceUnavailable: From reads: the server fails, or serves no ranges.
    """

    def __init__(self, client: httpx2.Client, url: httpx2.URL, size_bytes: int) -> None:
        """Ask nothing yet."""
        super().__init__()
        self._client = client
        self._url = url
        self._size = size_bytes
        self._at = 0
        self.fetched_bytes = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position in bytes."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to `offset` from the start, the position or the end; return the position."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        """Fill `buffer` from the position on; return how many bytes there were."""
        wanted = min(len(buffer), self._size - self._at)
        if wanted <= 0:
            return 0
        data = self._range(self._at, wanted)
        buffer[:wanted] = data
        self._at += wanted
        return wanted

    def _range(self, begin: int, length: int) -> bytes:
        self.fetched_bytes += length
        if self.fetched_bytes > MAX_FETCHED_BYTES:
            raise SourceUnavailable(f"more than {MAX_FETCHED_BYTES:,} bytes would be fetched")
        host = self._url.host
        headers = {"Range": f"bytes={begin}-{begin + length - 1}"}
        try:
            with self._client.stream("GET", self._url, headers=headers) as response:
                refuse_status(response, self._url.path.rpartition("/")[2])
                if response.status_code != 206:
                    raise SourceUnavailable(f"{host} serves no parts of files (HTTP ranges)")
                return _exactly(response, begin, length)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise failure(error, host) from error


def _exactly(response: httpx2.Response, begin: int, length: int) -> bytes:
    stated = response.headers.get("content-range", "")
    data = b""
    for block in response.iter_raw():
        data += block
        if len(data) > length:
            break
    if not stated.startswith(f"bytes {begin}-") or len(data) != length:
        raise SourceUnavailable(f"{response.url.host} gave other parts of the file than asked for")
    return data
