"""How a command ends: the exit codes, and the one line or JSON document of a failed call."""

import errno
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

import click

from kopt.config.errors import (
    BackendUnavailable,
    FarSetupError,
    InfraError,
    KoptError,
    ToolError,
    is_interrupt,
)
from kopt.config.pool_address import is_pool
from kopt.kernels.status import Status
from kopt.tools.facts.next_command import NextCommand

from .starting import program_name

ERROR_SCHEMA = "kopt.error/1"

MACHINE_ERRNOS = {
    errno.ENOSPC: "free some space, or set KOPT_HOME to a folder on another disk",
    errno.EDQUOT: "your quota is used up: free some space, or set KOPT_HOME elsewhere",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f), or set KOPT_HOME to another disk",
    errno.EROFS: "set KOPT_HOME to a folder you can write",
    errno.EIO: "the disk has a fault: set KOPT_HOME to a folder on another one",
    errno.EMFILE: "raise the limit of open files (ulimit -n), or lower KOPT_JOBS",
    errno.ENFILE: "too many files are open on this machine: try again",
    errno.ENOMEM: "the memory is used up: lower KOPT_JOBS",
}
"""Ways in which any system call may fail without a bug of ours, with what to do about each."""


class ExitCode(IntEnum):
    """The exit codes of `kopt`; README.md documents the same list."""

    PASSED = 0
    FELL_SHORT = 1
    """The candidate has a status other than passed: the command itself worked."""
    USAGE = 2
    """The call cannot be carried out as written: a wrong flag, file or id."""
    MACHINE = 3
    """This machine lacks something, or failed under the request."""
    BUG = 70
    """An exception that kopt does not raise on purpose (EX_SOFTWARE); the traceback is shown."""
    INTERRUPTED = 130
    """Ctrl-C: 128 + SIGINT."""
    BROKEN_PIPE = 141
    """The reader of stdout went away: 128 + SIGPIPE."""


def exit_code_of(status: Status) -> ExitCode:
    """Return how a command ends that evaluated one candidate.

    What the simulator cannot run is no verdict on the candidate: this machine lacks a GPU.
    """
    if status is Status.UNSUPPORTED_ON_SIM:
        return ExitCode.MACHINE
    return ExitCode.PASSED if status is Status.PASSED else ExitCode.FELL_SHORT


class Interrupted(Exception):
    """Ctrl-C during work that can be resumed; `again` says how, or the message does."""

    def __init__(self, message: str, again: NextCommand | None = None) -> None:
        """Keep what was interrupted, and the command that goes on with it."""
        super().__init__(message)
        self.again = again


@dataclass(frozen=True)
class CommandFailure:
    """A call that did not end in a result."""

    kind: Literal["usage", "machine", "interrupted", "bug"]
    message: str
    """One line: what is wrong."""
    hint: str | None
    """What to do next, where the message does not say it already."""
    code: ExitCode

    def document(self) -> dict[str, object]:
        """Return the JSON document of this failure."""
        return {
            "schema": ERROR_SCHEMA,
            "status": "error",
            "error": self.kind,
            "message": self.message,
            "hint": self.hint,
            "exit_code": int(self.code),
        }


_BEHIND_THE_COMMAND = ("--json", "--problems")
_MACHINE_FAILED = "The machine failed, not the candidate: try again."
_SQLITE_MACHINE_CODES = frozenset({8, 10, 13, 14})
"""SQLite's READONLY, IOERR, FULL and CANTOPEN: the disk's fault.

Source: sqlite.org/rescode.html.
"""


def failure_of(error: BaseException, command: str = "kopt") -> CommandFailure:
    """Return how `error` is reported; exceptions without a case of their own are bugs.

    Args:
        error: What ended the command.
        command: Whose help is named where click does not know the command.
    """
    if isinstance(error, click.UsageError):
        return _usage_failure(error, command)
    if isinstance(error, click.ClickException):
        return CommandFailure("usage", error.format_message(), None, ExitCode.USAGE)
    if isinstance(error, ToolError):
        return CommandFailure("usage", str(error), None, ExitCode.USAGE)
    if isinstance(error, InfraError):
        is_service = isinstance(error, BackendUnavailable)
        hint = "Try again later." if is_service else _MACHINE_FAILED
        return CommandFailure("machine", str(error), hint, ExitCode.MACHINE)
    if isinstance(error, KoptError):
        knows = _who_knows(error, command)
        return CommandFailure("machine", str(error).strip(), knows, ExitCode.MACHINE)
    if isinstance(error, Interrupted):
        again = None if error.again is None else error.again.line(program=program_name())
        return CommandFailure("interrupted", str(error), again, ExitCode.INTERRUPTED)
    if is_interrupt(error) or isinstance(error, click.Abort):
        return CommandFailure("interrupted", "interrupted", None, ExitCode.INTERRUPTED)
    if isinstance(error, OSError) and error.errno in MACHINE_ERRNOS:
        where = f" ({error.filename})" if error.filename else ""
        hint = MACHINE_ERRNOS[error.errno]
        return CommandFailure("machine", f"{error.strerror}{where}", hint, ExitCode.MACHINE)
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in _SQLITE_MACHINE_CODES:
        hint = "The disk is full or has a fault: free some space, or set KOPT_HOME elsewhere."
        return CommandFailure("machine", f"the run store fails: {error}", hint, ExitCode.MACHINE)
    message = f"{type(error).__name__}: {error}"
    hint = "This is a bug in kopt: please report it with the traceback."
    return CommandFailure("bug", message, hint, ExitCode.BUG)


def _who_knows(error: KoptError, command: str) -> str | None:
    """Return the command that shows what the machine at fault has; None where it is `command`."""
    if isinstance(error, FarSetupError) and command == "kopt pool":
        return None
    if isinstance(error, FarSetupError) and is_pool(error.device):
        return f"'kopt pool status --device {error.device}' shows what the pool has."
    if isinstance(error, FarSetupError):
        return f"'kopt doctor --device {error.device}' shows what that machine has."
    return "'kopt doctor' shows what this machine has."


def _usage_failure(error: click.UsageError, command: str) -> CommandFailure:
    if error.ctx is not None:
        command = error.ctx.command_path
    message = " ".join(error.format_message().split())
    if isinstance(error, click.NoSuchOption) and command == "kopt":
        option = error.option_name
        if option in _BEHIND_THE_COMMAND:
            message = f"{option} stands behind the command, as in kopt list {option}"
    hint = f"Try '{command} --help'."
    if _takes_no_argument(error):
        hint = f"A kernel is named by --kernel ID (kopt list). {hint}"
    return CommandFailure("usage", message, hint, ExitCode.USAGE)


def _takes_no_argument(error: click.UsageError) -> bool:
    """Return whether a word was given to a command that has options alone, --kernel among them."""
    parameters = [] if error.ctx is None else error.ctx.command.params
    has_kernel = any("--kernel" in one.opts for one in parameters)
    takes_words = any(isinstance(one, click.Argument) for one in parameters)
    return "unexpected extra argument" in error.message and has_kernel and not takes_words
