"""A settings file of a client on disk: read, replaced in one step, backed up beside itself.

A link stays a link: what it points to is replaced, and its backup lies beside the link. One in a
project must not lead out of it: the repository's author would choose what is written. Mode and
owner stay. A backup's name says which server it was made for, when, and the digest of the file that
was then written, so that an undo can tell whether that has been changed since; nothing about it is
kept anywhere else.
"""

import glob
import hashlib
import json
import os
import re
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from kopt.config.errors import SetupError
from kopt.config.files import replacing_file, write_atomically

_DIGEST_DIGITS = 16
_MOST_FOLDERS = 8
"""The most folders that kopt may have made above a client's file; a larger number is forged."""


@dataclass(frozen=True)
class ConfigFile:
    """A settings file as it was read."""

    path: Path
    """The path that the client names; may be a link."""
    data: bytes | None
    """The content; None: there is no such file."""
    is_private: bool
    """A file that is created is readable for the user alone; one that is there keeps its mode."""
    project: Path | None = None
    """The folder that the file must lie in, links followed; None: anywhere."""

    @property
    def target(self) -> Path:
        """The file itself, behind any links."""
        return Path(os.path.realpath(self.path))


@dataclass(frozen=True)
class Backup:
    """A settings file as it was before kopt changed it."""

    path: Path
    written: str
    """Digest of what kopt wrote then."""
    data: bytes | None
    """The content; None: there was no file."""
    folders_made: int
    """The number of folders above the file that kopt had to create."""


def read_config(path: Path, is_private: bool, project: Path | None = None) -> ConfigFile:
    """Return the file at `path` as it is now.

    Raises:
        SetupError: It is there and cannot be read, or a link leads out of `project`.
    """
    if project is not None:
        refuse_outside(path, project)
    try:
        return ConfigFile(path, path.read_bytes(), is_private, project)
    except FileNotFoundError:
        return ConfigFile(path, None, is_private, project)
    except OSError as error:
        raise SetupError(f"cannot read {path}: {error.strerror}") from error


def change_config(file: ConfigFile, data: bytes, name: str) -> Path:
    """Write `data` in place of `file`, after a backup for server `name`; return the backup.

    Raises:
        SetupError: The file may not be written, or has changed since it was read.
    """
    _refuse_unwritable(file)
    folders = [folder for folder in file.target.parents if not folder.exists()]
    try:
        for folder in reversed(folders):
            folder.mkdir()
        mode = 0o600 if file.data is None else stat.S_IMODE(file.target.stat().st_mode)
        label = f"{name}-{digest_of(data)}"
        backup = make_backup(file.path, file.data, label, len(folders), mode)
        try:
            _replace(file, data)
        except BaseException:
            backup.unlink()
            raise
    except OSError as error:
        raise SetupError(f"cannot write {file.path}: {error.strerror}") from error
    return backup


def restore_config(file: ConfigFile, backup: Backup) -> None:
    """Put back what `backup` holds in place of `file`, and remove the backup.

    Raises:
        SetupError: The file may not be written, or has changed since it was read.
    """
    _refuse_unwritable(file)
    try:
        if backup.data is None:
            file.target.unlink()
        else:
            _replace(file, backup.data)
        backup.path.unlink()
        for folder in list(file.target.parents)[: backup.folders_made]:
            if any(folder.iterdir()):
                break
            folder.rmdir()
    except OSError as error:
        raise SetupError(f"cannot write {file.path}: {error.strerror}") from error


def backups_of(path: Path, name: str) -> list[Backup]:
    """Return the backups of the file at `path` that were made for server `name`, oldest first.

    Raises:
        SetupError: Something by the name of a backup is none that kopt wrote.
    """
    form = re.compile(
        rf"{re.escape(path.name)}\.kopt-(\d{{8}}-\d{{6}}-\d{{6}})-{re.escape(name)}"
        rf"-([0-9a-f]{{{_DIGEST_DIGITS}}})\.(bak|absent)"
    )
    found: list[Backup] = []
    for entry in sorted(path.parent.glob(f"{glob.escape(path.name)}.kopt-*")):
        match = form.fullmatch(entry.name)
        if match is None:
            continue
        data = _backup_bytes(entry)
        if match[3] == "bak":
            found.append(Backup(entry, match[2], data, 0))
        else:
            found.append(Backup(entry, match[2], None, _folders_made(entry, data)))
    return found


def make_backup(path: Path, data: bytes | None, label: str, folders_made: int, mode: int) -> Path:
    """Write what is at `path`, None for nothing, beside it; `label` is server and digest."""
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S-%f")
    ending = "absent" if data is None else "bak"
    backup = path.with_name(f"{path.name}.kopt-{stamp}-{label}.{ending}")
    note = json.dumps({"folders_made": folders_made}).encode()
    write_atomically(backup, note if data is None else data, mode=mode)
    return backup


def digest_of(data: bytes) -> str:
    """Return the digest in a backup's name: of the file that was written."""
    return hashlib.sha256(data).hexdigest()[:_DIGEST_DIGITS]


def _backup_bytes(path: Path) -> bytes:
    """Read a backup: a repository may hold a link by that name, to what it must not get."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return file.read()
    except OSError as error:
        raise SetupError(_no_backup(path, error.strerror or "unreadable")) from error
    raise SetupError(_no_backup(path, "no ordinary file"))


def _folders_made(path: Path, data: bytes) -> int:
    try:
        note: object = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SetupError(_no_backup(path, "no JSON")) from error
    count = cast(dict[str, object], note).get("folders_made") if isinstance(note, dict) else None
    if type(count) is not int or not 0 <= count <= _MOST_FOLDERS:
        raise SetupError(_no_backup(path, "no number of folders"))
    return count


def _no_backup(path: Path, why: str) -> str:
    return f"{path} is no backup that kopt wrote ({why}); nothing was changed, remove it first"


def refuse_outside(path: Path, project: Path) -> None:
    """Refuse what a link of the project leads away from it, or to nothing.

    Raises:
        SetupError: It is such a path, or cannot be looked at.
    """
    target = Path(os.path.realpath(path))
    if not target.is_relative_to(os.path.realpath(project)):
        raise SetupError(
            f"{path} leads out of the project, to {target}; nothing was changed. If that is meant,"
            " make the change there by hand (docs/clients.md)"
        )
    try:
        is_broken = path.is_symlink() and not path.exists()
    except OSError as error:
        raise SetupError(f"cannot read {path}: {error.strerror}; nothing was changed") from error
    if is_broken:
        raise SetupError(f"{path} is a link to {target}, which is not there; nothing was changed")


def _refuse_unwritable(file: ConfigFile) -> None:
    """Refuse a read-only file: replacing it would get around that."""
    if read_config(file.path, file.is_private, file.project) != file:
        raise SetupError(f"{file.path} has changed in the meantime; nothing was changed, try again")
    if file.data is None:
        return
    mode = stat.S_IMODE(file.target.stat().st_mode)
    if not mode & 0o200 or not os.access(file.target, os.W_OK):
        raise SetupError(
            f"{file.path} is read-only; nothing was changed. Allow writing (chmod u+w), or add"
            " the server by hand: --print shows what to write"
        )


def _replace(file: ConfigFile, data: bytes) -> None:
    """Replace the file in one step; it keeps its mode and owner."""
    target = file.target
    status = target.stat() if target.exists() else None
    mode = _new_mode(file) if status is None else stat.S_IMODE(status.st_mode)
    with replacing_file(target, mode=mode) as fresh:
        fresh.write_bytes(data)
        if status is not None and (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
            os.chown(fresh, status.st_uid, status.st_gid)


def _new_mode(file: ConfigFile) -> int:
    if file.is_private:
        return 0o600
    return usual_mode()


def usual_mode() -> int:
    """Return the mode that the user's new files get."""
    mask = os.umask(0)  # can only be read by setting it
    os.umask(mask)
    return 0o666 & ~mask
