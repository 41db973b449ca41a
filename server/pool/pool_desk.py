"""Answers the calls of one caller with the evaluators of a pool.

An execution goes to the evaluator of its errand, and is repeated where that died; a timing session
stays with one, and is lost with it.
"""

from collections.abc import Callable

from pydantic import ValidationError

from kopt.config.errors import InfraError
from kopt.config.pool_address import PoolKind
from kopt.kernels.pool_status import PoolStatus
from kopt.server.far.desk import Answered, FarLane
from kopt.tools.devices.device import Arrays
from kopt.tools.devices.lost_timing import TimingLost
from kopt.tools.remote.answers import (
    DoneAnswer,
    ErrorAnswer,
    NumberAnswer,
    PoolStatusAnswer,
)
from kopt.tools.remote.calls import (
    Call,
    CloseTimingCall,
    CollectCall,
    EndErrandCall,
    ErrandCall,
    HasFolderCall,
    HelpersCall,
    OnErrand,
    OpenCall,
    OpenTimingCall,
    PoolStatusCall,
    ReplayCall,
    StoreFolderCall,
    WarmCall,
    WhereCall,
    WidthCall,
)

from .cluster import Cluster
from .lending import EvaluatorLost, Lending, PoolLease, SentCall
from .quarantine import Deaths, quarantined, suspect_of

MOST_LOSSES = 6
"""Evaluators that one call may lose to whatever ends them."""


class PoolLane(FarLane):
    """What one thread of the caller has open: perhaps a session, on a lease."""

    def __init__(self) -> None:
        """Nothing is open."""
        super().__init__()
        self.lease: PoolLease | None = None
        self.suspect = ""
        """Whom the session is for, as what deaths are counted by."""


class PoolDesk:
    """Safe from several threads, of one lane each."""

    def __init__(
        self, cluster: Cluster, prefers: str, told: Callable[[str], None], *, is_fresh: bool = False
    ) -> None:
        """Open nothing yet.

        Args:
            cluster: Joined.
            prefers: UUID of the GPU to begin with if it is there; "": any.
            told: Passes lines of progress to the caller.
            is_fresh: Whether that GPU is to be this caller's alone, with new worker processes.
        """
        self._cluster = cluster
        self._prefers = prefers
        self._told = told
        self._lending = Lending(cluster, told, is_fresh=is_fresh)
        self._deaths = Deaths()

    def new_lane(self) -> PoolLane:
        """Return a lane on which nothing is open."""
        return PoolLane()

    def close(self) -> None:
        """Give all evaluators back."""
        self._lending.end()
        self._cluster.close()

    def answer(self, call: Call, arrays: Arrays, lane: PoolLane) -> Answered:
        """Return the answer to a call, with its arrays.

        Raises:
            TimingLost: The evaluator of the session died.
            InfraError: Evaluators die under the call, or the GPU that it must be done on is gone.
            SetupError: There is no evaluator.
        """
        match call:
            case OpenCall():
                kind: PoolKind = "sim" if call.device == "sim" else "cuda"
                return self._lending.begin(kind, self._prefers), {}
            case HelpersCall() | StoreFolderCall():
                self._lending.keep(call, arrays)
                return DoneAnswer(), {}
            case HasFolderCall():
                return DoneAnswer(is_there=self._lending.has_folder(call.digest)), {}
            case WidthCall():
                return NumberAnswer(value=self._lending.width), {}
            case EndErrandCall():
                self._lending.end_errand(call.errand)
                return DoneAnswer(), {}
            case PoolStatusCall():
                return self._statuses(), {}
            case OpenTimingCall():
                return self._open_timing(call, arrays, lane)
            case ReplayCall() | CollectCall() | WarmCall() | CloseTimingCall():
                return self._in_session(call, lane)
            case OnErrand():
                return self._on_errand(call, arrays, lane)
            case _:
                raise InfraError(f"a pool has no answer to {call.kind}")

    def _statuses(self) -> PoolStatusAnswer:
        """Return the status of every pool that tells one; of the others a line is told.

        Raises:
            InfraError: There are pools, and none tells one.
        """
        found: list[PoolStatus] = []
        silent: list[str] = []
        for name, said in self._cluster.statuses().items():
            try:
                found.append(PoolStatus.model_validate_json(said))
            except ValidationError:
                other = said.startswith("{")
                silent.append(f"{name}: {'of another version of kopt' if other else said}")
        if silent and not found:
            raise InfraError("; ".join(silent))
        for line in silent:
            self._told(line)
        return PoolStatusAnswer(pools=tuple(found))

    def _on_errand(self, call: ErrandCall, arrays: Arrays, lane: PoolLane) -> Answered:
        """Return the answer of the session's evaluator, without a session of any."""
        if isinstance(call, WhereCall):
            return self._lending.home(call), {}
        if lane.lease is not None:
            return self._on_lease(self._lending.sent(call, arrays), lane)
        return self._by_any(call, arrays)

    def _by_any(self, call: ErrandCall, arrays: Arrays) -> Answered:
        """Return the answer of an evaluator, of another or a new one where the first died."""
        suspect = suspect_of(call)
        sent = self._lending.sent(call, arrays)
        for _ in range(MOST_LOSSES):
            lease = self._lending.acquire(call)
            try:
                answered = self._lending.carry(lease, sent)
            except EvaluatorLost as lost:
                self._note(suspect, lost)
                if self._deaths.is_enough(suspect):
                    return quarantined(call, str(lost)), {}
                continue
            except BaseException:
                self._lending.release(lease)
                raise
            self._lending.release(lease)
            self._deaths.forgive(suspect)
            return answered
        raise InfraError(f"{MOST_LOSSES} evaluators of the pool were lost under one call")

    def _open_timing(self, call: OpenTimingCall, arrays: Arrays, lane: PoolLane) -> Answered:
        lane.suspect = suspect_of(call)
        if self._deaths.is_enough(lane.suspect):
            return quarantined(call, "while it was timed"), {}
        self._let_go(lane)  # of a caller that was interrupted before it could close
        sent = self._lending.sent(call, arrays)
        lane.lease = self._lending.acquire(call)
        is_open = False
        try:
            answered = self._on_lease(sent, lane)
            is_open = not isinstance(answered[0], ErrorAnswer)
        finally:
            if not is_open:  # there is no session to close
                self._let_go(lane)
        return answered

    def _in_session(self, call: Call, lane: PoolLane) -> Answered:
        is_end = isinstance(call, CloseTimingCall)
        if lane.lease is None:
            if is_end:  # of a session that was refused
                return DoneAnswer(), {}
            raise TimingLost("the evaluator of this session died")
        try:
            answered = self._on_lease(self._lending.sent(call, {}), lane)
        finally:
            if is_end:
                self._let_go(lane)
        if is_end:
            self._deaths.forgive(lane.suspect)
        return answered

    def _let_go(self, lane: PoolLane) -> None:
        if lane.lease is not None:
            self._lending.release(lane.lease)
            lane.lease = None

    def _on_lease(self, sent: SentCall, lane: PoolLane) -> Answered:
        """Return the answer of the session's evaluator.

        Raises:
            TimingLost: It died.
        """
        assert lane.lease is not None  # as both callers have seen
        try:
            return self._lending.carry(lane.lease, sent)
        except EvaluatorLost as lost:
            lane.lease = None
            self._note(lane.suspect, lost)
            raise TimingLost(f"the evaluator of a timing session died: {lost}") from lost

    def _note(self, suspect: str, lost: EvaluatorLost) -> None:
        """Count a death that may be a candidate's doing: not that of a node."""
        if lost.is_suspect:
            self._deaths.count(suspect)
