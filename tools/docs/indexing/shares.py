"""How much a phrase says about each chunk that has it: BM25F, times what its kind is worth.

Fields have weights and normalizations by length of their own: a function in a long file path or
under many tags is no less about its subject, and one of 90 lines is less diluted than BM25 over
the whole text takes it to be. The kind counts within the list, because short host code that says
all the words would fill it before any kernel.

Source: Robertson, Zaragoza, Taylor, "Simple BM25 extension to multiple weighted fields", CIKM 2004.
"""

import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from kopt.tools.docs.ranking.weights import WEIGHTS

from .entries import FIELDS

_SUMS = ", ".join(f"sum(col = '{field}') as {field}" for field in FIELDS)
_COUNTS = ", ".join(f"found.{field}" for field in FIELDS)
_KNOWN = (
    f"select doc, kind, chunk.symbol_terms, comment_terms, code_terms, {_COUNTS} from ({{found}})"
    " as found join chunk on chunk.id = doc order by doc"
)
_OF_TERM = f"select doc, {_SUMS} from temp.instance where term = :sought group by doc"
_OF_PHRASE = f"select doc, {_SUMS} from ({{matches}}) group by doc"
_MATCH = "select rowid as doc, '{field}' as col from fts where fts match '{field} : ' || :sought"


class Lengths(NamedTuple):
    """How many terms a chunk has in the fields whose length counts."""

    symbol: int
    comment: int
    code: int


def phrase_shares(connection: sqlite3.Connection, phrase: str) -> list[tuple[int, float]]:
    """Return (chunk id, share) of every chunk with `phrase`, ids ascending.

    A share is from 0 to `WEIGHTS.term_saturation` + 1. Of a phrase of several terms a field has
    one or none.
    """
    if " " in phrase:
        matches = " union all ".join(_MATCH.format(field=field) for field in FIELDS)
        found, sought = _OF_PHRASE.format(matches=matches), f'"{phrase}"'
    else:
        connection.execute(
            "create virtual table if not exists temp.instance"
            " using fts5vocab('main', 'fts', 'instance')"
        )
        found, sought = _OF_TERM, phrase
    rows = connection.execute(_KNOWN.format(found=found), {"sought": sought})
    return [
        (chunk_id, _share(kind, Lengths(*lengths), counts))
        for chunk_id, kind, lengths, counts in _split(rows)
    ]


def _split(
    rows: sqlite3.Cursor,
) -> Iterator[tuple[int, str, tuple[int, int, int], tuple[int, ...]]]:
    for chunk_id, kind, *numbers in rows:
        symbol, comment, code, *counts = numbers
        yield chunk_id, kind, (symbol, comment, code), tuple(counts)


def _share(kind: str, lengths: Lengths, counts: tuple[int, ...]) -> float:
    norms = (
        _norm(lengths.symbol, WEIGHTS.symbol_terms),
        1.0,
        _norm(lengths.comment, WEIGHTS.comment_terms),
        1.0,
        _norm(lengths.code, WEIGHTS.code_terms),
        1.0,
    )
    frequency = sum(
        weight * count / norm
        for weight, count, norm in zip(WEIGHTS.fields, counts, norms, strict=True)
    )
    saturation = WEIGHTS.term_saturation
    prior = WEIGHTS.kind_prior.get(kind, 1.0)
    return prior * frequency * (saturation + 1) / (frequency + saturation)


def _norm(length: int, usual: float) -> float:
    return 1 - WEIGHTS.length_share + WEIGHTS.length_share * length / usual
