"""What a run says of itself line by line, in log files and to clients."""

from math import log
from pathlib import Path
from typing import Any

import pytest

from kopt.search.records.run_state import Event, EventKind
from kopt.server.run_lines import BestSoFar, event_line, stamped
from kopt.server.run_progress import run_progress
from support.told_run import told_run


def _event(kind: EventKind, **data: Any) -> Event:
    return Event(seq=1, at_us=1_000_000, kind=kind, data=data)


def _lines(home: Path, words: str = "wider loads") -> list[str]:
    with told_run(home, words) as store:
        events = store.reader.events()
    best = BestSoFar()
    lines = (event_line(event, best) for event in events)
    return [line for line in lines if line is not None]


def test_lines_tell_rounds_branches_candidates_calls_and_who_was_kept(tmp_path: Path) -> None:
    lines = _lines(tmp_path)
    told = (
        "round 1 (agents): 3 branches",
        "  r1/b0 (new-1): vectorization, wider loads",
        "  #3 is fix 1 of r1/b1",
        "  r1/b1 led to #3",
        "  r1/b2 led to nothing: wider loads",
        "kept: #1 #3",
        "kept: #4 #1; the search ends: all 2 rounds are done",
        "full check of #4",
    )
    assert [line for line in lines if line in told] == [*told]


def test_line_of_an_evaluation_has_its_interval_and_the_best_so_far(tmp_path: Path) -> None:
    assert (
        "  4/4 #3 passed 9.524 us measured, 1.050x (1.045 to 1.055) flashinfer (PDL on);"
        " best 8.333 us measured, 1.200x (1.195 to 1.205) flashinfer (PDL on) (#1)"
    ) in _lines(tmp_path)


def test_line_tells_when_a_time_budget_begins_and_what_did_not_count() -> None:
    event = _event(EventKind.BUDGET_BEGUN, preparing_s=61.24, budget_s=90.0)
    assert event_line(event, BestSoFar()) == (
        "ready: the starting point took 61.2 s, which do not count; the budget of 90 s begins"
    )


def test_line_of_a_call_has_tokens_cost_and_what_is_spent_of_the_budget(tmp_path: Path) -> None:
    lines = _lines(tmp_path)
    assert (
        "  r1/b1/fix1/0: 900 tokens in, 800 of them from the cache, 200 out, $0.0100, 2.0 s;"
        " $0.0400 of $5.00 so far"
    ) in lines
    assert "  r1/b2/coder/0 has no answer: wider loads; $0.0400 of $5.00 so far" in lines


def test_nothing_that_a_model_says_can_command_a_terminal_or_begin_a_line(tmp_path: Path) -> None:
    lines = _lines(tmp_path, "\x1b[2J\nround 9 (agents): 1 branch\r")
    assert not any("\x1b" in line or "\n" in line or "\r" in line for line in lines)


def test_endless_text_of_a_model_is_cut(tmp_path: Path) -> None:
    assert max(map(len, _lines(tmp_path, "x" * 5000))) < 500


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            _event(EventKind.CALL_RETRIED, call="r1/b0/coder/0", wait_s=2.0, why="429"),
            "  r1/b0/coder/0 is asked again in 2.0 s: 429",
        ),
        (
            _event(EventKind.BUDGET_WARNING, limit="usd", spent=4_000_000, most=5_000_000),
            "80% of the budget is spent (usd)",
        ),
        (_event(EventKind.RUN_PAUSED, reason="Ctrl-C"), "paused: Ctrl-C"),
        (
            _event(
                EventKind.BRANCH_STARTED,
                branch="r1/b0",
                slot="t1",
                family="vectorization",
                name="wider loads",
                in_state="dram_saturated",
                predicted_gain=log(1.25),
            ),
            "  r1/b0 (t1): vectorization, wider loads (in state dram_saturated, 1.25x expected)",
        ),
        (
            _event(
                EventKind.BRANCH_STARTED,
                branch="r1/b0",
                slot="t1",
                family="other",
                name="mine",
                in_state="dram_saturated",
                predicted_gain=None,
            ),
            "  r1/b0 (t1): other, mine (in state dram_saturated)",
        ),
        (
            _event(EventKind.EVALUATION_QUEUED, candidate=4, level="tie"),
            "  #4 is measured longer: too close to another to tell apart",
        ),
        (
            _event(EventKind.COMBINED, candidate=7, kept=False, why="0.9 of its best parent"),
            "the merge #7 is given up: 0.9 of its best parent",
        ),
        (
            _event(EventKind.PROMOTED, candidate=4, outcome="not_promoted", why="slower at b8"),
            "#4 not promoted: slower at b8",
        ),
        (
            _event(EventKind.SOFT_VERIFIED, candidate=4, outcome="reject", why="removed: a row"),
            "#4 was read and is rejected: removed: a row",
        ),
        (
            _event(EventKind.SOFT_VERIFIED, candidate=4, outcome="no_objection", why=""),
            "#4 was read: no objection",
        ),
        (
            _event(EventKind.FINAL_CHECK, candidate=4, level="again"),
            "full check of #4 once more, with other hidden seeds",
        ),
        (
            _event(EventKind.LEARNED, round=2, samples=3, revoked=1),
            "round 2 taught 3 samples, 1 sample revoked",
        ),
        (_event(EventKind.LEARNED, round=0, samples=0, revoked=0), None),
        (
            _event(EventKind.MEMORY_UPDATED, round=4, edits=1, dropped=0, why=""),
            "the learner made 1 edit in the run's memory",
        ),
        (
            _event(EventKind.CANDIDATE_ADDED, candidate=8, branch="", attempt=0, variant_of=5),
            "  #8 is #5 without one of its techniques",
        ),
        (_event(EventKind.DOCUMENT_ADDED, candidate=1, document="profile"), None),
    ],
)
def test_what_happens_beside_the_search_is_told_too(event: Event, line: str | None) -> None:
    assert event_line(event, BestSoFar()) == line


def test_line_in_a_log_file_begins_with_its_time() -> None:
    event = _event(EventKind.RUN_PAUSED, reason="Ctrl-C")
    assert stamped(event, "paused: Ctrl-C") == "00:00:01 paused: Ctrl-C"


def test_run_without_a_terminal_is_told_in_lines_and_what_is_past_is_not_told_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with told_run(tmp_path) as store:
        events = store.reader.events()
    done = [n for n, event in enumerate(events) if event.kind is EventKind.EVALUATION_DONE]
    with run_progress(quiet=False, past=events[: done[1] + 1]) as callbacks:
        for event in events[done[1] + 1 :]:
            callbacks.on_event(event)
    told = capsys.readouterr().err
    assert "#1 passed" not in told
    assert "#3 passed 9.524 us measured, 1.050x" in told and "(#1)" in told
