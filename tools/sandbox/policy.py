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
    devices: tuple[Path, ...] = ()
    """Character devices it may open for reading and writing and send ioctls to, and folders of
    such; those that do not exist are left out. With any, /sys is readable too, and what a driver
    writes beside its device may be written: /dev/shm (a private one, bubblewrap only) and the
    process's own entries in /proc."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    wall_s: float = 60.0
    cpu_s: int | None = 120
    """Processor time of each process; None: no limit."""
    output_bytes: int = 1 << 20
    """Bytes kept of stdout and of stderr, each; the rest is read and dropped."""
    file_bytes: int = 1 << 30
    """Largest file it may write."""
    processes: int = 64
    memory_bytes: int | None = None
    """Private writable memory of each process (RLIMIT_DATA); None: no limit. Not for CUDA."""
    unix_sockets: bool = False
    """Sockets between processes of this machine, for profilers that talk to what they examine. At
    the levels below bubblewrap these may reach the host's own services: never for a process whose
    host code is a candidate's."""
    allow_exec: bool = True
    """False: seccomp refuses execve after start, for processes that run candidate code."""


@dataclass(frozen=True)
class SandboxedRun:
    """How a sandboxed process ended."""

    returncode: int
    """Exit status; negative signal number if a signal ended it."""
    stdout: bytes
    stderr: bytes
    stderr_end: bytes
    """The last few KiB of stderr, whatever was dropped before."""
    timed_out: bool
    stopped: bool
    """Ended because the caller asked for it."""
    dropped_bytes: int
    """Output beyond `output_bytes` that was not kept."""
    level: SandboxLevel
    elapsed_s: float


_PATTERNS = (
    "nvidia[0-9]*",
    "nvidiactl",
    "nvidia-uvm",
    "nvidia-uvm-tools",
    "nvidia-modeset",
    "nvidia-caps",  # a folder: MIG and others
    "nvidia-caps-imex-channels",
    "dxg",  # the paravirtual GPU of WSL 2
)


def gpu_devices(folder: Path = Path("/dev")) -> tuple[Path, ...]:
    """Return the device files that a process needs to use NVIDIA GPUs; none without a driver.

    Only names are looked at, nothing is opened.
    """
    return tuple(
        path for pattern in _PATTERNS for path in sorted(folder.glob(pattern)) if path.exists()
    )
