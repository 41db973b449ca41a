"""What builds keep from one to the next: the entries of each file, and what the index is made of.

One SQLite file, committed every few files, so that a killed build goes on where it was and an
unchanged file is never chunked again. Only the build, which holds the lock, writes it.
"""

import json
import sqlite3
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from kopt.tools.docs.entries import Entry
from kopt.tools.docs.library.source_file import LibrarySource

_FORMAT = 1
_COMMIT_EVERY_S = 1.0
_TABLES = """
create table part (key text primary key) without rowid;
create table entry (part text, number integer, record blob, fields text, vector blob,
  primary key (part, number)) without rowid;
create table source (number integer primary key, facts text not null, parts text not null);
"""


@dataclass(frozen=True)
class SourceParts:
    """A source and the keys of the parts that it consists of."""

    source: LibrarySource
    keys: tuple[str, ...]


class Parts:
    """The open file; a context manager that commits on leaving, also when interrupted."""

    def __init__(self, path: Path) -> None:
        """Open the parts at `path`; a file that is damaged or of another format starts anew."""
        try:
            self._connection = _opened(path)
        except sqlite3.DatabaseError:
            path.unlink()
            self._connection = _opened(path)
        self._committed = time.monotonic()

    def __enter__(self) -> Self:
        """Return self."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Commit what is there and close."""
        with closing(self._connection), suppress(sqlite3.DatabaseError):
            self._connection.commit()

    def known(self) -> set[str]:
        """Return the keys of all parts."""
        return {row[0] for row in self._connection.execute("select key from part")}

    def add(self, key: str, entries: Sequence[Entry]) -> None:
        """Keep the entries of one file."""
        rows = [(key, number, *entry) for number, entry in enumerate(entries)]
        self._connection.executemany("insert or replace into entry values (?,?,?,?,?)", rows)
        self._connection.execute("insert or replace into part values (?)", (key,))
        if time.monotonic() - self._committed > _COMMIT_EVERY_S:
            self._connection.commit()
            self._committed = time.monotonic()

    def records(self, key: str) -> Iterator[tuple[int, bytes]]:
        """Yield number and record of the entries of one file, in order."""
        return self._connection.execute(
            "select number, record from entry where part = ? order by number", (key,)
        )

    def entry(self, key: str, number: int) -> Entry:
        """Return one entry of a file."""
        row = self._connection.execute(
            "select record, fields, vector from entry where part = ? and number = ?", (key, number)
        ).fetchone()
        return Entry(*row)

    def sources(self) -> list[SourceParts]:
        """Return what the index was last made of; nothing before the first build."""
        rows = self._connection.execute("select facts, parts from source order by number")
        return [
            SourceParts(LibrarySource(**json.loads(facts)), tuple(json.loads(keys)))
            for facts, keys in rows
        ]

    def settle(self, sources: Sequence[SourceParts]) -> None:
        """Keep `sources` as what the index is made of, and no part that is not of them."""
        wanted = {key for source in sources for key in source.keys}
        with self._connection:
            self._connection.execute("delete from source")
            self._connection.executemany(
                "insert into source(facts, parts) values (?,?)",
                [(json.dumps(asdict(one.source)), json.dumps(one.keys)) for one in sources],
            )
            self._forget(self.known() - wanted)

    def _forget(self, keys: Collection[str]) -> None:
        self._connection.executemany("delete from entry where part = ?", [(key,) for key in keys])
        self._connection.executemany("delete from part where key = ?", [(key,) for key in keys])


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    try:
        (version,) = connection.execute("pragma user_version").fetchone()
        if version not in (0, _FORMAT):
            raise sqlite3.DatabaseError("parts of another version of kopt")
        # Safe when the process is killed; a power cut may cost the parts, never the index.
        connection.execute("pragma synchronous=off")
        if version == 0:
            connection.executescript(f"begin; {_TABLES} pragma user_version={_FORMAT}; commit;")
        connection.execute("select count(*) from source").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection
