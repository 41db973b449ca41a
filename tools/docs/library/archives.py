"""Members of wheels and sdists, read one by one: nothing is unpacked and nothing in them is run.

Archives are not trusted beyond their hash: names that lead out of them are refused, sizes are
capped while reading, whatever the archive states.
"""

import hashlib
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from kopt.tools.docs.sources import Member, SourceUnavailable

from .file_filter import MAX_FILE_BYTES, is_wanted_path
from .pins import MemberRule, Rules, path_by

MAX_MEMBERS = 100_000
MAX_UNPACKED_BYTES = 2_000_000_000
"""Limit on an sdist, which is decompressed up to its last member; vLLM's has 0.2 GB."""

ALL_MEMBERS: Rules = (MemberRule(under=""),)
_BROKEN = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,  # a compression that zipfile does not know
    RuntimeError,  # an encrypted member
    UnicodeDecodeError,
    ValueError,
)


def archive_members(archive: Path, rules: Rules) -> Iterator[Member]:
    """Yield the members of a wheel or sdist that `rules` take and whose names are wanted.

    Raises:
        SourceUnavailable: The archive is damaged, or not to be trusted.
    """
    if archive.name.endswith((".whl", ".zip")):
        with archive.open("rb") as file:
            yield from wheel_members(file, archive.name, rules)
    else:
        with _named(archive.name):
            yield from _sdist_members(archive, rules)


def wheel_members(file: IO[bytes], name: str, rules: Rules) -> Iterator[Member]:
    """Yield the members of the zip archive `file` called `name`; see `archive_members`.

    Raises:
        SourceUnavailable: The archive is damaged, or not to be trusted.
    """
    refuse_large_directory(file)
    with _named(name), zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
        if len(infos) > MAX_MEMBERS:
            raise SourceUnavailable(f"the archive has more than {MAX_MEMBERS:,} members: refused")
        for info in infos:
            path = _wanted_path(info.filename, info.file_size, rules)
            if path is not None and not info.is_dir():
                with archive.open(info) as member:
                    # Without a limit zipfile unpacks all of a member that understates its size.
                    yield path, member.read(MAX_FILE_BYTES)


def members_digest(members: Iterable[Member]) -> str:
    """Return the SHA-256 over members: that of `sha256sum` over them, in the order of paths.

    That is of the lines `<sha256>  <path>`, each with its end.
    """
    lines = sorted((path, hashlib.sha256(data).hexdigest()) for path, data in members)
    text = "".join(f"{digest}  {path}\n" for path, digest in lines)
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def _named(archive: str) -> Generator[None]:
    """Turn what the archive modules raise on damage into one line."""
    try:
        yield
    except _BROKEN as error:
        raise SourceUnavailable(f"{archive} cannot be read: {error}") from error


def _sdist_members(archive: Path, rules: Rules) -> Iterator[Member]:
    with tarfile.open(archive, "r|gz") as stream:
        for count, info in enumerate(stream):
            if count >= MAX_MEMBERS or info.offset_data + info.size > MAX_UNPACKED_BYTES:
                raise SourceUnavailable(
                    f"{archive.name} unpacks to more than {MAX_UNPACKED_BYTES:,} bytes "
                    f"or {MAX_MEMBERS:,} members: refused"
                )
            path = _wanted_path(info.name, info.size, rules)
            if path is not None and info.isreg():
                member = stream.extractfile(info)
                if member is not None:
                    yield path, member.read(MAX_FILE_BYTES)


def _wanted_path(name: str, size: int, rules: Rules) -> str | None:
    if name.startswith("/") or "\\" in name or ".." in PurePosixPath(name).parts:
        raise SourceUnavailable(
            f"the archive has a member {name!r}, which leads out of it: refused"
        )
    path = path_by(rules, name)
    return path if path is not None and is_wanted_path(path, size) else None


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
