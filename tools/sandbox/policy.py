"""What a sandboxed process may do, and how it ended."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal

SandboxLevel = Literal["bubblewrap", "landlock", "plain"]


@dataclass(frozen=True)
class SandboxPolicy:
    """Files, limits and environment of one child process.

    Whatever the level: no network, no new privileges, a new session, killed with its parent,
    standard input from /dev/null, and an environment that holds only `environment` and a minimal
    PATH, LANG, LOGNAME, HOME and TMPDIR (the last two inside `writable[0]`).
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
    tree_bytes: int | None = None
    """Memory that all processes together hold, watched by the launcher every 20 ms; None: no limit.
    For programs that reserve much and touch little of it."""
    unix_sockets: bool = False
    """Sockets between processes of this machine, for profilers that talk to what they examine. At
    the levels below bubblewrap these may reach the host's own services: never for a process whose
    host code is a candidate's."""
    allow_exec: bool = True
    """False: seccomp refuses execve after start, for processes that run candidate code."""


_COMPILER_MEMORY_BYTES = 8 << 30
_CGROUP_LIMIT = Path("/sys/fs/cgroup/memory.max")


def compiler_memory_bytes() -> int:
    """Return what one compiler may hold: half of the machine's or container's memory, or 8 GiB.

    What is shipped takes less than 1 GiB; what takes more than this is a bomb or a mistake.
    """
    return min(_COMPILER_MEMORY_BYTES, machine_memory_bytes() // 2)


@lru_cache
def machine_memory_bytes() -> int:
    """Return the memory of the machine, or of the container that this process is in."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with suppress(OSError, ValueError):  # no such file, or the word max
        total = min(total, int(_CGROUP_LIMIT.read_text("ascii")))
    return total


_MEMORY_IS_UP = re.compile(
    r"out of memory|memory exhausted|std::bad_alloc|cannot allocate memory", re.IGNORECASE
)


def out_of_memory_words(said: str) -> str | None:
    """Return the sentence for a compiler whose last words say that its memory was up, else None."""
    if not _MEMORY_IS_UP.search(said):
        return None
    limit = compiler_memory_bytes() / (1 << 30)
    return f"the compiler needed more than {limit:.1f} GiB of memory and was stopped"


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
    memory_is_up: bool = False
    """Ended because its processes held more than `tree_bytes`."""


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
