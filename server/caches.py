"""What KOPT_HOME keeps to save time: each cache with its size, its limit, and how it is cleared.

Clearing never breaks a process that works: while another one uses this KOPT_HOME, only those
caches are cleared whose readers have what they read, whatever becomes of the files.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from kopt.config.errors import ToolError
from kopt.config.files import TEMPORARY_PREFIX, folder_size, remove_folder
from kopt.config.home_use import home_alone
from kopt.config.near_matches import close_names, did_you_mean
from kopt.config.settings import Settings
from kopt.kernels.record import Record
from kopt.tools.check.oracle_cache import LIMIT_BYTES
from kopt.tools.sim.program import KEPT_PROGRAMS

from .review_reference import KEPT_REFERENCES


@dataclass(frozen=True)
class _Cache:
    """A folder below KOPT_HOME/cache that can be made again."""

    name: str
    purpose: str
    limit: str
    """The most that kopt lets it take, in words."""
    is_shared: bool = False
    """Whether it may be cleared while another process reads it."""
    is_dear: bool = False
    """Whether it takes the network or minutes to make again: cleared by its name alone."""


CACHES = (
    _Cache("cubin", "compiled candidates; again in a second each", "none"),
    _Cache(
        "oracle",
        "inputs of checks and their fp64 results",
        f"{LIMIT_BYTES >> 30} GiB, least recently used go first",
        is_shared=True,
    ),
    _Cache(
        "sim",
        "the simulator's parts, candidates built for it",
        f"{KEPT_PROGRAMS} candidates, least recently used go first",
    ),
    _Cache("timing", "full checks and noise floors, believed for a day", "none", is_shared=True),
    _Cache("durations", "what steps took, to tell the time left", "none", is_shared=True),
    _Cache(
        "references",
        "problems made by kopt review --reference",
        f"{KEPT_REFERENCES} problems, oldest go first",
    ),
    _Cache("include", "copies of the <kopt/...> headers", "none"),
    _Cache("sandbox", "the sandbox's launcher", "none"),
    _Cache("libraries", "what FlashInfer, CuTe and CUDA built; again in minutes", "none"),
    _Cache("docs", "downloads and indexes; kopt docs build again", "none", is_dear=True),
)


class CacheSize(Record):
    """One cache as it is now."""

    name: str
    folder: str
    size_bytes: int
    files: int
    limit: str
    purpose: str


class CacheList(Record):
    """The caches of a KOPT_HOME, and what a call has cleared of them."""

    schema_: Literal["kopt.caches/1"] = Field(default="kopt.caches/1", alias="schema")
    status: Literal["passed"] = "passed"
    caches: tuple[CacheSize, ...]
    """As they are afterwards."""
    cleared: tuple[str, ...] = ()
    in_use: tuple[str, ...] = ()
    """What was to be cleared, but is used by another process."""
    freed_bytes: int = 0


def list_caches(settings: Settings) -> CacheList:
    """Return every cache with its size."""
    return CacheList(caches=tuple(_size(one, settings) for one in CACHES))


def clear_caches(name: str | None, settings: Settings) -> CacheList:
    """Remove what the named cache holds; None: all but those that are dear to make again.

    Raises:
        ToolError: There is no such cache.
    """
    wanted = [one for one in CACHES if one.name == name or (name is None and not one.is_dear)]
    if not wanted:
        names = [one.name for one in CACHES]
        near = close_names(name or "", names)
        known = did_you_mean(near) if near else f"there are {', '.join(names)}"
        raise ToolError(f"no cache is called {name!r}; {known}")
    before = {one.name: _size(one, settings).size_bytes for one in wanted}
    with home_alone(settings.home) as is_alone:
        cleared = [one for one in wanted if is_alone or one.is_shared]
        for one in cleared:
            _clear(_folder(one, settings))
    after = list_caches(settings)
    now = {one.name: one.size_bytes for one in after.caches}
    return CacheList(
        caches=after.caches,
        cleared=tuple(one.name for one in cleared),
        in_use=tuple(one.name for one in wanted if one not in cleared and before[one.name]),
        freed_bytes=sum(max(0, before[one.name] - now[one.name]) for one in cleared),
    )


def _size(cache: _Cache, settings: Settings) -> CacheSize:
    folder = _folder(cache, settings)
    size_bytes, files = folder_size(folder)
    return CacheSize(
        name=cache.name,
        folder=str(folder),
        size_bytes=size_bytes,
        files=files,
        limit=cache.limit,
        purpose=cache.purpose,
    )


def _folder(cache: _Cache, settings: Settings) -> Path:
    return settings.home / "cache" / cache.name


def _clear(folder: Path) -> None:
    """Empty `folder`, which stays: a process may be about to write to it."""
    for path in _entries(folder):
        if path.is_dir() and not path.is_symlink():
            remove_folder(path)
        else:
            with suppress(OSError):
                path.unlink()


def _entries(folder: Path) -> Sequence[Path]:
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return ()
    return [path for path in found if not path.name.startswith(TEMPORARY_PREFIX)]
