"""Which runs follow a first one, and which of them decides: executions are played by a function."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels.status import Status
from kopt.tools.devices.device import ExecutionOutcome
from kopt.tools.sim.job_file import RunMode, Watched
from kopt.tools.sim.second_look import FILLERS, Look, SecondLooks

PLAIN = "out[0] = in[0];"
CHECKS_AGAIN = "if (*p < v) atomicMax(p, v);"
PASSED = Look(ExecutionOutcome(Status.PASSED))
RACE = Look(ExecutionOutcome(Status.DATA_RACE))
SPINS = Look(ExecutionOutcome(Status.TIMEOUT), spins=True)
PLACE = Watched("sums", 4, 4)
RACE_AT_PLACE = Look(ExecutionOutcome(Status.DATA_RACE), race=PLACE)
UNWRITTEN = Look(ExecutionOutcome(Status.UNINITIALIZED_READ), reads_unwritten_shared=True)


@dataclass
class Played:
    """Executions that end as `ends` says, in the modes that were asked for."""

    ends: Callable[[RunMode], Look]
    source: str = PLAIN
    workers: int = 2
    looks: SecondLooks = field(default_factory=SecondLooks)
    modes: list[RunMode] = field(default_factory=list[RunMode])

    def _run(self, mode: RunMode) -> Look:
        self.modes.append(mode)
        return self.ends(mode)

    def outcome(self) -> ExecutionOutcome:
        """Return the outcome of one execution of the program; `modes` are those of its runs."""
        self.modes.clear()
        return self.looks.settle("program", self.source, self.workers, self._run)

    def settle(self) -> Status:
        """Return how one execution of the program ends."""
        return self.outcome().status


def _with(value: int) -> Look:
    return Look(ExecutionOutcome(Status.PASSED, outputs={"out": np.full(4, value, np.int32)}))


@pytest.mark.parametrize(
    "first", [PASSED, Look(ExecutionOutcome(Status.OUT_OF_BOUNDS)), Look(SPINS.outcome)]
)
def test_most_findings_need_one_run(first: Look) -> None:
    played = Played(lambda _: first, CHECKS_AGAIN)
    assert played.settle() is first.outcome.status
    assert played.modes == [RunMode(2)]


def test_a_race_of_several_processes_is_decided_by_one() -> None:
    played = Played(lambda mode: RACE if mode.workers > 1 else PASSED)
    for _ in range(2):
        assert played.settle() is Status.PASSED
        assert played.modes == [RunMode(2), RunMode(1)]


def test_a_race_of_one_process_stands() -> None:
    played = Played(lambda _: RACE, workers=1)
    assert played.settle() is Status.DATA_RACE
    assert played.modes == [RunMode(1)]


def test_blocks_that_wait_are_run_together_also_the_next_time() -> None:
    played = Played(lambda mode: PASSED if mode.together else SPINS)
    assert played.settle() is Status.PASSED
    assert played.modes == [RunMode(2), RunMode(1, together=True)]
    assert played.settle() is Status.PASSED
    assert played.modes == [RunMode(1, together=True)]


def test_blocks_that_wait_for_ever_are_run_together_once() -> None:
    played = Played(lambda _: SPINS)
    assert played.settle() is Status.TIMEOUT
    assert played.modes == [RunMode(2), RunMode(1, together=True)]


def _learning(*loads: int) -> Callable[[RunMode], Look]:
    """Return executions that race until the mode has all of `loads`, which a learning run tells."""

    def ends(mode: RunMode) -> Look:
        if mode.learns:
            return replace(PASSED, rechecked=loads)
        return PASSED if set(loads) <= set(mode.rechecked) else RACE

    return ends


def test_loads_that_atomics_check_again_are_learned_once() -> None:
    played = Played(_learning(16), CHECKS_AGAIN)
    assert played.settle() is Status.PASSED
    learned = RunMode(1, rechecked=(16,))
    assert played.modes == [RunMode(2), RunMode(1), RunMode(1, learns=True), learned]
    assert played.settle() is Status.PASSED
    assert played.modes == [learned]
    played.ends = _learning(16, 32)
    assert played.settle() is Status.PASSED
    *_, last = played.modes
    assert played.modes == [learned, replace(learned, learns=True), last]
    assert set(last.rechecked) == {16, 32}


@pytest.mark.parametrize("told", [(), (16,)])
def test_a_race_stands_if_nothing_new_is_learned(told: tuple[int, ...]) -> None:
    looks = SecondLooks({"program": RunMode(1, rechecked=(16,))})
    played = Played(lambda _: replace(RACE, rechecked=told), CHECKS_AGAIN, looks=looks)
    assert played.settle() is Status.DATA_RACE
    known = RunMode(1, rechecked=(16,))
    assert played.modes == [known, replace(known, learns=True)]


def test_a_race_without_an_atomic_that_checks_teaches_nothing() -> None:
    played = Played(_learning(16), "atomicAdd(p, v);", workers=1)
    assert played.settle() is Status.DATA_RACE
    assert played.modes == [RunMode(1)]


def _unwritten(ends: Callable[[int], Look]) -> Played:
    return Played(lambda mode: UNWRITTEN if mode.filler is None else ends(mode.filler))


def test_a_load_of_nothing_is_cleared_by_equal_outputs_for_every_filler() -> None:
    played = _unwritten(lambda _: _with(3))
    assert played.settle() is Status.PASSED
    assert [mode.filler for mode in played.modes] == [None, *FILLERS]


@pytest.mark.parametrize("odd", FILLERS)
@pytest.mark.parametrize("end", [_with(4), RACE])
def test_a_load_of_nothing_is_a_fault_if_one_filler_differs(odd: int, end: Look) -> None:
    played = _unwritten(lambda filler: end if filler == odd else _with(3))
    assert played.settle() is Status.UNINITIALIZED_READ


@pytest.mark.parametrize(
    "dtype", [np.float32, np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.int32]
)
def test_fillers_are_as_different_as_values_can_be(dtype: npt.DTypeLike) -> None:
    found = [np.frombuffer(bytes([one] * 4), dtype)[0] for one in FILLERS]
    ones, nothing, positive, negative = (float(value) for value in found)
    assert ones == -1 if np.issubdtype(dtype, np.integer) else np.isnan(ones)
    assert nothing == 0
    assert positive > 10
    assert negative < -10


def test_race_of_two_accesses_is_run_once_more_with_an_eye_on_its_place() -> None:
    told = replace(RACE_AT_PLACE.outcome, cpu_bodies=("watched",))
    watched = replace(RACE_AT_PLACE, outcome=told)
    played = Played(lambda mode: watched if mode.watched else RACE_AT_PLACE, workers=1)
    assert played.outcome() == told
    assert played.modes == [RunMode(1), RunMode(1, watched=PLACE)]
    assert played.looks.known["program"] == RunMode(1)


@pytest.mark.parametrize("second", [PASSED, RACE, replace(RACE_AT_PLACE, race=Watched("x", 0, 4))])
def test_race_that_is_not_found_again_is_told_with_one_access(second: Look) -> None:
    played = Played(lambda mode: second if mode.watched else RACE_AT_PLACE, workers=1)
    assert played.outcome() == RACE_AT_PLACE.outcome
