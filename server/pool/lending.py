"""The evaluators of a pool as one caller gets them: waited for, told what they must know, asked."""

import secrets
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from kopt.config.errors import InfraError, KoptError, SetupError
from kopt.config.pool_address import PoolKind
from kopt.server.far.desk import Answered
from kopt.tools.devices.device import Arrays
from kopt.tools.devices.gpu_time import count_gpu_time
from kopt.tools.remote.answers import FAR_ANSWER, ErrorAnswer, FarAnswer, OpenedAnswer
from kopt.tools.remote.calls import CALL, Call, ErrandCall, RenewCall, StoreFolderCall, WhereCall

from .cluster import Cluster
from .coordinator import BEAT_S
from .evaluator import Held
from .packed_arrays import Form, StoredArrays, packed, unpacked

_REMEMBERED_BYTES = 256 << 20


@dataclass(frozen=True)
class SentCall:
    """A call as an evaluator takes it: nothing of it is left to do while a GPU waits."""

    call: bytes
    forms: list[Form]
    contents: list[Any]
    """Arrays, or references to those in Ray's object store."""


@dataclass(frozen=True)
class PoolLease:
    """An evaluator that is this caller's for a call or a session."""

    number: int
    slot: str
    incarnation: str
    opened: OpenedAnswer


class EvaluatorLost(Exception):
    """It died under a call."""

    def __init__(self, cause: str, said: str) -> None:
        """Keep `actor` or `node`, and what Ray says."""
        super().__init__(said)
        self.is_suspect = cause == "actor"


class Lending:
    """Safe from several threads."""

    def __init__(
        self, cluster: Cluster, told: Callable[[str], None], *, is_fresh: bool = False
    ) -> None:
        """Wait for nothing yet.

        Args:
            cluster: Joined.
            told: Passes lines of progress to the caller.
            is_fresh: Whether one evaluator is kept from the first call to the end, with new worker
                processes: what is promoted is measured in processes that have run nothing else.
        """
        self._is_fresh = is_fresh
        self._held: PoolLease | None = None
        self._holding = threading.RLock()  # of the evaluator that is kept
        self._cluster = cluster
        self._told = told
        self._arrays = StoredArrays(cluster.ray.put, _REMEMBERED_BYTES)
        self._kind: PoolKind = "cuda"
        self._model = ""
        self.width = 0
        """How many evaluators of the kind and model there are."""
        self._over = threading.Event()
        self._turn = threading.Lock()  # of what follows
        self._kept: list[tuple[Call, Arrays]] = []
        self._introduced: Counter[tuple[str, str]] = Counter()
        self._homes: dict[str, OpenedAnswer] = {}
        """The evaluator that each errand was served by last; of those that are under way."""

    def begin(self, kind: PoolKind, prefers: str) -> OpenedAnswer:
        """Return the first evaluator that is ready: its model is that of all others.

        Args:
            kind: GPUs or simulators.
            prefers: UUID of the GPU to begin with if it is there; "": any.

        Raises:
            SetupError: There will be none.
        """
        self._kind, said = kind, ""
        while True:
            me = (self._cluster.caller, kind, self._model, prefers)
            found: Mapping[str, str] = self._cluster.ask("hello", *me)
            if "error" in found:
                raise SetupError(found["error"])
            if "opened" in found:
                break
            if said != (said := found["wait"]):
                self._told(said)
        opened = OpenedAnswer.model_validate_json(found["opened"])
        self._model = "" if opened.facts is None else opened.facts.name
        self._beat()
        threading.Thread(target=self._beating, name="pool-beat", daemon=True).start()
        return opened

    def end(self) -> None:
        """Be heard no more."""
        self._over.set()

    def keep(self, call: Call, arrays: Arrays) -> None:
        """Have each evaluator be told `call` before it is asked anything."""
        with self._turn:
            self._kept.append((call, arrays))

    def has_folder(self, digest: str) -> bool:
        """Return whether a folder of this content is kept."""
        with self._turn:
            kept = [one for one, _ in self._kept if isinstance(one, StoreFolderCall)]
        return any(one.digest == digest for one in kept)

    def acquire(self, call: ErrandCall) -> PoolLease:
        """Return an evaluator for a call, once it is this caller's turn.

        Raises:
            InfraError: The GPU that was measured on is gone, or has no new worker processes.
            SetupError: No evaluator is fit any more.
        """
        if not self._is_fresh:
            return self._acquired(call)
        with self._holding:
            while self._held is None:
                lease = self._acquired(call)
                with suppress(EvaluatorLost):
                    answer, _ = self._send(lease, self.sent(RenewCall(), {}))
                    if isinstance(answer, ErrorAnswer):
                        self._cluster.ask("release", lease.number)
                        raise InfraError(f"no new worker processes: {answer.message}")
                    self._held = lease
            return self._held

    def _acquired(self, call: ErrandCall) -> PoolLease:
        wish = {
            "caller": self._cluster.caller,
            "kind": self._kind,
            "model": self._model,
            "gpu": call.gpu,
            "errand": call.errand,
        }
        while True:
            asked = (wish, secrets.token_hex(8))
            found: dict[str, Any] = self._cluster.ask("acquire", *asked, told=self._tell_of_waiting)
            if "lease" in found:
                opened = OpenedAnswer.model_validate_json(found["opened"])
                if call.errand:
                    with self._turn:
                        self._homes[call.errand] = opened
                return PoolLease(found["lease"], found["slot"], found["incarnation"], opened)
            if "error" in found:
                raise SetupError(found["error"])
            if found["gone"]:
                raise InfraError(
                    f"{call.gpu} is no longer in the cluster: what is measured on it has to be"
                    " measured anew, on another GPU"
                )

    def home(self, call: WhereCall) -> OpenedAnswer:
        """Return the evaluator that an errand keeps to: that which served it, else the next one.

        Raises:
            InfraError: As `acquire`.
            SetupError: As `acquire`.
        """
        with self._turn:
            known = None if call.gpu else self._homes.get(call.errand)
        if known is None:
            lease = self.acquire(call)
            self.release(lease)
            known = lease.opened
        return known

    def end_errand(self, errand: str) -> None:
        """Forget where an errand was served."""
        with self._turn:
            self._homes.pop(errand, None)
        self._cluster.ask("end_errand", self._cluster.caller, errand)

    def release(self, lease: PoolLease) -> None:
        """Give an evaluator back, unless it is kept."""
        if lease is not self._held:
            self._cluster.ask("release", lease.number)

    def sent(self, call: Call, arrays: Arrays) -> SentCall:
        """Return a call ready to be carried, with what is large in Ray's object store."""
        forms, contents = packed(arrays)
        return SentCall(CALL.dump_json(call), forms, self._arrays.sendable(contents))

    def carry(self, lease: PoolLease, sent: SentCall) -> Answered:
        """Return what an evaluator answers, told first what it must know.

        Raises:
            EvaluatorLost: It died, and is given back.
        """
        place = (lease.slot, lease.incarnation)
        with self._turn:
            begin = self._introduced[place]
            missing = self._kept[begin:]
        for number, (known, contents) in enumerate(missing, start=begin + 1):
            answer, _ = self._send(lease, self.sent(known, contents))
            if isinstance(answer, ErrorAnswer):
                return answer, {}
            with self._turn:  # another thread may tell the evaluator that is kept the same
                self._introduced[place] = max(self._introduced[place], number)
        return self._send(lease, sent)

    def _send(self, lease: PoolLease, sent: SentCall) -> Answered:
        held: Held = (lease.number, lease.incarnation)
        try:
            actor = self._cluster.actor(lease.slot, lease.incarnation)
            if actor is None:
                raise EvaluatorLost("node", "its evaluator is gone")
            reference = actor.ask.remote("answer", held, sent.call, sent.forms, *sent.contents)
            said: dict[str, Any] | None = self._cluster.ray.get(reference)
        except self._cluster.lost as error:
            self._let_go(lease)
            cause: str = self._cluster.ask("lost", lease.number)
            raise EvaluatorLost(cause, str(error).splitlines()[0][:200]) from error
        if said is None:  # it died before the call came: no candidate's fault
            self._let_go(lease)
            self._cluster.ask("lost", lease.number)
            raise EvaluatorLost("node", "it was started again")
        count_gpu_time(said["gpu_s"])
        answer: FarAnswer = FAR_ANSWER.validate_json(said["answer"])
        return answer, unpacked(said["forms"], said["contents"])

    def _let_go(self, lease: PoolLease) -> None:
        """Keep a dead evaluator no longer; another thread may have another one by now."""
        with self._turn:
            if self._held is lease:
                self._held = None

    def _tell_of_waiting(self) -> None:
        self._told(f"waiting for one of {self.width} evaluators of the pool")

    def _beating(self) -> None:
        while not self._over.wait(BEAT_S):
            try:
                self._beat()
            except KoptError as error:  # calls that need the pool fail likewise
                self._told(str(error))

    def _beat(self) -> None:
        self.width = self._cluster.ask("beat", self._cluster.caller, self._kind, self._model)
