"""The skill in a client's folder: planned and shown first, written or taken back as a whole.

The folder that bears the skill's name is kopt's, and no link is followed into it. What was in it
before is kept in one file beside it, whose name says what was then written: a folder that is
another by now was changed by somebody, and what they wrote is not replaced without their word.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from kopt.config.errors import SetupError, ToolError
from kopt.config.files import write_atomically
from kopt.server.skill import SKILL, skill_files

from .change import SetupTarget, diff_of
from .config_file import (
    Backup,
    backups_of,
    digest_of,
    make_backup,
    refuse_outside,
    usual_mode,
)
from .json_edit import is_object

LABEL = "skill"
"""Stands in a backup's name where that of a settings file has the server."""
_MOST_FILES, _MOST_BYTES = 200, 4 << 20

Files = Mapping[str, bytes]
"""Contents by path in the folder."""


@dataclass(frozen=True)
class SkillChange:
    """A planned change of a skill's folder."""

    path: Path
    before: Files | None
    """What is in the folder; None: there is none."""
    after: Files | None
    """What is to be in it; None: it is to go."""
    undoes: Backup | None = None
    """The backup that the change puts back."""
    replaced: tuple[str, ...] = ()
    """Files with text that is not kopt's and that would be replaced."""

    @property
    def is_new(self) -> bool:
        """Whether nothing is there yet."""
        return self.before is None

    @property
    def is_needed(self) -> bool:
        """Whether the folder holds anything else than it is to hold."""
        return self.before != self.after

    @property
    def diff(self) -> str:
        """The change as unified diffs, one a file; "" for none."""
        return "".join(self._diff(name) for name in self._changed())

    @property
    def summary(self) -> str:
        """A line for each file that is new or goes, and the diff of each that changes."""
        before, after = self.before or {}, self.after or {}
        said: list[str] = []
        for name in self._changed():
            if name not in before:
                said.append(f"  new: {name}, {len(after[name].splitlines())} lines\n")
            elif name not in after:
                said.append(f"  goes: {name}\n")
            else:
                said.append(self._diff(name))
        return "".join(said)

    def _changed(self) -> list[str]:
        before, after = self.before or {}, self.after or {}
        names = dict.fromkeys((*after, *before))
        return [name for name in names if before.get(name) != after.get(name)]

    def _diff(self, name: str) -> str:
        before, after = self.before or {}, self.after or {}
        return diff_of(self.path / name, before.get(name), after.get(name))


def plan_skill(place: SetupTarget) -> SkillChange:
    """Return the change that puts the skill into the client's folder; nothing is written.

    Raises:
        ToolError: The client reads no skills from a folder.
        SetupError: The folder cannot be read, is a link, or is none that holds a skill.
    """
    path, before = _folder(place)
    others = _of_others(path, before or {})
    shipped = skill_files()
    replaced = tuple(n for n, data in shipped.items() if others.get(n, data) != data)
    return SkillChange(path, before, {**others, **shipped}, replaced=replaced)


def plan_skill_undo(place: SetupTarget) -> SkillChange:
    """Return the change that takes back the latest setup of the skill; nothing is written.

    Raises:
        ToolError: The client reads no skills, there is nothing to take back, or somebody has
            changed the folder since.
        SetupError: The folder or its backup cannot be read.
    """
    path, before = _folder(place)
    backups = backups_of(path, LABEL)
    if before is None and backups:
        raise ToolError(f"nothing to undo: somebody has removed {path} since kopt wrote it")
    if not backups:
        raise ToolError(f"nothing to undo: no backup of {path} (--scope must be that of the setup)")
    fitting = _fitting(path, before)
    if not fitting:
        last = backups[-1]
        kept = "there was none" if last.data is None else f"its files are kept in {last.path}"
        raise ToolError(
            f"{path} has changed since kopt wrote it, so it is left alone. Before, {kept}. To take"
            " the skill out by hand, remove the folder"
        )
    return SkillChange(path, before, _unpacked(fitting[-1]), fitting[-1])


def carry_out_skill(change: SkillChange) -> Path | None:
    """Make `change`; return the backup, or None for an undo.

    Raises:
        SetupError: The folder may not be written, or has changed since it was planned.
    """
    if _read(change.path) != change.before:
        raise SetupError(
            f"{change.path} has changed in the meantime; nothing was changed, try again"
        )
    before, after = change.before or {}, change.after or {}
    try:
        if change.undoes is not None:
            _replace(change.path, before, after)
            change.undoes.path.unlink()
            _remove_empty(change.path, change.undoes.folders_made)
            return None
        made = [one for one in (change.path, *change.path.parents) if not one.exists()]
        change.path.mkdir(parents=True, exist_ok=True)
        packed = None if change.before is None else _packed(before)
        label = f"{LABEL}-{digest_of(_packed(after))}"
        backup = make_backup(change.path, packed, label, len(made), usual_mode())
        try:
            _replace(change.path, before, after)
        except BaseException:
            backup.unlink()
            _remove_empty(change.path, len(made))
            raise
    except OSError as error:
        raise SetupError(f"cannot write {change.path}: {error.strerror}") from error
    return backup


def _folder(place: SetupTarget) -> tuple[Path, Files | None]:
    """Return the skill's folder and what is in it."""
    skills = place.client.skills
    if skills is None:
        raise ToolError(
            f"{place.client.title} reads no skills from a folder. Without --skill the MCP server is"
            " entered, which serves the skill to clients that ask for it"
        )
    path = skills.folder(place.scope, place.folders, place.project) / SKILL
    if place.scope == "project":
        refuse_outside(path, place.project)
    return path, _read(path)


def _read(path: Path) -> dict[str, bytes] | None:
    """Return the files below `path`; None where there is no such folder.

    Raises:
        SetupError: It is a link or no folder, holds a link, too much, or cannot be read.
    """
    files: dict[str, bytes] = {}
    size = 0
    try:
        if path.is_symlink():
            raise SetupError(
                f"{path} is a link to {path.readlink()}; nothing was changed: remove the link first"
            )
        if not path.exists():
            return None
        if not path.is_dir():
            raise SetupError(f"{path} is no folder; nothing was changed: move it away first")
        for found in (path, *sorted(path.rglob("*"))):
            if found.is_symlink() or not (found.is_file() or found.is_dir()):
                raise SetupError(
                    f"{found} is no ordinary file; nothing was changed: move it away first"
                )
            if found.is_dir():
                os.listdir(found)  # an error where it cannot be read, which `rglob` passes over
                continue
            size += found.stat().st_size
            if len(files) == _MOST_FILES or size > _MOST_BYTES:
                raise SetupError(
                    f"{path} holds more than a skill does; nothing was changed: is it another"
                    " folder? Move it away first"
                )
            files[found.relative_to(path).as_posix()] = found.read_bytes()
    except OSError as error:
        raise SetupError(
            f"cannot read {error.filename}: {error.strerror}; nothing was changed"
        ) from error
    return files


def _fitting(path: Path, files: Files | None) -> list[Backup]:
    """Return the backups made when exactly `files` was written, the oldest first."""
    now = None if files is None else digest_of(_packed(files))
    return [backup for backup in backups_of(path, LABEL) if backup.written == now]


def _of_others(path: Path, files: Files) -> Files:
    """Return those of `files` that no setup has written; one that kopt ships no more may go."""
    others = dict(files)
    for backup in reversed(backups_of(path, LABEL)):
        if backup.written == digest_of(_packed(files)):
            earlier = _unpacked(backup) or {}
            others = {n: data for n, data in others.items() if earlier.get(n) == files[n]}
            files = earlier
    return others


def _packed(files: Files) -> bytes:
    """Return the files as one text, the same for the same files."""
    texts = {name: data.decode("latin-1") for name, data in files.items()}
    return json.dumps(texts, sort_keys=True, indent=1).encode()


def _unpacked(backup: Backup) -> dict[str, bytes] | None:
    """Return the files of a backup; None where there was no folder.

    Raises:
        SetupError: It holds no files, or a name that leads elsewhere.
    """
    if backup.data is None:
        return None
    try:
        texts: object = json.loads(backup.data)
        if not is_object(texts):
            raise ValueError("no object")
        files = {name: str(text).encode("latin-1") for name, text in texts.items()}
        if not all(_is_inside(name) for name in files):
            raise ValueError("a path that leads out of the folder")
    except (ValueError, RecursionError) as error:
        raise SetupError(
            f"{backup.path} is no backup that kopt wrote ({error}); nothing was changed, remove it"
            " first"
        ) from error
    return files


def _is_inside(name: str) -> bool:
    """Return whether `name` is that of a file below the folder, written as kopt writes it."""
    path = PurePosixPath(name)
    is_plain = path.as_posix() == name and name != "." and "\0" not in name
    return is_plain and not path.is_absolute() and ".." not in path.parts


def _replace(path: Path, before: Files, after: Files) -> None:
    """Make `before` into `after`; where that fails midway, put back what was there."""
    try:
        _put(path, before, after)
    except BaseException:
        _put(path, _read(path) or {}, before)
        raise


def _put(path: Path, before: Files, after: Files) -> None:
    """Write what differs, remove what is to go, and the folders in `path` that are then empty."""
    mode = usual_mode()
    for name, data in after.items():
        if before.get(name) != data:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path / name, data, mode=mode)
    gone = [name for name in before if name not in after]
    for name in gone:
        (path / name).unlink()
    folders = {folder for name in gone for folder in PurePosixPath(name).parents}
    for folder in sorted(folders - {PurePosixPath()}, reverse=True):
        if not any((path / folder).iterdir()):
            (path / folder).rmdir()


def _remove_empty(path: Path, count: int) -> None:
    """Remove `path` and the folders above it, `count` of them, as far as they are empty."""
    for folder in (path, *path.parents)[:count]:
        if any(folder.iterdir()):
            break
        folder.rmdir()
