"""The ledger of a run's model calls: the table `llm_call`, one transaction a method.

Used by the one thread that writes the run. A call is in the table before it is made, at the most
that it can cost; so no kill and no number of branches can spend more than the budget. One row is
one attempt that may have to be paid: a call whose stream broke stays in the ledger at its worst
case, and is asked again under the next id, `r2/b3/coder/0#2`.
"""

import sqlite3
import zlib
from dataclasses import dataclass

from kopt.kernels.record import Record
from kopt.search.records.budget import Amount, Budget, Spend, limits, warnings
from kopt.search.records.run_state import EventKind
from kopt.search.storage.transaction import now_us
from kopt.search.store.run_log import RunLog

from .errors import BudgetSpent, CallFailed
from .model import ModelReply, ModelRequest

# A call without a known end counts at its worst case; one that was turned away is free.
_SPEND = """SELECT
    coalesce(sum(coalesce(cost_microusd, reserved_microusd)), 0),
    coalesce(sum(CASE state WHEN 'failed' THEN 0
        WHEN 'done' THEN input_tokens + cache_write_tokens + cache_read_tokens + output_tokens
        ELSE reserved_tokens END), 0),
    coalesce(sum(iif(state = 'reserved', reserved_microusd, 0)), 0),
    coalesce(sum(iif(state = 'reserved', reserved_tokens, 0)), 0)
    FROM llm_call"""


@dataclass(frozen=True)
class Reservation:
    """A call that is about to be made, with the most that it can take from the budget."""

    request: ModelRequest
    microusd: int
    """Worst case, 1e-6 USD (computed)."""
    tokens: int
    """Worst case: prompt and output."""


@dataclass(frozen=True)
class RecordedCall:
    """A call that was answered, in this process or an earlier one."""

    id: str
    """The id that it was asked under, with #2 if it was asked twice."""
    request: ModelRequest
    reply: ModelReply


_TOLD = (
    *("why", "input_tokens", "cache_write_tokens", "cache_read_tokens", "output_tokens"),
    "latency_s",
)
"""Columns of a call that has ended that its event holds too."""
# The rows of a call: its id, and its id with #2, #3, ... where it had to be asked again.
_OF_CALL = "(id = :call OR substr(id, 1, length(:call) + 1) = :call || '#')"


@dataclass(frozen=True)
class CallLedger:
    """The model calls of the run that `log` writes, within `budget`."""

    log: RunLog
    budget: Budget

    def find(self, call: str) -> RecordedCall | None:
        """Return the answered call of this id, whichever attempt it was."""
        return self._recorded(f"{_OF_CALL} LIMIT 1", {"call": call})

    def last_of(self, prefix: str) -> RecordedCall | None:
        """Return the answered call with the highest turn among the ids `prefix/N`."""
        turn = "substr(id, length(:prefix) + 2)"  # `3`, or `3#2`, which casts to 3
        condition = (
            f"substr(id, 1, length(:prefix) + 1) = :prefix || '/' AND instr({turn}, '/') = 0"
            f" ORDER BY CAST({turn} AS INTEGER) DESC LIMIT 1"
        )
        return self._recorded(condition, {"prefix": prefix})

    def reserve(self, reservation: Reservation) -> str | None:
        """Enter a call at its worst case and return the id of its row.

        None: it does not fit as long as other calls hold their worst cases; try again when one of
        them has ended.

        Raises:
            BudgetSpent: It does not fit, whatever the calls under way give back.
        """
        request = reservation.request
        with self.log.transaction() as connection:
            if not self._has_room(reservation, read_spend(connection)):
                return None
            (before,) = connection.execute(
                f"SELECT count(*) FROM llm_call WHERE {_OF_CALL}", {"call": request.id}
            ).fetchone()
            row = f"{request.id}#{before + 1}" if before else request.id
            round_number, branch = _place(request.id)
            request_sha = self.log.name_document(_pack(request), "model_request")
            connection.execute(
                "INSERT INTO llm_call (id, role, model, round, branch, state, request_sha,"
                " reserved_microusd, reserved_tokens, attempts, started_us)"
                " VALUES (?, ?, ?, ?, ?, 'reserved', ?, ?, ?, 1, ?)",
                (
                    *(row, request.role, request.model, round_number, branch),
                    *(request_sha, reservation.microusd, reservation.tokens, now_us()),
                ),
            )
            self.log.emit(
                EventKind.CALL_STARTED,
                call=row,
                role=request.role,
                round=round_number,
                branch=branch,
                model=request.model,
                reserved_microusd=reservation.microusd,
            )
        return row

    def retry(self, row: str, failure: CallFailed, wait_s: float) -> None:
        """Note that the service turned the call away and will be asked again in `wait_s`.

        While it waits it owes nothing, however the process ends; `renew` sets it aside again.
        """
        with self.log.transaction() as connection:
            connection.execute(
                "UPDATE llm_call SET attempts = attempts + 1, reserved_microusd = 0,"
                " reserved_tokens = 0 WHERE id = ?",
                (row,),
            )
            self.log.emit(EventKind.CALL_RETRIED, call=row, why=str(failure), wait_s=wait_s)

    def renew(self, row: str, reservation: Reservation) -> bool:
        """Set a call that has waited aside at its worst case again, before it is sent.

        False: it does not fit as long as other calls hold theirs.

        Raises:
            BudgetSpent: It does not fit, whatever the calls under way give back.
        """
        with self.log.transaction() as connection:
            if not self._has_room(reservation, read_spend(connection)):
                return False
            connection.execute(
                "UPDATE llm_call SET reserved_microusd = ?, reserved_tokens = ? WHERE id = ?",
                (reservation.microusd, reservation.tokens, row),
            )
        return True

    def settle(self, row: str, reply: ModelReply, microusd: int | None) -> None:
        """Replace the worst case of an open row by what the call cost, 1e-6 USD; None: unknown."""
        usage = reply.usage
        values: dict[str, object] = {
            "cost_microusd": microusd,
            "input_tokens": usage.input_tokens,
            "cache_write_tokens": usage.cache_write_5m_tokens + usage.cache_write_1h_tokens,
            "cache_read_tokens": usage.cache_read_tokens,
            "output_tokens": usage.output_tokens,
            "stop": reply.stop,
            "latency_s": reply.latency_s,
        }
        with self.log.transaction() as connection:
            response_sha = self.log.name_document(_pack(reply), "model_reply")
            self._end(connection, row, "done", values | {"response_sha": response_sha})

    def fail(self, row: str, failure: CallFailed) -> None:
        """Close an open row without a reply: for nothing, or at its worst case if it may cost."""
        state = "unknown" if failure.may_cost else "failed"
        with self.log.transaction() as connection:
            self._end(connection, row, state, {"why": str(failure)})

    def _has_room(self, reservation: Reservation, spend: Spend) -> bool:
        wanted = {"usd": reservation.microusd, "tokens": reservation.tokens}
        bounds = tuple(limits(self.budget, spend))
        for limit in bounds:
            more = wanted[limit.name]
            if not limit.may_fit(more):
                raise BudgetSpent(
                    f"{limit.words(limit.total)} of the budget of {limit.words(limit.most)} are"
                    f" spent or set aside (computed), and the next call may take"
                    f" {limit.words(more)}: resume the run with a larger budget"
                )
        return all(limit.fits(wanted[limit.name]) for limit in bounds)

    def _end(
        self, connection: sqlite3.Connection, row: str, state: str, values: dict[str, object]
    ) -> None:
        before = read_spend(connection)
        costs = {"unknown": "nullif(reserved_microusd, 0)", "failed": "0"}
        cost = costs.get(state, ":cost_microusd")
        given = {**values, "row": row, "state": state, "now": now_us()}
        columns = ", ".join(f"{name} = :{name}" for name in values if name != "cost_microusd")
        ended = connection.execute(
            f"UPDATE llm_call SET state = :state, finished_us = :now, cost_microusd = {cost},"
            f" {columns} WHERE id = :row AND state = 'reserved'"
            " RETURNING role, round, branch, cost_microusd",
            given,
        ).fetchall()
        for role, round_number, branch, cost_microusd in ended:
            after = read_spend(connection)
            spent = after.total.microusd - after.open.microusd
            self.log.emit(
                EventKind.CALL_DONE,
                call=row,
                role=role,
                round=round_number,
                branch=branch,
                state=state,
                cost_microusd=cost_microusd,
                **{name: values.get(name) for name in _TOLD},
                spent_microusd=None if cost_microusd is None and spent == 0 else spent,
                limit_microusd=self.budget.microusd,
            )
            for limit in warnings(self.budget, before, after):
                spent = limit.total - limit.open
                self.log.emit(
                    EventKind.BUDGET_WARNING, limit=limit.name, spent=spent, most=limit.most
                )

    def _recorded(self, condition: str, values: dict[str, str]) -> RecordedCall | None:
        row = self.log.connection.execute(
            "SELECT id, request_sha, response_sha FROM llm_call"
            f" WHERE state = 'done' AND {condition}",
            values,
        ).fetchone()
        if row is None:
            return None
        request, reply = (zlib.decompress(self.log.artifacts.get(sha)) for sha in row[1:])
        return RecordedCall(
            row[0],
            ModelRequest.model_validate_json(request),
            ModelReply.model_validate_json(reply),
        )


def _pack(record: Record) -> bytes:
    """Return the compressed JSON of a request or a reply; equal records give equal bytes."""
    return zlib.compress(record.model_dump_json().encode(), level=6)


def read_spend(connection: sqlite3.Connection) -> Spend:
    """Return what the calls of a run have taken from its budget."""
    microusd, tokens, open_microusd, open_tokens = connection.execute(_SPEND).fetchone()
    return Spend(Amount(microusd, tokens), Amount(open_microusd, open_tokens))


def _place(call: str) -> tuple[int, str | None]:
    """Return the round of a call and, if it is a branch's, the id of the branch."""
    first, second, *_ = call.split("/")
    is_branch = second[0] == "b" and second[1:].isdecimal()
    return int(first[1:]), f"{first}/{second}" if is_branch else None
