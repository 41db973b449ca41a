"""The tags that a question speaks of in other words than code has: `asks.yaml`."""

from functools import lru_cache
from importlib.resources import files

import yaml

from kopt.tools.docs.code_tokens import plain_words

Ask = tuple[tuple[str, ...], ...]
"""A question must have one phrase of each; in stems."""


def asked_tags(query: str) -> tuple[str, ...]:
    """Return the tags that the words of `query` ask for, in the order of the file."""
    said = _spoken(query)
    return tuple(
        tag
        for tag, asks in _asks().items()
        if any(all(any(phrase in said for phrase in one) for one in ask) for ask in asks)
    )


@lru_cache(maxsize=1)
def _asks() -> dict[str, tuple[Ask, ...]]:
    text = files("kopt.tools.docs.ranking").joinpath("asks.yaml").read_text("utf-8")
    fields: dict[str, list[str]] = yaml.safe_load(text)
    return {tag: tuple(_ask(words) for words in asks) for tag, asks in fields.items()}


def _ask(words: str) -> Ask:
    return tuple(tuple(_spoken(phrase) for phrase in one.split("/")) for one in words.split())


def _spoken(text: str) -> str:
    """Return the stems of `text`, each between spaces."""
    return f" {' '.join(plain_words(text))} "
