"""Descendants of a process, by /proc, and whether they still run."""

import os
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True)
class ProcessKey:
    """One process, told from a later one that has the same pid."""

    pid: int
    started_ticks: int
    """Time of its start, in clock ticks after boot."""


@dataclass(frozen=True)
class _Stat:
    key: ProcessKey
    parent: int
    session: int
    is_zombie: bool


def session_tree(pid: int) -> frozenset[ProcessKey]:
    """Return `pid`, the session that it leads, or led, and all below, in whatever session."""
    stats = [stat for name in os.listdir(_PROC) if name.isdigit() and (stat := _stat(int(name)))]
    children: dict[int, list[ProcessKey]] = {}
    for stat in stats:
        children.setdefault(stat.parent, []).append(stat.key)
    waiting = [stat.key for stat in stats if pid in (stat.key.pid, stat.session)]
    found: set[ProcessKey] = set()
    while waiting:
        key = waiting.pop()
        found.add(key)
        waiting += children.pop(key.pid, [])
    return frozenset(found)


def living(processes: frozenset[ProcessKey]) -> frozenset[ProcessKey]:
    """Return those of `processes` that still run; a zombie holds nothing any more."""
    return frozenset(
        process
        for process in processes
        if (stat := _stat(process.pid)) and stat.key == process and not stat.is_zombie
    )


def process_key(pid: int) -> ProcessKey | None:
    """Return the process that has this pid now; None if none has."""
    stat = _stat(pid)
    return None if stat is None else stat.key


def _stat(pid: int) -> _Stat | None:
    try:
        text = (_PROC / str(pid) / "stat").read_text("ascii", errors="replace")
    except OSError:  # it has ended meanwhile
        return None
    # The name, in parentheses, may hold anything: count from the last one. proc_pid_stat(5).
    state, parent, *rest = text.rpartition(")")[2].split()
    return _Stat(ProcessKey(pid, int(rest[17])), int(parent), int(rest[1]), state in "ZX")
