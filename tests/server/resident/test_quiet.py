"""An evaluator without a caller: second workers start after a pause, then it ends."""

import threading
from typing import cast

import pytest

from kopt.config.settings import Settings
from kopt.server.resident import quiet as module
from kopt.server.resident.evaluator import ResidentEvaluator
from kopt.server.resident.quiet import PAUSE_S, Quiet
from kopt.server.resident.shared_gpu import SharedGpu


class _Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def pass_until_due(self, quiet: Quiet) -> None:
        assert quiet.wait_s is not None
        self.now_s += quiet.wait_s


def test_second_workers_start_after_a_pause_and_the_end_comes_at_the_idle_time() -> None:
    clock = _Clock()
    quiet = Quiet(600.0, clock)
    assert quiet.wait_s == 600.0  # nobody has come yet
    quiet.begin_anew()
    assert (quiet.wait_s, quiet.due()) == (PAUSE_S, None)
    clock.pass_until_due(quiet)
    assert (quiet.due(), quiet.due()) == ("rest", None)
    assert quiet.wait_s == 600.0 - PAUSE_S
    clock.pass_until_due(quiet)
    assert quiet.due() == "end"


def test_a_caller_within_the_pause_puts_them_off() -> None:
    clock = _Clock()
    quiet = Quiet(600.0, clock)
    for _ in range(3):
        quiet.begin_anew()
        clock.now_s += PAUSE_S / 2
        assert quiet.due() is None
    clock.pass_until_due(quiet)
    assert quiet.due() == "rest"


def test_who_only_asks_how_things_are_puts_off_the_end_and_not_the_second_workers() -> None:
    clock = _Clock()
    quiet = Quiet(60.0, clock)
    quiet.begin_anew()
    clock.now_s += PAUSE_S / 2
    quiet.hear()
    assert quiet.wait_s == PAUSE_S / 2
    clock.pass_until_due(quiet)
    assert quiet.due() == "rest"
    assert quiet.wait_s == 60.0 - PAUSE_S / 2


@pytest.mark.parametrize("idle_s", [0.0, 0.1, PAUSE_S])
def test_one_that_ends_before_a_pause_is_over_starts_none(idle_s: float) -> None:
    clock = _Clock()
    quiet = Quiet(idle_s, clock)
    quiet.begin_anew()
    assert quiet.wait_s == pytest.approx(idle_s)
    clock.pass_until_due(quiet)
    assert quiet.due() == "end"


def test_one_that_stays_until_it_is_stopped_waits_for_ever_once_they_are_there() -> None:
    clock = _Clock()
    quiet = Quiet(None, clock)
    assert quiet.wait_s is None
    quiet.begin_anew()
    clock.pass_until_due(quiet)
    assert quiet.due() == "rest"
    assert quiet.wait_s is None


class _Gpu:
    """A GPU that only says whether its second workers were started."""

    def __init__(self) -> None:
        self.has_rested = threading.Event()

    def rest(self) -> None:
        self.has_rested.set()

    def close(self) -> None:
        pass


def test_an_evaluator_whose_callers_have_paused_starts_second_workers(
    resident_settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAUSE_S", 0.0)
    gpu = _Gpu()
    with ResidentEvaluator([], resident_settings, cast(SharedGpu, gpu), idle_s=30.0) as evaluator:
        evaluator.wake()  # as a caller does who comes or leaves
        serving = threading.Thread(target=evaluator.serve)
        serving.start()
        assert gpu.has_rested.wait(30.0)
        evaluator.stop()
        serving.join(30.0)
        assert not serving.is_alive()
