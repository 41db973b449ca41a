"""The libraries that kopt knows by name, and the versions of them that it obtains (pins.yaml)."""

from dataclasses import replace
from functools import lru_cache
from typing import Self

from pydantic import model_validator

from kopt.kernels.record import Record
from kopt.tools.docs.code_version import own_data
from kopt.tools.docs.sources import LibrarySource


class MemberRule(Record):
    """Which members of an archive belong to the source, and what their paths are inside it."""

    under: str
    """Beginning of the member's name; "" for all."""
    strip: str = ""
    """Cut off the name's beginning."""
    suffix: str = ""
    """End of the member's name."""
    but_not: str | None = None
    """Beginning of names that the rule does not take."""

    def path_of(self, name: str) -> str | None:
        """Return the path inside the source; None if the rule does not take `name`."""
        if not (name.startswith(self.under) and name.endswith(self.suffix)):
            return None
        if self.but_not is not None and name.startswith(self.but_not):
            return None
        return name.removeprefix(self.strip)


Rules = tuple[MemberRule, ...]


def path_by(rules: Rules, name: str) -> str | None:
    """Return the path inside the source by the first rule that takes `name`; None by none."""
    paths = (rule.path_of(name) for rule in rules)
    return next((path for path in paths if path is not None), None)


class InstalledPackage(Record):
    """A package whose sources may be installed here."""

    project: str
    """Name in the package index."""
    members: Rules


class PackagePin(InstalledPackage):
    """One file of the package index, by its hash."""

    version: str
    filename: str
    sha256: str | None = None
    """Hash of the whole file; None where only its members are fetched."""
    members_sha256: str | None = None
    """Hash of the selected members, as `members_digest` takes it, where `sha256` is None."""
    size_bytes: int
    is_default: bool
    """Obtained unless other sources are asked for."""
    prefer_installed: bool = False
    """Any installed version serves as well: its paths do not move between versions."""

    @model_validator(mode="after")
    def _has_one_hash(self) -> Self:
        if (self.sha256 is None) == (self.members_sha256 is None):
            raise ValueError("a pin has either sha256 or members_sha256")
        return self


class Repository(Record):
    """A git repository of a source."""

    url: str
    members: Rules


class Library(Record):
    """What is said of a library in any version."""

    license: str
    quality: float
    holds: str


class Pins(Record):
    """The content of pins.yaml, by source."""

    libraries: dict[str, Library]

    packages: dict[str, PackagePin]
    installed: dict[str, InstalledPackage]
    """Beside the packages: those whose files are not worth a download."""
    repositories: dict[str, tuple[Repository, ...]]


@lru_cache
def pins() -> Pins:
    """Return what is pinned."""
    return Pins.model_validate(own_data("library/pins.yaml"))


@lru_cache
def known_libraries() -> dict[str, LibrarySource]:
    """Return every library that a filter may name beside the user's own, obtained or not, by key.

    They have no version.
    """
    return {
        key: LibrarySource(key, None, one.license, one.quality, one.holds)
        for key, one in pins().libraries.items()
    }


def known_source(key: str, version: str | None) -> LibrarySource:
    """Return the known library `key` in the version that was obtained."""
    return replace(known_libraries()[key], version=version)


def default_keys() -> tuple[str, ...]:
    """Return the sources that are obtained where none is named."""
    return tuple(key for key, pin in pins().packages.items() if pin.is_default)
