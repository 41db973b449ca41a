"""Wall time of nested phases: functions of kopt wrapped from outside, so that kopt has no timers.

A phase is a path of names: what was open on the same thread when it began. Times are inclusive.
"""

import functools
import pkgutil
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Path = tuple[str, ...]


@dataclass(frozen=True)
class Spent:
    """What a phase took."""

    seconds: float = 0.0
    calls: int = 0

    def __add__(self, other: "Spent") -> "Spent":
        """Return both together."""
        return Spent(self.seconds + other.seconds, self.calls + other.calls)

    def __sub__(self, other: "Spent") -> "Spent":
        """Return what came after `other`."""
        return Spent(self.seconds - other.seconds, self.calls - other.calls)


class PhaseClock:
    """Adds up phases, on any number of threads."""

    def __init__(self) -> None:
        """Nothing has been spent."""
        self._spent: dict[Path, Spent] = {}
        self._lock = threading.Lock()
        self._open = threading.local()

    @contextmanager
    def phase(self, name: str) -> Generator[None]:
        """Count the block as `name`, inside of what is open on this thread."""
        outer: Path = getattr(self._open, "path", ())
        path = (*outer, name)
        self._open.path = path
        began = time.perf_counter()
        try:
            yield
        finally:
            spent = Spent(time.perf_counter() - began, 1)
            self._open.path = outer
            with self._lock:
                self._spent[path] = self._spent.get(path, Spent()) + spent

    def wrap(self, targets: Iterable[str]) -> None:
        """Count every call of `module:function` or `module:Class.method` under that name."""
        for target in targets:
            owner_name, _, name = target.replace(":", ".").rpartition(".")
            owner = pkgutil.resolve_name(owner_name)
            setattr(owner, name, self._counted(getattr(owner, name), _always(target)))

    def wrap_named(self, owner: Any, name: str, label: Callable[..., str]) -> None:
        """Count every call of an attribute under the name that `label` gives its arguments."""
        setattr(owner, name, self._counted(getattr(owner, name), label))

    def spent(self) -> dict[Path, Spent]:
        """Return all phases so far."""
        with self._lock:
            return dict(self._spent)

    def _counted(self, function: Callable[..., Any], label: Callable[..., str]) -> Any:
        @functools.wraps(function)
        def counted(*arguments: Any, **named: Any) -> Any:
            with self.phase(label(*arguments)):
                return function(*arguments, **named)

        return counted


def _always(target: str) -> Callable[..., str]:
    label = target.partition(":")[2]

    def of_any(*arguments: Any) -> str:
        del arguments
        return label

    return of_any


def since(now: Mapping[Path, Spent], before: Mapping[Path, Spent]) -> dict[Path, Spent]:
    """Return what was spent between two states of a clock."""
    return {path: spent - before.get(path, Spent()) for path, spent in now.items()}


def table(spent: Mapping[Path, Spent], share: float, least_s: float) -> list[str]:
    """Return a line for each phase of at least `least_s`, nested, its seconds times `share`."""
    lines: list[str] = []
    _add(lines, spent, (), (share, least_s))
    return lines


def _add(
    lines: list[str], spent: Mapping[Path, Spent], at: Path, shown: tuple[float, float]
) -> None:
    share, least_s = shown
    inside = [path for path in spent if path[:-1] == at]
    for path in sorted(inside, key=lambda path: -spent[path].seconds):
        seconds, calls = spent[path].seconds * share, spent[path].calls * share
        if seconds >= least_s:
            lines.append(f"{'  ' * len(at)}{seconds:8.3f} s {calls:6.1f} x  {path[-1]}")
            _add(lines, spent, path, shown)
