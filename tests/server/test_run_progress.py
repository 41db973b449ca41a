"""What a run tells while it works: the best by speed, and who holds the GPU, once."""

import queue

import pytest

from kopt.config.callbacks import ignore
from kopt.search.records.run_state import Event, EventKind
from kopt.server.progress import repeating
from kopt.server.run_lines import BestSoFar
from kopt.server.run_progress import RunLineWriter, run_progress, spaced_places, waiting_lines
from kopt.server.run_watch import RunWatch


def _done(candidate: int, latency_us: float, speedup: float | None) -> dict[str, object]:
    return {
        "candidate": candidate,
        "level": "quick",
        "latency_us": latency_us,
        "provenance": "estimated" if speedup is None else "measured",
        "speedup": speedup,
        "baseline": "reference",
    }


def test_the_best_measured_candidate_is_the_one_with_the_best_speedup() -> None:
    best = BestSoFar()
    best.see(_done(0, latency_us=2.0, speedup=1.0))
    best.see(_done(1, latency_us=2.1, speedup=1.1))
    best.see(_done(2, latency_us=1.9, speedup=1.05))
    assert best.text == "best 2.100 us measured, 1.100x reference (#1)"


def test_the_best_estimated_candidate_is_the_one_with_the_shortest_time() -> None:
    best = BestSoFar()
    best.see(_done(0, latency_us=2.0, speedup=None))
    best.see(_done(1, latency_us=1.0, speedup=None))
    best.see(_done(2, latency_us=3.0, speedup=None))
    assert best.text == "best 1.000 us estimated (#1)"


def test_the_best_of_two_with_intervals_is_the_one_with_the_higher_lower_bound() -> None:
    best = BestSoFar()
    best.see({**_done(0, latency_us=2.0, speedup=1.30), "speedup_interval": [1.05, 1.55]})
    best.see({**_done(1, latency_us=2.0, speedup=1.20), "speedup_interval": [1.19, 1.21]})
    assert best.text.endswith("1.200x (1.190 to 1.210) reference (#1)")


def test_the_best_is_the_leader_that_the_run_names() -> None:
    best = BestSoFar()
    best.see({**_done(5, latency_us=1.0, speedup=None), "leader": 5})
    best.see({**_done(7, latency_us=1.0, speedup=None), "leader": 7})
    assert best.text == "best 1.000 us estimated (#7)"


def test_the_best_of_earlier_events_is_remembered() -> None:
    done = _done(3, latency_us=2.0, speedup=None)
    full = {**_done(4, latency_us=1.0, speedup=None), "level": "full"}
    events = [
        Event(seq=seq, at_us=seq, kind=EventKind.EVALUATION_DONE, data=data)
        for seq, data in enumerate((done, full))
    ]
    best = BestSoFar()
    best.recall(events)
    assert best.text == "best 2.000 us estimated (#3)"


def test_a_neighbor_on_the_gpu_is_told_once_until_the_queue_changes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tell = waiting_lines(quiet=False)
    tell("waiting for cuda:0, 1 before you; held by process 7 since 10:00")
    tell("waiting for cuda:0, 1 before you; held by process 7 since 10:01")
    tell("waiting for cuda:0, 2 before you; held by process 8 since 10:02")
    assert capsys.readouterr().err.splitlines() == [
        "waiting for cuda:0, 1 before you; held by process 7 since 10:00",
        "waiting for cuda:0, 2 before you; held by process 8 since 10:02",
    ]


def test_a_quiet_run_tells_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    waiting_lines(quiet=True)("waiting for cuda:0, 1 before you")
    with run_progress(quiet=True) as callbacks:
        callbacks.say("checking the baseline lib")
        callbacks.on_event(
            Event(seq=1, at_us=1, kind=EventKind.RUN_PAUSED, data={"reason": "Ctrl-C"})
        )
    assert capsys.readouterr().err == ""


def test_what_a_run_does_besides_its_events_is_a_line_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with run_progress(quiet=False) as callbacks:
        callbacks.say("checking the baseline lib")
        callbacks.on_event(Event(seq=1, at_us=0, kind=EventKind.REFLECTED, data={"round": 2}))
    assert capsys.readouterr().err.splitlines() == [
        "  checking the baseline lib",
        "00:00:00 round 2 is reflected on",
    ]


def test_log_of_a_run_has_a_place_now_and_then_and_every_other_line() -> None:
    now, shown = [0.0], list[str]()
    is_due = spaced_places(clock=lambda: now[0])

    def say(text: str) -> None:
        shown.extend(filter(is_due, [text]))

    for number in range(1, 13):
        say(f"{number} of 12: seed 1")
        now[0] += 1.0
    say("profiling #3, which leads")
    say("1 of 2: checking the baselines")
    assert shown == [
        "1 of 12: seed 1",
        "6 of 12: seed 1",
        "11 of 12: seed 1",
        "profiling #3, which leads",
    ]


BEGUN = {"run": "run-1", "kernel": "silu_and_mul_b8xh14336"}
ROUND = {"round": 1, "kind": "sweep", "candidates": 8, "branches": 0}


def test_log_of_a_slow_round_says_how_many_candidates_are_done_and_how_long_the_rest_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with repeating(ignore) as repeater:
        log = RunLineWriter(RunWatch(), repeater)
        log.see(Event(seq=0, at_us=1, kind=EventKind.RUN_STARTED, data=BEGUN))
        log.see(Event(seq=1, at_us=1_000_000, kind=EventKind.ROUND_STARTED, data=ROUND))
        for number in range(1, 5):
            done = {**_done(number, 2.0, None), "status": "passed", "done": number, "known": 8}
            at_us = 1_000_000 + number * 3_000_000
            log.see(Event(seq=1 + number, at_us=at_us, kind=EventKind.EVALUATION_DONE, data=done))
    counted = [line for line in capsys.readouterr().err.splitlines() if " left" in line]
    assert counted == [
        "00:00:07   2 of 8 candidates evaluated, 0 under way, 17.1 per minute, about 21 s left",
        "00:00:13   4 of 8 candidates evaluated, 0 under way, 18.5 per minute, about 13 s left",
    ]


def test_log_says_in_a_silence_what_is_under_way_until_the_run_ends() -> None:
    shown: queue.Queue[str] = queue.Queue()
    with repeating(shown.put, every_s=0.001) as repeater:
        log = RunLineWriter(RunWatch(), repeater)
        log.see(Event(seq=0, at_us=1, kind=EventKind.RUN_STARTED, data=BEGUN))
        log.see(Event(seq=1, at_us=2, kind=EventKind.ROUND_STARTED, data=ROUND))
        assert "round 1 (sweep)" in [shown.get(timeout=5) for _ in range(3)]
        begun = {"candidate": 3, "level": "quick"}
        log.see(Event(seq=2, at_us=3, kind=EventKind.EVALUATION_STARTED, data=begun))
        said = "0 of 8 candidates evaluated, 1 under way"
        while shown.get(timeout=5) != said:
            pass
        ended = {"reason": "Ctrl-C"}
        log.see(Event(seq=3, at_us=4, kind=EventKind.RUN_PAUSED, data=ended))
        while not shown.empty():
            shown.get_nowait()
        with repeating(shown.put, every_s=0.001, is_due=lambda text: False) as other:
            other.tell("as often as the line would be")
            rest = {shown.get(timeout=5) for _ in range(20)}
    assert rest == {"as often as the line would be"}


def test_what_an_evaluation_waits_for_is_told_again_though_it_was_told_before_it() -> None:
    shown: queue.Queue[str] = queue.Queue()
    with repeating(shown.put, every_s=0.001) as repeater:
        log = RunLineWriter(RunWatch(), repeater)
        log.see(Event(seq=0, at_us=1, kind=EventKind.RUN_STARTED, data=BEGUN))
        log.say("building the simulator, needed once")
        begun = {"candidate": 3, "level": "quick"}
        log.see(Event(seq=2, at_us=3, kind=EventKind.EVALUATION_STARTED, data=begun))
        while not shown.empty():
            shown.get_nowait()
        assert {shown.get(timeout=5) for _ in range(3)} == {"building the simulator, needed once"}
