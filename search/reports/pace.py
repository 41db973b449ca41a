"""How fast a run evaluated, and whether its GPU had to wait: from the times in its store.

An evaluation of the search is pending from the moment that its candidate is recorded until its
result is. The busy share is the GPU time of these over the time in which one of them was pending:
what is missing to 1 are compilers and judges that the GPU waited for. The full check of the winner
comes after the search, alone, and is no part of it.
"""

from collections.abc import Iterable, Iterator, Sequence

from kopt.kernels.record import Record
from kopt.search.records.run_state import Event, EventKind
from kopt.search.store.run_reader import Row, RunReader

Span = tuple[int, int]
"""A stretch of time in Unix microseconds: begin, end."""
_OF_SEARCH = ("quick", "tie")


class Pace(Record):
    """How fast a run evaluated; measured by the clock of the machine."""

    evaluations: int
    """Finished ones of the search."""
    evaluations_per_minute: float | None
    """Per minute of the processes that drove the run; None before the first second."""
    pending_s: float
    """Seconds of these processes in which an evaluation was queued or under way."""
    gpu_s: float | None
    """Seconds of them in which evaluations held the GPU; None where that was not recorded."""
    tool_gpu_s: float
    """Seconds in which the tools of agents held the GPU; no part of `gpu_s`."""
    gpu_busy_share: float | None
    """`gpu_s` / `pending_s`; None on sim, and before anything was evaluated."""


def measure_pace(reader: RunReader) -> Pace:
    """Return how fast the run in `reader` has evaluated so far."""
    state, events = reader.state(), reader.events()
    rows = [row for row in reader.table("evaluation") if row["level"] in _OF_SEARCH]
    finished = [row for row in rows if row["state"] == "done"]
    pending = common(_pending(reader, rows, events), _sessions(events))
    pending_s = seconds(pending)
    held = [row["gpu_seconds"] for row in finished if row.get("gpu_seconds") is not None]
    gpu_s = sum(held) if held and state.settings.gpu is not None else None
    return Pace(
        evaluations=len(finished),
        evaluations_per_minute=60.0 * len(finished) / state.spent_s if state.spent_s else None,
        pending_s=pending_s,
        gpu_s=gpu_s,
        tool_gpu_s=state.tool_gpu_seconds,
        gpu_busy_share=min(1.0, gpu_s / pending_s) if gpu_s is not None and pending_s else None,
    )


def _pending(reader: RunReader, rows: Sequence[Row], events: Sequence[Event]) -> Iterator[Span]:
    """Yield when each evaluation was pending; the quick one is queued with its candidate."""
    queued_us = {(row["seq"], "quick"): row["created_us"] for row in reader.table("candidate")}
    last_us = events[-1].at_us if events else 0
    for row in rows:
        begin = queued_us.get((row["candidate"], row["level"]), row["started_us"])
        if begin is not None:
            yield begin, row["finished_us"] or last_us


def _sessions(events: Sequence[Event]) -> list[Span]:
    """Return when a process drove the run: a killed one ends with the last that it recorded."""
    spans: list[Span] = []
    begin_us = last_us = None
    for event in events:
        if event.kind in (EventKind.RUN_STARTED, EventKind.RUN_RESUMED):
            if begin_us is not None and last_us is not None:
                spans.append((begin_us, last_us))
            begin_us = event.at_us
        last_us = event.at_us
    if begin_us is not None and last_us is not None:
        spans.append((begin_us, last_us))
    return joined(spans)


def joined(spans: Iterable[Span]) -> list[Span]:
    """Return the same time as stretches that neither touch nor overlap, in order."""
    result: list[Span] = []
    for begin, end in sorted(span for span in spans if span[0] < span[1]):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(end, result[-1][1]))
        else:
            result.append((begin, end))
    return result


def common(first: Iterable[Span], second: Iterable[Span]) -> list[Span]:
    """Return the time that lies in both."""
    others = joined(second)
    return joined(
        (max(begin, other[0]), min(end, other[1]))
        for begin, end in joined(first)
        for other in others
        if max(begin, other[0]) < min(end, other[1])
    )


def seconds(spans: Iterable[Span]) -> float:
    """Return how long the stretches last together."""
    return sum(end - begin for begin, end in joined(spans)) / 1e6
