"""The index as one SQLite file: chunks, their terms for BM25, and the words for suggestions.

Built beside its place and renamed, so that readers see a whole file or none. `index.py` decides
when. Columns hold terms of `code_tokens.py`, never raw text.
"""

import json
import os
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from kopt.config.errors import SetupError

from .code_tokens import document_terms, surface_words
from .records import Chunk

# detail=full is the default and is needed: with detail=column a contentless table ranks by noise.
_TABLES = """
create table meta (key text primary key, value text not null);
create table chunk (
  id integer primary key, uid text not null unique, source text not null, path text not null,
  kind text not null, quality real not null, symbol text, arch text not null, dtype text not null,
  record text not null);
create table word (word text primary key, chunks integer not null) without rowid;
create virtual table fts using fts5(
  symbol, place, comment, tags, code, content='', tokenize="unicode61 tokenchars '_'");
"""
MAX_WORD = 60


def write_index(path: Path, key: str, chunks: Sequence[Chunk]) -> None:
    """Write the index of `chunks` to `path`, in place of what is there, all at once."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-", suffix=".sqlite")
    os.close(descriptor)
    fresh = Path(name)
    try:
        with closing(sqlite3.connect(fresh)) as connection:
            connection.executescript("pragma journal_mode=off; pragma synchronous=off;")
            fill(connection, key, chunks)
        with fresh.open("rb") as file:
            os.fsync(file.fileno())
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def fill(connection: sqlite3.Connection, key: str, chunks: Sequence[Chunk]) -> None:
    """Create the tables in an empty database and fill them.

    Raises:
        SetupError: This Python's SQLite has no full-text search.
    """
    options = {row[0] for row in connection.execute("pragma compile_options")}
    if "ENABLE_FTS5" not in options:
        raise SetupError(
            "this Python's SQLite was built without FTS5; use a Python from python.org, your"
            " distribution or uv, which have it"
        )
    connection.executescript(_TABLES)
    words: Counter[str] = Counter()
    with connection:
        for number, chunk in enumerate(chunks, start=1):
            connection.execute(
                "insert into chunk values (?,?,?,?,?,?,?,?,?,?)", _row(number, chunk)
            )
            connection.execute(
                "insert into fts(rowid, symbol, place, comment, tags, code) values (?,?,?,?,?,?)",
                (number, *_fields(chunk)),
            )
            words.update(
                {
                    word
                    for word in surface_words(f"{chunk.title} {chunk.comment} {chunk.body}")
                    if 2 < len(word) <= MAX_WORD and not word.isdigit()
                }
            )
        connection.executemany("insert into word values (?,?)", words.items())
        connection.execute("insert into fts(fts) values ('optimize')")
        connection.executemany(
            "insert into meta values (?,?)",
            {"key": key, "chunks": str(len(chunks)), "whole": "yes"}.items(),
        )


def open_index(path: Path, key: str) -> sqlite3.Connection:
    """Return a read-only connection to the index of `key`.

    Raises:
        sqlite3.Error: There is no such file, or it is no index, damaged or of another key.
    """
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False)
    try:
        meta = dict(connection.execute("select key, value from meta"))
        if meta.get("key") != key or meta.get("whole") != "yes":
            raise sqlite3.DatabaseError("the index is not of this corpus")
        count = connection.execute("select count(*) from chunk").fetchone()[0]
        if str(count) != meta.get("chunks"):
            raise sqlite3.DatabaseError("the index has lost rows")
    except BaseException:
        connection.close()
        raise
    return connection


def _row(number: int, chunk: Chunk) -> tuple[object, ...]:
    return (
        number,
        chunk.uid,
        chunk.source,
        chunk.path,
        chunk.kind,
        chunk.quality,
        chunk.symbol,
        _padded(chunk.arch),
        _padded(chunk.dtype),
        json.dumps(chunk.model_dump(mode="json", exclude_defaults=True), ensure_ascii=True),
    )


def _padded(names: Sequence[str]) -> str:
    """Return ` sm90 sm100 `, in which ` sm90 ` can be looked for; empty for none."""
    return f" {' '.join(names)} " if names else ""


def _fields(chunk: Chunk) -> tuple[str, ...]:
    tags = " ".join((*chunk.tags, *chunk.arch, *chunk.dtype, chunk.kind))
    named = chunk.symbol or (chunk.title.split(": ")[-1] if chunk.kind == "section" else "")
    texts = (
        named,
        f"{chunk.title} {chunk.source} {chunk.path}",
        chunk.comment[:2000],
        tags,
        chunk.body,
    )
    return tuple(" ".join(document_terms(text)) for text in texts)
