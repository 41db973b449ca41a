"""Sources that are Python packages: the pinned file, or what is installed here."""

from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from kopt.config.settings import Settings
from kopt.tools.docs.sources import LibrarySource, Member, SourceUnavailable

from .archives import archive_members
from .download import OnBytes, pinned_file
from .file_filter import is_wanted_path
from .pins import InstalledPackage, Rules, known_source, path_by, pins
from .remote_members import remote_members

Obtained = tuple[LibrarySource, Iterable[Member]]


def installable() -> dict[str, InstalledPackage]:
    """Return the packages that are looked for among installed ones, by source."""
    return {**pins().packages, **pins().installed}


def installed_package(key: str) -> Obtained:
    """Return source and members of the installed package of `key`, in whatever version.

    Raises:
        SourceUnavailable: It is not installed, or without its sources.
    """
    if (package := installable().get(key)) is None:
        raise SourceUnavailable("is no package to install: build it without --installed")
    if (version := installed_version(package.project)) is None:
        raise SourceUnavailable(f"{package.project} is not installed here")
    members = list(installed_members(package.project, package.members))
    if not members:
        raise SourceUnavailable(
            f"{package.project} {version} is installed without kernel sources (from a checkout? "
            "then add its folder)"
        )
    return known_source(key, version), members


def pinned_package(key: str, settings: Settings, on_bytes: OnBytes) -> Obtained:
    """Return source and members of the pinned package of `key`, downloaded if need be.

    Raises:
        SourceUnavailable: It cannot be had, or is not what is pinned.
        SetupError: There is no folder to keep it.
    """
    pin = pins().packages[key]
    if pin.prefer_installed and installed_version(pin.project) is not None:
        try:
            return installed_package(key)
        except SourceUnavailable:  # without its sources: the pinned file has them
            pass
    source = known_source(key, pin.version)
    if pin.sha256 is None:
        return source, remote_members(pin, settings, on_bytes)
    return source, archive_members(pinned_file(pin, settings, on_bytes), pin.members)


def installed_version(project: str) -> str | None:
    """Return the version of `project` that is installed; None if none is."""
    found = _found(project)
    return found.version if found else None


def installed_members(project: str, rules: Rules) -> Iterator[Member]:
    """Yield the files of the installed `project` that `rules` take and whose names are wanted.

    Files that are listed and gone, or lie outside the environment, are left out.
    """
    found = _found(project)
    for entry in (found.files if found else None) or ():
        path = path_by(rules, entry.as_posix())
        if path is None or ".." in entry.parts:
            continue
        file = Path(str(entry.locate()))
        try:
            if is_wanted_path(path, file.stat().st_size):
                yield path, file.read_bytes()
        except OSError:
            continue


def _found(project: str) -> Distribution | None:
    try:
        return distribution(project)
    except PackageNotFoundError:
        return None
