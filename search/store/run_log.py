"""The writing end of a run file: transactions, each of which ends in its events.

So the feed and the tables can never disagree. One per run, used by its one writer.
"""

import json
import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager

from kopt.search.records.run_state import Event, EventKind
from kopt.search.storage.artifacts import ArtifactStore
from kopt.search.storage.transaction import Transaction, now_us

from .run_rows import name_blob


class RunLog:
    """Writes one run through one connection and tells a subscriber of every event."""

    def __init__(self, connection: sqlite3.Connection, artifacts: ArtifactStore) -> None:
        """Write through `connection`; documents go to `artifacts`."""
        self.connection = connection
        self.artifacts = artifacts
        self._unpublished: list[Event] = []
        self._subscriber: Callable[[Event], None] | None = None

    def subscribe(self, subscriber: Callable[[Event], None] | None) -> None:
        """Hand every event to `subscriber`, after it was committed."""
        self._subscriber = subscriber

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Connection]:
        """Yield the connection in a transaction; its events are handed on after the commit."""
        self._unpublished.clear()
        with Transaction(self.connection):
            yield self.connection
        events, self._unpublished = self._unpublished, []
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

    def name_document(self, data: bytes, kind: str) -> str:
        """Return the digest of a document that is among the artifacts and now in the run's index.

        Inside a transaction only; the artifact is put before the row that names it.
        """
        sha = self.artifacts.put(data)
        name_blob(self.connection, sha, (len(data), kind))
        return sha
