"""One change to a client's file: planned and shown first, carried out or taken back afterwards."""

from dataclasses import dataclass
from pathlib import Path

from kopt.config.client_folders import ClientFolders
from kopt.config.errors import ToolError

from .client import McpClient, Scope, Server, enter_server
from .config_file import (
    Backup,
    ConfigFile,
    backups_of,
    change_config,
    digest_of,
    read_config,
    restore_config,
)
from .json_edit import MalformedText, UnsafeEdit
from .secret_masking import masked_diff


@dataclass(frozen=True)
class SetupTarget:
    """A file of a client, and the name of the server in it."""

    client: McpClient
    scope: Scope
    name: str
    folders: ClientFolders
    project: Path

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that may be meant, the one that wins first."""
        return self.client.files(self.scope, self.folders, self.project)


@dataclass(frozen=True)
class ConfigChange:
    """A planned change of a settings file."""

    file: ConfigFile
    after: bytes | None
    """The new content; None: the file is to go."""
    undoes: Backup | None = None
    """The backup that the change puts back; None for an entry."""

    @property
    def path(self) -> Path:
        """The file."""
        return self.file.path

    @property
    def is_new(self) -> bool:
        """Whether nothing is there yet."""
        return self.file.data is None

    @property
    def is_needed(self) -> bool:
        """Whether the file differs from the new content."""
        return self.file.data != self.after

    @property
    def diff(self) -> str:
        """The change as a unified diff, with the secrets of other entries masked; "" for none."""
        return diff_of(self.file.path, self.file.data, self.after)


def plan_entry(place: SetupTarget, server: Server) -> ConfigChange:
    """Return the change that enters `server`; nothing is written.

    Raises:
        ToolError: The file cannot be understood, or holds no such servers.
        SetupError: The file cannot be read, or is a link that leads out of the project.
    """
    existing = [path for path in place.files if path.is_symlink() or path.exists()]
    file = _read(place, existing[0] if existing else place.files[-1])
    text = _text(file)
    try:
        after = enter_server(place.client, text, place.name, server)
    except MalformedText as error:
        raise ToolError(
            f"{file.path} is not what {place.client.title} can read: {error}."
            " Nothing was changed; fix the file first"
        ) from error
    except UnsafeEdit as error:
        raise ToolError(
            f"the layout of {file.path} allows no safe edit ({error}). Nothing was changed; delete"
            f" {place.name!r} there if it stands in it, or add it by hand (docs/clients.md)"
        ) from error
    return ConfigChange(file, after.encode())


def plan_undo(place: SetupTarget) -> ConfigChange:
    """Return the change that takes back the latest one made for this server; nothing is written.

    Raises:
        ToolError: There is nothing to take back, or the file has changed since.
        SetupError: The file or its backup cannot be read.
    """
    for path in place.files:
        backups = backups_of(path, place.name)
        if not backups:
            continue
        file = _read(place, path)
        now = None if file.data is None else digest_of(file.data)
        fitting = [backup for backup in backups if backup.written == now]
        if fitting:
            return ConfigChange(file, fitting[-1].data, fitting[-1])
        raise ToolError(_changed_since(place, file, backups[-1]))
    raise ToolError(
        f"nothing to undo: no backup of {' or '.join(map(str, place.files))} for a server"
        f" {place.name!r} (--scope and --name must be those of the setup)"
    )


def carry_out(change: ConfigChange, name: str) -> Path | None:
    """Make `change`; return the backup, or None for an undo.

    Raises:
        SetupError: The file may not be written, or has changed since it was planned.
    """
    if change.undoes is not None:
        restore_config(change.file, change.undoes)
        return None
    assert change.after is not None  # only an undo removes a file
    return change_config(change.file, change.after, name)


def diff_of(path: Path, before: bytes | None, after: bytes | None) -> str:
    """Return the unified diff, with the secrets of other entries masked."""
    missing = "/dev/null"
    names = (missing if before is None else str(path), missing if after is None else str(path))
    return masked_diff(_decoded(before), _decoded(after), names)


def _read(place: SetupTarget, path: Path) -> ConfigFile:
    return read_config(
        path, place.scope == "user", place.project if place.scope == "project" else None
    )


def _decoded(data: bytes | None) -> str:
    return "" if data is None else data.decode("utf-8", "replace")


def _text(file: ConfigFile) -> str:
    try:
        return (file.data or b"").decode("utf-8")
    except UnicodeDecodeError as error:
        raise ToolError(f"{file.path} is not UTF-8 text; nothing was changed") from error


def _changed_since(place: SetupTarget, file: ConfigFile, backup: Backup) -> str:
    by_hand = place.client.take_out[place.scope].format(name=place.name)
    diff = diff_of(file.path, file.data, backup.data).rstrip("\n")
    kept = "there was no file" if backup.data is None else f"what it was stands in {backup.path}"
    return (
        f"{file.path} has changed since kopt wrote it, so it is left alone. Undoing would make"
        f" these changes:\n{diff}\nBefore, {kept}. To take out only this server: {by_hand}"
    )
