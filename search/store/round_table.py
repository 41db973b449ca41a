"""The rounds of a run and the branches of an agents' round: opened, delivered to, closed.

A branch hands in one candidate after another: the coder's, then its fixes. Which of two branches of
a round comes first depends on how fast their models answer, and so does the number of a candidate.
Nothing that decides may depend on it: a source that two branches hand in counts for the one that
needed fewer fixes, then the one of the lower ordinal.
"""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kopt.search.records.members import Proposal
from kopt.search.records.run_state import BranchPlan, EventKind, RoundKind, StopReason

from .run_log import RunLog
from .run_rows import insert, insert_candidate, insert_parents


@dataclass(frozen=True)
class NewRound:
    """A round that begins."""

    number: int
    kind: RoundKind
    proposals: tuple[Proposal, ...] = ()
    """Its candidates, as far as they are known at its beginning."""
    branches: tuple[BranchPlan, ...] = ()
    """Branches that still have to be written."""
    plan: bytes | None = None
    """The plan that the branches follow, as a document."""
    reserve: int = 0
    """How many further hypotheses the plan has."""
    step: str | None = None
    """The key under which a caller asked for the round, if one did."""


@dataclass(frozen=True)
class RoundTable:
    """Writes the rounds of one run."""

    _log: RunLog

    def open(self, opening: NewRound) -> None:
        """Record a round with its candidates, whose quick evaluations are queued, and branches."""
        sources = [proposal.source.encode() for proposal in opening.proposals]
        digests = [self._log.artifacts.put(source) for source in sources]
        with self._log.transaction() as connection:
            plan = None if opening.plan is None else self._log.name_document(opening.plan, "plan")
            row = (opening.number, opening.kind, plan)
            connection.execute("INSERT INTO round (number, kind, plan_sha) VALUES (?, ?, ?)", row)
            for ordinal, branch in enumerate(opening.branches):
                place = {"round": opening.number, "ordinal": ordinal, "state": "open"}
                name = branch_id(opening.number, ordinal)
                insert(connection, "branch", id=name, **branch.model_dump(), **place)
            seqs = [
                insert_candidate(connection, sha, proposal, round=opening.number)
                for proposal, sha in zip(opening.proposals, digests, strict=True)
            ]
            connection.execute("UPDATE run SET round = ?, round_open = 1", (opening.number,))
            self._log.emit(
                EventKind.ROUND_STARTED,
                round=opening.number,
                kind=opening.kind,
                candidates=len(opening.proposals),
                branches=len(opening.branches),
                step=opening.step,
            )
            for seq, proposal in zip(seqs, opening.proposals, strict=True):
                if proposal.lineage == "expand":  # kopt's own; the note says what is new in it
                    whose = {"branch": "", "attempt": 0, "written": proposal.note}
                    self._emit_added(seq, proposal, **whose)
            if opening.plan is not None:
                self._log.emit(
                    EventKind.PLAN_MADE,
                    round=opening.number,
                    branches=len(opening.branches),
                    reserve=opening.reserve,
                )

    def add(self, number: int, proposals: Sequence[Proposal]) -> None:
        """Add variants of candidates to the open round; their evaluations are queued."""
        digests = [self._log.artifacts.put(one.source.encode()) for one in proposals]
        with self._log.transaction() as connection:
            for proposal, sha in zip(proposals, digests, strict=True):
                seq = insert_candidate(connection, sha, proposal, round=number)
                whose = {"branch": "", "attempt": 0, "variant_of": proposal.parents[0]}
                self._emit_added(seq, proposal, **whose)

    def deliver(self, branch: str, attempt: int, proposal: Proposal) -> int:
        """Return the number of a branch's candidate, which joins the open round if it is new.

        `attempt` is 0 for the coder's, then that of the fix. A source that the run knows keeps its
        number and is not evaluated again.
        """
        sha = self._log.artifacts.put(proposal.source.encode())
        tune = json.dumps(proposal.tune, sort_keys=True)
        with self._log.transaction() as connection:
            known = connection.execute(
                "SELECT seq FROM candidate WHERE source_sha = ? AND tune = ?", (sha, tune)
            ).fetchone()
            if known is not None:
                self._let_lower_branch_own(connection, known[0], (branch, attempt), proposal)
                return int(known[0])
            (number,) = connection.execute(
                "SELECT round FROM branch WHERE id = ?", (branch,)
            ).fetchone()
            place = {"round": number, "branch": branch, "attempt": attempt}
            seq = insert_candidate(connection, sha, proposal, **place)
            self._emit_added(seq, proposal, branch=branch, attempt=attempt)
        return seq

    def start_branch(self, branch: str) -> None:
        """Tell that a branch is worked on now."""
        self._log.tell(EventKind.BRANCH_STARTED, **self._branch_words(branch))

    def end_branch(self, branch: str, candidate: int | None, why: str | None) -> None:
        """Record what became of a branch: its best candidate, or why there is none."""
        state = "delivered" if why is None else "failed"
        with self._log.transaction() as connection:
            connection.execute(
                "UPDATE branch SET state = ?, candidate = ?, why = ? WHERE id = ?",
                (state, candidate, why, branch),
            )
            words = self._branch_words(branch)
            self._log.emit(
                EventKind.BRANCH_ENDED, **words, state=state, candidate=candidate, why=why
            )

    def close(self, beam: Sequence[int], stop: tuple[StopReason, str] | None) -> None:
        """Record the selection after a round and, if it was the last, why the search stops.

        The event says why only where that is news: rounds that follow a search end for its reason.
        """
        reason, detail = stop or (None, None)
        with self._log.transaction() as connection:
            (number, before) = connection.execute("SELECT round, stop_reason FROM run").fetchone()
            connection.execute(
                "UPDATE run SET round_open = 0, beam = ?, stop_reason = ?, stop_detail = ?",
                (json.dumps(list(beam)), reason, detail),
            )
            told = (None, None) if reason == before else (reason, detail)
            words = {"round": number, "beam": list(beam), "stop": told[0], "detail": told[1]}
            self._log.emit(EventKind.ROUND_DONE, **words)

    def keep_reflection(self, number: int, reflection: bytes) -> None:
        """Keep what round `number` has taught."""
        self._log.keep_in_round(number, "reflection", reflection, EventKind.REFLECTED)

    def _emit_added(self, seq: int, proposal: Proposal, **whose: object) -> None:
        """Tell of a new candidate; `whose`: of which branch, or a variant of which candidate."""
        known = {"lineage": proposal.lineage, "family": proposal.family}
        self._log.emit(EventKind.CANDIDATE_ADDED, candidate=seq, **known, **whose)

    def _let_lower_branch_own(
        self,
        connection: sqlite3.Connection,
        seq: int,
        branch: tuple[str, int],
        proposal: Proposal,
    ) -> None:
        is_lower = connection.execute(
            "SELECT 1 FROM candidate JOIN branch ON branch.id = candidate.branch"
            " JOIN branch AS other ON other.id = ? AND other.round = branch.round"
            " WHERE seq = ? AND (?, other.ordinal) < (attempt, branch.ordinal)",
            (branch[0], seq, branch[1]),
        ).fetchone()
        if is_lower and all(parent < seq for parent in proposal.parents):
            connection.execute(
                "UPDATE candidate SET branch = ?, attempt = ?, family = ?, proposer = ?, note = ?,"
                " techniques = ? WHERE seq = ?",
                (
                    *branch,
                    proposal.family,
                    proposal.proposer,
                    proposal.note,
                    json.dumps(proposal.techniques),
                    seq,
                ),
            )
            connection.execute("DELETE FROM lineage WHERE child = ?", (seq,))
            insert_parents(connection, seq, proposal)

    def _branch_words(self, branch: str) -> dict[str, Any]:
        row = self._log.connection.execute(
            "SELECT round, slot, lineage, json_extract(hypothesis, '$.family'),"
            " json_extract(hypothesis, '$.name'), json_extract(hypothesis, '$.state'),"
            " json_extract(hypothesis, '$.predicted_gain') FROM branch WHERE id = ?",
            (branch,),
        ).fetchone()
        names = ("round", "slot", "lineage", "family", "name", "in_state", "predicted_gain")
        return {"branch": branch, **dict(zip(names, row, strict=True))}


def branch_id(number: int, ordinal: int) -> str:
    """Return the id of a branch, which the ids of its model calls begin with."""
    return f"r{number}/b{ordinal}"
