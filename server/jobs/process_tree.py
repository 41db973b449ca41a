"""Which processes descend from a process, by /proc, and whether they are still there."""

import os
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class ProcessKey:
    """One process, told from a later one that has the same pid."""

    pid: int
    started_ticks: int
    """After boot."""


@dataclass(frozen=True)
class _Stat:
    key: ProcessKey
    parent: int
    is_zombie: bool


def descendants(pid: int) -> frozenset[ProcessKey]:
    """Return `pid` and all processes below it, whatever session or namespace they are in."""
    stats = [stat for name in os.listdir(_PROC) if name.isdigit() and (stat := _stat(int(name)))]
    children: dict[int, list[_Stat]] = {}
    for stat in stats:
        children.setdefault(stat.parent, []).append(stat)
    found = {stat.key for stat in stats if stat.key.pid == pid}
    waiting = [pid]
    while waiting:
        below = children.pop(waiting.pop(), [])
        found.update(stat.key for stat in below)
        waiting += [stat.key.pid for stat in below]
    return frozenset(found)


def living(processes: frozenset[ProcessKey]) -> frozenset[ProcessKey]:
    """Return those of `processes` that still run; a zombie holds nothing any more."""
    return frozenset(
        process
        for process in processes
        if (stat := _stat(process.pid)) and stat.key == process and not stat.is_zombie
    )


def _stat(pid: int) -> _Stat | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text("ascii", errors="replace")
    except OSError:  # it has ended meanwhile
        return None
    # The name, in parentheses, may hold anything: count from the last one. proc_pid_stat(5).
    state, parent, *rest = text.rpartition(")")[2].split()
    return _Stat(ProcessKey(pid, int(rest[17])), int(parent), state in "ZX")
