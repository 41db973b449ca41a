"""Questions about the samples of a ledger: which there are, and which a name stands for."""

import sqlite3

from kopt.config.errors import ToolError
from kopt.search.knowledge.records import Sample

from . import ledger_rows as rows


def read_samples(
    connection: sqlite3.Connection, last: int | None, state: str | None, run: str | None
) -> tuple[Sample, ...]:
    """Return the samples that count now, in the order in which they were learned; None: all."""
    found = connection.execute(
        "SELECT document FROM sample WHERE (:state IS NULL OR state = :state)"
        " AND (:run IS NULL OR run = :run)"
        " AND id NOT IN (SELECT target FROM revocation WHERE kind = 'sample')"
        " ORDER BY place DESC LIMIT coalesce(:last, -1)",
        {"state": state, "run": run, "last": last},
    ).fetchall()
    return tuple(Sample.model_validate_json(document) for (document,) in reversed(found))


def find_evidence(
    connection: sqlite3.Connection, text: str
) -> tuple[rows.Revocable, tuple[str, ...]]:
    """Return the samples or the origin that `text` names, without what is forgotten already.

    Raises:
        ToolError: It names nothing.
    """
    found = connection.execute(
        "SELECT id FROM sample WHERE id = :text OR run = :text ORDER BY place", {"text": text}
    ).fetchall()
    version = rows.read_version(connection)
    if found:
        revoked = rows.revoked_targets(connection, "sample", version)
        return "sample", tuple(name for (name,) in found if name not in revoked)
    if any(text in (base.origin, *base.origins) for base in rows.read_imports(connection, version)):
        forgotten = rows.revoked_targets(connection, "origin", version)
        return "origin", () if text in forgotten else (text,)
    raise ToolError(f"{text} is no sample, run or imported origin: kopt kb samples names them")
