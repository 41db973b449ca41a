"""The writing end of a run file: transactions, each of which ends in its events.

So the feed and the tables can never disagree. One per run, used by its one writer.
"""

import json
import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Literal

from kopt.search.records.run_state import Event, EventKind
from kopt.search.storage.artifacts import ArtifactStore
from kopt.search.storage.transaction import Transaction, now_us

from .run_rows import name_blob

Part = Literal["state", "members", "rounds", "branches"]
"""What the writer of a run holds in memory."""

_ALL: tuple[Part, ...] = ("state", "members", "rounds", "branches")
_CHANGED: dict[EventKind, tuple[Part, ...]] = {
    EventKind.EVALUATION_QUEUED: (),
    EventKind.EVALUATION_STARTED: (),
    EventKind.EVALUATION_REQUEUED: (),
    EventKind.EVALUATION_DONE: ("state", "members"),
    EventKind.RESULT_DROPPED: (),
    EventKind.FINAL_CHECK: (),
    EventKind.ROUND_DONE: ("state",),
    EventKind.BRANCH_STARTED: (),
    EventKind.BRANCH_ENDED: ("branches",),
    EventKind.CANDIDATE_ADDED: ("members",),
    EventKind.CALL_STARTED: (),
    EventKind.CALL_RETRIED: (),
    EventKind.CALL_DONE: (),
    EventKind.BUDGET_BEGUN: (),
    EventKind.BUDGET_WARNING: (),
    EventKind.REFLECTED: ("rounds",),
    EventKind.LEARNED: ("rounds",),
    EventKind.MEMORY_UPDATED: ("rounds",),
    EventKind.COMBINED: (),
    EventKind.SOFT_VERIFIED: ("members",),
    EventKind.PROMOTED: (),
    EventKind.DOCUMENT_ADDED: ("members",),
}
"""What a transaction with an event of a kind changes; those that are not here change everything."""


class RunLog:
    """Writes one run through one connection and tells a subscriber of every event."""

    def __init__(self, connection: sqlite3.Connection, artifacts: ArtifactStore) -> None:
        """Write through `connection`; documents go to `artifacts`."""
        self.connection = connection
        self.artifacts = artifacts
        self._unpublished: list[Event] = []
        self._subscriber: Callable[[Event], None] | None = None
        self._on_change: Callable[[Sequence[Part]], None] | None = None

    def on_change(self, forget: Callable[[Sequence[Part]], None]) -> None:
        """Call `forget` with what a transaction has changed, after each that changed rows."""
        self._on_change = forget

    def subscribe(self, subscriber: Callable[[Event], None] | None) -> None:
        """Hand every event to `subscriber`, after it was committed."""
        self._subscriber = subscriber

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """Yield the connection in a transaction; its events are handed on after the commit."""
        self._unpublished.clear()
        before = self.connection.total_changes
        try:
            with Transaction(self.connection):
                yield self.connection
        finally:
            events, self._unpublished = self._unpublished, []
            if self._on_change is not None and self.connection.total_changes != before:
                parts: list[Part] = [
                    part for one in events for part in _CHANGED.get(one.kind, _ALL)
                ]
                self._on_change(parts if events else _ALL)
        if self._subscriber is not None:
            for event in events:
                self._subscriber(event)

    def emit(self, kind: EventKind, /, **data: object) -> None:
        """Append an event; inside a transaction only."""
        (seq,) = self.connection.execute("SELECT coalesce(max(seq), 0) + 1 FROM event").fetchone()
        event = Event(seq=seq, at_us=now_us(), kind=kind, data=data)
        self.connection.execute(
            "INSERT INTO event VALUES (?, ?, ?, ?)",
            (event.seq, event.at_us, kind.value, json.dumps(data)),
        )
        self._unpublished.append(event)

    def tell(self, kind: EventKind, /, **data: object) -> None:
        """Append an event in a transaction of its own."""
        with self.transaction():
            self.emit(kind, **data)

    def keep_in_round(
        self, number: int, column: str, document: bytes, kind: EventKind, **told: object
    ) -> None:
        """Keep a document of round `number` under `column`_sha, and tell so by an event."""
        with self.transaction() as connection:
            sha = self.name_document(document, column)
            connection.execute(f"UPDATE round SET {column}_sha = ? WHERE number = ?", (sha, number))
            self.emit(kind, round=number, **told)

    def name_document(self, data: bytes, kind: str) -> str:
        """Return the digest of a document that is among the artifacts and now in the run's index.

        Inside a transaction only; the artifact is put before the row that names it.
        """
        sha = self.artifacts.put(data)
        name_blob(self.connection, sha, (len(data), kind))
        return sha
