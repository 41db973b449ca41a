"""The rows of a ledger as records, and records as rows; every call is within a transaction."""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.base_json import dump_base, parse_base
from kopt.search.knowledge.edits import Edit
from kopt.search.knowledge.merge import without_origin
from kopt.search.knowledge.projection import Change, Ledger
from kopt.search.knowledge.records import Sample
from kopt.search.storage.transaction import now_us

ChangeKind = Literal["learn", "edit", "import", "forget"]
Revocable = Literal["sample", "origin"]

_EDITS = TypeAdapter[Edit](Edit)
# What was revoked at or before a version does not count in it.
_HELD = """SELECT version, document FROM sample WHERE version > :after AND version <= :version
    AND id NOT IN (SELECT target FROM revocation WHERE kind = 'sample' AND version <= :version)
    ORDER BY place"""


def read_origin(connection: sqlite3.Connection) -> str:
    """Return the id of this base."""
    (origin,) = connection.execute("SELECT origin FROM base").fetchone()
    return str(origin)


def read_version(connection: sqlite3.Connection) -> int:
    """Return the number of changes so far."""
    (version,) = connection.execute("SELECT coalesce(max(version), 0) FROM change").fetchone()
    return int(version)


def add_change(connection: sqlite3.Connection, kind: ChangeKind) -> int:
    """Begin a change and return its version."""
    version = read_version(connection) + 1
    connection.execute("INSERT INTO change VALUES (?, ?, ?)", (version, kind, now_us()))
    return version


def read_ledger(connection: sqlite3.Connection, version: int) -> Ledger:
    """Return everything that counts at `version`."""
    revoked = revoked_targets(connection, "origin", version)
    # What somebody wrote whom this base has forgotten goes with all its texts.
    imports = [base for base in read_imports(connection, version) if base.origin not in revoked]
    for origin in sorted(revoked):
        imports = [without_origin(base, origin) for base in imports]
    changes = read_changes(connection, 0, version)
    return Ledger(read_origin(connection), version, changes, imports)


def read_imports(connection: sqlite3.Connection, version: int) -> list[KnowledgeBase]:
    """Return the bases that were imported at or before `version`, as they came."""
    find = "SELECT document FROM import WHERE version <= ? ORDER BY place"
    return [parse_base(document) for (document,) in connection.execute(find, (version,))]


def read_changes(connection: sqlite3.Connection, after: int, version: int) -> list[Change]:
    """Return the samples and edits of the versions above `after` up to `version`, in order."""
    span = {"after": after, "version": version}
    learned: list[Change] = [
        (at, Sample.model_validate_json(document))
        for at, document in connection.execute(_HELD, span)
    ]
    revoked = revoked_targets(connection, "sample", version)
    edits: list[Change] = [
        (at, edit)
        for at, document in connection.execute(
            "SELECT version, document FROM edit WHERE version > :after AND version <= :version"
            " ORDER BY place",
            span,
        )
        if _rests_on_something(edit := _EDITS.validate_json(document), revoked)
    ]
    return sorted([*learned, *edits], key=lambda change: change[0])  # one kind a version


def revoked_targets(connection: sqlite3.Connection, kind: Revocable, version: int) -> set[str]:
    """Return the samples or origins that were forgotten at or before `version`."""
    rows = connection.execute(
        "SELECT target FROM revocation WHERE kind = ? AND version <= ?", (kind, version)
    )
    return {target for (target,) in rows}


@dataclass(frozen=True)
class Snapshot:
    """The base as it was projected last, kept so that most openings project nothing."""

    base: KnowledgeBase
    seed: str
    """Digest of the seed that it was projected from."""
    rendering: str
    """Digest of base.yaml."""


def read_snapshot(connection: sqlite3.Connection) -> Snapshot | None:
    """Return the last projection, if there was one."""
    row = connection.execute("SELECT document, seed, rendering FROM snapshot").fetchone()
    try:
        return Snapshot(parse_base(row[0]), row[1], row[2]) if row else None
    except ValidationError:  # of a kopt whose records were others; it is projected again
        return None


def replace_snapshot(connection: sqlite3.Connection, snapshot: Snapshot) -> None:
    """Keep another projection, whose rendering is one of ours from here on."""
    connection.execute("INSERT OR IGNORE INTO rendering VALUES (?)", (snapshot.rendering,))
    connection.execute(
        "INSERT OR REPLACE INTO snapshot (one, seed, rendering, document) VALUES (1, ?, ?, ?)",
        (snapshot.seed, snapshot.rendering, dump_base(snapshot.base)),
    )


def is_rendering(connection: sqlite3.Connection, digest: str) -> bool:
    """Return whether kopt ever rendered this base to the text of `digest`."""
    find = "SELECT 1 FROM rendering WHERE digest = ?"
    return connection.execute(find, (digest,)).fetchone() is not None


def has_only_grown(connection: sqlite3.Connection, after: int) -> bool:
    """Return whether nothing was imported or forgotten since the version `after`."""
    find = "SELECT 1 FROM change WHERE version > ? AND kind NOT IN ('learn', 'edit')"
    return connection.execute(find, (after,)).fetchone() is None


def insert_samples(connection: sqlite3.Connection, samples: Iterable[Sample], version: int) -> None:
    """Add samples, none of which is known."""
    connection.executemany(
        "INSERT INTO sample (id, version, run, state, document) VALUES (?, ?, ?, ?, ?)",
        [(one.id, version, one.run, one.state, one.model_dump_json()) for one in samples],
    )


def insert_edits(connection: sqlite3.Connection, edits: Sequence[Edit], version: int) -> None:
    """Add edits that were found good."""
    connection.executemany(
        "INSERT INTO edit (version, document) VALUES (?, ?)",
        [(version, edit.model_dump_json()) for edit in edits],
    )


def insert_import(connection: sqlite3.Connection, base: KnowledgeBase, version: int) -> None:
    """Add a base of others."""
    connection.execute(
        "INSERT INTO import (version, document) VALUES (?, ?)", (version, dump_base(base))
    )


def insert_revocations(
    connection: sqlite3.Connection, targets: tuple[Revocable, Iterable[str]], version: int
) -> None:
    """Let samples or an origin count no more from `version` on."""
    kind, names = targets
    connection.executemany(
        "INSERT INTO revocation VALUES (?, ?, ?)", [(kind, name, version) for name in names]
    )


def known_samples(connection: sqlite3.Connection, ids: Iterable[str]) -> set[str]:
    """Return those of `ids` that were ever learned, forgotten ones too."""
    find = "SELECT id FROM sample WHERE id = ?"
    return {name for name in ids if connection.execute(find, (name,)).fetchone()}


def _rests_on_something(edit: Edit, revoked: set[str]) -> bool:
    """Return whether something is left of what `edit` rests on, or whether it rests on nothing."""
    return not edit.evidence or not revoked.issuperset(edit.evidence)
