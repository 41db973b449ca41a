"""The card of a chunk: some hundred tokens of plain words that stand for it where text is embedded.

Raw code embeds badly (retrieval on code .29, on cards .55 NDCG@10): a card says what the chunk is
called, what it does and how, and where it stands.
"""

from kopt.tools.docs.records import Chunk

from .glossary import gloss_of_name
from .patterns import NAME_PART

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
