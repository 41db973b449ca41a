"""A service that fails in every way at once, around a model that answers nothing of use.

Every call is first turned away, busy or cut off, in turn; what then comes is no JSON, a refusal, or
cut at its limit. Only what the service may be asked again for is asked again, without a wait.
"""

import threading
from collections.abc import Mapping
from typing import Any

from support.messages_faults import BrokenStream, Fault, Refused
from support.messages_wire import Turn

from .asked import read_request

_AT_ONCE = {"retry-after": "0"}
FAULTS: tuple[Fault, ...] = (
    Refused(500, _AT_ONCE),
    Refused(429, _AT_ONCE),
    Refused(529, _AT_ONCE),
    BrokenStream("error"),
)
"""What answers calls before they are answered."""


class BrokenModel:
    """Counts requests: what fails is the service and not the model, so the same call may pass."""

    def __init__(self) -> None:
        """Begin with the first fault."""
        self._number = 0
        self._lock = threading.Lock()  # of the number: branches ask at the same time

    def __call__(self, body: Mapping[str, Any]) -> Turn | Fault:
        """Return a fault for every other request, else an answer that is none."""
        with self._lock:
            number = self._number
            self._number += 1
        if number % 2 == 0:
            return FAULTS[number // 2 % len(FAULTS)]
        return _useless(body)


def _useless(body: Mapping[str, Any]) -> Turn:
    asked = read_request(body)
    match asked.role:
        case "planner" | "reflector" | "learner" | "verifier":
            return Turn('{"hypotheses": [{"slot": ')
        case _ if asked.hypothesis["name"] < "m":
            return Turn(refusal=("frontier_llm", "I will not write this kernel."))
        case _:
            return Turn("I begin to think about", stop="max_tokens")
