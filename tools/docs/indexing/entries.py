"""What an index keeps of one chunk: the record, its terms field by field, its vector.

Columns hold terms of `code_tokens.py`, never raw text.
"""

import json
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from kopt.tools.docs.code_version import code_version
from kopt.tools.docs.records import Chunk
from kopt.tools.docs.words.code_tokens import NAME_PART, document_terms
from kopt.tools.docs.words.glossary import gloss_of, gloss_of_name, gloss_of_signature

FIELDS = ("symbol", "place", "comment", "tags", "code", "gloss")
_MOST_COMMENT = 2000


class IndexEntry(NamedTuple):
    """One row of an index before it is numbered."""

    record: str
    """The chunk as JSON."""
    fields: str
    """One line of terms for each of FIELDS."""
    vector: bytes
    """The vector of its card, as bytes; empty without a model."""


def entry_of(chunk: Chunk, named: str, place: str, vector: bytes) -> IndexEntry:
    """Return the entry of `chunk`, called `named` (symbol or heading), with its card's `vector`."""
    tags = " ".join((*chunk.tags, *chunk.arch, *chunk.dtype, chunk.kind))
    code = "\n".join((chunk.head, chunk.body, gloss_of_signature(chunk)))
    texts = (named, place, chunk.comment[:_MOST_COMMENT], tags, code, gloss_of(chunk))
    fields = "\n".join(" ".join(document_terms(text)) for text in texts)
    return IndexEntry(record_of(chunk), fields, vector)


def record_of(chunk: Chunk) -> str:
    """Return `chunk` as one line of JSON."""
    fields = chunk.model_dump(mode="json", exclude_defaults=True)
    return json.dumps(fields, ensure_ascii=True, separators=(",", ":"))


def block_of(records: Sequence[str]) -> bytes:
    """Return some records as bytes: together they take half the room."""
    return zlib.compress("\n".join(records).encode())


def records_in(block: bytes) -> list[str]:
    """Return the records of a block.

    Raises:
        ValueError: The bytes are no such block.
    """
    try:
        return zlib.decompress(block).decode().split("\n")
    except zlib.error as error:
        raise ValueError(f"records of the index are damaged: {error}") from error


def symbol_names(chunk: Chunk) -> Sequence[str]:
    """Return the names under which a chunk is asked for as a symbol.

    Each of several, whole and without its scope, and without surrounding `_` unless it is a
    constant: `_BLOCKS_PER_SM` is not what blocks_per_sm means.
    """
    names: dict[str, None] = {}
    for one in (chunk.symbol or "").split(","):
        whole = symbol_name(one)
        spellings = [whole, whole.replace("::", ".").rpartition(".")[2]]
        if chunk.kind != "decl":
            spellings += [name.strip("_") for name in spellings]
        names |= dict.fromkeys(spellings)
    return [name for name in names if name]


def symbol_name(text: str) -> str:
    """Return a symbol as it is looked for: without case and marks of code."""
    return text.strip().strip("`()").lower()


def terms_version() -> str:
    """Return a hash of the code, the glossary and the synopses that make terms of a chunk."""
    return code_version(
        "words/code_tokens.py", "words/glossary.*", "words/synopses/*", "indexing/entries.py"
    )


MOST_TAGS = 14
GLOSS_CHARACTERS = 250
COMMENT_CHARACTERS = 220
PATH_CHARACTERS = 120
SIGNATURE_CHARACTERS = 160
_NAME_WORDS = 16


def card_of(chunk: Chunk) -> str:
    """Return the card of `chunk`: what it is called, what that means, and what else is known."""
    path = " ".join(word for word in _words(chunk.path) if len(word) > 2)
    return " ".join(
        part
        for part in (
            _sentence(" ".join(_words(chunk.symbol or "")[:_NAME_WORDS])),
            _sentence(gloss_of_name(chunk)[:GLOSS_CHARACTERS]),
            _sentence("; ".join(chunk.tags[:MOST_TAGS])),
            chunk.comment[:COMMENT_CHARACTERS].strip(),
            path[-PATH_CHARACTERS:],
            chunk.signature[-SIGNATURE_CHARACTERS:],
        )
        if part
    )


def _sentence(text: str) -> str:
    return f"{text}." if text else ""


def _words(name: str) -> list[str]:
    return [part.lower() for part in NAME_PART.findall(name)]
