"""The live view of a run: what it shows at a moment of the run."""

import io

import pytest
from rich.console import Console

from kopt.search.records.run_state import Event, EventKind
from kopt.server.run_watch import RunWatch, run_screen
from support.told_run import told_run


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> tuple[Event, ...]:
    """Return the events of the told run."""
    with told_run(tmp_path_factory.mktemp("home")) as store:
        return store.reader.events()


def _until(events: tuple[Event, ...], kind: EventKind, **data: object) -> RunWatch:
    """Return the watch right after the first event of this kind with these data."""
    watch = RunWatch()
    for event in events:
        watch.see(event)
        if event.kind is kind and data.items() <= event.data.items():
            return watch
    raise AssertionError(f"no such event: {kind} {data}")


def _screen(watch: RunWatch, later_s: int = 0) -> str:
    console = Console(file=io.StringIO(), width=150, color_system=None)
    console.print(run_screen(watch, watch.now_us + later_s * 1_000_000))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_branch_says_which_model_it_waits_for_and_how_long(events: tuple[Event, ...]) -> None:
    watch = _until(events, EventKind.CALL_STARTED, call="r1/b1/fix1/0")
    row = next(line for line in _screen(watch, 75).splitlines() if line.startswith("r1/b1"))
    assert row.split("  ")[-2].strip() == "fixer: fixer-model is asked"
    assert row.rstrip().endswith("1:15")


def test_what_the_run_does_is_shown_with_its_time_until_the_next_event(
    events: tuple[Event, ...],
) -> None:
    watch = _until(events, EventKind.EVALUATION_STARTED, candidate=0)
    watch.say("checking the baseline flashinfer_cute", watch.now_us)
    assert "checking the baseline flashinfer_cute (0:35)" in _screen(watch, 35)
    watch.say("3 of 16: seed 1, about 40 s left", watch.now_us)
    assert "3 of 16: seed 1, about 5 s left (0:35)" in _screen(watch, 35)
    watch.see(events[-1])
    assert "checking the baseline" not in _screen(watch)


def test_branch_says_how_its_candidate_fared(events: tuple[Event, ...]) -> None:
    watch = _until(events, EventKind.EVALUATION_DONE, candidate=2)
    assert watch.branches["r1/b1"].doing == "#2 incorrect"


def test_branch_that_has_ended_is_shown_no_more(events: tuple[Event, ...]) -> None:
    watch = _until(events, EventKind.BRANCH_ENDED, branch="r1/b0")
    assert sorted(watch.branches) == ["r1/b1", "r1/b2"]


def test_beam_of_each_round_stays_on_the_screen_with_its_intervals(
    events: tuple[Event, ...],
) -> None:
    text = _screen(_until(events, EventKind.ROUND_STARTED, round=2))
    assert "#1 1.200x (1.195 to 1.205), #3 1.050x (1.045 to 1.055)" in text
    assert text.splitlines()[-1].split() == ["2", "agents", "open"]


def test_spend_is_told_with_its_limit_tokens_and_open_calls(events: tuple[Event, ...]) -> None:
    text = _screen(_until(events, EventKind.CALL_STARTED, call="r1/b1/fix1/0"))
    assert "$0.0300 of $5.00, 3,400 tokens in 3 calls, 1 open" in text


def test_run_without_a_model_shows_no_spend(events: tuple[Event, ...]) -> None:
    assert "$" not in _screen(_until(events, EventKind.ROUND_DONE))


def test_evaluations_per_minute_are_those_of_this_session(events: tuple[Event, ...]) -> None:
    watch = RunWatch()
    for event in events:
        watch.see(event)
    resumed_us = events[-1].at_us + 3600_000_000
    resumed = Event(seq=99, at_us=resumed_us, kind=EventKind.RUN_RESUMED, data={"requeued": 0})
    watch.see(resumed)
    assert watch.evaluations_per_minute is None
    done = next(event for event in events if event.kind is EventKind.EVALUATION_DONE)
    watch.see(done.model_copy(update={"at_us": resumed_us + 30_000_000}))
    assert watch.evaluations_per_minute == pytest.approx(2.0)


def _at(event: Event, seconds: int, **data: object) -> Event:
    """Return `event` so many seconds after the epoch, with other data in part."""
    return event.model_copy(update={"at_us": seconds * 1_000_000, "data": {**event.data, **data}})


def test_candidates_are_counted_with_the_time_that_those_ahead_take(
    events: tuple[Event, ...],
) -> None:
    """No time is told while branches may bring more candidates."""
    first = {event.kind: event for event in reversed(events)}
    watch = RunWatch()
    watch.see(_at(first[EventKind.RUN_STARTED], 100))
    watch.see(_at(first[EventKind.ROUND_STARTED], 100, candidates=1))
    watch.see(_at(first[EventKind.EVALUATION_DONE], 130, done=1, known=1))
    assert "1 of 1 candidates evaluated, 0 under way, 2.0 per minute\n" in _screen(watch)
    watch.see(_at(first[EventKind.ROUND_STARTED], 130, candidates=8))
    assert "1 of 9 candidates evaluated" in _screen(watch)
    watch.see(_at(first[EventKind.EVALUATION_DONE], 160, done=2, known=9))
    assert "2 of 9 candidates evaluated, 0 under way, 2.0 per minute, about 4 min left" in (
        _screen(watch)
    )
    watch.see(_at(first[EventKind.BRANCH_STARTED], 160))
    assert "left" not in _screen(watch)


def test_step_of_a_run_that_began_long_ago_is_timed_from_its_own_first_event(
    events: tuple[Event, ...],
) -> None:
    first = {event.kind: event for event in reversed(events)}
    watch = RunWatch()
    assert "no candidate yet" in _screen(watch)
    assert _screen(watch).splitlines()[0] == "starting"  # and no time since 1970
    watch.see(_at(first[EventKind.ROUND_STARTED], 1000, candidates=2))
    watch.see(_at(first[EventKind.EVALUATION_DONE], 1030, done=8, known=9))
    assert "8 of 9 candidates evaluated, 0 under way, 2.0 per minute, about 30 s left" in (
        _screen(watch)
    )
