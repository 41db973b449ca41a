"""The client of a run's agents: every model call is reserved, made, retried, settled and recorded.

An answered call is never made again: its recorded reply is the answer, in this process and after
any number of kills. A call that is not recorded is first set aside in the ledger at the most that
it can cost, then made within the rate limit and retried by the run's policy, then settled at what
it did cost. Knows no SQL and no network.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Condition, Event
from typing import Protocol, TypeVar

from kopt.config.errors import ToolError

from .call_ledger import CallLedger, RecordedCall, Reservation
from .errors import CallFailed, Halt
from .model import Model, ModelReply, ModelRequest
from .prices import PriceTable
from .prompt_bound import PromptBound, bound_next_turn, bound_prompt
from .rate_limit import RateLimit
from .retry import Retries, RetryPolicy

logger = logging.getLogger(__name__)
_T = TypeVar("_T")


class LedgerThread(Protocol):
    """The one thread that may write the run."""

    def do(self, work: Callable[[], _T]) -> _T:
        """Have that thread do `work`; return what it returned, or raise what it raised."""
        ...


@dataclass(frozen=True)
class ModelClient:
    """Asks one model for all branches of one run, from any thread."""

    model: Model
    ledger: CallLedger
    thread: LedgerThread
    prices: PriceTable
    rate: RateLimit
    halt: Halt
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    _ended: Condition = field(default_factory=Condition, repr=False)
    """Notified when a call has ended: it may have given something back to the budget."""
    _has_answered: Event = field(default_factory=Event, repr=False)
    """Set once the service has replied to any call."""

    def ask(self, request: ModelRequest) -> ModelReply:
        """Return the reply to `request`: the recorded one, or else a new one.

        Raises:
            CallFailed: There is none; its `kind` says what to do about it.
            BudgetSpent: The call might cost more than is left.
            SetupError: The price of the model is not known.
            Stopped: The run is being stopped.
        """
        self.halt.check()
        answered = self.thread.do(partial(self.ledger.find, request.id))
        return self._ask(request) if answered is None else answered.reply

    def last_of(self, prefix: str) -> RecordedCall | None:
        """Return the answered call with the highest turn among the ids `prefix/N`."""
        return self.thread.do(partial(self.ledger.last_of, prefix))

    def _ask(self, request: ModelRequest) -> ModelReply:
        prompt, most = self._bound(request), request.max_output_tokens
        microusd = self.prices.worst_case_microusd(request.model, prompt, most)
        reservation = Reservation(request, microusd, prompt.tokens + most)
        retries = Retries(self.policy, self._has_answered.is_set())
        while True:
            row = self._reserved(reservation)
            try:
                outcome = self._call(row, reservation, prompt.likely_tokens, retries)
            except (CallFailed, ToolError):  # its row is closed
                raise
            except BaseException:
                self._abandon(row)
                raise
            finally:
                with self._ended:
                    self._ended.notify_all()
            if isinstance(outcome, ModelReply):
                return outcome
            self.halt.wait(outcome)

    def _call(
        self, row: str, reservation: Reservation, likely_tokens: int, retries: Retries
    ) -> ModelReply | float:
        """Return the reply, or how long to wait before the call is set aside and made anew.

        Within one row a call is repeated only as long as the service turned it away for nothing.
        """
        while True:
            try:
                with self.rate.permit(likely_tokens) as permit:
                    reply = self.model.reply(reservation.request)
                    permit.usage = reply.usage
            except CallFailed as failure:
                wait_s = retries.wait_s(failure)
                if wait_s is None:
                    self._fail(row, failure)
                    raise
                if failure.may_cost:
                    self._fail(row, failure)
                    return wait_s
                self.thread.do(partial(self.ledger.retry, row, failure, wait_s))
                with self._ended:
                    self._ended.notify_all()  # what it held is free
                self.halt.wait(wait_s)
                self._renew(row, reservation)
            except ToolError as error:  # of a recording: no service was asked
                self._fail(row, CallFailed(kind="user", message=str(error)))
                raise
            else:
                self._has_answered.set()
                self._settle(row, reservation, reply)
                return reply

    def _reserved(self, reservation: Reservation) -> str:
        """Wait for room in the budget and return the open row of a call."""
        while True:
            row = self.thread.do(partial(self.ledger.reserve, reservation))
            if row is not None:
                return row
            with self._ended:
                self.halt.wait_on(self._ended)

    def _renew(self, row: str, reservation: Reservation) -> None:
        """Wait for room in the budget for a call that has waited."""
        while not self.thread.do(partial(self.ledger.renew, row, reservation)):
            with self._ended:
                self.halt.wait_on(self._ended)

    def _settle(self, row: str, reservation: Reservation, reply: ModelReply) -> None:
        microusd = self.prices.of_reply(reservation.request.model, reply)
        self.thread.do(partial(self.ledger.settle, row, reply, microusd))
        if microusd is not None and microusd > reservation.microusd:
            logger.warning(
                "call %s cost %d micro-USD, more than the %d that were its worst case:"
                " the provider counts otherwise than kopt expects",
                *(row, microusd, reservation.microusd),
            )

    def _fail(self, row: str, failure: CallFailed) -> None:
        self.thread.do(partial(self.ledger.fail, row, failure))

    def _abandon(self, row: str) -> None:
        """Close a row left open by a bug; after a stop the process that resumes the run does."""
        if not self.halt.is_stopped:
            message = "the call ended without a reply or a reason"
            self._fail(row, CallFailed(kind="us", message=message, may_cost=True))

    def _bound(self, request: ModelRequest) -> PromptBound:
        before = self.last_of(request.id.rpartition("/")[0])
        if before is None:
            return bound_prompt(request)
        return bound_next_turn(request, before.request, before.reply)
