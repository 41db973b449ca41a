"""What a caller of a pool is answered where evaluators die: cluster and actors are played."""

from collections.abc import Callable
from contextlib import suppress
from threading import Barrier, BrokenBarrierError, Thread
from unittest.mock import Mock

import numpy as np
import pytest

from kopt.config.errors import InfraError, SetupError
from kopt.kernels.status import Status
from kopt.tools.devices.lost_timing import TimingLost
from kopt.tools.remote.answers import (
    DoneAnswer,
    ErrorAnswer,
    OpenedAnswer,
    OutcomeAnswer,
    ReplaysAnswer,
    TimingAnswer,
    TimingFailedAnswer,
)
from kopt.tools.remote.calls import (
    Call,
    CloseTimingCall,
    ExecuteCall,
    HasFolderCall,
    HelpersCall,
    OpenTimingCall,
    RenewCall,
    ReplayCall,
    StoreFolderCall,
    WhereCall,
)
from kopt.tools.remote.sent_kernel import SentTiming
from support.played_cluster import PlayedCluster, played_desk


def _dying(times: int, kind: type[Call]) -> Callable[[Call], bool]:
    left = [times]

    def dies(call: Call) -> bool:
        left[0] -= isinstance(call, kind)
        return isinstance(call, kind) and left[0] >= 0

    return dies


def test_an_execution_is_repeated_where_its_evaluator_died(execution: ExecuteCall) -> None:
    cluster = PlayedCluster(_dying(1, ExecuteCall))
    desk = played_desk(cluster)
    inputs = {"x": np.arange(5, dtype=np.float16)}
    answer, outputs = desk.answer(execution, inputs, desk.new_lane())
    assert answer == OutcomeAnswer(status=Status.PASSED)
    np.testing.assert_array_equal(outputs["x"], inputs["x"])
    assert (cluster.leases, cluster.holds) == (2, set())
    desk.close()


def test_a_candidate_under_which_two_died_is_quarantined(execution: ExecuteCall) -> None:
    cluster = PlayedCluster(_dying(2, ExecuteCall))
    desk = played_desk(cluster)
    answer, _ = desk.answer(execution, {}, desk.new_lane())
    assert isinstance(answer, OutcomeAnswer)
    assert answer.status is Status.QUARANTINED
    assert "2 evaluators died under it" in answer.diagnostics[0].message
    assert not cluster.holds


def test_a_survived_execution_makes_up_for_a_death(execution: ExecuteCall) -> None:
    deaths = iter([True, False, True, False])
    desk = played_desk(PlayedCluster(lambda call: isinstance(call, ExecuteCall) and next(deaths)))
    for _ in range(2):
        answer, _outputs = desk.answer(execution, {}, desk.new_lane())
        assert answer == OutcomeAnswer(status=Status.PASSED)


def test_deaths_of_nodes_are_no_candidates_fault_and_have_an_end(execution: ExecuteCall) -> None:
    cluster = PlayedCluster(_dying(100, ExecuteCall))
    cluster.cause = "node"
    desk = played_desk(cluster)
    with pytest.raises(InfraError, match="6 evaluators of the pool were lost"):
        desk.answer(execution, {}, desk.new_lane())
    assert cluster.leases == 6


def test_a_later_incarnation_is_told_all_and_blames_nobody(execution: ExecuteCall) -> None:
    cluster = PlayedCluster()
    desk = played_desk(cluster)
    lane = desk.new_lane()
    desk.answer(HelpersCall(), {}, lane)
    assert desk.answer(HasFolderCall(digest="ab"), {}, lane)[0] == DoneAnswer(is_there=False)
    desk.answer(StoreFolderCall(digest="ab"), {}, lane)
    assert desk.answer(HasFolderCall(digest="ab"), {}, lane)[0] == DoneAnswer(is_there=True)
    desk.answer(execution, {}, lane)
    cluster.played.incarnation = "7"  # it was started again while nobody held it
    desk.answer(execution, {}, lane)
    told = [HelpersCall, StoreFolderCall, ExecuteCall]
    assert [type(one) for one in cluster.played.asked] == told * 2


def test_a_gpu_that_is_gone_fails_what_was_measured_on_it() -> None:
    cluster = PlayedCluster()
    desk = played_desk(cluster)
    assert desk.answer(WhereCall(), {}, desk.new_lane())[0] == OpenedAnswer()
    assert not cluster.holds
    cluster.is_gone = True
    with pytest.raises(InfraError, match="no longer in the cluster"):
        desk.answer(WhereCall(gpu="GPU-x"), {}, desk.new_lane())


def test_a_pool_of_which_nothing_is_fit_any_more_ends_the_call(
    execution: ExecuteCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PlayedCluster()
    desk = played_desk(cluster)
    monkeypatch.setattr(cluster, "ask", Mock(return_value={"error": "box: no GPU"}))
    with pytest.raises(SetupError, match="box: no GPU"):
        desk.answer(execution, {}, desk.new_lane())


def test_a_session_keeps_its_evaluator_and_is_lost_with_it(timing: OpenTimingCall) -> None:
    cluster = PlayedCluster(_dying(1, ReplayCall))
    desk = played_desk(cluster)
    lane = desk.new_lane()
    assert isinstance(desk.answer(timing, {}, lane)[0], TimingAnswer)
    assert len(cluster.holds) == 1
    with pytest.raises(TimingLost):
        desk.answer(ReplayCall(sequences=((0,),)), {}, lane)
    with pytest.raises(TimingLost):
        desk.answer(ReplayCall(sequences=((0,),)), {}, lane)
    desk.answer(CloseTimingCall(), {}, lane)
    assert not cluster.holds
    desk.answer(timing, {}, lane)
    assert isinstance(desk.answer(ReplayCall(sequences=((0,),)), {}, lane)[0], ReplaysAnswer)
    desk.answer(CloseTimingCall(), {}, lane)
    assert not cluster.holds


def test_sides_that_kill_two_sessions_are_quarantined(
    timing: OpenTimingCall, execution: ExecuteCall
) -> None:
    empty = {"kind": "empty", "plan": execution.program.plan}
    asked = timing.asked.model_copy(update={"sides": ()})
    asked = SentTiming.model_validate(dict(asked) | {"sides": (empty,)})
    timing = timing.model_copy(update={"asked": asked})
    desk = played_desk(PlayedCluster(_dying(2, OpenTimingCall)))
    lane = desk.new_lane()
    for _ in range(2):
        with pytest.raises(TimingLost):
            desk.answer(timing, {}, lane)
    answer, _outputs = desk.answer(timing, {}, lane)
    assert isinstance(answer, TimingFailedAnswer)
    assert (answer.side, answer.outcome.status) == (None, Status.QUARANTINED)
    desk.answer(CloseTimingCall(), {}, lane)


def test_a_session_that_cannot_be_opened_holds_nothing(
    timing: OpenTimingCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PlayedCluster()
    desk = played_desk(cluster)
    refused = ErrorAnswer(error="setup", message="no worker starts")
    monkeypatch.setattr("support.played_cluster.played_answer", Mock(return_value=refused))
    assert desk.answer(timing, {}, desk.new_lane())[0] == refused
    assert not cluster.holds


def test_a_session_that_could_not_be_sent_holds_nothing(
    timing: OpenTimingCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PlayedCluster()
    desk = played_desk(cluster)
    monkeypatch.setattr(cluster, "get", Mock(side_effect=MemoryError("the object store is full")))
    with pytest.raises(MemoryError):
        desk.answer(timing, {}, desk.new_lane())
    assert not cluster.holds


def test_what_is_promoted_keeps_one_evaluator_with_new_workers(
    execution: ExecuteCall, timing: OpenTimingCall
) -> None:
    cluster = PlayedCluster()
    desk = played_desk(cluster, is_fresh=True)
    lane = desk.new_lane()
    desk.answer(execution, {}, lane)
    desk.answer(timing, {}, lane)
    desk.answer(CloseTimingCall(), {}, lane)
    desk.answer(execution, {}, lane)
    assert (cluster.leases, cluster.holds) == (1, {1})
    assert isinstance(cluster.played.asked[0], RenewCall)
    assert sum(isinstance(one, RenewCall) for one in cluster.played.asked) == 1


def test_what_is_promoted_is_not_measured_in_workers_that_could_not_be_ended(
    execution: ExecuteCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = PlayedCluster()
    desk = played_desk(cluster, is_fresh=True)
    refused = ErrorAnswer(error="infra", message="a worker does not end")
    monkeypatch.setattr("support.played_cluster.played_answer", Mock(return_value=refused))
    with pytest.raises(InfraError, match="no new worker processes: a worker does not end"):
        desk.answer(execution, {}, desk.new_lane())
    assert not cluster.holds


def test_a_death_that_one_thread_hears_of_late_costs_no_other_its_evaluator(
    execution: ExecuteCall, timing: OpenTimingCall
) -> None:
    cluster = PlayedCluster(_dying(1, ExecuteCall))
    desk = played_desk(cluster, is_fresh=True)
    session = desk.new_lane()
    desk.answer(timing, {}, session)
    desk.answer(execution, {}, desk.new_lane())  # it died, and there is another
    with pytest.raises(TimingLost):
        desk.answer(ReplayCall(sequences=((0,),)), {}, session)
    desk.answer(execution, {}, desk.new_lane())
    assert (cluster.leases, cluster.holds) == (2, {2})


def test_two_threads_that_tell_an_evaluator_the_same_leave_nothing_out(
    execution: ExecuteCall,
) -> None:
    meeting = Barrier(2, timeout=20)

    def meet(call: Call) -> bool:
        if isinstance(call, HelpersCall):
            with suppress(BrokenBarrierError):
                meeting.wait()
        return False

    cluster = PlayedCluster(meet)
    desk = played_desk(cluster, is_fresh=True)
    desk.answer(execution, {}, desk.new_lane())  # the evaluator is kept from now on
    desk.answer(HelpersCall(), {}, desk.new_lane())
    threads = [Thread(target=desk.answer, args=(execution, {}, desk.new_lane())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    desk.answer(StoreFolderCall(digest="ab"), {}, desk.new_lane())
    desk.answer(execution, {}, desk.new_lane())
    assert sum(isinstance(one, StoreFolderCall) for one in cluster.played.asked) == 1


def test_a_pool_without_evaluators_is_refused() -> None:
    cluster = PlayedCluster()
    cluster.hello = {"error": "no node has a GPU"}
    with pytest.raises(SetupError, match="no node has a GPU"):
        played_desk(cluster)
