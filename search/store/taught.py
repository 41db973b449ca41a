"""What a run keeps of the knowledge base: states of its programs, what it taught, what it changed.

Samples of a run are called `this/5` in its own file, so that nothing that is shown to a model has
the run's id in it; the knowledge base has them as `run-.../5`.
"""

from dataclasses import dataclass
from typing import Literal, TypeVar

from kopt.kernels.record import Record
from kopt.search.knowledge.edits import AddState, Edit
from kopt.search.knowledge.records import ProfileSignature, Sample, State
from kopt.search.records.run_state import EventKind

from .run_log import RunLog

THIS_RUN = "this"
"""What samples of a run call it in its own file."""


class StatedProgram(Record):
    """The performance state of a candidate, kept with it."""

    state: State
    signature: ProfileSignature
    confidence: float
    """The confidence of the match, 0 to 1."""
    decided_by: Literal["rule", "model"] = "rule"
    reason: str = ""
    """Why a model chose among states that were equally near."""
    is_new: bool = False
    """Whether no known state was near."""
    proposed: tuple[Edit, ...] = ()
    """Techniques that a model proposed for it, where nothing was known."""

    @property
    def edits(self) -> tuple[Edit, ...]:
        """Return what it adds to a base: the state if it is new, then what was proposed for it."""
        if not self.is_new:
            return self.proposed
        new = AddState(state=self.state, reason="no known state is near", author="rule")
        return new, *self.proposed


class Taught(Record):
    """What a round has taught."""

    samples: tuple[Sample, ...] = ()
    revoked: tuple[str, ...] = ()
    """Ids of samples, of this round or earlier ones, that a later check has refuted."""


class MemoryUpdate(Record):
    """What a model would change in memory: after a round, or for a state without techniques."""

    edits: tuple[Edit, ...] = ()
    """Each names what exists and rests on samples that were shown."""
    dropped: tuple[str, ...] = ()
    """Further statements of the model, and why they were not taken, a sentence each."""
    why: str = ""
    """Why there is no more; empty where every answer could be used."""


_R = TypeVar("_R", bound=Record)


def renamed(record: _R, run: str) -> _R:
    """Return a sample or an edit of this run's file as the knowledge base has it."""
    old = f"{THIS_RUN}/"

    def name(text: str) -> str:
        return f"{run}/{text.removeprefix(old)}" if text.startswith(old) else text

    if isinstance(record, Sample):
        return record.model_copy(update={"id": name(record.id), "run": run})
    evidence = tuple(map(name, getattr(record, "evidence", ())))
    return record.model_copy(update={"evidence": evidence})


@dataclass(frozen=True)
class MemoryTable:
    """Writes what one run knows and learns."""

    _log: RunLog

    def keep_knowledge(self, base: str) -> None:
        """Keep the knowledge base as it is when the run begins; for the whole run the same."""
        with self._log.transaction() as connection:
            sha = self._log.name_document(base.encode(), "knowledge")
            connection.execute("UPDATE run SET knowledge_sha = ?", (sha,))

    def keep_taught(self, number: int, taught: Taught) -> None:
        """Keep what round `number` has taught, in place of what was kept of it before."""
        document = taught.model_dump_json().encode()
        told = {"samples": len(taught.samples), "revoked": len(taught.revoked)}
        self._log.keep_in_round(number, "samples", document, EventKind.LEARNED, **told)

    def keep_update(self, number: int, update: MemoryUpdate) -> None:
        """Keep what the learner changed after round `number`."""
        document = update.model_dump_json().encode()
        told = {"edits": len(update.edits), "dropped": len(update.dropped), "why": update.why}
        self._log.keep_in_round(number, "update", document, EventKind.MEMORY_UPDATED, **told)
