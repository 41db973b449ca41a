"""What a sandboxed process may do, and how it ended."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

SandboxLevel = Literal["bubblewrap", "landlock", "plain"]


@dataclass(frozen=True)
class SandboxPolicy:
    """Files, limits and environment of one child process.

    Whatever the level: no network, no new privileges, a new session, killed with its parent,
    standard input from /dev/null, and an environment that holds only `environment` and a minimal
    PATH, LANG, HOME and TMPDIR (the last two inside `writable[0]`).
    """

    readable: tuple[Path, ...] = ()
    """Files and folders it may read and execute, beside the system's own (/usr, /lib, /bin, /etc/
    ld.so.cache and the like). Home directories are not readable unless named."""
    writable: tuple[Path, ...] = ()
    """Folders it may also write; the first is its working directory."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    wall_s: float = 60.0
    cpu_s: int = 120
    output_bytes: int = 1 << 20
    """Of stdout and of stderr, each; the rest is read and dropped."""
    file_bytes: int = 1 << 30
    """Largest file it may write."""
    processes: int = 64
    memory_bytes: int | None = None
    """Private writable memory of each process (RLIMIT_DATA); None: no limit. Not for CUDA."""
    allow_exec: bool = True
    """False: seccomp refuses execve after start, for processes that run candidate code."""


@dataclass(frozen=True)
class SandboxedRun:
    """How a sandboxed process ended."""

    returncode: int
    """Exit status; negative signal number if a signal ended it."""
    stdout: bytes
    stderr: bytes
    timed_out: bool
    dropped_bytes: int
    """Output beyond `output_bytes` that was not kept."""
    level: SandboxLevel
    elapsed_s: float
