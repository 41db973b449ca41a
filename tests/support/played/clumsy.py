"""A model that means well and errs: code that does not build, code that is wrong, gaps in plans.

Its planner forgets a slot until it is told. What its coder writes for the first technique lacks a
semicolon, for the others a constant is wrong. Its fixer mends the first at once and the
second when it is asked again: its first attempt there changes nothing that matters.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from support.messages_faults import Fault
from support.messages_wire import Turn

from .asked import Asked, read_request
from .good import compiled_then_submitted, good_model, planned
from .moves import MOVES, signed

_RIGHT_SUM, _WRONG_SUM = "(1.0f + expf", "(2.0f + expf"
_RIGHT_END, _WRONG_END = "(gates[column]);", "(gates[column])"


def clumsy_model(body: Mapping[str, Any]) -> Turn | Fault:
    """Return the next turn."""
    asked = read_request(body)
    match asked.role:
        case "planner":
            return _planned(asked)
        case "coder" | "combiner":
            return compiled_then_submitted(asked, _botched(asked), asked.hypothesis["hypothesis"])
        case "fixer":
            return compiled_then_submitted(asked, _mended(asked), "The cause was a slip.")
        case _:
            return good_model(body)


def _planned(asked: Asked) -> Turn:
    """Return a plan that lacks its last slot, and a whole one once that was told."""
    whole = planned(asked, MOVES)
    if asked.is_repair:
        return whole
    ideas = json.loads(whole.text)["hypotheses"]
    last = asked.slots[-1].id
    return replace(whole, text=json.dumps({"hypotheses": [i for i in ideas if i["slot"] != last]}))


def _botched(asked: Asked) -> str:
    name = asked.hypothesis["name"]
    move = next((move for move in MOVES if move.name == name), MOVES[0])
    source = move.write(asked.parents[0]) or asked.parents[0]
    right, wrong = (_RIGHT_END, _WRONG_END) if move is MOVES[0] else (_RIGHT_SUM, _WRONG_SUM)
    return signed(source.replace(right, wrong, 1), move.family, move.hypothesis)


def _mended(asked: Asked) -> str:
    """Return the candidate without its slip; at first without looking closely."""
    source = asked.parents[0]
    if _WRONG_SUM not in source:
        return source.replace(f"{_WRONG_END}\n", f"{_RIGHT_END}\n")
    if "looked at" not in source:
        return f"{source}// looked at: the exponential\n"
    return source.replace(_WRONG_SUM, _RIGHT_SUM)
