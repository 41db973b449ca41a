"""A Ray cluster with one evaluator, as a pool's desk sees it, without Ray."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from kopt.kernels.status import Status
from kopt.server.pool.cluster import Cluster
from kopt.server.pool.packed_arrays import packed, unpacked
from kopt.server.pool.pool_desk import PoolDesk
from kopt.tools.devices.timer import Replays, TimingFacts
from kopt.tools.remote.answers import (
    FAR_ANSWER,
    DoneAnswer,
    FarAnswer,
    OpenedAnswer,
    OutcomeAnswer,
    ReplaysAnswer,
    TimingAnswer,
)
from kopt.tools.remote.calls import CALL, Call, ExecuteCall, OpenCall, OpenTimingCall, ReplayCall


class ActorGone(Exception):
    """Stands for what Ray raises of an actor that has gone."""


@dataclass
class PlayedEvaluator:
    """Answers every call, unless it dies under it."""

    dies: Callable[[Call], bool]
    incarnation: str = "0"
    asked: list[Call] = field(default_factory=list[Call])

    @property
    def ask(self) -> "PlayedEvaluator":
        """Its method."""
        return self

    def remote(self, method: str, held: Any, call: bytes, forms: Any, *contents: Any) -> Any:
        """Answer at once."""
        assert method == "answer"
        if held[1] != self.incarnation:
            return None
        asked = CALL.validate_json(call)
        self.asked.append(asked)
        if self.dies(asked):
            self.incarnation = str(int(self.incarnation) + 1)
            raise ActorGone("it died")
        outputs = unpacked(forms, contents) if isinstance(asked, ExecuteCall) else {}
        out_forms, out_contents = packed(outputs)
        return {
            "answer": FAR_ANSWER.dump_json(played_answer(asked)),
            "forms": out_forms,
            "contents": out_contents,
            "gpu_s": 0.5,
        }


def played_answer(call: Call) -> FarAnswer:
    """Return the answer of an evaluator to which nothing happens."""
    match call:
        case ExecuteCall():
            return OutcomeAnswer(status=Status.PASSED)
        case OpenTimingCall():
            facts = TimingFacts(sets=1, set_bytes=1, rotation_over_l2=1.0, sides=())
            return TimingAnswer(facts=facts)
        case ReplayCall():
            return ReplaysAnswer(replays=(Replays(us_per_call=(1.0,)),))
        case _:
            return DoneAnswer()


class PlayedCluster:
    """One evaluator; `cause` says what its deaths are put down to."""

    caller = "me"
    lost = (ActorGone,)

    def __init__(self, dies: Callable[[Call], bool] = lambda _: False) -> None:
        """Have the evaluator die under the calls that `dies` names."""
        self.played = PlayedEvaluator(dies)
        self.ray = self
        self.cause = "actor"
        self.hello: dict[str, str] = {"opened": OpenedAnswer().model_dump_json()}
        self.is_gone = False
        self.known = "0"
        self.holds: set[int] = set()
        self.leases = 0
        self.tickets: set[str] = set()

    def get(self, value: Any) -> Any:
        """Return a value, which is its own reference."""
        return value

    def put(self, value: Any) -> Any:
        """Return a value as its own reference."""
        return value

    def close(self) -> None:
        """Leave; all has been given back."""
        assert not self.holds

    def actor(self, slot: str, incarnation: str) -> PlayedEvaluator:
        """Return the one that there is."""
        del slot, incarnation
        return self.played

    def ask(self, method: str, *arguments: Any, told: object = None) -> Any:
        """Answer as the coordinator does."""
        del told
        match method:
            case "hello":
                return self.hello
            case "beat":
                return 1
            case "acquire":
                assert arguments[1] not in self.tickets
                self.tickets.add(arguments[1])
                return self._acquired()
            case "end_errand":
                pass
            case "release":
                self.holds.remove(arguments[0])
            case "lost":
                self.holds.discard(arguments[0])
                self.known = self.played.incarnation
                return self.cause
            case _:
                raise AssertionError(method)
        return None

    def _acquired(self) -> dict[str, Any]:
        if self.is_gone:
            return {"gone": "GPU-x"}
        self.leases += 1
        self.holds.add(self.leases)
        return {
            "lease": self.leases,
            "slot": "s",
            "incarnation": self.known,
            "opened": OpenedAnswer().model_dump_json(),
        }


def played_desk(cluster: PlayedCluster, *, is_fresh: bool = False) -> PoolDesk:
    """Return what answers a caller of the cluster, its GPUs open."""
    said: list[str] = []
    desk = PoolDesk(cast("Cluster", cluster), "", said.append, is_fresh=is_fresh)
    desk.answer(OpenCall(device="cuda", has_spare=True), {}, desk.new_lane())
    return desk
