"""Where the branches of a search ask a model: record, reserve, call, settle.

An answered call is never made again: its recorded reply is the answer, in this process and after
any number of kills. A call that is not recorded is first set aside in the ledger at the most that
it can cost, then made at the pace that the service allows and with the patience of the run, then
settled at what it did cost. Knows no SQL and no network.
"""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event

from kopt.config.errors import ToolError
from kopt.search.store.artifacts import ArtifactStore

from .call_documents import pack, unpack
from .call_errors import CallFailed
from .halt import Halt
from .ledger import CallDocuments, Ledger, Reservation, Settlement
from .model import Model, ModelReply, ModelRequest
from .open_call import CallEnds, OpenCall
from .patience import Course, Patience
from .prices import PriceTable
from .prompt_bound import PromptBound, bound_next_turn, bound_prompt
from .rate import RateLimit


@dataclass(frozen=True)
class RecordedCall:
    """A call that was answered, whenever that was."""

    id: str
    """The id that it was asked under, with #2 if it was asked twice."""
    request: ModelRequest
    reply: ModelReply


@dataclass(frozen=True)
class CallDesk:
    """Asks one model for all branches of one run, from any thread."""

    model: Model
    ledger: Ledger
    artifacts: ArtifactStore
    prices: PriceTable
    rate: RateLimit
    halt: Halt
    patience: Patience = field(default_factory=Patience)
    _ends: CallEnds = field(default_factory=CallEnds, repr=False)
    _has_answered: Event = field(default_factory=Event, repr=False)
    """Set once the service has replied to anybody."""

    def ask(self, request: ModelRequest) -> ModelReply:
        """Return the reply to `request`: the recorded one, or else a new one.

        Raises:
            CallFailed: There is none; its `kind` says what to do about it.
            BudgetSpent: The call might cost more than is left.
            SetupError: The price of the model is not known.
            Stopped: The run is being stopped.
        """
        self.halt.check()
        answered = self.ledger.find(request.id)
        if answered is not None:
            return unpack(ModelReply, self.artifacts.get(answered.response_sha))
        return self._ask(request)

    def last_of(self, prefix: str) -> RecordedCall | None:
        """Return the answered call with the highest turn among the ids `prefix/N`."""
        documents = self.ledger.last_of(prefix)
        return None if documents is None else self._read(documents)

    def _ask(self, request: ModelRequest) -> ModelReply:
        prompt = self._bound(request)
        reservation = self._reservation(request, prompt)
        course = Course(self.patience, self._has_answered.is_set())
        while True:
            with self._reserved(reservation) as row:
                outcome = self._call(row, request, prompt.likely_tokens, course)
            if isinstance(outcome, ModelReply):
                return outcome
            self.halt.wait(outcome)

    def _call(
        self, row: OpenCall, request: ModelRequest, likely_tokens: int, course: Course
    ) -> ModelReply | float:
        """Return the reply, or how long to wait before the call is set aside and made anew.

        Within one row a call is repeated only as long as the service turned it away for nothing.
        """
        while True:
            try:
                with self.rate.permit(likely_tokens) as permit:
                    reply = self.model.reply(request)
                    permit.usage = reply.usage
            except CallFailed as failure:
                wait_s = course.wait_s(failure)
                if wait_s is None:
                    row.fail(failure)
                    raise
                if failure.may_cost:
                    row.fail(failure)
                    return wait_s
                self.ledger.retry(row.id, failure, wait_s)
                self.halt.wait(wait_s)
            except ToolError as error:  # of a recording: nobody was asked
                row.fail(CallFailed(kind="user", message=str(error)))
                raise
            else:
                self._has_answered.set()
                row.settle(self._settlement(request, reply))
                return reply

    @contextmanager
    def _reserved(self, reservation: Reservation) -> Generator[OpenCall]:
        """Wait for room in the budget and yield the open row of a call."""
        while True:
            ends = self._ends.count
            row_id = self.ledger.reserve(reservation)
            if row_id is not None:
                break
            self._ends.wait_beyond(ends, self.halt)
        row = OpenCall(row_id, self.ledger, reservation.microusd)
        try:
            yield row
        finally:
            try:
                row.abandon(self.halt)
            finally:
                self._ends.add()

    def _bound(self, request: ModelRequest) -> PromptBound:
        before = self.last_of(request.id.rpartition("/")[0])
        if before is None:
            return bound_prompt(request)
        return bound_next_turn(request, before.request, before.reply)

    def _reservation(self, request: ModelRequest, prompt: PromptBound) -> Reservation:
        most = request.max_output_tokens
        microusd = self.prices.worst_case_microusd(request.model, prompt, most)
        document = pack(request)
        return Reservation(
            request=request,
            request_sha=self.artifacts.put(document),
            request_bytes=len(document),
            microusd=microusd,
            tokens=prompt.tokens + most,
        )

    def _settlement(self, request: ModelRequest, reply: ModelReply) -> Settlement:
        document = pack(reply)
        return Settlement(
            response_sha=self.artifacts.put(document),
            response_bytes=len(document),
            microusd=self.prices.cost_microusd(request.model, reply.usage),
            usage=reply.usage,
            stop=reply.stop,
            latency_s=reply.latency_s,
        )

    def _read(self, documents: CallDocuments) -> RecordedCall:
        return RecordedCall(
            documents.id,
            unpack(ModelRequest, self.artifacts.get(documents.request_sha)),
            unpack(ModelReply, self.artifacts.get(documents.response_sha)),
        )
