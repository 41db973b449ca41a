"""The field's synonyms: what else a query may be called in documents (lexicon.yaml)."""

from collections.abc import Sequence
from functools import lru_cache

from kopt.tools.docs.code_version import own_data

from .code_tokens import phrase_of, plain_words

MOST_EXPANSIONS = 40
_LONGEST_PHRASE = 5

Entries = dict[tuple[str, ...], tuple[str, ...]]


def expansions(query: str) -> dict[str, str]:
    """Return what the phrases of `query` stand for: index phrase to the text in the lexicon."""
    words = plain_words(query)
    found: dict[str, str] = {}
    for begin in range(len(words)):
        for length in range(1, min(_LONGEST_PHRASE, len(words) - begin) + 1):
            for text in _entries().get(tuple(words[begin : begin + length]), ()):
                found.setdefault(phrase_of(text), text)
                if len(found) == MOST_EXPANSIONS:
                    return found
    return found


def lexicon_phrases() -> list[str]:
    """Return what the lexicon can make a query look for that is more than one index term."""
    phrases = {phrase_of(text) for texts in _entries().values() for text in texts}
    return sorted(phrase for phrase in phrases if " " in phrase)


@lru_cache
def _entries() -> Entries:
    """Return the lexicon by the stems of its phrases."""
    fields = own_data("words/lexicon.yaml")
    entries: dict[tuple[str, ...], dict[str, None]] = {}

    def lead(phrase: str, others: Sequence[str]) -> None:
        known = entries.setdefault(tuple(plain_words(phrase)), {})
        known.update(dict.fromkeys(str(other) for other in others))

    for group in fields["same"]:
        for member in group:
            lead(str(member), [other for other in group if other != member])
    for phrase, others in fields["leads_to"].items():
        lead(str(phrase), others)
    return {phrase: tuple(others) for phrase, others in entries.items()}
