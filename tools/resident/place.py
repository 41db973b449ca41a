"""Where the resident evaluators of a KOPT_HOME listen: one socket for each GPU and way to use it.

A name says what an evaluator would do differently: another version of kopt, Python, sandbox or
environment of libraries has an evaluator of its own, so that a caller always meets its own kind.
"""

import os
import socket
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kopt.config.files import content_hash, ensure_trusted_folder
from kopt.config.settings import Settings, python_path, visible_devices
from kopt.tools.remote.code_bundle import code_stamp

_SUFFIX = ".sock"
_NAME_DIGITS = 12


@dataclass(frozen=True)
class ResidentPlace:
    """The files of one evaluator."""

    socket_path: Path

    @property
    def device(self) -> str:
        """`cuda:<index>`, as the evaluator counts."""
        kind, index, _ = self.socket_path.name.split("-", 2)
        return f"{kind}:{index}"

    @property
    def life(self) -> Path:
        """The file that the evaluator locks as long as it lives."""
        return self.socket_path.with_suffix(".lock")

    @property
    def log(self) -> Path:
        """What the evaluator writes to stderr."""
        return self.socket_path.with_suffix(".log")

    @contextmanager
    def address(self) -> Generator[str]:
        """Give the socket's path in few enough characters for a socket, 107 at most."""
        folder = os.open(self.socket_path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            yield f"/proc/self/fd/{folder}/{self.socket_path.name}"
        finally:
            os.close(folder)

    def connected(self) -> socket.socket | None:
        """Return a connection to the evaluator; None if none listens."""
        fresh = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with self.address() as path:
                fresh.connect(path)
        except OSError:  # no socket, or nobody behind it
            fresh.close()
            return None
        return fresh


def place_of(device: str, settings: Settings) -> ResidentPlace:
    """Return where the evaluator of `device`, `cuda:<index>`, is for callers like this process.

    Raises:
        SetupError: The folder cannot be written, or others can write to it.
    """
    parts = (
        _own_code(),
        _boot_id(),
        sys.executable,
        python_path(),
        visible_devices(),
        settings.sandbox,
        settings.library_environment,
        settings.ncu,
        settings.cuda_home,
    )
    name = content_hash(map(repr, parts))[:_NAME_DIGITS]
    folder = ensure_trusted_folder(_folder(settings), settings.home.absolute())
    return ResidentPlace(folder / f"{device.replace(':', '-')}-{name}{_SUFFIX}")


def all_places(settings: Settings) -> list[ResidentPlace]:
    """Return where evaluators listen, or have listened before they were killed."""
    return [ResidentPlace(path) for path in sorted(_folder(settings).glob(f"cuda-*-*{_SUFFIX}"))]


@cache
def _own_code() -> str:
    """Return what names the code of this process, as it lay there when it was first asked for."""
    return code_stamp()


def _folder(settings: Settings) -> Path:
    return settings.home.absolute() / "gpu"


def _boot_id() -> str:
    """Return what differs between machines that share a home folder."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
