"""Played models that count tokens as a service would: by size, with a cache of what was sent."""

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from support.messages_faults import Fault
from support.messages_wire import Turn

Played = Callable[[Mapping[str, Any]], Turn | Fault]

_BYTES_PER_TOKEN = 3


class Metered:
    """A played model whose replies carry usage; it remembers which prompts it has cached."""

    def __init__(self, play: Played) -> None:
        """Play `play`."""
        self._play = play
        self._cached: set[str] = set()
        self._lock = threading.Lock()  # of the cache: branches ask at the same time

    def __call__(self, body: Mapping[str, Any]) -> Turn | Fault:
        """Return the next turn with its usage; a failure has none."""
        turn = self._play(body)
        return replace(turn, usage=self._usage(body, turn)) if isinstance(turn, Turn) else turn

    def _usage(self, body: Mapping[str, Any], turn: Turn) -> dict[str, Any]:
        fixed = json.dumps([body["model"], body.get("tools"), body["system"]])
        system = _tokens(fixed)
        history = [json.dumps(message) for message in body["messages"]]
        caches = "cache_control" in body
        with self._lock:
            known = fixed in self._cached
            self._cached.add(fixed)
        # Everything but the last message went with the request before this one.
        read = sum(map(_tokens, history[:-1])) if caches else 0
        fresh = sum(map(_tokens, history)) - read
        said = turn.text + turn.thinking + "".join(json.dumps(c.arguments) for c in turn.calls)
        return {
            "input_tokens": 0 if caches else fresh,
            "cache_read_input_tokens": read + (system if known else 0),
            "cache_creation_input_tokens": (0 if known else system) + (fresh if caches else 0),
            "cache_creation": {
                "ephemeral_1h_input_tokens": 0 if known else system,
                "ephemeral_5m_input_tokens": fresh if caches else 0,
            },
            "output_tokens": _tokens(said),
        }


def _tokens(text: str) -> int:
    return max(1, len(text.encode()) // _BYTES_PER_TOKEN)
