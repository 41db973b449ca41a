"""The size of a zip archive's directory, looked at before `zipfile` reads all of it.

Source: PKWARE, "APPNOTE.TXT - .ZIP File Format Specification" 6.3.10, 4.3.15 and 4.3.16.
"""

import io
from typing import IO

from .unavailable import SourceUnavailable

MAX_DIRECTORY_BYTES = 16_000_000
"""100,000 members with names of 100 bytes; the largest pinned wheel has 2 MB."""
_END, _END_BYTES = b"PK\5\6", 22
_LOCATOR, _LOCATOR_BYTES = b"PK\6\7", 20
_MOST_COMMENT = 65_535


def refuse_large_directory(file: IO[bytes]) -> None:
    """Refuse an archive whose directory alone would fill the memory; where `file` is then is open.

    What is no archive passes: `zipfile` says so.

    Raises:
        SourceUnavailable: The directory is larger than MAX_DIRECTORY_BYTES, or of the kind that
            only archives with more than 65,535 members or 4 GB need.
    """
    end = file.seek(0, io.SEEK_END)
    begin = max(0, end - _LOCATOR_BYTES - _END_BYTES - _MOST_COMMENT)
    file.seek(begin)
    tail = file.read(end - begin)
    at = len(tail) - _END_BYTES
    if not (tail[max(0, at) :].startswith(_END) and tail.endswith(b"\0\0")):
        at = tail.rfind(_END)
    if at < 0:
        return
    stated_bytes = int.from_bytes(tail[at + 12 : at + 16], "little")
    is_zip64 = tail[max(0, at - _LOCATOR_BYTES) : at].startswith(_LOCATOR)
    if is_zip64 or stated_bytes > MAX_DIRECTORY_BYTES:
        raise SourceUnavailable("the archive has more members than any library: refused")
