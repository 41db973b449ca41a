"""`samples.sqlite`: the truth of a base. What was learned is added, never changed nor deleted.

Several processes may learn at once. The file keeps a rollback journal and no WAL, because SQLite
3.7.0 to 3.51.2 can corrupt a WAL that two connections write at the same moment.
Source: https://www.sqlite.org/wal.html, section "WAL-reset bug".
"""

import os
import sqlite3
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from kopt.config.errors import InfraError, SetupError, ToolError
from kopt.search.storage.transaction import Transaction, now_us

from .base import KnowledgeBase, dump_base, parse_base
from .edits import Edit
from .merge import without_origin
from .projection import LedgerChange, LedgerContent
from .records import Sample

FILE_NAME = "samples.sqlite"
FORMAT = 1
_BUSY_S = 30.0
_CREATE = (
    "CREATE TABLE base (one INTEGER PRIMARY KEY CHECK (one = 1), origin TEXT NOT NULL) STRICT",
    """CREATE TABLE change (
        version INTEGER PRIMARY KEY,
        kind TEXT NOT NULL CHECK (kind IN ('learn', 'edit', 'import', 'forget')),
        at_us INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE sample (
        place INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        version INTEGER NOT NULL REFERENCES change (version),
        run TEXT NOT NULL,
        state TEXT NOT NULL,
        document TEXT NOT NULL CHECK (json_valid(document))
    ) STRICT""",
    "CREATE INDEX sample_run ON sample (run)",
    """CREATE TABLE edit (
        place INTEGER PRIMARY KEY,
        version INTEGER NOT NULL REFERENCES change (version),
        document TEXT NOT NULL CHECK (json_valid(document))
    ) STRICT""",
    """CREATE TABLE import (
        place INTEGER PRIMARY KEY,
        version INTEGER NOT NULL REFERENCES change (version),
        document TEXT NOT NULL CHECK (json_valid(document))
    ) STRICT""",
    """CREATE TABLE revocation (
        kind TEXT NOT NULL CHECK (kind IN ('sample', 'origin')),
        target TEXT NOT NULL,
        version INTEGER NOT NULL REFERENCES change (version),
        PRIMARY KEY (kind, target)
    ) STRICT""",
    # What follows can be made again from the tables above.
    "CREATE TABLE rendering (digest TEXT PRIMARY KEY) STRICT",
    """CREATE TABLE snapshot (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        seed TEXT NOT NULL,
        rendering TEXT NOT NULL REFERENCES rendering (digest),
        document TEXT NOT NULL
    ) STRICT""",
)


class LedgerBusy(InfraError):
    """Other processes have kept the ledger busy for longer than the time-out."""


def open_ledger(folder: Path) -> sqlite3.Connection:
    """Open or create the ledger of the base in `folder`.

    Raises:
        SetupError: It was written by a newer kopt or by none, is damaged or cannot be written.
        InfraError: Other processes kept it busy.
    """
    path = folder / FILE_NAME
    with guarded(path):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # the journals get this mode
        connection = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_S)
        try:
            prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Set `connection` up for writing, with tables where there are none."""
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = FULL")
    if checked_version(connection, path) == 0:
        with Transaction(connection):
            if checked_version(connection, path) == 0:  # unless another process was faster
                for statement in _CREATE:
                    connection.execute(statement)
                # A letter first: a YAML key that is all digits would be a number.
                connection.execute("INSERT INTO base VALUES (1, ?)", (f"k{token_hex(4)}",))
                connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("PRAGMA foreign_keys = ON")


def checked_version(connection: sqlite3.Connection, path: Path) -> int:
    """Return the format of the file; 0: no tables. Who creates these sets it in the same step."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > FORMAT:
        raise SetupError(
            f"{path} has format {version}, this kopt reads up to {FORMAT}: upgrade kopt"
        )
    if version < 0 or (version == 0 and tables):
        raise SetupError(f"{path} is no file of kopt's: {_advice(path)}")
    return int(version)


@contextmanager
def guarded(path: Path) -> Generator[None]:
    """Turn what SQLite and damaged rows raise into errors that say what to do.

    Raises:
        SetupError: The file is damaged or cannot be written.
        LedgerBusy: Other processes kept it busy.
    """
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):  # bugs of kopt
        raise
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF  # 0: a text is none
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise LedgerBusy(f"{path} was busy for {_BUSY_S:g} s: try again") from error
        advice = "" if code else f"; {_advice(path)}"
        raise SetupError(f"{path} cannot be used: {error}{advice}") from error
    except sqlite3.DatabaseError as error:
        raise SetupError(f"{path} is damaged ({error}): {_advice(path)}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise SetupError(f"{path} has a damaged row: {_advice(path)}") from error
    except OSError as error:
        raise SetupError(f"{error.filename or path} cannot be used: {error.strerror}") from error


def _advice(path: Path) -> str:
    folder = path.parent
    return (
        f"nothing was changed or deleted. Rename {FILE_NAME} and base.yaml in {folder}, e.g. to"
        f" damaged.sqlite and old.yaml; then `kopt kb import {folder / 'old.yaml'}` gives back what"
        " was known"
    )


ChangeKind = Literal["learn", "edit", "import", "forget"]
_EDITS = TypeAdapter[Sample | Edit](Edit)
_SAMPLES = TypeAdapter[Sample | Edit](Sample)
_INSERT: dict[ChangeKind, str] = {
    "learn": "INSERT INTO sample (version, id, run, state, document) VALUES (?, ?, ?, ?, ?)",
    "edit": "INSERT INTO edit (version, document) VALUES (?, ?)",
    "import": "INSERT INTO import (version, document) VALUES (?, ?)",
    "forget": "INSERT INTO revocation (version, kind, target) VALUES (?, ?, ?)",
}


@dataclass(frozen=True)
class ProjectedBase:
    """The base as it was projected last, kept so that most openings project nothing."""

    base: KnowledgeBase
    seed: str
    """Digest of the seed that it was projected from."""
    rendering: str
    """Digest of base.yaml."""


@dataclass(frozen=True)
class Ledger:
    """All that one KOPT_HOME has learned, edited, imported and forgotten."""

    connection: sqlite3.Connection

    @property
    def version(self) -> int:
        """Number of changes so far."""
        return self._number("SELECT coalesce(max(version), 0) FROM change")

    def add_change(self, kind: ChangeKind) -> int:
        """Begin a change and return its version."""
        version = self.version + 1
        self.connection.execute("INSERT INTO change VALUES (?, ?, ?)", (version, kind, now_us()))
        return version

    def content(self, version: int) -> LedgerContent:
        """Return everything that counts at `version`."""
        revoked = self.revoked("origin", version)
        # A forgotten origin goes with all its texts.
        imports = [base for base in self._imports(version) if base.origin not in revoked]
        for forgotten in sorted(revoked):
            imports = [without_origin(base, forgotten) for base in imports]
        (origin,) = self.connection.execute("SELECT origin FROM base").fetchone()
        return LedgerContent(str(origin), version, self.changes(0, version), imports)

    def changes(self, after: int, version: int) -> list[LedgerChange]:
        """Return the samples and edits of the versions above `after` up to `version`, in order."""
        revoked = self.revoked("sample", version)
        read = "SELECT version, document FROM {} WHERE version > ? AND version <= ? ORDER BY place"
        found: list[LedgerChange] = []
        for table, form in (("sample", _SAMPLES), ("edit", _EDITS)):
            for at, document in self.connection.execute(read.format(table), (after, version)):
                change = form.validate_json(document)
                # A revoked sample goes, and an edit of whose evidence nothing is left.
                rests_on = (change.id,) if isinstance(change, Sample) else change.evidence
                if not rests_on or not revoked.issuperset(rests_on):
                    found.append((at, change))
        return sorted(found, key=lambda change: change[0])  # one kind a version

    def revoked(self, kind: Literal["sample", "origin"], version: int) -> set[str]:
        """Return the samples or origins that were forgotten at or before `version`."""
        find = "SELECT target FROM revocation WHERE kind = ? AND version <= ?"
        return {target for (target,) in self.connection.execute(find, (kind, version))}

    def snapshot(self) -> ProjectedBase | None:
        """Return the last projection, if there was one."""
        row = self.connection.execute("SELECT document, seed, rendering FROM snapshot").fetchone()
        try:
            return ProjectedBase(parse_base(row[0]), row[1], row[2]) if row else None
        except ValidationError:  # of a kopt whose records were others; it is projected again
            return None

    def keep_snapshot(self, snapshot: ProjectedBase) -> None:
        """Replace the projection; its rendering counts as kopt's own from here on."""
        self.connection.execute("INSERT OR IGNORE INTO rendering VALUES (?)", (snapshot.rendering,))
        self.connection.execute(
            "INSERT OR REPLACE INTO snapshot (one, seed, rendering, document) VALUES (1, ?, ?, ?)",
            (snapshot.seed, snapshot.rendering, dump_base(snapshot.base)),
        )

    def is_rendering(self, digest: str) -> bool:
        """Return whether kopt ever rendered this base to the text of `digest`."""
        return bool(self._number("SELECT count(*) FROM rendering WHERE digest = ?", digest))

    def has_only_grown(self, after: int) -> bool:
        """Return whether nothing was imported or forgotten since the version `after`."""
        find = "SELECT count(*) FROM change WHERE version > ? AND kind NOT IN ('learn', 'edit')"
        return not self._number(find, after)

    def insert(self, kind: ChangeKind, rows: Iterable[tuple[str, ...]], version: int) -> None:
        """Add rows, none of which is known, to the table of a kind of change.

        Of a sample its id, run, state and document, of an edit or a base its document, of what is
        forgotten `sample` or `origin` and its name.
        """
        self.connection.executemany(_INSERT[kind], [(version, *row) for row in rows])

    def known_samples(self, ids: Iterable[str]) -> set[str]:
        """Return those of `ids` that were ever learned, forgotten ones too."""
        find = "SELECT count(*) FROM sample WHERE id = ?"
        return {name for name in ids if self._number(find, name)}

    def samples(self, last: int | None, state: str | None, run: str | None) -> tuple[Sample, ...]:
        """Return the samples that count now, in the order in which they were learned."""
        found = self.connection.execute(
            "SELECT document FROM sample WHERE (:state IS NULL OR state = :state)"
            " AND (:run IS NULL OR run = :run)"
            " AND id NOT IN (SELECT target FROM revocation WHERE kind = 'sample')"
            " ORDER BY place DESC LIMIT coalesce(:last, -1)",
            {"state": state, "run": run, "last": last},
        ).fetchall()
        return tuple(Sample.model_validate_json(document) for (document,) in reversed(found))

    def find(self, text: str) -> tuple[Literal["sample", "origin"], tuple[str, ...]]:
        """Return the samples or the origin that `text` names, without what is forgotten already.

        Raises:
            ToolError: It names nothing.
        """
        named = self.connection.execute(
            "SELECT id FROM sample WHERE id = ? OR run = ? ORDER BY place", (text, text)
        ).fetchall()
        if named:
            revoked = self.revoked("sample", self.version)
            return "sample", tuple(name for (name,) in named if name not in revoked)
        if any(text in (base.origin, *base.origins) for base in self._imports(self.version)):
            return "origin", () if text in self.revoked("origin", self.version) else (text,)
        raise ToolError(f"{text} is no sample, run or imported origin: kopt kb samples names them")

    def _imports(self, version: int) -> list[KnowledgeBase]:
        find = "SELECT document FROM import WHERE version <= ? ORDER BY place"
        return [parse_base(document) for (document,) in self.connection.execute(find, (version,))]

    def _number(self, query: str, *values: object) -> int:
        """Return the one number that `query` asks for."""
        (number,) = self.connection.execute(query, values).fetchone()
        return int(number)
