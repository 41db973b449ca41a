"""What a status line says while something takes long."""

import queue

from kopt.server.progress import TimedLine, repeating


def test_line_has_its_seconds_once_it_stands_for_long() -> None:
    now = [100.0]
    line = TimedLine("building", clock=lambda: now[0])
    assert line.text == "building"
    now[0] = 135.2
    assert line.text == "building (35 s)"


def test_line_that_stands_is_shown_again_until_the_next() -> None:
    shown: queue.Queue[str] = queue.Queue()
    with repeating(shown.put, every_s=0.001) as show:
        show("building")
        assert [shown.get(timeout=5) for _ in range(3)] == ["building"] * 3
        show("timing")
        while shown.get(timeout=5) != "timing":
            pass
        assert shown.get(timeout=5) == "timing"


def test_line_that_has_ended_is_not_shown_again() -> None:
    shown: list[str] = []
    ticks: queue.Queue[str] = queue.Queue()
    with repeating(shown.append, 0.001) as show, repeating(ticks.put, 0.001) as show_clock:
        show("building")
        show("")
        before_end = list(shown)
        show_clock("as often as the line would be")
        for _ in range(20):
            ticks.get(timeout=5)
    assert shown == before_end
    assert set(shown) == {"building"}
