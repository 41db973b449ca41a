"""A model that optimizes: it reads what it is asked and answers as a good agent would.

As planner it gives every slot a technique that its parents do not have yet; as coder it writes it,
looks at what the compiler says and hands it in; as combiner it brings what one parent has into the
other; as fixer it takes out what costs; as reflector and learner it tells the numbers that it was
shown.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from support.messages_faults import Fault
from support.messages_wire import ToolCall, Turn

from .asked import Asked, Slot, read_request
from .library import remembered
from .moves import MOVES, Move, signed
from .remembering import learned, read_over


def good_model(body: Mapping[str, Any]) -> Turn | Fault:
    """Return the next turn."""
    asked = read_request(body)
    match asked.role:
        case "planner":
            return planned(asked, techniques(asked.kernel))
        case "reflector":
            return reflected(asked)
        case "fixer":
            return mended(asked)
        case "learner":
            return learned(asked)
        case "verifier":
            return read_over(asked)
        case "combiner":
            return compiled_then_submitted(asked, merge(asked), "What one has, the other gets.")
        case _:
            return compiled_then_submitted(asked, written(asked), asked.hypothesis["hypothesis"])


def planned(asked: Asked, known: Sequence[Move]) -> Turn:
    """Return a plan: for each slot one of `known` that fits its parents and no other slot has."""
    told = [_idea(slot.id, move, asked) for slot, move in _filled(asked, known)]
    used = {idea["family"] for idea in told}
    spare = [move for move in known if move.family not in used]
    told += [_idea("", move, asked) for move in spare[: asked.reserve_wanted]]
    return Turn(json.dumps({"hypotheses": told}), thinking="Which techniques are still open?")


def techniques(kernel: str) -> tuple[Move, ...]:
    """Return all that the model can do for a kernel, the most promising first."""
    return (*remembered(kernel), *MOVES)


def written(asked: Asked) -> str:
    """Return the parent with the technique of the hypothesis, or with the next that changes it."""
    known = techniques(asked.kernel)
    named = [move for move in known if move.name == asked.hypothesis["name"]]
    return _signed(_first_change(asked.parents[0], (*named, *known)), asked)


def merge(asked: Asked) -> str:
    """Return the skeleton with what the other parents have and it has not."""
    skeleton, others = asked.parents[0], asked.parents[1:]
    brought = [move for move in MOVES if any(move.write(other) is None for other in others)]
    return _signed(_first_change(skeleton, (*brought, *MOVES)), asked)


def mended(asked: Asked) -> Turn:
    """Return the candidate without what may cost it, or say that the idea does not work."""
    source = asked.parents[0]
    for pragma in ("#pragma unroll 4", "__launch_bounds__(BLOCK) "):
        if pragma in source:
            note = f"The cause is {pragma.strip()}: taken out."
            return compiled_then_submitted(asked, source.replace(pragma, ""), note)
    return Turn("The idea itself is what costs here; there is nothing to mend.")


def compiled_then_submitted(asked: Asked, source: str, note: str) -> Turn:
    """Return the turn of an author: first the compiler's word if it has one, then the candidate."""
    if not asked.results and "compile" in asked.tools:
        call = ToolCall("compile", {"source": source})
        return Turn("First what the compiler makes of it.", (call,), thinking="Write it down.")
    return Turn(calls=(ToolCall("submit_candidate", {"source": source, "note": note}),))


def reflected(asked: Asked) -> Turn:
    """Return what the table of candidates says."""
    rows = asked.candidates
    own = [row for row in rows if row.get("this_round")]
    passed = [row for row in own if row["result"].startswith("passed")]
    leader = next((row for row in rows if row.get("beam_place") == 1), rows[0])
    answer = {
        "digest": f"{len(passed)} of {len(own)} candidates passed. {leader['name']} leads:"
        f" {leader['result']}.",
        "lessons": [{"candidate": row["name"], "text": _lesson(row)} for row in own],
        "directions": [f"Refine {leader['name']} ({leader['family']})."],
        "avoid": [f"{row['family']}: {row['result']}" for row in own if row not in passed],
    }
    return Turn(json.dumps(answer))


def _filled(asked: Asked, known: Sequence[Move]) -> Iterator[tuple[Slot, Move]]:
    """Yield a technique for every slot: of families of their own where the slots are new."""
    taken: set[tuple[str, str]] = set()
    families: set[str] = set()
    for slot in asked.slots:
        source = asked.sources.get(slot.parents[0], asked.sources["0"])
        fitting = [move for move in known if move.write(source) is not None]
        fresh = [move for move in fitting if (slot.parents[0], move.name) not in taken]
        if slot.kind == "new":
            fresh = [move for move in fresh if move.family not in families]
        move = next(iter(fresh or fitting or known))
        taken.add((slot.parents[0], move.name))
        families.add(move.family)
        yield slot, move


def _lesson(row: Mapping[str, Any]) -> str:
    return f"{row['family']} from {row.get('from', 'the start')}: {row['result']}"


def _first_change(source: str, moves: Sequence[Move]) -> str:
    """Return `source` with the first of `moves` that changes it; unchanged if none does."""
    return next((new for move in moves if (new := move.write(source)) is not None), source)


def _signed(source: str, asked: Asked) -> str:
    return signed(source, asked.hypothesis["family"], asked.hypothesis["hypothesis"])


def _idea(slot: str, move: Move, asked: Asked) -> dict[str, Any]:
    return {
        "slot": slot,
        "family": move.family,
        "name": move.name,
        "hypothesis": move.hypothesis,
        "mechanism": move.mechanism,
        "expected_gain": move.gain,
        "risk": move.risk,
        "evidence": _evidence(asked),
    }


def _evidence(asked: Asked) -> str:
    """Return what a profile that was shown says of the leader; else that it is a guess."""
    profiles = [text for title, text in asked.data.items() if title.startswith("profile of")]
    return profiles[0].splitlines()[0] if profiles and profiles[0] else "a guess from the source"
