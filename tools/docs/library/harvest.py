"""From what the user asks for to the files of each source: pinned, installed, git, own folders.

A source that cannot be had is named with the reason, and the others go on. Chunks and the index
are made by others.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.tools.docs.build_records import BuildProgress, OnProgress, SkippedSource
from kopt.tools.docs.sources import SOURCES, LibrarySource, SourceFile, SourceUnavailable

from .download import OnBytes
from .file_filter import folder_members, is_wanted_text
from .git_program import without_credentials
from .git_sources import git_choice, snapshot
from .packages import Obtained, installed_package, pinned_package
from .pins import Repository, known_libraries, known_source, pins

UNKNOWN_QUALITY = 0.85
"""Weight of a repository that kopt does not know: the least of those that it knows."""
_SHOWN_COMMIT = 12
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")


@dataclass(frozen=True)
class FolderChoice:
    """A folder of the user that becomes a source."""

    name: str
    """Key of the source: lower case, no name of another source."""
    path: Path
    quality: float = 1.0
    """Weight in the ranking, above 0, at most 1."""


@dataclass(frozen=True)
class FileSelection:
    """Which sources to obtain, and how."""

    sources: tuple[str, ...] = ()
    """Keys of known libraries."""
    installed: bool = False
    """Take packages only from where they are installed, in whatever version: no network."""
    git: tuple[str, ...] = ()
    """Repositories: a key of pins.yaml, an address, or a local path."""
    folders: tuple[FolderChoice, ...] = ()
    fresh: bool = False
    """True to read and chunk every file again, whatever is kept."""


@dataclass(frozen=True)
class Harvested:
    """A source and its files, filtered and in the order of their paths."""

    source: LibrarySource
    files: tuple[SourceFile, ...]


def harvest(
    selection: FileSelection, settings: Settings, on_progress: OnProgress
) -> Iterator[Harvested | SkippedSource]:
    """Return the sources of `selection`, each obtained when it is asked for.

    Raises:
        ToolError: The selection names something that there is not; before anything is obtained.
    """
    steps = [*_known_steps(selection), *_git_steps(selection), *_folder_steps(selection)]
    keys = [step.key for step in steps]
    twice = sorted({key for key in keys if keys.count(key) > 1})
    if twice:
        raise ToolError(f"two sources would be called {twice[0]!r}: leave one out or rename it")
    return (_obtained(step, settings, on_progress) for step in steps)


@dataclass(frozen=True)
class _Step:
    """One source and how it is obtained."""

    key: str
    obtain: Callable[[Settings, OnBytes], Obtained]


def _obtained(
    step: _Step, settings: Settings, on_progress: OnProgress
) -> Harvested | SkippedSource:
    def on_bytes(done_bytes: int, total_bytes: int | None) -> None:
        on_progress(BuildProgress("download", step.key, done_bytes, total_bytes))

    on_bytes(0, None)
    try:
        source, members = step.obtain(settings, on_bytes)
        files = tuple(
            SourceFile(source, path, data)
            for path, data in sorted(dict(members).items())
            if is_wanted_text(path, data)
        )
    except SourceUnavailable as error:
        return SkippedSource(source=step.key, reason=str(error))
    except OSError as error:
        return SkippedSource(source=step.key, reason=f"cannot be read: {error}")
    if not files:
        return SkippedSource(source=step.key, reason="has no files with device code")
    return Harvested(source, files)


def _known_steps(selection: FileSelection) -> Iterator[_Step]:
    unknown = [key for key in selection.sources if key not in known_libraries()]
    if unknown:
        raise ToolError(
            f"no source {', '.join(map(repr, unknown))}; there are {', '.join(known_libraries())}"
        )
    for key in dict.fromkeys(selection.sources):
        if selection.installed:
            yield _Step(key, partial(_from_installed, key))
        elif key in pins().repositories:
            yield _Step(key, partial(_from_git, known_source(key, None), pins().repositories[key]))
        else:
            yield _Step(key, partial(pinned_package, key))


def _git_steps(selection: FileSelection) -> Iterator[_Step]:
    for text in dict.fromkeys(selection.git):
        choice = git_choice(text)
        source = known_libraries().get(choice.key) or LibrarySource(
            choice.key, None, None, UNKNOWN_QUALITY, f"Repository {without_credentials(text)}."
        )
        if choice.key not in selection.sources or selection.installed:
            yield _Step(choice.key, partial(_from_git, source, choice.repositories))


def _folder_steps(selection: FileSelection) -> Iterator[_Step]:
    for folder in selection.folders:
        if not _NAME.fullmatch(folder.name):
            raise ToolError(
                f"{folder.name!r} cannot name a source: use up to 40 of a-z, 0-9, - and _"
            )
        if folder.name in known_libraries() or folder.name in SOURCES:
            raise ToolError(f"{folder.name!r} is a source already: give the folder another name")
        if not 0.0 < folder.quality <= 1.0:
            raise ToolError(f"the weight of {folder.name!r} is {folder.quality:g}: 0 < weight <= 1")
        yield _Step(folder.name, partial(_from_folder, folder))


def _from_installed(key: str, settings: Settings, on_bytes: OnBytes) -> Obtained:
    return installed_package(key)


def _from_git(
    source: LibrarySource,
    repositories: tuple[Repository, ...],
    settings: Settings,
    on_bytes: OnBytes,
) -> Obtained:
    snapshots = [snapshot(repository, settings) for repository in repositories]
    version = "+".join(one.commit[:_SHOWN_COMMIT] for one in snapshots)
    members = {path: data for one in snapshots for path, data in one.members}
    return replace(source, version=version), members.items()


def _from_folder(folder: FolderChoice, settings: Settings, on_bytes: OnBytes) -> Obtained:
    path = Path(os.path.expanduser(folder.path))
    source = LibrarySource(folder.name, None, None, folder.quality, f"Your folder {path}.")
    return source, folder_members(path)
