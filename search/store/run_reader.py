"""Everything that is read from a run file, as records; nothing here writes.

Used by the writer on its own connection and by viewers on a read-only one, so that both see a run
the same way. The writer, which alone changes the file, keeps what it has read until one of its
transactions changes it.
"""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from kopt.config.errors import InfraError
from kopt.kernels.check_result import CheckResult
from kopt.kernels.record import Record
from kopt.kernels.status import Status
from kopt.search.knowledge.records import Sample
from kopt.search.records.evaluation import Evaluation, MetricValue
from kopt.search.records.members import LineageKind, Member
from kopt.search.records.run_state import (
    BranchRow,
    Event,
    RoundRow,
    RunSettings,
    RunState,
)
from kopt.search.storage.artifacts import ArtifactStore

from .run_log import Part
from .schema import damaged
from .taught import MemoryUpdate, Taught

Row = dict[str, Any]
T = TypeVar("T")
R = TypeVar("R", bound=Record)

# The workload that the kernel id ends with comes first: its values are the evaluation's own.
_VALUES = """SELECT measurement.* FROM measurement JOIN run ORDER BY evaluation,
    substr(kernel, -length(workload) - 1) <> '_' || workload, workload, metric"""


class RunReader:
    """Reads one run through one connection."""

    def __init__(self, connection: sqlite3.Connection, artifacts: ArtifactStore) -> None:
        """Read through `connection`; sources come from `artifacts`."""
        self._connection = connection
        self._artifacts = artifacts
        self._sources: dict[str, str] = {}
        self._documents: dict[str, Record] = {}
        self._keeps = False
        self._kept: dict[Part, Any] = {}

    def keep(self) -> None:
        """Keep what is read until `forget`: for the run's only writer."""
        self._keeps = True

    def forget(self, changed: Iterable[Part]) -> None:
        """Read these parts anew when they are asked for next."""
        for part in changed:
            self._kept.pop(part, None)

    def run_exists(self) -> bool:
        """Return whether the run was begun: a kill may leave a file without one."""
        return self._has_table("run") and bool(self._rows("SELECT id FROM run"))

    def state(self) -> RunState:
        """Return the run's present state."""
        return self._part("state", self._read_state)

    def members(self) -> tuple[Member, ...]:
        """Return every candidate with its evaluations, by `seq`."""
        return self._part("members", self._read_members)

    def rounds(self) -> tuple[RoundRow, ...]:
        """Return the rounds by number; () for a file of an older format."""
        return self._part("rounds", self._read_rounds)

    def branches(self, number: int | None = None) -> tuple[BranchRow, ...]:
        """Return the branches of a round, or of all, by round and ordinal."""
        every = self._part("branches", self._read_branches)
        return tuple(one for one in every if number in (None, one.round))

    def _read_state(self) -> RunState:
        (row,) = self._rows("SELECT * FROM run")
        row["settings"] = RunSettings.model_validate(json.loads(row["settings"]))
        row["beam"] = tuple(json.loads(row["beam"]))
        row["round_open"] = bool(row["round_open"])
        del row["kernel"]  # a copy of settings.kernel, there for queries by hand
        return RunState.model_validate(row)

    def _read_members(self) -> tuple[Member, ...]:
        parents: dict[int, list[int]] = defaultdict(list)
        kinds: dict[int, LineageKind] = {}
        rows = self._rows("SELECT * FROM lineage")
        for row in sorted(rows, key=lambda row: (row.get("place", 0), row["parent"])):
            parents[row["child"]].append(row["parent"])
            kinds[row["child"]] = row["kind"]
        evaluations, objections = self._evaluations(), self._objections()
        return tuple(
            Member(
                seq=row["seq"],
                round=row["round"],
                source=self.source(row["source_sha"]),
                source_sha=row["source_sha"],
                source_name=row["source_name"],
                tune=json.loads(row["tune"]),
                family=row["family"],
                proposer=row["proposer"],
                parents=tuple(parents[row["seq"]]),
                quick=evaluations.get((row["seq"], "quick")),
                full=evaluations.get((row["seq"], "full")),
                tie=evaluations.get((row["seq"], "tie")),
                again=evaluations.get((row["seq"], "again")),
                objection=objections.get(row["seq"], ""),
                lineage=kinds.get(row["seq"], "tune"),
                # Files of older formats have no such columns.
                note=row.get("note", ""),
                branch=row.get("branch"),
                attempt=row.get("attempt", 0),
                techniques=tuple(json.loads(row.get("techniques", "[]"))),
            )
            for row in self._rows("SELECT * FROM candidate ORDER BY seq")
        )

    def _read_rounds(self) -> tuple[RoundRow, ...]:
        if not self._has_table("round"):
            return ()
        rows = self._rows("SELECT * FROM round ORDER BY number")
        return tuple(RoundRow.model_validate(row) for row in rows)

    def _read_branches(self) -> tuple[BranchRow, ...]:
        if not self._has_table("branch"):
            return ()
        rows = self._rows("SELECT * FROM branch ORDER BY round, ordinal")
        for row in rows:
            row["parents"] = tuple(json.loads(row["parents"]))
            row["hypothesis"] = json.loads(row["hypothesis"])
        return tuple(BranchRow.model_validate(row) for row in rows)

    def taught(self) -> dict[int, Taught]:
        """Return what each round has taught the knowledge base, by number."""
        shas = {one.number: one.samples_sha for one in self.rounds()}
        return {number: self.read(sha, Taught) for number, sha in shas.items() if sha}

    def samples(self) -> tuple[Sample, ...]:
        """Return what the run has taught, in order, without what was revoked."""
        every = self.taught().values()
        revoked = {name for one in every for name in one.revoked}
        return tuple(sample for one in every for sample in one.samples if sample.id not in revoked)

    def updates(self) -> dict[int, MemoryUpdate]:
        """Return what the learner changed, by the number of the round that it followed."""
        shas = {one.number: one.update_sha for one in self.rounds()}
        return {number: self.read(sha, MemoryUpdate) for number, sha in shas.items() if sha}

    def calls(self) -> tuple[Row, ...]:
        """Return the calls of models as they stand, in their order; () for an older format."""
        if not self._has_table("llm_call"):
            return ()
        return tuple(self._rows("SELECT * FROM llm_call ORDER BY started_us, id"))

    def gpu_seconds(self) -> float:
        """Return how long evaluations, profiles and tools have held the GPU; 0 for an old file."""
        members = self.members()
        ended = (one for m in members for one in (m.quick, m.tie, m.full, m.again) if one)
        return sum(one.gpu_seconds for one in ended) + self.state().tool_gpu_seconds

    def blob(self, sha: str) -> bytes:
        """Return an artifact by its digest.

        Raises:
            InfraError: It is missing or damaged.
        """
        return self._artifacts.get(sha)

    def read(self, sha: str, kind: type[R]) -> R:
        """Return an artifact as the record that was written; parsed once, it never changes.

        Raises:
            InfraError: It is missing or damaged.
            ValidationError: It is something else, or of another version.
        """
        found = self._documents.get(sha)
        if not isinstance(found, kind):
            found = self._documents[sha] = kind.model_validate_json(self.blob(sha))
        return found

    def source(self, sha: str) -> str:
        """Return a source by its digest.

        Raises:
            InfraError: The artifact is missing or damaged.
        """
        if sha not in self._sources:
            self._sources[sha] = self._artifacts.get(sha).decode()
        return self._sources[sha]

    def events(self, after: int = 0) -> tuple[Event, ...]:
        """Return the events with `seq` above `after`, in order."""
        rows = self._rows("SELECT * FROM event WHERE seq > ? ORDER BY seq", after)
        return tuple(Event.model_validate(row | {"data": json.loads(row["data"])}) for row in rows)

    def round_of_step(self, key: str) -> int | None:
        """Return the round that was begun under the caller's `key`; None if none was."""
        rows = self._rows(
            "SELECT json_extract(data, '$.round') AS round FROM event"
            " WHERE kind = 'round_started' AND json_extract(data, '$.step') = ?",
            key,
        )
        return int(rows[0]["round"]) if rows else None

    def document(self, member: Member, kind: str, form: type[R]) -> R | None:
        """Return a document that is kept with a candidate's quick evaluation; None without one.

        Raises:
            InfraError: It is damaged or missing.
            ValidationError: It is of another version.
        """
        sha = None if member.quick is None else member.quick.artifacts.get(kind)
        return None if sha is None else self.read(sha, form)

    def readable(self, sha: str | None, form: type[R]) -> R | None:
        """Return an artifact; None where there is none, it is damaged, or of another version."""
        try:
            return None if sha is None else self.read(sha, form)
        except (InfraError, ValidationError):
            return None

    def failed_check(self, member: Member) -> CheckResult | None:
        """Return the check that a candidate failed; None where it cannot be read any more."""
        if member.quick is None or member.passed:
            return None
        return self.readable(member.quick.artifacts.get("check"), CheckResult)

    def table(self, name: str) -> tuple[Row, ...]:
        """Return every row of a table as it stands, in key order; () in a file too old for it."""
        if not self._has_table(name):
            return ()
        return tuple(self._rows(f"SELECT * FROM {name} ORDER BY 1, 2"))

    def count(self, level: str, state: str | None = None) -> int:
        """Return the number of evaluations of a level, in one state or in any."""
        count = "SELECT count(*) AS n FROM evaluation WHERE level = ? AND coalesce(state = ?, 1)"
        return int(self._rows(count, level, state)[0]["n"])

    def _evaluations(self) -> dict[tuple[int, str], Evaluation]:
        values: dict[int, list[MetricValue]] = defaultdict(list)
        for row in self._rows(_VALUES):
            values[row.pop("evaluation")].append(MetricValue.model_validate(row))
        artifacts: dict[int, dict[str, str]] = defaultdict(dict)
        for row in self._rows("SELECT * FROM evaluation_artifact ORDER BY evaluation, kind"):
            artifacts[row["evaluation"]][row["kind"]] = row["sha"]
        return {
            (row["candidate"], row["level"]): Evaluation(
                status=Status(row["status"]),
                summary=row["summary"],
                device=row["device"],
                sandbox=row["sandbox"],
                equivalence=row["equivalence"],
                values=tuple(values[row["id"]]),
                artifacts=artifacts[row["id"]],
                elapsed_s=row["elapsed_s"],
                gpu_seconds=row.get("gpu_seconds") or 0.0,
                measured_as=row.get("measured_as"),
            )
            for row in self._rows("SELECT * FROM evaluation WHERE state = 'done'")
        }

    def _objections(self) -> dict[int, str]:
        """Return why the verifier rejected candidates, by `seq`."""
        rows = self._rows("SELECT data FROM event WHERE kind = 'soft_verified' ORDER BY seq")
        told = [json.loads(row["data"]) for row in rows]
        return {one["candidate"]: one["why"] for one in told if one["outcome"] == "reject"}

    def _part(self, part: Part, read: Callable[[], T]) -> T:
        if part in self._kept:
            return cast(T, self._kept[part])
        try:
            found = read()
        except (ValueError, KeyError, TypeError) as error:
            raise damaged(self._connection, error) from error
        if self._keeps:
            self._kept[part] = found
        return found

    def _has_table(self, name: str) -> bool:
        return bool(self._rows("SELECT 1 FROM sqlite_master WHERE name = ?", name))

    def _rows(self, statement: str, *parameters: object) -> list[Row]:
        try:
            cursor = self._connection.execute(statement, parameters)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, cast(tuple[Any, ...], row), strict=True)) for row in cursor]
        except (sqlite3.DatabaseError, UnicodeError) as error:
            raise damaged(self._connection, error) from error
