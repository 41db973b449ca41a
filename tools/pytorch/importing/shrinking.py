"""Small sizes at which a function calls the same operators: what a check can run on a CPU.

Integers of the source are halved, the largest first and those within its classes last, as long as
the function still runs on fake tensors, calls the same operators with the same numbers, and no
dimension vanishes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kopt.config.errors import ToolError

from .fake_run import FakeRun, fake_run
from .user_source import LEAST, SizedFunction

TARGET = 1 << 17
"""Elements and units of multiplications of a forward pass that is small enough."""
_TRIES = 60
_FEW = 8
"""Sizes from this one on keep at least half of it: statistics of two values are none."""


@dataclass
class _Search:
    function: SizedFunction
    official: FakeRun
    values: dict[str, int] = field(default_factory=dict[str, int])
    numbers: tuple[int, ...] = ()
    """What operators compute with at `values`."""
    tries: int = 0
    failed: set[frozenset[tuple[str, int]]] = field(default_factory=set[frozenset[tuple[str, int]]])
    """Values at which it is another function, or none."""

    def attempt(self, changed: Mapping[str, int]) -> FakeRun | None:
        """Return the run at other values if it is the same function; None if it is not."""
        values = {**self.values, **changed}
        if frozenset(values.items()) in self.failed:
            return None
        self.tries += 1
        try:
            run = fake_run(self.function.build, values)
        except Exception:  # the user's code at sizes that do not fit together: any error means no
            run = None
        if run is None or not _is_same(run, self.official) or not self._keeps(changed, run):
            self.failed.add(frozenset(values.items()))
            return None
        return run

    def _keeps(self, changed: Mapping[str, int], run: FakeRun) -> bool:
        """Return whether no integer of a class that is computed with was taken for a width."""
        return self.function.inner.isdisjoint(changed) or run.numbers == self.numbers


def _is_same(run: FakeRun, official: FakeRun) -> bool:
    if run.operators != official.operators or len(run.shapes) != len(official.shapes):
        return False
    for small, large in zip(run.shapes, official.shapes, strict=True):
        if len(small) != len(large):
            return False
        for one, other in zip(small, large, strict=True):
            if one > other or one < min(other, 2) or (other >= _FEW and one < _FEW // 2):
                return False
    return True


def shrink(function: SizedFunction, official: FakeRun) -> dict[str, int]:
    """Return smaller values of some of the function's integers; none where nothing can shrink."""
    search = _Search(function, official, numbers=official.numbers)
    work = official.work
    stuck: set[str] = set()
    while work > TARGET and search.tries < _TRIES:
        now = {**function.integers, **search.values}
        free = [n for n in now if n not in stuck and now[n] > LEAST]
        names = sorted(free, key=lambda n: (n in function.inner, -now[n]))
        if not names:
            break
        run, changed = _smaller(search, now, names[0])
        if run is None or run.work > work:
            stuck.add(names[0])
            continue
        search.values.update(changed)
        search.numbers, work = run.numbers, run.work
    _set_batch_apart(search)
    return {
        name: value for name, value in search.values.items() if value != function.integers[name]
    }


def _smaller(
    search: _Search, now: Mapping[str, int], name: str
) -> tuple[FakeRun | None, dict[str, int]]:
    """Halve one integer, or else all that have its value, or else all that are not few.

    What is twice as large as another often has to stay so. The widths of a network fit together:
    they are halved all at once first.
    """
    inner = search.function.inner
    near = [other for other in now if name in inner or other not in inner]
    groups = [[name], [n for n in near if now[n] == now[name]], near]
    if name in inner:
        groups = [sorted(inner), near, *groups[1::-1]]
    changed = dict[str, int]()
    for group in groups:
        halves = {other: _half(now[other]) for other in group if now[other] > _FEW or other == name}
        run = search.attempt(halves)
        if run is not None:
            return run, halves
        changed = halves
    return None, changed


def _half(value: int) -> int:
    """Return half of it; what is odd stays odd."""
    return value // 2 | (value & 1)


def _set_batch_apart(search: _Search) -> None:
    """Give the first input's first dimension a size that no other has.

    Rows are recognised by their size: a weight as long as the batch would be taken for rows.
    """
    run = search.attempt({})
    if run is None or not run.inputs or not run.inputs[0]:
        return
    batch = run.inputs[0][0]
    now = {**search.function.integers, **search.values}
    for name in [name for name, value in now.items() if value == batch]:
        for other in (
            batch,
            *range(batch - 1, max(batch // 2, LEAST) - 1, -1),
            *range(batch + 1, 2 * batch),
        ):
            tried = search.attempt({name: other})
            if tried is None or tried.inputs[0][0] != other:
                continue
            if _is_apart(other, tried):
                search.values[name] = other
                return


def _is_apart(batch: int, run: FakeRun) -> bool:
    sizes = [n for shape in run.inputs for n in shape[1:]]
    return batch not in sizes and not any(batch in shape for shape in run.weights)


def chosen(function: SizedFunction, small: Mapping[str, int]) -> dict[str, int]:
    """Return the user's own small values, by the names of the function's integers.

    Args:
        function: What is made smaller.
        small: By the name of an integer, or by its value: then of all that have it.

    Raises:
        ToolError: The source has no such integer.
    """
    found: dict[str, int] = {}
    for asked, value in small.items():
        names = [one for one, has in function.integers.items() if asked in (one, str(has))]
        if not names:
            listed = (
                f"{name}={has}" if name.isidentifier() else str(has)
                for name, has in function.integers.items()
            )
            known = ", ".join(dict.fromkeys(listed)) or "none above 4"
            raise ToolError(f"--small {asked}={value}: the source's integers are {known}")
        found.update(dict.fromkeys(names, value))
    return found


def same_function(function: SizedFunction, official: FakeRun, values: dict[str, Any]) -> None:
    """Refuse values at which another function comes out.

    Raises:
        ToolError: The sequence of operators differs, or the user's code fails there.
    """
    at = "--small " + ",".join(f"{name}={value}" for name, value in values.items())
    try:
        run = fake_run(function.build, values)
    except Exception as error:  # the user's code, at sizes that the user chose
        raise ToolError(f"at {at} the function fails: {error}") from error
    if run.operators != official.operators:
        raise ToolError(f"at {at} the function calls other operators: keep what decides")
