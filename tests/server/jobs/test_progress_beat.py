"""What a waiting client hears."""

from kopt.server.jobs.records import JobRequest, JobView, Progress
from kopt.server.jobs.waiting import ProgressBeat
from support.job_works import QUICK

REQUEST = JobRequest(id="job-1", work=QUICK, caller="test", created_us=0)


def view(progress: Progress | None) -> JobView:
    return JobView(request=REQUEST, state="running", progress=progress)


def heard(beat: ProgressBeat, steps: list[tuple[float, Progress | None]]) -> list[float]:
    told = [beat.next(view(progress), now) for now, progress in steps]
    return [one.done for one in told if one is not None]


def test_a_silent_step_is_told_of_again_and_never_reaches_the_next() -> None:
    first = Progress(done=1.0, message="compiling")
    done = heard(ProgressBeat(2.0), [(float(second), first) for second in range(600)])
    assert len(done) == 300
    assert done == sorted(set(done))
    assert done[-1] < 2.0


def test_nothing_is_repeated_within_a_moment() -> None:
    first = Progress(done=1.0, message="compiling")
    assert heard(ProgressBeat(2.0), [(0.0, first), (0.1, first), (1.9, first)]) == [1.0]


def test_news_without_an_advance_are_told_as_a_small_one() -> None:
    steps = [
        (0.0, Progress(done=3.0)),
        (0.1, Progress(done=3.0, message="beginning again")),
        (0.2, Progress(done=4.0)),
    ]
    assert heard(ProgressBeat(2.0), list(steps)) == [3.0, 3.001, 4.0]


def test_a_step_is_never_more_than_the_total() -> None:
    last = Progress(done=4.0, total=4.0)
    assert heard(ProgressBeat(2.0), [(0.0, last), (10.0, last), (100.0, last)]) == [4.0]


def test_a_job_that_says_nothing_yet_is_told_of_by_its_state() -> None:
    told = ProgressBeat(2.0).next(view(None), 0.0)
    assert told is not None
    assert (told.done, told.message) == (0.0, "running")


def test_the_seconds_of_a_long_step_are_told() -> None:
    beat = ProgressBeat(2.0)
    first = Progress(done=1.0, message="compiling")
    beat.next(view(first), 0.0)
    told = beat.next(view(first), 7.0)
    assert told is not None
    assert told.message == "compiling (7 s)"
