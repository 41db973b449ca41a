"""The command lines of bubblewrap and Landlock for a policy, and the environment of the child.

Nothing is started here. bubblewrap builds a file system that holds only what is named, Landlock
refuses what is not named, and `plain` restricts no files; the launcher's arguments are the same for
all three but for the rules.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .policy import SandboxLevel, SandboxPolicy

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
SYSTEM_PATHS = (
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/nix/store",
    "/gnu/store",
)
KERNEL_SETTINGS = "/proc/sys"
DEVICE_FACTS = "/sys"
"""Where drivers describe their devices: PCI addresses, NUMA nodes, module versions."""
MACHINE_FACTS = (
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/version", "/proc/filesystems"),
    *("/proc/uptime", "/proc/loadavg", KERNEL_SETTINGS),
)
OWN_FACTS = tuple(
    f"/proc/self/{name}"
    for name in ("maps", "smaps", "stat", "statm", "status", "limits", "cgroup", "mountinfo")
)
"""What Landlock lets a process read of /proc: neither other processes nor the host's connections,
which lie below each process's own `net` too. Of a child its own entries are refused as well."""
READABLE_DEVICES = ("/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
PATH = "/usr/local/bin:/usr/bin:/bin"


@dataclass(frozen=True)
class SandboxTools:
    """The tools of one level on this machine."""

    level: SandboxLevel
    launcher: Path
    bwrap: str | None
    landlock_abi: int


def child_environment(policy: SandboxPolicy) -> dict[str, str]:
    """Return the whole environment of the child, built from nothing."""
    work = policy.writable[0]
    return {
        "PATH": PATH,
        "LANG": "C.UTF-8",
        "LOGNAME": "kopt",  # torch asks for it, and the password file is not readable
        "HOME": str(work / "home"),
        "TMPDIR": str(work / "tmp"),
        **policy.environment,
    }


def command_line(
    tools: SandboxTools, policy: SandboxPolicy, status_fd: int, command: Sequence[str]
) -> list[str]:
    """Return the command that runs `command` confined; it reports to `status_fd`."""
    arguments = [
        str(tools.launcher),
        "run",
        f"status-fd={status_fd}",
        f"file-bytes={policy.file_bytes}",
        f"cpu-s={policy.cpu_s or 0}",
        f"processes={policy.processes}",
        f"memory-bytes={policy.memory_bytes or 0}",
        f"tree-bytes={policy.tree_bytes or 0}",
        f"exec={int(policy.allow_exec)}",
        f"sockets={_socket_rule(policy)}",
    ]
    if tools.level == "bubblewrap":
        return [*_bwrap_arguments(tools, policy), *arguments, "--", *command]
    # Inside a pid namespace the parent has no number; elsewhere the launcher checks it.
    arguments.append(f"parent-pid={os.getpid()}")
    if tools.level == "landlock":
        arguments += _landlock_arguments(tools, policy)
    return [*arguments, "--", *command]


def _socket_rule(policy: SandboxPolicy) -> int:
    """Return the number of the filter's SocketRule: none, a local listener, all local ones."""
    if policy.unix_sockets:
        return 2
    return 1 if policy.devices else 0


def _landlock_arguments(tools: SandboxTools, policy: SandboxPolicy) -> list[str]:
    readable = [*SYSTEM_FOLDERS, *SYSTEM_PATHS, *READABLE_DEVICES]
    readable += [str(path) for path in policy.readable]
    # A driver reads more of /proc than can be named, also in the programs that a worker starts.
    readable += ["/proc", DEVICE_FACTS] if policy.devices else [*MACHINE_FACTS, *OWN_FACTS]
    writable = ["/dev/null", *(str(path) for path in policy.writable)]
    return [
        f"landlock={tools.landlock_abi}",
        *(f"read={path}" for path in readable),
        *(f"write={path}" for path in writable),
        *(f"device={path}" for path in policy.devices),
    ]


def _bwrap_arguments(tools: SandboxTools, policy: SandboxPolicy) -> list[str]:
    arguments = [
        str(tools.bwrap),
        "--unshare-pid",
        "--unshare-net",
        "--unshare-ipc",
        "--die-with-parent",
        "--new-session",
        "--cap-drop",
        "ALL",
    ]
    for folder in SYSTEM_FOLDERS:
        # On merged-/usr systems /bin and /lib are links; elsewhere folders.
        if os.path.islink(folder):
            arguments += ["--symlink", os.readlink(folder), folder]
        elif os.path.isdir(folder):
            arguments += ["--ro-bind", folder, folder]
    for path in SYSTEM_PATHS:
        if os.path.exists(path):
            arguments += ["--ro-bind", path, path]
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    # Root writes here without any capability: its files ask for the user alone.
    arguments += ["--ro-bind", KERNEL_SETTINGS, KERNEL_SETTINGS]
    if policy.devices:
        # A private /dev/shm: what computes beside a driver (OpenMP, semaphores) writes there.
        arguments += ["--ro-bind", DEVICE_FACTS, DEVICE_FACTS, "--tmpfs", "/dev/shm"]
        for device in map(str, policy.devices):
            arguments += ["--dev-bind-try", device, device]
    readable = _mounts((tools.launcher, *policy.readable), SYSTEM_FOLDERS)
    for path in readable:
        arguments += ["--ro-bind", path, path]
    for path in _mounts(policy.writable, (*SYSTEM_FOLDERS, *readable)):
        arguments += ["--bind", path, path]
    # Last: folders below /dev/shm may be bound before.
    arguments += ["--remount-ro", "/dev", "--remount-ro", "/"]
    arguments += ["--chdir", str(policy.writable[0]), "--"]
    return arguments


def _mounts(paths: Sequence[Path], shown: Sequence[str]) -> list[str]:
    """Return where to bind each existing path: where its links lead, and under its own name.

    The latter only if no folder that is `shown` contains it: the links lie there already, and
    bubblewrap cannot bind on top of a link. Parents come first.
    """
    names = sorted(os.path.abspath(path) for path in paths if path.exists())
    mounts = {os.path.realpath(name) for name in names}
    for name in names:
        if not any(Path(name).is_relative_to(folder) for folder in (*shown, *mounts)):
            mounts.add(name)
    return sorted(mounts)
