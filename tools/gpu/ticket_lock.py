"""One lock per GPU for every process and user of the host, first come first served.

A bare `flock` may starve a waiter. Here each process draws a ticket: a file with the next number,
held by a `flock` of its own. The process without a living ticket before its own holds the lock. The
kernel drops a `flock` with its process, so that a killed holder or waiter blocks no other and a
stale file counts for nothing. Containers with a /tmp of their own do not see each other.
"""

import fcntl
import os
import stat
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from kopt.config.errors import SetupError
from kopt.config.locks import is_descriptor_locked

LOCK_FOLDER = Path("/tmp/kopt-locks")
"""Fixed, not TMPDIR: users with different settings must meet."""
_POLL_S = 0.01
_TEXT_BYTES = 300
_MODE_ATTEMPTS = 50


@dataclass(frozen=True)
class Holder:
    """The process that owns a ticket, as it described itself; only shown to people."""

    pid: int
    """In the owner's pid namespace."""
    since: str
    """When the ticket was drawn, UTC."""
    command: str

    def __str__(self) -> str:
        """Return it in words."""
        return f"process {self.pid} ({self.command}) since {self.since}"


@dataclass(frozen=True)
class Wait:
    """The place of a waiter in the queue."""

    before: int
    """Tickets before this one, the holder's included; at least 1."""
    holder: Holder | None
    """The process that holds the lock; None if it has just released it."""

    def told_of(self, device: str) -> str:
        """Return the place in one line for people."""
        held = "" if self.holder is None else f"; held by {self.holder}"
        return f"waiting for {device}, {self.before} before you{held}"


class TicketLock:
    """The lock called `name`; each `hold` is independent, also between threads."""

    def __init__(self, name: str, folder: Path = LOCK_FOLDER) -> None:
        """Name the lock; nothing is opened yet."""
        self._prefix = f"{name}."
        self._folder = folder

    @contextmanager
    def hold(self, on_wait: Callable[[Wait], None] | None = None) -> Generator[None]:
        """Wait for the lock and hold it inside the `with`.

        Args:
            on_wait: Called when the place in the queue is known and each time that it changes.

        Raises:
            SetupError: The lock folder cannot be used; the message says why.
        """
        folder = _open_folder(self._folder)
        try:
            try:
                number, ticket = self._draw(folder)
            except OSError as error:  # a door or a number that another user has put there
                raise SetupError(
                    f"cannot draw a ticket in {self._folder}: {error.strerror} ({error.filename}); "
                    "its owner or the administrator must remove what is in the way"
                ) from error
            try:
                self._wait(folder, number, on_wait)
                yield
            finally:
                # While it is still locked: an unlocked ticket may be swept by others.
                self._sweep(folder, number)
                os.close(ticket)
        finally:
            os.close(folder)

    def holder(self) -> Holder | None:
        """Return the process that holds the lock at this moment; None if it is free."""
        folder = _open_folder(self._folder)
        try:
            living = (n for n in self._numbers(folder) if self._is_living(folder, n))
            first = next(living, None)
            return None if first is None else self._describe(folder, first)
        finally:
            os.close(folder)

    def _draw(self, folder: int) -> tuple[int, int]:
        """Return a new ticket: its number, which is above all others, and its locked file."""
        with self._door(folder):
            numbers = self._numbers(folder)
            for number in numbers:
                if not self._is_living(folder, number):
                    self._sweep(folder, number)
            number = numbers[-1] + 1 if numbers else 0
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            ticket = os.open(self._file(number), flags, 0o644, dir_fd=folder)
            # Not LOCK_NB: `holder` of another process may look at the new file this instant.
            fcntl.flock(ticket, fcntl.LOCK_EX)
            os.fchmod(ticket, 0o644)  # readable for all whatever the umask
            os.write(ticket, _own_description())
        return number, ticket

    @contextmanager
    def _door(self, folder: int) -> Generator[None]:
        """Let one comer at a time draw a number; held for less than a millisecond."""
        name = f"{self._prefix}door"
        with suppress(FileExistsError):
            # Alone, because fs.protected_regular forbids O_CREAT for a file of another user.
            new = os.open(name, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=folder)
            os.fchmod(new, 0o644)
            os.close(new)
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        door = os.open(name, flags, dir_fd=folder)
        try:
            fcntl.flock(door, fcntl.LOCK_EX)
            yield
        finally:
            os.close(door)

    def _wait(self, folder: int, number: int, on_wait: Callable[[Wait], None] | None) -> None:
        told = 0
        while True:
            before = [n for n in self._numbers(folder) if n < number and self._is_living(folder, n)]
            if not before:
                return
            if on_wait is not None and len(before) != told:
                told = len(before)
                on_wait(Wait(told, self._describe(folder, before[0])))
            time.sleep(_POLL_S)

    def _numbers(self, folder: int) -> list[int]:
        """Return the numbers of all tickets, living or stale, in order."""
        texts = [
            name.removeprefix(self._prefix)
            for name in os.listdir(folder)
            if name.startswith(self._prefix)
        ]
        return sorted(int(text) for text in texts if text.isascii() and text.isdigit())

    def _file(self, number: int) -> str:
        return f"{self._prefix}{number:012d}"

    def _is_living(self, folder: int, number: int) -> bool:
        """Whether the owner of a ticket still lives and has not released it."""
        try:
            ticket = self._open(folder, number)
        except OSError:  # released meanwhile, or not a plain file: not one of ours
            return False
        try:
            return is_descriptor_locked(ticket)
        finally:
            os.close(ticket)

    def _describe(self, folder: int, number: int) -> Holder | None:
        try:
            ticket = self._open(folder, number)
        except OSError:
            return None
        try:
            text = os.read(ticket, _TEXT_BYTES).decode(errors="replace")
        finally:
            os.close(ticket)
        pid, _, rest = text.partition(" ")
        since, _, command = rest.partition(" ")
        # Written by another user, perhaps: a number, and text without control characters.
        words = "".join(c for c in command if c.isprintable())
        return Holder(int(pid), since[:20], words) if pid.isascii() and pid.isdigit() else None

    def _open(self, folder: int, number: int) -> int:
        """Open a ticket for reading: neither links nor pipes, since any user may have made it."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        ticket = os.open(self._file(number), flags, dir_fd=folder)
        if not stat.S_ISREG(os.fstat(ticket).st_mode):
            os.close(ticket)
            raise FileNotFoundError(self._file(number))
        return ticket

    def _sweep(self, folder: int, number: int) -> None:
        try:
            os.unlink(self._file(number), dir_fd=folder)
        except OSError:  # another user's: it counts for nothing, and /tmp is emptied some day
            return


def _own_description() -> bytes:
    since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    # The sub-command alone: every user and caller reads it, and arguments name files and runs.
    command = " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:2]])
    # One line: a reader shows it as it is.
    return f"{os.getpid()} {since} {' '.join(command.split())}".encode()[:_TEXT_BYTES]


def _open_folder(path: Path) -> int:
    """Return a descriptor of the folder, mode 1777 as /tmp is, created if it is missing."""
    try:
        os.mkdir(path)
        os.chmod(path, 0o1777)  # the umask has cut the mode that mkdir was given
    except FileExistsError:
        pass
    except OSError as error:
        raise SetupError(f"cannot create {path} for the GPU locks: {error.strerror}") from error
    try:
        # Held open: the name may be moved away later, the folder that was examined may not.
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise SetupError(f"{path} must be a folder for the GPU locks: {error.strerror}") from error
    for _ in range(_MODE_ATTEMPTS):
        # Sticky: without it any user could remove the tickets of others.
        if stat.S_IMODE(os.fstat(folder).st_mode) == 0o1777:
            return folder
        time.sleep(_POLL_S)  # its creator is between mkdir and chmod
    os.close(folder)
    raise SetupError(
        f"{path} holds the GPU locks of all users and needs mode 1777: chmod 1777 {path}"
    )
