"""When a caller of a pool holds an evaluator, and when it need not; the cluster is played."""

import numpy as np
import pytest

from kopt.kernels.status import Status
from kopt.tools.remote.answers import OpenedAnswer, OutcomeAnswer
from kopt.tools.remote.calls import (
    CloseTimingCall,
    EndErrandCall,
    ExecuteCall,
    OpenTimingCall,
    WhereCall,
)
from support.played_cluster import PlayedCluster, played_desk


def test_work_that_was_served_is_told_its_gpu_without_another_turn(execution: ExecuteCall) -> None:
    cluster = PlayedCluster()
    desk = played_desk(cluster)
    lane = desk.new_lane()
    desk.answer(execution.model_copy(update={"errand": "e"}), {}, lane)
    assert desk.answer(WhereCall(errand="e"), {}, lane)[0] == OpenedAnswer()
    assert cluster.leases == 1
    desk.answer(EndErrandCall(errand="e"), {}, lane)
    desk.answer(WhereCall(errand="e"), {}, lane)
    assert (cluster.leases, cluster.holds) == (2, set())


def test_no_evaluator_is_held_while_arrays_are_stored(
    execution: ExecuteCall, timing: OpenTimingCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PlayedCluster()
    held: list[int] = []

    def put(content: object) -> object:
        held.append(len(cluster.holds))
        return content

    monkeypatch.setattr(cluster, "put", put)
    desk = played_desk(cluster)
    lane = desk.new_lane()
    desk.answer(execution, {"x": np.zeros(200_000, np.uint8)}, lane)
    desk.answer(timing, {"0/x": np.ones(200_000, np.uint8)}, lane)
    desk.answer(CloseTimingCall(), {}, lane)
    assert held == [0, 0]


def test_a_call_within_a_session_is_answered_by_its_evaluator(
    timing: OpenTimingCall, execution: ExecuteCall
) -> None:
    cluster = PlayedCluster()
    desk = played_desk(cluster)
    lane = desk.new_lane()
    desk.answer(timing, {}, lane)
    assert desk.answer(execution, {}, lane)[0] == OutcomeAnswer(status=Status.PASSED)
    assert (cluster.leases, cluster.holds) == (1, {1})
    desk.answer(CloseTimingCall(), {}, lane)
    assert not cluster.holds
