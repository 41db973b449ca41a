"""The evaluations of a run: queued, leased to one attempt, done.

Evaluation is at-least-once, the record of it exactly-once: a result is accepted only for the lease
under which it was begun.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from kopt.search.records.evaluation import (
    BELOW_COPY,
    COPY,
    PROOF_LEVELS,
    Evaluation,
    EvaluationLevel,
)
from kopt.search.records.run_state import EventKind
from kopt.search.storage.transaction import now_us

from .run_log import RunLog
from .run_reader import RunReader
from .run_rows import QUEUE, insert_findings

# A candidate that takes workers down again and again would loop for ever.
QUARANTINE_AFTER = 5


@dataclass(frozen=True)
class Lease:
    """The right to record the result of one attempt at one evaluation."""

    evaluation: int
    candidate: int
    level: EvaluationLevel
    attempt: int
    infra_failures: int
    """How often the machine failed under this evaluation before."""


@dataclass(frozen=True)
class EvaluationQueue:
    """Writes the evaluations of one run."""

    _log: RunLog
    _reader: RunReader
    _owner: str
    """The process that leases."""

    def add(self, candidates: Iterable[int], level: EvaluationLevel) -> None:
        """Queue evaluations of candidates, all or none, but those that were queued before."""
        is_proof = level in PROOF_LEVELS
        kind = EventKind.FINAL_CHECK if is_proof else EventKind.EVALUATION_QUEUED
        with self._log.transaction() as connection:
            for candidate in candidates:
                if connection.execute(QUEUE, (candidate, level)).rowcount:
                    self._log.emit(kind, candidate=candidate, level=level)

    def lease_next(self, level: EvaluationLevel) -> Lease | None:
        """Lease the queued evaluation of `level` with the lowest number; None if there is none."""
        if not self._reader.count(level, "queued"):
            return None
        with self._log.transaction() as connection:
            rows = connection.execute(
                "UPDATE evaluation SET state = 'leased', lease_owner = ?, attempts = attempts + 1,"
                " started_us = ? WHERE id = (SELECT min(id) FROM evaluation"
                " WHERE state = 'queued' AND level = ?)"
                " RETURNING id, candidate, attempts, infra_failures",
                (self._owner, now_us(), level),
            ).fetchall()
            if not rows:
                return None
            evaluation, candidate, attempt, failures = rows[0]
            self._log.emit(EventKind.EVALUATION_STARTED, candidate=candidate, level=level)
        return Lease(evaluation, candidate, level, attempt, failures)

    def finish(
        self, lease: Lease, evaluation: Evaluation, spent_s: float, leader: int | None = None
    ) -> bool:
        """Record the result of a lease; False if it came late or twice and was dropped.

        `leader` is the best of all candidates with this result: the event tells of it.
        """
        artifacts = self._log.artifacts
        sizes = {sha: len(artifacts.get(sha)) for sha in evaluation.artifacts.values()}
        with self._log.transaction() as connection:
            accepted = connection.execute(
                "UPDATE evaluation SET state = 'done', lease_owner = NULL, status = :status,"
                " summary = :summary, device = :device, sandbox = :sandbox,"
                " equivalence = :equivalence, elapsed_s = :elapsed_s,"
                " gpu_seconds = :gpu_seconds, measured_as = :measured_as, finished_us = :now"
                " WHERE id = :id AND state = 'leased' AND attempts = :attempt",
                {
                    **evaluation.model_dump(mode="json", exclude={"values", "artifacts"}),
                    "now": now_us(),
                    "id": lease.evaluation,
                    "attempt": lease.attempt,
                },
            ).rowcount
            if not accepted:
                dropped = {"candidate": lease.candidate, "level": lease.level}
                self._log.emit(EventKind.RESULT_DROPPED, **dropped)
                return False
            insert_findings(connection, lease.evaluation, evaluation, sizes)
            connection.execute("UPDATE run SET spent_s = ?", (spent_s,))
            self._emit_done(lease, evaluation, leader)
        return True

    def requeue(self, lease: Lease, reason: str) -> None:
        """Put an evaluation back after the machine, not the candidate, failed under it."""
        with self._log.transaction() as connection:
            connection.execute(
                "UPDATE evaluation SET state = 'queued', lease_owner = NULL,"
                " infra_failures = infra_failures + 1"
                " WHERE id = ? AND state = 'leased' AND attempts = ?",
                (lease.evaluation, lease.attempt),
            )
            self._log.emit(EventKind.EVALUATION_REQUEUED, candidate=lease.candidate, reason=reason)

    def _emit_done(self, lease: Lease, evaluation: Evaluation, leader: int | None) -> None:
        latency, speedup = evaluation.latency, evaluation.speedup
        copy, below = evaluation.metric(COPY), evaluation.metric(BELOW_COPY)
        self._log.emit(
            EventKind.EVALUATION_DONE,
            candidate=lease.candidate,
            level=lease.level,
            status=evaluation.status.value,
            summary=evaluation.summary,
            latency_us=None if latency is None else latency.value,
            provenance=None if latency is None else latency.provenance.value,
            speedup=None if speedup is None else speedup.value,
            speedup_interval=evaluation.speedup_interval,
            baseline=None if speedup is None else speedup.unit,
            plain_copy_us=None if copy is None else copy.value,
            below_copy=None if below is None else below.value,
            gpu_seconds=evaluation.gpu_seconds,
            leader=leader,
            done=self._reader.count(lease.level, "done"),
            known=self._reader.count(lease.level),
        )
