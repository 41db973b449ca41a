"""The knowledge base in a run file: as it was at first, what was taught, what was changed."""

from kopt.search.records.run_state import EventKind

from .run_log import RunLog
from .taught import MemoryUpdate, Taught


class MemoryTable:
    """Writes what one run knows and learns."""

    def __init__(self, log: RunLog) -> None:
        """Write through `log`."""
        self._log = log

    def keep_knowledge(self, base: str) -> None:
        """Keep the knowledge base as it is when the run begins; for the whole run the same."""
        with self._log.transaction() as connection:
            sha = self._log.name_document(base.encode(), "knowledge")
            connection.execute("UPDATE run SET knowledge_sha = ?", (sha,))

    def keep_taught(self, number: int, taught: Taught) -> None:
        """Keep what round `number` has taught, in place of what was kept of it before."""
        document = taught.model_dump_json().encode()
        with self._log.transaction() as connection:
            sha = self._log.name_document(document, "samples")
            connection.execute("UPDATE round SET samples_sha = ? WHERE number = ?", (sha, number))
            self._log.emit(
                EventKind.LEARNED,
                round=number,
                samples=len(taught.samples),
                revoked=len(taught.revoked),
            )

    def keep_update(self, number: int, update: MemoryUpdate) -> None:
        """Keep what the learner changed after round `number`."""
        document = update.model_dump_json().encode()
        with self._log.transaction() as connection:
            sha = self._log.name_document(document, "update")
            connection.execute("UPDATE round SET update_sha = ? WHERE number = ?", (sha, number))
            self._log.emit(
                EventKind.MEMORY_UPDATED,
                round=number,
                edits=len(update.edits),
                dropped=len(update.dropped),
                why=update.why,
            )
