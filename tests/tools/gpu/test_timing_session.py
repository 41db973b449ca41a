"""A timing session over a worker that plays a GPU: values, failures, and what is left behind."""

import numpy as np
import pytest

from kopt.config.errors import InfraError
from kopt.kernels.status import Status
from kopt.tools.devices.timer import SetOutputs, TimingFailure, TimingSession
from support.scripted_device import INPUTS, ScriptedDevice, library_side, side
from support.scripted_gpu import SETS

pytestmark = pytest.mark.slow  # a worker process each


def opened(session: TimingSession | TimingFailure) -> TimingSession:
    """Return an open session."""
    assert not isinstance(session, TimingFailure), session.outcome
    return session


def failed(result: object) -> TimingFailure:
    """Return a failure."""
    assert isinstance(result, TimingFailure)
    return result


def test_replays_are_timed_in_the_order_asked_for(scripted: ScriptedDevice) -> None:
    with scripted.device.open_timing(scripted.timing(side(), library_side())) as session:
        replays = opened(session).replay([0, 1, 1, 0])
        assert not isinstance(replays, TimingFailure)
        assert replays.us_per_call == (1.0, 2.0, 2.0, 1.0)
        assert opened(session).warm_us(1) == 1.0
        assert len(opened(session).facts.sides) == 2


def test_outputs_of_every_set_are_collected(scripted: ScriptedDevice) -> None:
    with scripted.device.open_timing(scripted.timing(side())) as session:
        collected = opened(session).collect()
    assert isinstance(collected, SetOutputs)
    assert collected.rotations == tuple(range(SETS))
    for rotation, outputs in zip(collected.rotations, collected.outputs, strict=True):
        np.testing.assert_array_equal(outputs["out"], np.roll(2 * INPUTS["x"], rotation, axis=0))


def test_side_that_cannot_be_captured_is_named(scripted: ScriptedDevice) -> None:
    broken = library_side("open fault CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED")
    with scripted.device.open_timing(scripted.timing(side(), broken)) as session:
        failure = failed(session)
    assert (failure.side, failure.outcome.status) == (1, Status.LAUNCH_ERROR)


@pytest.mark.parametrize(
    ("act", "status"),
    [
        ("replay fault CUDA_ERROR_ILLEGAL_ADDRESS", Status.OUT_OF_BOUNDS),
        ("replay spin", Status.TIMEOUT),
    ],
)
def test_failure_of_a_replay_ends_the_session_and_replaces_the_worker(
    scripted: ScriptedDevice, act: str, status: Status
) -> None:
    request = scripted.timing(side(act), timeout_s=60.0 if "fault" in act else 0.5)
    with scripted.device.open_timing(request) as session:
        failure = failed(opened(session).replay([0]))
        assert failure.outcome.status is status
        assert opened(session).collect() == failure
        assert opened(session).warm_us(0) == failure
    assert not scripted.workers[0].is_alive
    with scripted.device.open_timing(scripted.timing(side())) as session:
        assert not isinstance(opened(session).replay([0]), TimingFailure)


def test_stray_write_of_a_timed_call_is_out_of_bounds(scripted: ScriptedDevice) -> None:
    with scripted.device.open_timing(scripted.timing(side("collect damage after"))) as session:
        failure = failed(opened(session).collect())
    assert failure.outcome.status is Status.OUT_OF_BOUNDS
    assert not scripted.workers[0].is_alive


def test_failure_of_a_warm_call_names_its_side(scripted: ScriptedDevice) -> None:
    sides = (side(), side("warm fault CUDA_ERROR_MISALIGNED_ADDRESS"))
    with scripted.device.open_timing(scripted.timing(*sides)) as session:
        assert opened(session).warm_us(0) == 0.5
        failure = failed(opened(session).warm_us(1))
    assert (failure.side, failure.outcome.status) == (1, Status.MISALIGNED)


@pytest.mark.parametrize("act", ["replay exit", "replay raise", "open exit"])
def test_failure_of_the_worker_itself_is_raised(scripted: ScriptedDevice, act: str) -> None:
    with (
        pytest.raises(InfraError),
        scripted.device.open_timing(scripted.timing(side(act))) as session,
    ):
        opened(session).replay([0])
    assert scripted.execute().status is Status.PASSED


def test_no_spare_starts_while_a_session_is_open(scripted: ScriptedDevice) -> None:
    with scripted.device.open_timing(scripted.timing(side())) as session:
        opened(session).replay([0])
        assert scripted.execute().status is Status.PASSED
        assert len(scripted.workers) == 1
    assert len(scripted.workers) == 2


def test_session_after_session_uses_one_worker(scripted: ScriptedDevice) -> None:
    for _ in range(3):
        with scripted.device.open_timing(scripted.timing(side())) as session:
            opened(session).replay([0])
    assert scripted.workers[0].is_alive
