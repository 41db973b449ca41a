"""Inserts that touch several tables, each called inside a transaction of the run's log."""

import json
import sqlite3
from collections.abc import Mapping

from kopt.search.records.evaluation import Evaluation
from kopt.search.records.members import Proposal
from kopt.search.storage.transaction import now_us

QUEUE = "INSERT OR IGNORE INTO evaluation (candidate, level, state) VALUES (?, ?, 'queued')"


def insert(connection: sqlite3.Connection, table: str, **columns: object) -> None:
    """Insert one row; lists and mappings are kept as JSON."""
    values = [
        json.dumps(value, sort_keys=True) if isinstance(value, dict | list | tuple) else value
        for value in columns.values()
    ]
    places = ", ".join("?" * len(values))
    connection.execute(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})", values)


def insert_candidate(
    connection: sqlite3.Connection, sha: str, proposal: Proposal, **place: int | str | None
) -> int:
    """Insert a candidate and its parents and return its number.

    `place` is its round and, in an agents' round, its branch and attempt.
    """
    name_blob(connection, sha, (len(proposal.source.encode()), "source"))
    (seq,) = connection.execute("SELECT count(*) FROM candidate").fetchone()
    insert(
        connection,
        "candidate",
        seq=seq,
        source_sha=sha,
        **proposal.model_dump(exclude={"source", "parents", "lineage"}),
        created_us=now_us(),
        **place,
    )
    insert_parents(connection, seq, proposal)
    connection.execute(QUEUE, (seq, "quick"))
    return int(seq)


def insert_parents(connection: sqlite3.Connection, seq: int, proposal: Proposal) -> None:
    """Insert what a candidate comes from, the skeleton first."""
    connection.executemany(
        "INSERT INTO lineage VALUES (?, ?, ?, ?)",
        [(seq, parent, proposal.lineage, place) for place, parent in enumerate(proposal.parents)],
    )


def insert_findings(
    connection: sqlite3.Connection,
    evaluation_id: int,
    evaluation: Evaluation,
    sizes_bytes: Mapping[str, int],
) -> None:
    """Insert the values and artifacts of an evaluation; `sizes_bytes` is by digest."""
    for kind, sha in evaluation.artifacts.items():
        name_blob(connection, sha, (sizes_bytes[sha], kind))
        connection.execute(
            "INSERT INTO evaluation_artifact VALUES (?, ?, ?)", (evaluation_id, kind, sha)
        )
    connection.executemany(
        "INSERT INTO measurement VALUES (?, ?, ?, ?, ?, ?)",
        [
            (evaluation_id, v.workload, v.metric, v.unit, v.provenance.value, v.value)
            for v in evaluation.values
        ],
    )


def insert_document(
    connection: sqlite3.Connection, candidate: int, document: tuple[str, str, int]
) -> None:
    """Keep a document (kind, digest, size in bytes) with the candidate's quick evaluation."""
    kind, sha, size_bytes = document
    name_blob(connection, sha, (size_bytes, kind))
    connection.execute(
        "INSERT OR REPLACE INTO evaluation_artifact SELECT id, ?, ? FROM evaluation"
        " WHERE candidate = ? AND level = 'quick' AND state = 'done'",
        (kind, sha, candidate),
    )


def name_blob(connection: sqlite3.Connection, sha: str, size_and_kind: tuple[int, str]) -> None:
    """Enter an artifact in the run's index, unless it is there."""
    connection.execute(
        "INSERT OR IGNORE INTO blob VALUES (?, ?, ?, ?)", (sha, *size_and_kind, now_us())
    )


def abandon_open_calls(connection: sqlite3.Connection) -> None:
    """Close the model calls of a process that is gone, at their worst case.

    Whether they were answered is not known; but one that waited to be asked again was not sent.
    """
    connection.execute(
        "UPDATE llm_call SET state = iif(reserved_tokens = 0, 'failed', 'unknown'),"
        " cost_microusd = iif(reserved_tokens = 0, 0, nullif(reserved_microusd, 0)),"
        " finished_us = ?, why = 'the run ended while the call was under way'"
        " WHERE state = 'reserved'",
        (now_us(),),
    )
