"""The rows of `samples.sqlite` as records; every method is called within a transaction."""

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from kopt.config.errors import ToolError
from kopt.search.storage.transaction import now_us

from .base import KnowledgeBase, dump_base, parse_base
from .edits import Edit
from .merge import without_origin
from .projection import LedgerChange, LedgerContent
from .records import Sample

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
        version = self.version
        named = self.connection.execute(
            "SELECT id FROM sample WHERE id = ? OR run = ? ORDER BY place", (text, text)
        ).fetchall()
        if named:
            revoked = self.revoked("sample", version)
            return "sample", tuple(name for (name,) in named if name not in revoked)
        if any(text in (base.origin, *base.origins) for base in self._imports(version)):
            return "origin", () if text in self.revoked("origin", version) else (text,)
        raise ToolError(f"{text} is no sample, run or imported origin: kopt kb samples names them")

    def _imports(self, version: int) -> list[KnowledgeBase]:
        """Return the bases that were imported at or before `version`, as they came."""
        find = "SELECT document FROM import WHERE version <= ? ORDER BY place"
        return [parse_base(document) for (document,) in self.connection.execute(find, (version,))]

    def _number(self, query: str, *values: object) -> int:
        """Return the one number that `query` asks for."""
        (number,) = self.connection.execute(query, values).fetchone()
        return int(number)
