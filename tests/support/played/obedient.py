"""A model that carries out the technique that it is told, and nothing else: what memory is worth.

What a technique brings is the simulator's real estimate of a real change of the source. It knows
how to carry out some; others it writes down without any effect, as happens with a technique that
does not fit, and the ones that take long practice it gets wrong. Where nobody names a technique it
takes one by a habit of its own that has nothing to do with what helps.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from support.messages_faults import Fault
from support.messages_wire import Turn

from .asked import Asked, read_request
from .good import compiled_then_submitted, good_model
from .library import remembered
from .moves import MOVES, signed

Write = Callable[[str], str | None]

_WHOLE = {
    # The rewritten kernels of library.py by the technique that makes each what it is.
    "16-byte accesses, blocks along the row": "vector_loads",
    "weights once per head": "vector_loads",
    "a warp per token and head": "vector_loads",
    "four columns an access": "vector_loads",
    "as many blocks as fit": "persistent_blocks",
    "two buffers in flight": "cp_async_ring",
    "the row waits in registers": "row_in_registers",
    "weights before the wait": "dependent_launch",
    "a warp per row": "warp_per_row",
    "a tile of lanes per scale block": "subwarp_groups",
}
_EDITS = {
    "batched_loads": "four columns in flight",
    "several_accumulators": "four columns in flight",
    "occupancy_bound": "bounds for the compiler",
    "read_only_loads": "read-only loads",
    "base_two_exp": "special-function exponential",
    "warp_shuffles": "warp shuffles",
    "one_barrier": "warp shuffles",
    "smaller_blocks": "another block size",
    "threads_per_vector": "another block size",
}
_WRONG = ("tma_tiles", "wgmma", "mma_sync", "tcgen05", "bulk_row_copy", "cluster_sums")
HABIT = (
    *("occupancy_bound", "base_two_exp", "several_accumulators", "selects", "uniform_tails"),
    *("read_only_loads", "constant_division", "smaller_blocks", "packed_math", "full_unroll"),
    *("vector_loads", "warp_shuffles", "streaming_access", "row_in_registers"),
)
"""Techniques in the order in which it tries them where nobody names one."""


def obedient_model(body: Mapping[str, Any]) -> Turn | Fault:
    """Return the next turn."""
    asked = read_request(body)
    match asked.role:
        case "planner":
            return _planned(asked)
        case "coder" | "combiner":
            return _carried_out(asked)
        case "fixer":
            return Turn("This technique cannot be mended here.")
        case _:
            return good_model(body)


def known_techniques(kernel: str) -> Mapping[str, Write]:
    """Return what it can carry out on a kernel."""
    by_name = {move.name: move.write for move in MOVES}
    whole = {_WHOLE[move.name]: move.write for move in remembered(kernel) if move.name in _WHOLE}
    return {name: by_name[move] for name, move in _EDITS.items()} | whole


def _carried_out(asked: Asked) -> Turn:
    technique = _told(asked)
    source = asked.parents[0]
    if technique in _WRONG:
        changed = source.replace(";\n", "\n", 1)
    else:
        changed = known_techniques(asked.kernel).get(technique, _nothing)(source) or source
    note = f"{technique}, as told."
    changed = f"{signed(changed, _family(asked), note)}// {technique} of {_digest(source)}\n"
    return compiled_then_submitted(asked, changed, note)


def _told(asked: Asked) -> str:
    """Return the technique that is asked for; else the next of its habit that is not in yet."""
    named = asked.hypothesis.get("techniques", "").split(", ")[0]
    return named or _habitual(asked.parents[0], ())


def _habitual(source: str, taken: Sequence[str]) -> str:
    fresh = (one for one in HABIT if f"// {one} of" not in source and one not in taken)
    return next(fresh, HABIT[-1])


def _planned(asked: Asked) -> Turn:
    """Return a plan: what memory would try on the leader, in its order; without it, by habit."""
    offered = [one["technique"] for row in _memory(asked) for one in row.get("would_try", [])]
    ideas: list[dict[str, Any]] = []
    taken: list[str] = []
    slots = [slot.id for slot in asked.slots] + [""] * asked.reserve_wanted
    parents = [slot.parents[0] for slot in asked.slots] + ["0"] * asked.reserve_wanted
    for slot, parent in zip(slots, parents, strict=True):
        source = asked.sources.get(parent, asked.sources["0"])
        free = [one for one in offered if one not in taken and f"// {one} of" not in source]
        technique = free[0] if free else _habitual(source, taken)
        taken.append(technique)
        ideas.append(_idea(slot, technique))
    return Turn(json.dumps({"hypotheses": ideas}))


def _idea(slot: str, technique: str) -> dict[str, Any]:
    return {
        "slot": slot,
        "family": "other",
        "name": technique.replace("_", " "),
        "techniques": [technique],
        "hypothesis": f"Apply {technique}.",
        "mechanism": "as memory has it",
        "expected_gain": 0.1,
        "risk": "it may not fit",
        "evidence": "a guess",
    }


def _memory(asked: Asked) -> list[dict[str, Any]]:
    return list(yaml.safe_load(asked.data.get("memory", "memory: []"))["memory"])


def _family(asked: Asked) -> str:
    return asked.hypothesis.get("family", "other")


def _nothing(source: str) -> str | None:
    del source
    return None


def _digest(source: str) -> str:
    return hashlib.sha256(source.encode()).hexdigest()[:8]
