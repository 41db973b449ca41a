"""A few members of a wheel that is too large to download, read where it lies and kept here.

The wheel's own hash cannot be checked without all of it, so the selected members have one.
"""

import io
import zipfile
from pathlib import Path
from typing import cast

from kopt.config.files import replacing_file
from kopt.config.settings import Settings

from .archives import ALL_MEMBERS, Member, archive_members, members_digest, wheel_members
from .download import OnBytes, downloads_folder, kept_lock, writing
from .package_index import file_url
from .pins import PackagePin
from .range_file import BLOCK_BYTES, RangeFile
from .unavailable import SourceUnavailable
from .web_client import web_client

MOST_BYTES = 50_000_000
"""Of the selected members, unpacked: all pinned libraries together have 46 MB."""


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
