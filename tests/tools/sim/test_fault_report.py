"""A fault as the runtime reports it, put into words: the access, where it was, what to mend."""

from typing import Any

import pytest

from kopt.kernels.candidate import Candidate
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.tools.sim.fault_report import describe_fault, fault_status

SOURCE = "first line\nout[i] = in[i];\n"
REPORTED = {
    "kind": "data_race",
    "variable": "out",
    "variable_bytes": 64,
    "offset": 12,
    "bytes": 4,
    "is_store": True,
    "block": (1, 2, 3),
    "thread": (4, 5, 6),
    "pc": 0,
    "last_pc": 0,
    "line": 2,
    "note": "",
    "other": {"pc": 0, "bytes": 0, "is_store": False, "block": (0, 0, 0), "thread": (0, 0, 0)},
}


def _told(**changes: Any) -> Diagnostic:
    (told,) = describe_fault({**REPORTED, **changes}, "no program", Candidate(SOURCE))
    return told


def test_access_is_told_with_its_place_thread_and_line() -> None:
    told = _told(note="thread 0 stored to it")
    assert told.message == (
        "data race: unordered 4-byte store of `out` at byte 12 of 64"
        " (block (1, 2, 3), thread (4, 5, 6)): thread 0 stored to it"
    )
    assert told.line == 2
    assert told.excerpt is not None
    assert "out[i] = in[i];" in told.excerpt


def test_what_is_not_known_is_left_out() -> None:
    told = _told(kind="out_of_bounds", variable="", bytes=0, is_store=False, line=0)
    assert told.message == "out-of-bounds load (block (1, 2, 3), thread (4, 5, 6))"
    assert (told.line, told.excerpt) == (None, None)


@pytest.mark.parametrize(
    ("kind", "note", "hint"),
    [
        ("barrier_divergence", "lane 3 is at another line", "every thread of the block"),
        ("barrier_divergence", "the mbarrier waits for 2 more", "mbarrier_init"),
        ("data_race", "a thread of the same block stored to it", "put a barrier"),
        ("data_race", "a thread of block 0 stored to it", "blocks run in any order"),
        ("data_race", "read before griddepcontrol_wait", "move it behind"),
        ("out_of_bounds", "griddepcontrol_wait, the mbarrier", "guard the index"),
        ("timeout", "griddepcontrol_wait, the mbarrier", "a loop that never ends"),
        ("input_mutated", "", "inputs are read-only"),
        ("uninitialized_read", "", "before it is read"),
        ("misaligned", "", "a multiple of its width"),
    ],
)
def test_hint_is_that_of_the_fault(kind: str, note: str, hint: str) -> None:
    assert hint in (_told(kind=kind, note=note).hint or "")


@pytest.mark.parametrize("kind", ["crash", "unsupported"])
def test_other_ends_have_no_hint(kind: str) -> None:
    assert _told(kind=kind).hint is None


def test_a_report_without_a_fault_is_a_pass() -> None:
    assert fault_status({"kind": "none"}) is Status.PASSED
    assert fault_status(REPORTED) is Status.DATA_RACE
