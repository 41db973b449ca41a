"""The other access of a race: its line, its block and thread.

The simulator stops at the later of two accesses that nothing orders, and knows of the earlier one
only whose it was. In another order of blocks, warps and threads the other one comes later, and is
stopped at: so the same case is run again, in a few orders, until it shows.
"""

import re
from dataclasses import dataclass, replace

from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.tools.devices.device import Device, ExecutionOutcome, ExecutionRequest

ORDERS = 6
"""Orders that are tried: each is an execution up to the race."""
_TIMEOUT_S = 10.0
_ACCESS = re.compile(
    r"data race: unordered (?P<access>\d+-byte (?:store|load)) of `(?P<variable>[^`]*)` at byte"
    r" \d+ of \d+ \(block (?P<block>\([\d, ]+\)), thread (?P<thread>\([\d, ]+\))\):"
    r" .* (?P<earlier>loaded|stored to) it"
)


@dataclass(frozen=True)
class _Side:
    """One access of a race, as its report tells it."""

    line: int | None
    access: str
    variable: str
    block: str
    thread: str
    is_store: bool
    was_stored: bool
    """Whether the earlier access, which the report knows no line of, was a store."""


def other_side(
    request: ExecutionRequest, outcome: ExecutionOutcome, device: Device
) -> Diagnostic | None:
    """Return a note on the access that a reported race is with; None where no order shows it.

    Args:
        request: The execution that ended in the race.
        outcome: Its outcome.
        device: What it ran on: only the simulator runs threads in orders of their own.
    """
    if outcome.status is not Status.DATA_RACE or not outcome.diagnostics:
        return None
    first = _side(outcome.diagnostics[0])
    if first is None:
        return None
    same_line: _Side | None = None
    for seed in range(1, ORDERS + 1):
        again = device.execute(
            replace(request, schedule_seed=request.schedule_seed + seed, timeout_s=_TIMEOUT_S)
        )
        if again.status is Status.TIMEOUT:  # so may all others
            break
        if again.status is not Status.DATA_RACE or not again.diagnostics:
            continue
        found = _side(again.diagnostics[0])
        if found is None or found.variable != first.variable:
            continue
        if found.is_store != first.was_stored:  # another thread at the side that is known
            continue
        if (found.line, found.access) != (first.line, first.access):
            return _note(found)
        if (found.block, found.thread) != (first.block, first.thread):
            same_line = same_line or found
    return None if same_line is None else _note(same_line)


def _side(report: Diagnostic) -> _Side | None:
    found = _ACCESS.match(report.message)
    if found is None:
        return None
    return _Side(
        line=report.line,
        access=found["access"],
        variable=found["variable"],
        block=found["block"],
        thread=found["thread"],
        is_store=found["access"].endswith("store"),
        was_stored=found["earlier"] == "stored to",
    )


def _note(side: _Side) -> Diagnostic:
    where = "" if side.line is None else f" at line {side.line}"
    return Diagnostic(
        severity="note",
        line=side.line,
        message=f"the other side of the race: {side.access} of `{side.variable}`{where}, found in"
        f" another order of threads (block {side.block}, thread {side.thread})",
    )
