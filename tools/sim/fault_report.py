"""The runtime's report as a status and a diagnostic: which line, which thread, what to mend."""

import re
from collections.abc import Mapping
from typing import Any

from kopt.kernels.candidate import Candidate
from kopt.kernels.record import Diagnostic, source_excerpt
from kopt.kernels.status import Status

from .source_lines import source_lines

_STATUS = {
    "out_of_bounds": Status.OUT_OF_BOUNDS,
    "misaligned": Status.MISALIGNED,
    "input_mutated": Status.INPUT_MUTATED,
    "uninitialized_read": Status.UNINITIALIZED_READ,
    "data_race": Status.DATA_RACE,
    "barrier_divergence": Status.BARRIER_DIVERGENCE,
    "crash": Status.CRASH,
    "timeout": Status.TIMEOUT,
    "unsupported": Status.UNSUPPORTED_ON_SIM,
}
_HINTS = {
    Status.OUT_OF_BOUNDS: "guard the index, or correct the extent that it is computed from",
    Status.MISALIGNED: "a vector access needs an address that is a multiple of its width",
    Status.INPUT_MUTATED: "inputs are read-only: write to an output or to declared scratch",
    Status.UNINITIALIZED_READ: "write the element before it is read, on every path",
    Status.DATA_RACE: "put a barrier (or __syncwarp within a warp) between the two accesses",
    Status.BARRIER_DIVERGENCE: "every thread of the block (every lane of the mask) must reach it",
    Status.TIMEOUT: "look for a loop that never ends, or a wait for a block that has not run yet",
}
_RACE_BETWEEN_BLOCKS = (
    "blocks run in any order: let each write elements of its own (look at the index), or order "
    "them by a second launch, a barrier of the grid or the cluster, or a fence and an atomic"
)
_OF_AN_MBARRIER = (
    "let as many arrivals and bytes come as mbarrier_init and mbarrier_arrive_expect_tx announce"
)
_OF_A_NAMED_BARRIER = "let as many threads come as its count says, the same for all, in whole warps"
_OF_A_PRODUCT = (
    "wgmma.fence behind the last use of the registers and before the products, wgmma.commit_group "
    "and wgmma.wait_group before what they read or write is used again"
)
_OF_TENSOR_MEMORY = (
    "tcgen05.wait::ld or ::st behind what a warp moves, tcgen05.commit and a wait for its mbarrier "
    "behind products; between threads also tcgen05.fence::before_thread_sync and "
    "::after_thread_sync, before and behind what orders them"
)
_BEFORE_THE_WAIT = (
    "move it behind kopt::griddepcontrol_wait(); only tensors that the problem marks `static`, "
    "which no kernel writes, may be read before"
)


def fault_status(fault: Mapping[str, Any]) -> Status:
    """Return the status of the report's fault; PASSED if there is none."""
    return _STATUS.get(str(fault["kind"]), Status.PASSED)


def describe_fault(
    fault: Mapping[str, Any], executable: str, candidate: Candidate
) -> tuple[Diagnostic, ...]:
    """Return the access in words with the candidate's line, block and thread.

    A note follows on the other access of a race, where it is known.
    """
    status = fault_status(fault)
    other: Mapping[str, Any] = fault["other"]
    places = int(fault["pc"]), int(fault["last_pc"])
    lines = source_lines(executable, (place for place in (*places, int(other["pc"])) if place))
    line = int(fault["line"]) or next((lines[place] for place in places if place in lines), None)
    note = str(fault["note"])
    block, thread = _triple(fault, "block"), _triple(fault, "thread")
    message = f"{_what(fault, status)} (block {block}, thread {thread})"
    if note:
        message += f": {note}"
    hint = _HINTS.get(status)
    if status is Status.BARRIER_DIVERGENCE and "the mbarrier" in note:
        hint = _OF_AN_MBARRIER
    elif status is Status.BARRIER_DIVERGENCE and re.search(r"\bbarrier \d", note):
        hint = _OF_A_NAMED_BARRIER
    elif status is Status.DATA_RACE and "griddepcontrol_wait" in note:
        hint = _BEFORE_THE_WAIT
    elif status is Status.DATA_RACE and "wgmma." in note:
        hint = _OF_A_PRODUCT
    elif status is Status.DATA_RACE and ("tcgen05." in note or "tensor memory" in note):
        hint = _OF_TENSOR_MEMORY
    elif status is Status.DATA_RACE and "same block" not in note:
        hint = _RACE_BETWEEN_BLOCKS
    excerpt = source_excerpt(candidate.source, line) if line else None
    first = Diagnostic(message=message, line=line, excerpt=excerpt, hint=hint)
    if status is not Status.DATA_RACE or not other["pc"]:
        return (first,)
    return (first, _other_side(other, lines.get(int(other["pc"])), candidate))


def _other_side(other: Mapping[str, Any], line: int | None, candidate: Candidate) -> Diagnostic:
    place = f"(block {_triple(other, 'block')}, thread {_triple(other, 'thread')})"
    return Diagnostic(
        severity="note",
        message=f"the other side of the race: {_access(other)}, before it {place}",
        line=line,
        excerpt=source_excerpt(candidate.source, line) if line else None,
    )


def _access(fault: Mapping[str, Any]) -> str:
    width = f"{fault['bytes']}-byte " if fault["bytes"] else ""
    return f"{width}{'store' if fault['is_store'] else 'load'}"


def _what(fault: Mapping[str, Any], status: Status) -> str:
    variable = str(fault["variable"])
    access, place = _access(fault), ""
    if variable:
        size = int(fault["variable_bytes"])
        place = f" of `{variable}` at byte {fault['offset']} of {size}"
    plain = {
        Status.BARRIER_DIVERGENCE: "barrier divergence",
        Status.CRASH: "the kernel crashed",
        Status.TIMEOUT: "the kernel did not end within the time limit; it was last at this line",
        Status.UNSUPPORTED_ON_SIM: "not supported on the simulator",
    }
    words = {
        Status.OUT_OF_BOUNDS: f"out-of-bounds {access}{place}",
        Status.MISALIGNED: f"misaligned {access}{place}",
        Status.INPUT_MUTATED: f"{access} to the input `{variable}` at byte {fault['offset']}",
        Status.UNINITIALIZED_READ: f"{access}{place} reads memory that nothing has written",
        Status.DATA_RACE: f"data race: unordered {access}{place}",
    }
    return plain.get(status) or words[status]


def _triple(fault: Mapping[str, Any], key: str) -> str:
    x, y, z = fault[key]
    return f"({x}, {y}, {z})"
