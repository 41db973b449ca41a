"""Small records kept between benchmarks, one file each, under KOPT_HOME/cache/timing.

A file is written beside its place and renamed into it, so that it is whole or absent; its first
line is the hash of the rest. One that cannot be read, was changed, is of another key or too old
counts as absent: what it held is measured anew.
"""

from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from pydantic import AwareDatetime, JsonValue, ValidationError

from kopt.config.files import content_hash, ensure_folder, write_atomically
from kopt.config.settings import Settings
from kopt.kernels.record import Record

Kept = TypeVar("Kept", bound=Record)

AGE_LIMIT = timedelta(hours=24)
"""A driver's reload, another cooling, a changed power limit or a neighbor in the same host change
a device without changing any key; a day bounds for how long that goes unseen, and measuring anew
takes a fraction of a second."""


class _Entry(Record):
    """What a file holds."""

    key: dict[str, str]
    written_at: AwareDatetime
    kept: JsonValue


def load_kept(settings: Settings, key: Mapping[str, str], kind: type[Kept]) -> Kept | None:
    """Return what was kept under `key`; None if it is absent, damaged or older than a day."""
    try:
        said, _, text = _place(settings, key).read_text("utf-8").partition("\n")
        if said != content_hash([text]):
            return None
        entry = _Entry.model_validate_json(text)
        kept = kind.model_validate(entry.kept)
    except (OSError, UnicodeDecodeError, ValidationError):
        return None
    age = datetime.now(UTC) - entry.written_at
    if entry.key != dict(key) or not timedelta(0) <= age <= AGE_LIMIT:
        return None
    return kept


def keep(settings: Settings, key: Mapping[str, str], record: Record) -> None:
    """Keep `record` under `key`, in place of what was there.

    Raises:
        SetupError: The folder cannot be created or written.
    """
    place = _place(settings, key)
    ensure_folder(place.parent)
    kept = record.model_dump(mode="json")
    entry = _Entry(key=dict(key), written_at=datetime.now(UTC), kept=kept)
    text = entry.model_dump_json()
    with suppress(OSError):  # a full disk costs the reuse, not the measurement
        write_atomically(place, f"{content_hash([text])}\n{text}", durable=False)


def forget(settings: Settings, key: Mapping[str, str]) -> None:
    """Drop what was kept under `key`."""
    _place(settings, key).unlink(missing_ok=True)


def _place(settings: Settings, key: Mapping[str, str]) -> Path:
    digest = content_hash(f"{name}={value}" for name, value in sorted(key.items()))
    return settings.home / "cache" / "timing" / f"{digest}.json"
