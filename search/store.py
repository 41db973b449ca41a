"""The run store: every change of a run as one transaction, made by the one process that holds it.

A transaction ends in its events, so the feed and the tables can never disagree. Evaluation is
at-least-once, the record of it exactly-once: a result is accepted only for the lease under which
it was begun. What a killed process was doing goes back to the queue when the run is opened again.
"""

import json
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kopt.kernels.check_result import CheckLevel

from .artifacts import ArtifactStore
from .evaluator import Evaluation
from .proposer import Proposal
from .run_lock import AT_ONCE, LockClaim, RunLock, boot_id
from .run_reader import RunReader
from .run_records import Event, EventKind, RunSettings, RunStatus, StopReason
from .run_rows import (
    CandidateRow,
    insert_candidate,
    insert_document,
    insert_findings,
    name_blob,
    now_us,
)
from .schema import open_writer
from .transaction import Transaction

FILE_NAME = "run.sqlite"
# A candidate that takes workers down again and again would loop for ever.
QUARANTINE_AFTER = 5

_QUEUE = "INSERT OR IGNORE INTO evaluation (candidate, level, state) VALUES (?, ?, 'queued')"


@dataclass(frozen=True)
class Lease:
    """The right to record the result of one attempt at one evaluation."""

    evaluation: int
    candidate: int
    level: CheckLevel
    attempt: int
    infra_failures: int
    """How often the machine failed under this evaluation before."""


class RunStore:
    """The open store of one run: the lock, the connection and all that writes."""

    def __init__(self, folder: Path, artifacts: ArtifactStore, claim: LockClaim = AT_ONCE) -> None:
        """Lock and open the run in `folder`; a run file is created where there is none.

        Raises:
            ToolError: Another process holds the run for longer than `claim` waits; it is named.
            SetupError: The file was written by a newer kopt, or SQLite is too old.
        """
        self.folder = folder
        self.artifacts = artifacts
        self._lock = RunLock(folder, claim)
        try:
            self._connection = open_writer(folder / FILE_NAME)
        except BaseException:
            self._lock.close()
            raise
        self.reader = RunReader(self._connection, artifacts)
        self._owner = f"{boot_id()}:{os.getpid()}"
        self._unpublished: list[Event] = []
        self._subscriber: Callable[[Event], None] | None = None

    def subscribe(self, subscriber: Callable[[Event], None] | None) -> None:
        """Hand every event to `subscriber`, after it was committed."""
        self._subscriber = subscriber

    def begin(self, settings: RunSettings, kopt_version: str) -> None:
        """Write the run's one row: from here on it exists and can be resumed.

        The source that it starts from must be among the artifacts by now.
        """
        start_bytes = len(self.artifacts.get(settings.start_sha))
        text = settings.model_dump_json()
        with self._transaction():
            name_blob(self._connection, settings.start_sha, (start_bytes, "source"))
            self._connection.execute(
                "INSERT INTO run (id, kernel, settings, status, round, round_open, beam, spent_s,"
                " kopt_version, created_us) VALUES (?, ?, ?, 'running', -1, 0, '[]', 0.0, ?, ?)",
                (self.folder.name, settings.kernel, text, kopt_version, now_us()),
            )
            self._emit(EventKind.RUN_STARTED, run=self.folder.name, kernel=settings.kernel)

    def resume(self, settings: RunSettings) -> None:
        """Take an unfinished run up again: no lease survives the process that held it.

        An interruption says nothing against the evaluation it hit. Only if the host itself went
        down meanwhile may the candidate be the cause, and it counts as a failure of the machine.
        A run that had spent its budget goes back to the end of its last round, because the
        selection after it may have been cut short.
        """
        with self._transaction():
            self._take_up(settings)

    def reopen(self, settings: RunSettings) -> None:
        """Take a run up for further rounds, a finished one too: it forgets why it stopped.

        Its winner is one no more, but keeps its full check and can win again.
        """
        with self._transaction():
            self._take_up(settings)
            self._connection.execute("UPDATE run SET stop_reason = NULL, stop_detail = NULL")

    def start_round(
        self, index: int, proposals: Sequence[Proposal], step: str | None = None
    ) -> None:
        """Record the candidates of round `index` and queue their quick evaluations.

        `step` is the key under which a caller asked for the round, if one did.
        """
        digests = [self.artifacts.put(proposal.source.encode()) for proposal in proposals]
        with self._transaction():
            (seq,) = self._connection.execute("SELECT count(*) FROM candidate").fetchone()
            for proposal, digest in zip(proposals, digests, strict=True):
                name_blob(self._connection, digest, (len(proposal.source.encode()), "source"))
                insert_candidate(self._connection, CandidateRow(seq, index, digest, proposal))
                self._connection.execute(_QUEUE, (seq, "quick"))
                seq += 1
            self._connection.execute("UPDATE run SET round = ?, round_open = 1", (index,))
            data = {"round": index, "candidates": len(proposals), "step": step}
            self._emit(EventKind.ROUND_STARTED, **data)

    def queue_full(self, candidate: int) -> None:
        """Queue the full evaluation of a candidate, unless it was queued before."""
        with self._transaction():
            if self._connection.execute(_QUEUE, (candidate, "full")).rowcount:
                self._emit(EventKind.FINAL_CHECK, candidate=candidate)

    def lease_next(self, level: CheckLevel) -> Lease | None:
        """Lease the queued evaluation of `level` with the lowest number; None if there is none."""
        with self._transaction():
            rows = self._connection.execute(
                "UPDATE evaluation SET state = 'leased', lease_owner = ?, attempts = attempts + 1,"
                " started_us = ? WHERE id = (SELECT min(id) FROM evaluation"
                " WHERE state = 'queued' AND level = ?)"
                " RETURNING id, candidate, attempts, infra_failures",
                (self._owner, now_us(), level),
            ).fetchall()
            if not rows:
                return None
            evaluation, candidate, attempt, failures = rows[0]
            self._emit(EventKind.EVALUATION_STARTED, candidate=candidate, level=level)
        return Lease(evaluation, candidate, level, attempt, failures)

    def finish_evaluation(self, lease: Lease, evaluation: Evaluation, spent_s: float) -> bool:
        """Record the result of a lease; False if it came late or twice and was dropped."""
        sizes = {sha: len(self.artifacts.get(sha)) for sha in evaluation.artifacts.values()}
        with self._transaction():
            accepted = self._connection.execute(
                "UPDATE evaluation SET state = 'done', lease_owner = NULL, status = ?,"
                " summary = ?, device = ?, sandbox = ?, equivalence = ?, elapsed_s = ?,"
                " finished_us = ? WHERE id = ? AND state = 'leased' AND attempts = ?",
                (
                    evaluation.status.value,
                    evaluation.summary,
                    evaluation.device,
                    evaluation.sandbox,
                    evaluation.equivalence,
                    evaluation.elapsed_s,
                    now_us(),
                    lease.evaluation,
                    lease.attempt,
                ),
            ).rowcount
            if not accepted:
                self._emit(EventKind.RESULT_DROPPED, candidate=lease.candidate, level=lease.level)
                return False
            insert_findings(self._connection, lease.evaluation, evaluation, sizes)
            self._connection.execute("UPDATE run SET spent_s = ?", (spent_s,))
            self._emit_done(lease, evaluation)
        return True

    def requeue(self, lease: Lease, reason: str) -> None:
        """Put an evaluation back after the machine, not the candidate, failed under it."""
        with self._transaction():
            self._connection.execute(
                "UPDATE evaluation SET state = 'queued', lease_owner = NULL,"
                " infra_failures = infra_failures + 1"
                " WHERE id = ? AND state = 'leased' AND attempts = ?",
                (lease.evaluation, lease.attempt),
            )
            self._emit(EventKind.EVALUATION_REQUEUED, candidate=lease.candidate, reason=reason)

    def close_round(self, beam: Sequence[int], stop: tuple[StopReason, str] | None) -> None:
        """Record the selection after a round and, if it was the last, why the search stops."""
        reason, detail = stop or (None, None)
        with self._transaction():
            self._connection.execute(
                "UPDATE run SET round_open = 0, beam = ?, stop_reason = ?, stop_detail = ?",
                (json.dumps(list(beam)), reason, detail),
            )
            self._emit(EventKind.ROUND_DONE, beam=list(beam), stop=reason, detail=detail)

    def add_document(self, candidate: int, kind: str, data: bytes) -> None:
        """Keep a document with the quick evaluation of a candidate, which must be done."""
        digest = self.artifacts.put(data)
        with self._transaction():
            insert_document(self._connection, candidate, (kind, digest, len(data)))
            self._emit(EventKind.DOCUMENT_ADDED, candidate=candidate, document=kind)

    def finish(self, status: RunStatus, winner: int | None) -> None:
        """Close the run with its winner; its winner's file must be written by now."""
        with self._transaction():
            self._connection.execute(
                "UPDATE run SET status = ?, winner = ?, finished_us = ?",
                (status, winner, now_us()),
            )
            self._emit(EventKind.RUN_FINISHED, status=status, winner=winner)

    def pause(self, reason: str, spent_s: float) -> None:
        """Leave the run so that it can be resumed: its leases go back to the queue."""
        with self._transaction():
            self._connection.execute(
                "UPDATE evaluation SET state = 'queued', lease_owner = NULL WHERE state = 'leased'"
            )
            self._connection.execute("UPDATE run SET status = 'paused', spent_s = ?", (spent_s,))
            self._emit(EventKind.RUN_PAUSED, reason=reason)

    def close(self) -> None:
        """Close the file and release the run."""
        self._connection.close()
        self._lock.close()

    def __enter__(self) -> Self:
        """Return the store itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the store."""
        self.close()

    def _take_up(self, settings: RunSettings) -> None:
        boot = self._owner.split(":")[0]
        leased = self._connection.execute(
            "UPDATE evaluation SET state = 'queued', interruptions = interruptions + 1,"
            " infra_failures = infra_failures + (lease_owner NOT LIKE ? || ':%'),"
            " lease_owner = NULL WHERE state = 'leased'",
            (boot,),
        ).rowcount
        self._connection.execute(
            "UPDATE run SET status = 'running', settings = ?, finished_us = NULL,"
            " winner = NULL, stop_detail = iif(stop_reason = 'budget', NULL, stop_detail),"
            " round_open = round_open OR coalesce(stop_reason = 'budget', 0),"
            " stop_reason = nullif(stop_reason, 'budget')",
            (settings.model_dump_json(),),
        )
        self._emit(EventKind.RUN_RESUMED, requeued=leased)

    def _emit_done(self, lease: Lease, evaluation: Evaluation) -> None:
        latency, speedup = evaluation.latency, evaluation.speedup
        self._emit(
            EventKind.EVALUATION_DONE,
            candidate=lease.candidate,
            level=lease.level,
            status=evaluation.status.value,
            summary=evaluation.summary,
            latency_us=None if latency is None else latency.value,
            provenance=None if latency is None else latency.provenance.value,
            speedup=None if speedup is None else speedup.value,
            baseline=None if speedup is None else speedup.unit,
            done=self.reader.count(lease.level, "done"),
            known=self.reader.count(lease.level),
        )

    def _emit(self, kind: EventKind, **data: object) -> None:
        (seq,) = self._connection.execute("SELECT coalesce(max(seq), 0) + 1 FROM event").fetchone()
        event = Event(seq=seq, at_us=now_us(), kind=kind, data=data)
        self._connection.execute(
            "INSERT INTO event VALUES (?, ?, ?, ?)",
            (event.seq, event.at_us, kind.value, json.dumps(data)),
        )
        self._unpublished.append(event)

    @contextmanager
    def _transaction(self) -> Generator[None]:
        self._unpublished.clear()
        with Transaction(self._connection):
            yield
        events, self._unpublished = self._unpublished, []
        if self._subscriber is not None:
            for event in events:
                self._subscriber(event)
