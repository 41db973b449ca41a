"""A file on a web server that is read in parts: a few members of a large wheel cost a few requests.

It is an ordinary binary file for `zipfile`, and nothing of it is kept.
"""

import io

import httpx2

from .unavailable import SourceUnavailable
from .web_client import failure, refuse_status

BLOCK_BYTES = 1 << 18
"""Of one request at least: neighbouring headers of a wheel share it."""
MAX_FETCHED_BYTES = 64_000_000
"""Of one file: who needs more had better download it."""


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
