"""A model that optimizes as the good one does and, as verifier, trusts nobody.

It has every finalist checked once more and quotes a line of code for it, whatever the line says.
"""

import json
from collections.abc import Mapping
from typing import Any

from support.messages_faults import Fault
from support.messages_wire import Turn

from .asked import read_request
from .good import good_model


def doubting_model(body: Mapping[str, Any]) -> Turn | Fault:
    """Return the next turn."""
    asked = read_request(body)
    if asked.role != "verifier":
        return good_model(body)
    source = asked.data["source without comments"]
    line = next(line for line in source.splitlines() if "expf" in line)
    found = {"kind": "precision", "lines": [line], "text": "It may overflow for large values."}
    return Turn(json.dumps({"findings": [found], "verdict": "check_again"}))
