"""The run store: every change of a run as one transaction, made by the one process that holds it.

Its parts write one kind of row each: `rounds`, `queue` for the evaluations, `memory`. What a killed
process was doing goes back to the queue when the run is opened again.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Self

from kopt.search.records.run_state import Event, EventKind, RunSettings, RunStatus
from kopt.search.storage.artifacts import ArtifactStore
from kopt.search.storage.transaction import now_us

from .evaluation_queue import EvaluationQueue
from .round_table import RoundTable
from .run_lock import AT_ONCE, LockClaim, RunLock, boot_id
from .run_log import RunLog
from .run_reader import RunReader
from .run_rows import abandon_open_calls, insert_document, name_blob
from .schema import open_writer
from .taught import MemoryTable

FILE_NAME = "run.sqlite"


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
        self.reader.keep()
        self.log = RunLog(self._connection, artifacts)
        self.log.on_change(self.reader.forget)
        self.rounds = RoundTable(self.log)
        self.memory = MemoryTable(self.log)
        self._owner = f"{boot_id()}:{os.getpid()}"
        self.queue = EvaluationQueue(self.log, self.reader, self._owner)

    def subscribe(self, subscriber: Callable[[Event], None] | None) -> None:
        """Hand every event to `subscriber`, after it was committed."""
        self.log.subscribe(subscriber)

    def begin(self, settings: RunSettings, kopt_version: str) -> None:
        """Write the run's one row: from here on it exists and can be resumed.

        The source that it starts from must be among the artifacts by now.
        """
        start_bytes = len(self.artifacts.get(settings.start_sha))
        text = settings.model_dump_json()
        with self.log.transaction():
            name_blob(self._connection, settings.start_sha, (start_bytes, "source"))
            self._connection.execute(
                "INSERT INTO run (id, kernel, settings, status, round, round_open, beam, spent_s,"
                " kopt_version, created_us) VALUES (?, ?, ?, 'running', -1, 0, '[]', 0.0, ?, ?)",
                (self.folder.name, settings.kernel, text, kopt_version, now_us()),
            )
            self.log.emit(EventKind.RUN_STARTED, run=self.folder.name, kernel=settings.kernel)

    def resume(self, settings: RunSettings) -> None:
        """Take an unfinished run up again: no lease survives the process that held it.

        An interruption says nothing against the evaluation it hit. Only if the host itself went
        down meanwhile may the candidate be the cause, and it counts as a failure of the machine.
        A run that had spent its budget goes back to the end of its last round, because the
        selection after it may have been cut short.
        """
        with self.log.transaction():
            self._take_up(settings)

    def reopen(self, settings: RunSettings) -> None:
        """Take a run up for further rounds, a finished one too: it forgets why it stopped.

        Its winner is one no more, but keeps its full check and can win again.
        """
        with self.log.transaction():
            self._take_up(settings)
            self._connection.execute("UPDATE run SET stop_reason = NULL, stop_detail = NULL")

    def add_document(self, candidate: int, kind: str, data: bytes) -> None:
        """Keep a document with the quick evaluation of a candidate, which must be done."""
        digest = self.artifacts.put(data)
        with self.log.transaction():
            insert_document(self._connection, candidate, (kind, digest, len(data)))
            self.log.emit(EventKind.DOCUMENT_ADDED, candidate=candidate, document=kind)

    def keep_documents(self, text: str) -> None:
        """Keep what the agents of the run are given to read; for the whole run the same."""
        with self.log.transaction() as connection:
            sha = self.log.name_document(text.encode(), "documents")
            connection.execute("UPDATE run SET documents_sha = ?", (sha,))

    def add_tool_time(self, gpu_seconds: float) -> None:
        """Count how long a profile or a tool of the agents has held the GPU."""
        with self.log.transaction() as connection:
            connection.execute(
                "UPDATE run SET tool_gpu_seconds = tool_gpu_seconds + ?", (gpu_seconds,)
            )

    def finish(self, status: RunStatus, winner: int | None) -> None:
        """Close the run with its winner; its winner's file must be written by now."""
        with self.log.transaction():
            self._connection.execute(
                "UPDATE run SET status = ?, winner = ?, finished_us = ?",
                (status, winner, now_us()),
            )
            self.log.emit(EventKind.RUN_FINISHED, status=status, winner=winner)

    def pause(self, reason: str, spent_s: float) -> None:
        """Leave the run so that it can be resumed: its leases go back to the queue."""
        with self.log.transaction():
            self._connection.execute(
                "UPDATE evaluation SET state = 'queued', lease_owner = NULL WHERE state = 'leased'"
            )
            abandon_open_calls(self._connection)
            self._connection.execute("UPDATE run SET status = 'paused', spent_s = ?", (spent_s,))
            self.log.emit(EventKind.RUN_PAUSED, reason=reason)

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
        abandon_open_calls(self._connection)
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
        self.log.emit(EventKind.RUN_RESUMED, requeued=leased)
