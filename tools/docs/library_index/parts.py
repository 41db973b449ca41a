"""What builds keep from one to the next: the entries of each file, and what the index is made of.

One SQLite file, committed every few files, so that a killed build goes on where it was and an
unchanged file is never chunked again. Only the build, which holds the lock, writes it.
"""

import json
import sqlite3
import zlib
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from kopt.config.errors import SetupError
from kopt.tools.docs.damage import PartsDamaged, is_damage
from kopt.tools.docs.indexing.entries import IndexEntry, terms_version
from kopt.tools.docs.sources import LibrarySource

_FORMAT = 4
COMMIT_EVERY = 8
"""Files: what a killed build loses at most."""
LOCKED_AFTER_S = 5.0
"""How long another program may hold the file, a copy being made say."""
_TABLES = """
create table part (key text primary key, entries blob);
create table source (
  number integer primary key, terms text not null, facts text not null, parts text not null);
"""


@dataclass(frozen=True)
class SourceParts:
    """A source and the keys of the parts that it consists of."""

    source: LibrarySource
    keys: tuple[str, ...]


class Part(NamedTuple):
    """The entries of one file as they are kept."""

    key: str
    entries: bytes


def part_of(key: str, entries: Sequence[IndexEntry]) -> Part:
    """Return the entries of one file as they are kept."""
    rows = [(one.record, one.fields, one.vector.hex()) for one in entries]
    return Part(key, zlib.compress(json.dumps(rows).encode()))


@contextmanager
def _sound() -> Generator[None]:
    """Raise PartsDamaged for damage, SetupError for a file that cannot be used now."""
    try:
        yield
    except (ValueError, TypeError, zlib.error) as error:
        raise PartsDamaged(error) from error
    except sqlite3.Error as error:
        if is_damage(error):
            raise PartsDamaged(error) from error
        raise SetupError(
            f"what builds of the library index keep cannot be used now ({error}): try again later"
        ) from error


class Parts:
    """The open file; a context manager that commits on leaving, also when interrupted.

    Whatever reads or writes it raises PartsDamaged, or SetupError if it cannot be used now.
    """

    def __init__(self, path: Path) -> None:
        """Open the parts at `path`; a file that is damaged or of another format starts anew.

        Raises:
            SetupError: It cannot be used now, because another program has locked it say.
        """
        try:
            with _sound():
                self._connection = _opened(path)
        except PartsDamaged:
            path.unlink()
            self._connection = _opened(path)
        self._uncommitted = 0

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

    @_sound()
    def known(self) -> set[str]:
        """Return the keys of all parts."""
        return {row[0] for row in self._connection.execute("select key from part")}

    @_sound()
    def add(self, part: Part) -> None:
        """Keep the entries of one file."""
        self._connection.execute("insert or replace into part values (?,?)", part)
        self._uncommitted += 1
        if self._uncommitted == COMMIT_EVERY:
            self._connection.commit()
            self._uncommitted = 0

    @_sound()
    def entries(self, key: str) -> list[IndexEntry]:
        """Return the entries of one file in order."""
        query = "select entries from part where key = ?"
        row: tuple[bytes] | None = self._connection.execute(query, (key,)).fetchone()
        if row is None:
            raise ValueError(f"the part {key} is not there")
        return [
            IndexEntry(record, fields, bytes.fromhex(vector))
            for record, fields, vector in json.loads(zlib.decompress(row[0]))
        ]

    @_sound()
    def sources(self) -> list[SourceParts]:
        """Return what the index was last made of, if by this version of kopt."""
        rows = self._connection.execute(
            "select facts, parts from source where terms = ? order by number", (terms_version(),)
        )
        return [
            SourceParts(LibrarySource(**json.loads(facts)), tuple(json.loads(keys)))
            for facts, keys in rows
        ]

    @_sound()
    def settle(self, sources: Sequence[SourceParts]) -> None:
        """Keep `sources` as what the index is made of, and no part that is not of them."""
        wanted = {key for source in sources for key in source.keys}
        with self._connection:
            self._connection.execute("delete from source")
            self._connection.executemany(
                "insert into source(terms, facts, parts) values (?,?,?)",
                [
                    (terms_version(), json.dumps(asdict(one.source)), json.dumps(one.keys))
                    for one in sources
                ],
            )
            unwanted = [(key,) for key in self.known() - wanted]
            self._connection.executemany("delete from part where key = ?", unwanted)


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=LOCKED_AFTER_S)
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
