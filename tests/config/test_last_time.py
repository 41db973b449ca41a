"""The time left of work whose steps are unlike each other: that of the last time."""

from pathlib import Path

import pytest

from kopt.config.last_time import LastTime
from kopt.config.settings import Settings


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 50.0

    def __call__(self) -> float:
        return self.now_s


def _work(settings: Settings, *took_s: float) -> list[str]:
    """Do work of these steps and return what each says as it begins."""
    clock = Clock()
    last = LastTime("work", settings, clock)
    said: list[str] = []
    for step, seconds in enumerate(took_s, start=1):
        said.append(last.begin(step))
        clock.now_s += seconds
    last.end()
    return said


def test_first_time_nobody_knows_and_the_second_is_told_by_the_first(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    assert _work(settings, 10.0, 4.0) == ["", ""]
    again = [", about 14 s left as last time", ", about 4 s left as last time"]
    assert _work(settings, 20.0, 8.0) == again
    assert _work(settings, 1.0, 1.0)[0] == ", about 28 s left as last time"


def test_time_left_goes_down_within_a_step_and_no_lower_than_the_steps_to_come(
    tmp_path: Path,
) -> None:
    settings, clock = Settings(home=tmp_path), Clock()
    _work(settings, 10.0, 4.0)
    last = LastTime("work", settings, clock)
    last.begin(1)
    for elapsed_s, left_s in ((3.0, 11), (9.0, 5), (60.0, 4)):
        clock.now_s = 50.0 + elapsed_s
        assert last.begin(1) == f", about {left_s} s left as last time"


def test_work_that_failed_keeps_what_was_known_before(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    _work(settings, 10.0)
    LastTime("work", settings).begin(1)  # and no end
    assert _work(settings, 1.0) == [", about 10 s left as last time"]


@pytest.mark.parametrize(
    "text",
    [
        *("", "[1, 2]", '{"1": "long"}', '{"1": null}', "7"),
        *('{"1": NaN, "2": 5}', '{"1": 5, "2": Infinity}', '{"1": -5, "2": 9}', '{"1": 1e300}'),
        *(f'{{"1": 1{"0" * 400}}}', "[" * 200_000),
    ],
    ids=lambda text: text[:24],
)
def test_a_file_that_is_not_ours_tells_nothing(tmp_path: Path, text: str) -> None:
    settings = Settings(home=tmp_path)
    _work(settings, 10.0)
    (settings.durations / "work.json").write_text(text, "utf-8")
    assert _work(settings, 1.0) == [""]


def test_a_home_that_cannot_be_written_keeps_nothing_and_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file", "utf-8")
    assert _work(Settings(home=tmp_path / "home"), 10.0) == [""]
