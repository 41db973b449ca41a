"""An index as one SQLite file: chunks, their terms for BM25, symbols, vectors, words to suggest.

Built beside its place and renamed, so that readers see a whole file or none. kopt's own corpus and
the library have such a file each; `index.py` and `library_index/build.py` decide when.
"""

import hashlib
import sqlite3
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from kopt.config.files import replacing_file
from kopt.tools.docs.code_version import code_version
from kopt.tools.docs.records import Chunk
from kopt.tools.docs.vectors import vector_model
from kopt.tools.docs.weights import WEIGHTS
from kopt.tools.docs.words.code_tokens import surface_words
from kopt.tools.docs.words.glossary import synopses_of
from kopt.tools.docs.words.lexicon import lexicon_phrases

from .entries import IndexEntry, block_of, symbol_names, terms_version
from .index_meta import IndexMeta
from .postings import PhraseFinder, PostingLists, tag_shares, term_shares

_TABLES = """
create table meta (facts text not null);
create table chunk (
  id integer primary key, first integer not null, uid text not null unique, source text not null,
  license text, path text not null, kind text not null, quality real not null,
  arch text not null, dtype text not null);
create index piece on chunk (first) where first <> id;
create table body (block integer primary key, records blob not null);
create table posting (phrase text primary key, chunks integer not null, list blob not null)
  without rowid;
create table tag (tag text primary key, chunks integer not null, list blob not null) without rowid;
create table symbol (name text, chunk integer, primary key (name, chunk)) without rowid;
create table word (word text primary key, chunks integer not null) without rowid;
create table vector (rows blob not null);
create table synopsis (ids blob not null, rows blob not null);
"""
_COLUMNS = ("uid", "source", "license", "path", "kind", "quality")
"""Fields of a chunk that are columns of its row as they are."""
MAX_WORD = 60
BLOCK = 16
"""Records that are compressed together; one is read in .1 ms, and 32 save 3 % more."""


class Sheet(NamedTuple):
    """What becomes one row."""

    chunk: Chunk
    entry: IndexEntry


def write_index(path: Path, meta: IndexMeta, sheets: Iterable[Sheet]) -> None:
    """Write the index of `sheets` to `path`, in place of what is there, all at once."""
    with replacing_file(path) as fresh, closing(sqlite3.connect(fresh)) as connection:
        connection.executescript("pragma journal_mode=off; pragma synchronous=off;")
        fill(connection, meta, sheets)


def fill(connection: sqlite3.Connection, meta: IndexMeta, sheets: Iterable[Sheet]) -> None:
    """Create the tables in an empty database and fill them; of equal uids the first is kept."""
    connection.executescript(_TABLES)
    words: Counter[str] = Counter()
    vectors: list[bytes] = []
    records: list[str] = []
    terms, tags = PostingLists(), PostingLists()
    finder = PhraseFinder(lexicon_phrases())
    synopses: dict[str, list[int]] = {}
    with connection:
        for number, first, (chunk, entry) in _numbered(sheets):
            _insert(connection, number, first, chunk)
            words.update(set(_words(chunk)))
            terms.add(number, term_shares(chunk.kind, entry.fields.split("\n"), finder))
            tags.add(number, tag_shares(chunk.kind, chunk.tags))
            vectors.append(entry.vector)
            if entry.vector and (said := "; ".join(synopses_of(chunk))):
                synopses.setdefault(said, []).append(number)
            records.append(entry.record)
            if len(records) == BLOCK:
                _insert_block(connection, number, records)
        _insert_block(connection, len(vectors), records)
        connection.executemany("insert into posting values (?,?,?)", terms.rows())
        connection.executemany("insert into tag values (?,?,?)", tags.rows())
        connection.executemany("insert into word values (?,?)", words.items())
        connection.execute("insert into vector values (?)", (b"".join(vectors),))
        connection.execute("insert into synopsis values (?,?)", _synopsis_vectors(synopses))
        facts = meta.model_copy(update={"chunks": len(vectors)}).model_dump_json()
        connection.execute("insert into meta values (?)", (facts,))


@lru_cache(maxsize=1)
def index_version() -> str:
    """Return a hash of what an index must have been written with to be searched now.

    The terms of chunks, the tables, and what the shares in the posting lists depend on.
    """
    shares = (
        WEIGHTS.fields,
        WEIGHTS.term_saturation,
        WEIGHTS.length_share,
        (WEIGHTS.symbol_terms, WEIGHTS.comment_terms, WEIGHTS.code_terms),
        sorted(WEIGHTS.kind_prior.items()),
        WEIGHTS.tag_decay,
    )
    code = code_version("indexing/index_file.py", "indexing/postings.py", "words/lexicon.*")
    return hashlib.sha256(f"{terms_version()} {code} {shares!r}".encode()).hexdigest()[:16]


def block_number(chunk_id: int) -> tuple[int, int]:
    """Return in which block the record of a chunk lies, and where in it."""
    return divmod(chunk_id - 1, BLOCK)


def _numbered(sheets: Iterable[Sheet]) -> Iterator[tuple[int, int, Sheet]]:
    """Yield (id, id of the first piece of the same function, sheet); pieces overlap by lines."""
    seen: set[str] = set()
    before: Chunk | None = None
    number = first = 0
    for sheet in sheets:
        chunk = sheet.chunk
        if chunk.uid in seen:
            continue
        seen.add(chunk.uid)
        number += 1
        if before is None or not _continues(before, chunk):
            first = number
        yield number, first, sheet
        before = chunk


def _continues(before: Chunk, chunk: Chunk) -> bool:
    is_same = (before.source, before.path, before.symbol) == (
        chunk.source,
        chunk.path,
        chunk.symbol,
    )
    overlaps = before.start_line < chunk.start_line <= before.end_line < chunk.end_line
    return is_same and overlaps and chunk.symbol is not None


def _insert(connection: sqlite3.Connection, number: int, first: int, chunk: Chunk) -> None:
    facts = [getattr(chunk, name) for name in _COLUMNS]
    row = (number, first, *facts, _padded(chunk.arch), _padded(chunk.dtype))
    connection.execute(f"insert into chunk values ({','.join('?' * len(row))})", row)
    names = symbol_names(chunk)
    connection.executemany("insert into symbol values (?,?)", [(name, number) for name in names])


def _insert_block(connection: sqlite3.Connection, last: int, records: list[str]) -> None:
    """Insert the records up to that of the chunk `last`, and forget them."""
    if records:
        block, _place = block_number(last)
        connection.execute("insert into body values (?,?)", (block, block_of(records)))
        records.clear()


def _words(chunk: Chunk) -> Iterator[str]:
    """Yield the words to suggest: of prose all, of code those that say what it is about."""
    body = chunk.body if chunk.language is None else chunk.signature
    texts = (chunk.title, chunk.symbol or "", chunk.comment, *chunk.tags, body)
    for word in surface_words(" ".join(texts)):
        if 2 < len(word) <= MAX_WORD and not word.isdigit():
            yield word


def _padded(names: Sequence[str]) -> str:
    """Return ` sm90 sm100 `, in which ` sm90 ` can be looked for; empty for none."""
    return f" {' '.join(names)} " if names else ""


def _synopsis_vectors(chunks: Mapping[str, Sequence[int]]) -> tuple[bytes, bytes]:
    """Return chunk ids, ascending, of 32 bits each, and their vectors; nothing without a model.

    Pieces of a function and its copies share a synopsis and so a vector.
    """
    model = vector_model() if chunks else None
    if model is None:
        return b"", b""
    rows = dict(zip(chunks, model.rows(list(chunks)), strict=True))
    of_chunk = {one: rows[said] for said, ids in chunks.items() for one in ids}
    ids = sorted(of_chunk)
    return array("i", ids).tobytes(), b"".join(of_chunk[one] for one in ids)
