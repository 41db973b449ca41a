"""One process of a sweep killed, and how long its GPU was away; for `bench_pool.py`.

By local workers it is the worker process of the first GPU, by Ray the actor of any: the one that
has worked longest, so that it is not a spare. Only processes below a given one are looked at.
"""

import os
import signal
import threading
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from kopt.config.callbacks import ignore
from kopt.config.errors import KoptError
from kopt.config.pool_address import pool_address
from kopt.config.settings import Settings
from kopt.server.jobs.process_tree import session_tree
from kopt.tools.pool.pool_route import PoolRoute, PoolWish
from kopt.tools.remote.answers import PoolStatusAnswer
from kopt.tools.remote.calls import PoolStatusCall

ACTOR = "ray::Seat"
WORKER = "kopt.tools.gpu.worker"
SIMULATION = "/job.txt"
_LOOK_EVERY_S = 0.005
_ASK_EVERY_S = 0.2
_JOIN_S = 30.0
_NOTICED_S = 5.0
_AWAY_S = 60.0
"""Longest wait, once the sweep is over, for a death to be noticed and for an evaluator to be
back."""


@dataclass(frozen=True)
class ProcessFacts:
    """One process, as /proc shows it."""

    pid: int
    command: str
    cpu_ticks: int


@dataclass(frozen=True)
class KilledProcess:
    """What was killed, and when."""

    pid: int
    at_s: float
    """When, in seconds of the monotonic clock."""


def choose_victim(
    processes: Iterable[ProcessFacts], mark: str, preferred: Collection[int] = ()
) -> ProcessFacts | None:
    """Return which process is killed; None where none is of the kind.

    Args:
        processes: All that may be.
        mark: A part of the command.
        preferred: Pids of those of one GPU; others are taken where none of them is left.
    """
    fitting = [one for one in processes if mark in one.command]
    first = [one for one in fitting if one.pid in preferred]
    return max(first or fitting, key=lambda one: (one.cpu_ticks, one.pid), default=None)


def processes_below(pid: int, mark: str) -> list[ProcessFacts]:
    """Return the processes below `pid` whose command has `mark`."""
    found: list[ProcessFacts] = []
    for key in session_tree(pid):
        folder = Path("/proc", str(key.pid))
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            stat = (folder / "stat").read_text("ascii", errors="replace")
        except OSError:  # it has ended
            continue
        command = b" ".join(words).decode(errors="replace")
        numbers = stat.rpartition(")")[2].split()  # utime and stime: proc_pid_stat(5)
        if mark in command and key.pid != os.getpid():
            found.append(ProcessFacts(key.pid, command, int(numbers[11]) + int(numbers[12])))
    return found


class Killing:
    """A thread that kills one process below another, as soon as there is one of its kind."""

    def __init__(self, root: int, mark: str, preferred: Collection[int] = ()) -> None:
        """Say what to kill; nothing is killed yet."""
        self._root, self._mark, self._preferred = root, mark, preferred
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._kill, name="killing", daemon=True)
        self._killed: KilledProcess | None = None

    def begin(self) -> None:
        """Kill the process, beside what goes on."""
        self._thread.start()

    def end(self) -> KilledProcess | None:
        """Return what was killed; None where nothing was, and nothing will be now."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        return self._killed

    def _kill(self) -> None:
        while not self._over.wait(_LOOK_EVERY_S):
            found = processes_below(self._root, self._mark)
            victim = choose_victim(found, self._mark, self._preferred)
            if victim is None:
                continue
            try:
                os.kill(victim.pid, signal.SIGKILL)
            except ProcessLookupError:  # it has ended by itself: another one
                continue
            self._killed = KilledProcess(victim.pid, time.monotonic())
            return


@dataclass(frozen=True)
class PoolLook:
    """The evaluators of a pool at one moment."""

    at_s: float
    states: tuple[str, ...]


def away_and_back(
    looks: Sequence[PoolLook], killed_at_s: float
) -> tuple[float | None, float | None]:
    """Return how long after a kill an evaluator was seen to be away, and to serve again.

    None where that was not seen. Evaluators keep their places in the list while their nodes live.
    """
    serves = ("free", "busy")
    later = [look for look in looks if look.at_s >= killed_at_s]
    for place in range(len(later[0].states) if later else 0):
        seen = [(look.at_s, look.states[place]) for look in later if place < len(look.states)]
        gone_s = next((at_s for at_s, state in seen if state not in serves), None)
        if gone_s is None:
            continue
        back = (at_s for at_s, state in seen if at_s > gone_s and state in serves)
        back_s = next(back, None)
        return gone_s - killed_at_s, None if back_s is None else back_s - killed_at_s
    return None, None


class PoolWatch:
    """A watcher that looks at a pool a few times a second, over a connection of its own."""

    def __init__(self, address: str, settings: Settings) -> None:
        """Look from now on; return once the pool was seen, or cannot be."""
        self._address, self._settings = address, settings
        self._looks: list[PoolLook] = []
        self._sees, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._look, name="pool watch", daemon=True)
        self._thread.start()
        self._sees.wait(_JOIN_S)

    def end(self, killed: KilledProcess | None) -> float | None:
        """Return how long after its end the evaluator that was killed served again."""
        ended_s = time.monotonic()
        back_s: float | None = None
        while killed is not None:
            away_s, back_s = away_and_back(self._looks, killed.at_s)
            patience_s = _NOTICED_S if away_s is None else _AWAY_S
            if back_s is not None or time.monotonic() > ended_s + patience_s:
                break
            time.sleep(_ASK_EVERY_S)
        self._over.set()
        self._thread.join()
        return back_s

    def _look(self) -> None:
        wish = PoolWish(starts=False)
        try:
            route = PoolRoute(pool_address(self._address), self._settings, ignore, wish)
            with closing(route.connect()) as link, link.lane() as lane:
                while not self._over.wait(_ASK_EVERY_S):
                    answer, _ = link.ask(lane, PoolStatusCall())
                    if isinstance(answer, PoolStatusAnswer):
                        states = [one.state for pool in answer.pools for one in pool.evaluators]
                        self._looks.append(PoolLook(time.monotonic(), tuple(states)))
                        self._sees.set()
        except KoptError:  # what was not seen is told as such
            self._sees.set()
