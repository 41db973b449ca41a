"""What a status line says while something takes long."""

import os
import queue
import sys

from rich.console import Console

from kopt.config.callbacks import ignore
from kopt.server.progress import PlainSteps, TimedLine, repeating
from kopt.server.views.tables import WorkStep
from support.on_terminal import OnTerminal


def test_line_has_its_seconds_once_it_stands_for_long() -> None:
    now = [100.0]
    line = TimedLine("building", clock=lambda: now[0])
    assert line.text == "building"
    now[0] = 135.2
    assert line.text == "building (35 s)"


def test_time_left_of_a_line_goes_down_until_it_is_over() -> None:
    now = [100.0]
    line = TimedLine("2 of 3 builds, about 9 s left", clock=lambda: now[0])
    assert line.text == "2 of 3 builds, about 9 s left"
    now[0] = 104.0
    assert line.text == "2 of 3 builds, about 5 s left (4 s)"
    now[0] = 111.0
    assert line.text == "2 of 3 builds (11 s)"


def test_narrow_terminal_keeps_the_times_of_a_long_line() -> None:
    now = [100.0]
    line = TimedLine(f"1 of 3: {'words ' * 20}, about 9 s left", clock=lambda: now[0])
    now[0] = 104.0
    console = Console(width=60)
    with console.capture() as capture:
        console.print(line)
    (shown,) = capture.get().splitlines()
    assert shown.startswith("1 of 3: words") and shown.endswith("…, about 5 s left (4 s)")
    assert len(shown) == 60


def test_steps_without_a_terminal_say_how_much_is_done_and_how_long_the_rest_takes() -> None:
    now, shown, standing = [100.0], list[str](), list[str]()
    steps = PlainSteps(shown.append, standing.append, clock=lambda: now[0])
    for seconds in range(10):
        now[0] = 100.0 + seconds
        done = 10 * seconds
        steps.say(WorkStep("vllm: reading", f"{done} of 200 files", "vllm: 200 files", done, 200))
    steps.say(WorkStep("writing", "", "writing", 0, None))
    assert shown == ["vllm: 200 files", "writing"]
    assert standing[0] == "vllm: reading, 10 of 200 files"
    assert standing[4] == "vllm: reading, 50 of 200 files, about 15 s left"


def test_steps_of_less_than_two_seconds_promise_no_time_left() -> None:
    now, shown = [100.0], list[str]()
    steps = PlainSteps(shown.append, ignore, clock=lambda: now[0])
    for done in (0, 1, 500):
        steps.say(WorkStep("vllm: getting", "", f"{done} of 1000", done, 1000))
        now[0] += 0.5
    assert shown == ["0 of 1000", "1 of 1000", "500 of 1000"]


def test_terminal_that_cannot_change_a_line_gets_lines() -> None:
    says = (
        "from kopt.server.progress import status_line\n"
        "with status_line(quiet=False) as show:\n"
        "    show('1 of 2: compiling')\n"
        "    show('2 of 2: checking')\n"
    )
    environment = {**os.environ, "TERM": "dumb"}
    with OnTerminal([sys.executable, "-P", "-c", says], environment) as terminal:
        assert terminal.ending() == 0
    assert terminal.shown.split() == b"1 of 2: compiling 2 of 2: checking".split()


def test_line_that_stands_is_shown_again_until_the_next() -> None:
    shown: queue.Queue[str] = queue.Queue()
    with repeating(shown.put, every_s=0.001) as repeater:
        repeater.tell("building")
        assert [shown.get(timeout=5) for _ in range(3)] == ["building"] * 3
        repeater.tell("timing")
        while shown.get(timeout=5) != "timing":
            pass
        assert shown.get(timeout=5) == "timing"


def test_line_that_is_not_due_stands_in_the_place_of_the_one_before() -> None:
    shown: queue.Queue[str] = queue.Queue()
    with repeating(shown.put, every_s=0.001, is_due=lambda text: text == "compiling") as repeater:
        repeater.tell("compiling")
        repeater.tell("15 of 16: seed 1")
        while shown.get(timeout=5) == "compiling":
            pass
        assert [shown.get(timeout=5) for _ in range(3)] == ["15 of 16: seed 1"] * 3


def test_lines_that_come_often_and_are_not_due_break_the_silence() -> None:
    shown: queue.Queue[str] = queue.Queue()
    with repeating(shown.put, every_s=0.01, is_due=lambda text: False) as repeater:
        for number in range(1_000_000):
            repeater.tell(f"{number} of 1000000: seed 1")
            if not shown.empty():
                break
    assert " of 1000000: seed 1" in shown.get_nowait()


def test_line_that_only_stands_is_shown_in_a_silence() -> None:
    shown: queue.Queue[str] = queue.Queue()
    with repeating(shown.put, every_s=0.001) as repeater:
        repeater.stand("round 1: the planner is asked")
        assert shown.get(timeout=5) == "round 1: the planner is asked"


def test_line_that_has_ended_is_not_shown_again() -> None:
    shown: list[str] = []
    ticks: queue.Queue[str] = queue.Queue()
    with repeating(shown.append, 0.001) as building, repeating(ticks.put, 0.001) as clock:
        building.tell("building")
        building.tell("")
        before_end = list(shown)
        clock.tell("as often as the line would be")
        for _ in range(20):
            ticks.get(timeout=5)
    assert shown == before_end
    assert set(shown) == {"building"}
