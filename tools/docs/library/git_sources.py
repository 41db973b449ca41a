"""Source files of git repositories, read out of bare shallow clones that stay in KOPT_HOME.

There is no working tree: no link, filter, hook or submodule of a repository takes effect, and no
file of it is written under its own name. Large blobs are not even fetched. A repository is fetched
again by each call; without network its last state is used.
"""

import os
import re
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from kopt.config.errors import ToolError
from kopt.config.files import ensure_folder, publish_folder, staging_folder
from kopt.config.settings import Settings
from kopt.tools.docs.sources import SOURCES, Member, SourceUnavailable

from .archives import ALL_MEMBERS
from .download import kept_lock, writing
from .file_filter import MAX_BYTES, MAX_ENTRIES, MAX_FILE_BYTES, is_wanted_path, is_wanted_text
from .git_program import git_parts, read_blobs, run_git, without_credentials
from .pins import Repository, Rules, known_libraries, path_by, pins

_HEAD = "refs/kopt/head"
_ADDRESS = re.compile(r"(?:https?|ssh|git|file)://(?!-)\S+|\w[\w.-]*@\w[\w.-]*:(?!-)\S+")
"""The forms that git documents, less `ext::` and others that run a command, and less options."""
_BLOB = re.compile(rb"100(?:644|755) blob ([0-9a-f]{40,64})\t(.+)", re.DOTALL)
_NO_KEY_CHARACTERS = re.compile(r"[^a-z0-9_-]+")


@dataclass(frozen=True)
class GitChoice:
    """What a user's choice of a repository means."""

    key: str
    """Key of the source."""
    repositories: tuple[Repository, ...]


@dataclass(frozen=True)
class Snapshot:
    """One commit of a repository."""

    commit: str
    members: tuple[Member, ...]


def git_choice(text: str) -> GitChoice:
    """Return the source that a key of pins.yaml, an address or a local path stands for.

    Raises:
        ToolError: It is none of these.
    """
    known = pins().repositories
    if text in known:
        return GitChoice(text, known[text])
    for key, repositories in known.items():
        if _bare(text).lower() == _bare(repositories[0].url).lower():
            return GitChoice(key, repositories)
    folder = os.path.expanduser(text)
    if os.path.isdir(folder):
        address = Path(folder).resolve().as_uri()
    elif _is_address(text):
        address = text
    else:
        raise ToolError(
            f"{without_credentials(text)!r} is no repository to index: name {', '.join(known)}, "
            "an https://, ssh:// or file:// address, or a local folder"
        )
    return GitChoice(_key_of(address), (Repository(url=address, members=ALL_MEMBERS),))


def snapshot(repository: Repository, settings: Settings) -> Snapshot:
    """Return the wanted files of the repository's default branch, fetched anew if that works.

    Raises:
        SourceUnavailable: There is no git, or neither a new nor an earlier state can be had.
        SetupError: There is no folder to keep it.
    """
    name = f"{_key_of(repository.url)}-{sha256(repository.url.encode()).hexdigest()[:12]}.git"
    clone = ensure_folder(settings.docs_cache / "git") / name
    with kept_lock(clone), writing(clone.parent):
        if (clone / "HEAD").is_file():
            with suppress(SourceUnavailable):  # the commit is shown; the next build tries again
                _fetch(clone)
        else:
            _clone(repository.url, clone)
        commit = run_git(f"--git-dir={clone}", "rev-parse", "--verify", _HEAD).decode()
        return Snapshot(commit, tuple(_members(clone, commit, repository.members)))


def _clone(url: str, clone: Path) -> None:
    """Make the clone beside its place and rename it, so that what is there is whole."""
    with staging_folder(clone) as fresh:
        run_git("init", "--quiet", "--bare", "--", str(fresh))
        run_git(f"--git-dir={fresh}", "config", "remote.origin.url", url)
        _fetch(fresh)
        publish_folder(fresh, clone, replaces=True)


def _fetch(clone: Path) -> None:
    options = ("--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules")
    limit = f"--filter=blob:limit={MAX_FILE_BYTES + 1}"
    run_git(f"--git-dir={clone}", "fetch", *options, limit, "origin", f"+HEAD:{_HEAD}")


def _members(clone: Path, commit: str, rules: Rules) -> Iterator[Member]:
    """Yield the plain files of `commit` that `rules` take and whose names and content are wanted.

    Raises:
        SourceUnavailable: They are too many: equal folders in one another cost nothing to send.
    """
    paths: dict[str, list[str]] = {}
    for path, blob in _wanted_blobs(clone, commit, rules).items():
        paths.setdefault(blob, []).append(path)
    total_bytes = 0
    with closing(read_blobs(clone, list(paths), MAX_FILE_BYTES)) as blobs:
        for data, sharing in zip(blobs, paths.values(), strict=True):
            for path in sharing:
                if data is None or not is_wanted_text(path, data):
                    continue
                total_bytes += len(data)
                if total_bytes > MAX_BYTES:
                    raise SourceUnavailable(
                        f"the repository has more than {MAX_BYTES:,} bytes of sources: "
                        "clone it and name a folder of it"
                    )
                yield path, data


def _wanted_blobs(clone: Path, commit: str, rules: Rules) -> dict[str, str]:
    """Return the blobs that may be wanted, by path."""
    absent = _absent_blobs(clone, commit)
    wanted: dict[str, str] = {}
    listing = git_parts(
        f"--git-dir={clone}", "ls-tree", "-r", "-z", "--full-tree", commit, end=b"\0"
    )
    with closing(listing) as entries:
        for count, entry in enumerate(entries):
            if count >= MAX_ENTRIES:
                raise SourceUnavailable(
                    f"the repository has more than {MAX_ENTRIES:,} files: "
                    "clone it and name a folder of it"
                )
            match = _BLOB.fullmatch(entry)  # no link and no submodule
            if match and match[1] not in absent:
                path = path_by(rules, match[2].decode(errors="replace"))
                if path is not None and is_wanted_path(path, 0):
                    wanted[path] = match[1].decode()
    return wanted


def _absent_blobs(clone: Path, commit: str) -> frozenset[bytes]:
    """Return the blobs that the filter left at the server; reading one would fetch it."""
    options = ("--objects", "--no-object-names", "--missing=print")
    with closing(
        git_parts(f"--git-dir={clone}", "rev-list", *options, commit, end=b"\n")
    ) as objects:
        return frozenset(line[1:] for line in objects if line.startswith(b"?"))


def _key_of(address: str) -> str:
    """Return the repository's name, with its owner's if a known source has that name."""
    parts = [part for part in re.split(r"[/:]+", _place(address)) if part]
    name = _NO_KEY_CHARACTERS.sub("-", parts[-1].lower()).strip("-") or "repository"
    if name in known_libraries() or name in SOURCES:
        owner = _NO_KEY_CHARACTERS.sub("-", parts[-2].lower()).strip("-") if parts[1:] else "git"
        return f"{owner or 'git'}-{name}"
    return name


def _is_address(text: str) -> bool:
    try:
        return _ADDRESS.fullmatch(text) is not None and bool(_place(text).strip("/"))
    except ValueError:  # brackets that hold no IPv6 address, and the like
        return False


def _place(address: str) -> str:
    """Return the host and path of `address`: the rest may give access, and a key is shown."""
    if "://" not in address:  # user@host:path
        return _bare(address.partition("@")[2])
    parts = urlsplit(address)
    return _bare(f"{parts.hostname or ''}{parts.path}")


def _bare(address: str) -> str:
    return address.rstrip("/").removesuffix(".git")
