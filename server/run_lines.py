"""A run's events as lines of text: for log files, and for clients that are told of progress."""

from collections.abc import Iterable
from datetime import UTC, datetime
from math import exp
from typing import Any

from kopt.search.records.run_state import Event, EventKind
from kopt.tools.facts.wording import plain_beginning

_LONGEST = 300
_AGAIN = " once more, with other hidden seeds"
_VERDICTS = {
    "no_objection": "was read: no objection",
    "reject": "was read and is rejected",
    "check_again": "was read and has to be checked again",
    "not_made": "was not read, measurement alone decides",
}


class BestSoFar:
    """The best of the evaluations that the search goes by: the first of the run's ranking."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.cost: float | None = None
        self.text = "nothing has passed yet"
        self._words: dict[int, str] = {}

    def recall(self, events: Iterable[Event]) -> None:
        """Take everything that was evaluated before into account."""
        for event in events:
            if event.kind is EventKind.EVALUATION_DONE and orders(event.data):
                self.see(event.data)

    def see(self, data: dict[str, Any]) -> None:
        """Take one EVALUATION_DONE into account."""
        cost, leader = _cost(data), data.get("leader")
        if cost is None:
            return
        self._words[data["candidate"]] = time_words(data)
        if leader is None:  # of an older run, whose events do not tell who leads
            is_best = self.cost is None or cost < self.cost
            leader = data["candidate"] if is_best else None
        if leader in self._words:
            self.cost = cost if self.cost is None else min(cost, self.cost)
            self.text = f"best{self._words[leader]} (#{leader})"


def stamped(event: Event, line: str) -> str:
    """Return `line` with the time of the event, UTC."""
    return f"{datetime.fromtimestamp(event.at_us / 1e6, UTC):%H:%M:%S} {line}"


def tamed(event: Event) -> Event:
    """Return `event` with its texts short and on one line: compilers and models wrote some."""
    data = {
        name: plain_beginning(value, _LONGEST) if isinstance(value, str) else value
        for name, value in event.data.items()
    }
    return event.model_copy(update={"data": data})


def event_line(event: Event, best: BestSoFar) -> str | None:
    """Return the line that tells `event`; None for an event that says nothing to a reader."""
    event = tamed(event)
    data = event.data
    match event.kind:
        case EventKind.RUN_STARTED:
            return f"{data['run']}: {data['kernel']}"
        case EventKind.RUN_RESUMED:
            return f"resumed; {data['requeued']} evaluations that were under way begin again"
        case EventKind.RUN_PAUSED:
            return f"paused: {data['reason']}"
        case EventKind.BUDGET_BEGUN:
            return (
                f"ready: the starting point took {data['preparing_s']:.1f} s, which do not count;"
                f" the budget of {data['budget_s']:g} s begins"
            )
        case EventKind.EVALUATION_REQUEUED:
            return f"  #{data['candidate']} is tried again: {data['reason']}"
        case EventKind.EVALUATION_QUEUED:
            return f"  #{data['candidate']} is measured longer: too close to another to tell apart"
        case EventKind.FINAL_CHECK:
            again = data.get("level") == "again"
            return f"full check of #{data['candidate']}{_AGAIN if again else ''}"
        case EventKind.EVALUATION_DONE:
            return _done_line(data, best)
        case _:
            return _round_line(event) or _model_line(event) or _memory_line(event)


def _round_line(event: Event) -> str | None:
    data = event.data
    match event.kind:
        case EventKind.ROUND_STARTED:
            return _begun_line(data)
        case EventKind.ROUND_DONE:
            beam = " ".join(f"#{seq}" for seq in data["beam"]) or "nothing"
            why = f"; the search ends: {data['detail']}" if data["stop"] else ""
            return f"kept: {beam}{why}"
        case EventKind.BRANCH_STARTED:
            what = f"{data['family']}, {data['name']}{_expectation(data)}"
            return f"  {data['branch']} ({data['slot']}): {what}"
        case EventKind.CANDIDATE_ADDED if "variant_of" in data:
            return f"  #{data['candidate']} is #{data['variant_of']} without one of its techniques"
        case EventKind.CANDIDATE_ADDED if "written" in data:
            return f"  #{data['candidate']} is written: {data['written']}"
        case EventKind.CANDIDATE_ADDED:
            which = f"fix {data['attempt']} of " if data["attempt"] else ""
            return f"  #{data['candidate']} is {which}{data['branch']}"
        case EventKind.BRANCH_ENDED:
            return _ended_line(data)
        case _:
            return None


def _memory_line(event: Event) -> str | None:
    data = event.data
    match event.kind:
        case EventKind.LEARNED if data["samples"] or data["revoked"]:
            revoked = f", {_counted(data['revoked'], 'sample')} revoked" if data["revoked"] else ""
            return f"round {data['round']} taught {_counted(data['samples'], 'sample')}{revoked}"
        case EventKind.MEMORY_UPDATED:
            edits = _counted(data["edits"], "edit")
            return f"the learner made {edits} in the run's memory{_because(data['why'])}"
        case _:
            return None


def _model_line(event: Event) -> str | None:
    data = event.data
    match event.kind:
        case EventKind.PLAN_MADE:
            branches = _counted(data["branches"], "branch", "branches")
            return f"planned: {branches}, {data['reserve']} in reserve"
        case EventKind.REFLECTED:
            return f"round {data['round']} is reflected on"
        case EventKind.CALL_RETRIED:
            return f"  {data['call']} is asked again in {data['wait_s']:.1f} s: {data['why']}"
        case EventKind.CALL_DONE:
            return call_line(data)
        case EventKind.BUDGET_WARNING:
            return f"{data['spent'] / data['most']:.0%} of the budget is spent ({data['limit']})"
        case EventKind.COMBINED:
            verdict = "kept" if data["kept"] else "given up"
            return f"the merge #{data['candidate']} is {verdict}: {data['why']}"
        case EventKind.SOFT_VERIFIED:
            return f"#{data['candidate']} {_VERDICTS[data['outcome']]}{_because(data['why'])}"
        case EventKind.PROMOTED:
            outcome = data["outcome"].replace("_", " ")
            return f"#{data['candidate']} {outcome}{_because(data['why'])}"
        case _:
            return None


def call_line(data: dict[str, Any]) -> str:
    """Return the line that tells a call's end, with what all calls have cost so far."""
    if data["state"] != "done":
        return f"  {data['call']} has no answer: {data['why']}; {spent_words(data)}"
    return (
        f"  {data['call']}: {prompt_tokens(data):,} tokens in, {data['cache_read_tokens']:,} of"
        f" them from the cache, {data['output_tokens']:,} out"
        f"{_price_words(data)}, {data['latency_s']:.1f} s; {spent_words(data)}"
    )


def _price_words(data: dict[str, Any]) -> str:
    """Return what one call cost; nothing where its client reports no cost."""
    cost = data["cost_microusd"]
    return "" if cost is None else f", ${cost / 1e6:.4f}"


def prompt_tokens(data: dict[str, Any]) -> int:
    """Return the size of a call's prompt; 0 for a call without an answer."""
    names = ("input_tokens", "cache_write_tokens", "cache_read_tokens")
    return sum(data[name] or 0 for name in names)


def spent_words(data: dict[str, Any]) -> str:
    """Return what all calls have cost, and the limit where there is one."""
    limit = data["limit_microusd"]
    of_limit = "" if limit is None else f" of ${limit / 1e6:.2f}"
    spent = data["spent_microusd"]
    return "no cost reported" if spent is None else f"${spent / 1e6:.4f}{of_limit} so far"


def _because(why: str) -> str:
    return f": {why}" if why else ""


def _begun_line(data: dict[str, Any]) -> str:
    parts: list[str] = []
    if data["candidates"] or not data["branches"]:
        parts.append(_counted(data["candidates"], "candidate"))
    if data["branches"]:
        parts.append(_counted(data["branches"], "branch", "branches"))
    return f"round {data['round']} ({data['kind']}): {', '.join(parts)}"


def _expectation(data: dict[str, Any]) -> str:
    """Return what memory says of a branch; nothing for runs that began before it was kept."""
    state, gain = data.get("in_state"), data.get("predicted_gain")
    if state is None:
        return ""
    expected = "" if gain is None else f", {exp(gain):.2f}x expected"
    return f" (in state {state}{expected})"


def _ended_line(data: dict[str, Any]) -> str:
    if data["state"] == "failed":
        return f"  {data['branch']} led to nothing: {data['why']}"
    return f"  {data['branch']} led to #{data['candidate']}"


def _done_line(data: dict[str, Any], best: BestSoFar) -> str:
    if not orders(data):
        return f"  #{data['candidate']} {data['status']}: {data['summary']}"
    best.see(data)
    failed = "" if data["status"] == "passed" else f": {data['summary']}"
    return (
        f"  {data['done']}/{data['known']} #{data['candidate']} {data['status']}"
        f"{time_words(data)}{failed}{_copy_words(data)}; {best.text}"
    )


def _copy_words(data: dict[str, Any]) -> str:
    """Return what a plain copy takes, at the start; what is odd about a time clearly below it."""
    copy_us, below = data.get("plain_copy_us"), data.get("below_copy")
    if below is not None:
        return f", DOUBT: {below:.2f} of the time of a plain copy of as many bytes"
    if copy_us is None or data["candidate"]:
        return ""
    return f", a plain copy of as many bytes {copy_us:.3f} us measured"


def _counted(count: int, noun: str, nouns: str = "") -> str:
    return f"{count} {noun if count == 1 else nouns or f'{noun}s'}"


_LEVELS_THAT_ORDER = ("quick", "tie")


def orders(data: dict[str, Any]) -> bool:
    """Whether the search goes by this evaluation: a full check comes after the search."""
    return data["level"] in _LEVELS_THAT_ORDER


def time_words(data: dict[str, Any]) -> str:
    """Return ` 2.413 us measured, 1.213x (1.209 to 1.217) flashinfer`; empty if not known."""
    latency_us = data["latency_us"]
    time = "" if latency_us is None else f" {latency_us:.3f} us {data['provenance']}"
    return f"{time}, {speed_words(data)} {data['baseline']}" if data["speedup"] else time


def speed_words(data: dict[str, Any]) -> str:
    """Return `1.213x (1.209 to 1.217)`, or `1.8 us estimated`; empty if nothing is known."""
    if not data["speedup"]:
        latency_us = data["latency_us"]
        return "" if latency_us is None else f"{latency_us:.3f} us {data['provenance']}"
    interval = data.get("speedup_interval")
    spread = f" ({interval[0]:.3f} to {interval[1]:.3f})" if interval else ""
    return f"{data['speedup']:.3f}x{spread}"


def _cost(data: dict[str, Any]) -> float | None:
    """Return what orders candidates, less is better: a speedup counts with its lower bound."""
    if not data["speedup"]:
        latency_us: float | None = data["latency_us"]
        return latency_us
    interval = data.get("speedup_interval")
    least: float = interval[0] if interval else data["speedup"]
    return 1.0 / least
