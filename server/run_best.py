"""The best of a run so far, in words, from the events that tell of evaluations."""

from collections.abc import Iterable
from typing import Any

from kopt.search.records.run_state import Event, EventKind

_LEVELS_THAT_ORDER = ("quick", "tie")


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
