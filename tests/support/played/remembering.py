"""What the good model says as learner and as verifier: what its tables of samples show, no more.

It notes what a technique cost where it lost, tells states apart by their main suspect, and has
nothing against a candidate.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import yaml

from support.messages_wire import Turn

from .asked import Asked

Row = Mapping[str, Any]


def learned(asked: Asked) -> Turn:
    """Return the answer to whichever of its questions the learner is asked."""
    for opening, answer in _ANSWERS.items():
        if asked.opening.startswith(opening):
            return Turn(json.dumps(answer(asked)))
    raise ValueError(f"the learner is asked something new: {asked.opening[:60]}")


def read_over(asked: Asked) -> Turn:
    """Return that nothing speaks against a candidate."""
    del asked
    return Turn(json.dumps({"findings": [], "verdict": "no_objection"}))


def _evaluated(asked: Asked) -> dict[str, Any]:
    gaps = [
        {
            "state": row["state"],
            "techniques": row["technique"].split(" then "),
            "finding": f"predicted {row.get('predicted', 'nothing')}, found {row['found']}",
            "samples": [row["name"]],
        }
        for row in _disappointing(asked)
    ]
    return {"summary": f"{len(gaps)} of {len(_rows(asked))} samples disappoint.", "gaps": gaps}


def _analyzed(asked: Asked) -> dict[str, Any]:
    causes = [
        {
            "assumption": f"{row['technique']} helps in {row['state']}",
            "cause": f"the program was held back by something else: found {row['found']}",
            "samples": [row["name"]],
        }
        for row in _disappointing(asked)
    ]
    return {"causes": causes}


def _updated(asked: Asked) -> dict[str, Any]:
    changes = [
        {
            "action": "add_note",
            "state": row["state"],
            "techniques": row["technique"].split(" then "),
            "gain": 0.0,
            "text": f"It did not help where the program came from {row.get('after', 'the start')}.",
            "reason": f"found {row['found']}",
            "samples": [row["name"]],
        }
        for row in _disappointing(asked)
    ]
    return {"changes": changes, "new_techniques": []}


def _decided(asked: Asked) -> dict[str, Any]:
    states = yaml.safe_load(asked.data["states"])["states"]
    return {"state": states[0]["state"], "reason": "its main suspect is that of the program"}


def _proposed(asked: Asked) -> dict[str, Any]:
    del asked
    proposal = {"technique": "vector_loads", "gain": 0.1, "reason": "wide accesses seldom hurt"}
    return {"proposals": [proposal], "new_techniques": []}


_ANSWERS: Mapping[str, Callable[[Asked], dict[str, Any]]] = {
    "Evaluate the policy": _evaluated,
    "Why do they part": _analyzed,
    "What should memory hold": _updated,
    "Which state is this program in": _decided,
    "Memory offers nothing": _proposed,
}


def _disappointing(asked: Asked) -> list[Row]:
    return [row for row in _rows(asked) if row["outcome"] in ("lost", "failed")]


def _rows(asked: Asked) -> list[Row]:
    table = yaml.safe_load(asked.data.get("samples", "samples: []"))
    return cast(list[Row], table["samples"])
