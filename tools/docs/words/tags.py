"""What a chunk is about, in the words of a person: tags, architectures and number types.

A dictionary from the parts of names to tags (`tags.yaml`), looked up once per name: no pattern is
searched in the text.
"""

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kopt.tools.docs.code_version import own_data

from .code_tokens import NAME_PART, plain_words

_NAME = re.compile(r"\w\w+(?:\.\w+)*")
_COUNT = re.compile(r"x\d+$")
_ARCH_GUARD = re.compile(r"__CUDA_ARCH__\s*[><=]+\s*(\d{2,3})0\b")
_MOST_PARTS = 7
"""Parts of a name that a trigger may span."""
_LONGEST_NAME = 160
_NOT_IN_NAMES = re.compile(r"[_.\s]+")


@dataclass(frozen=True)
class CodeFacts:
    """What was found; each in the order of `tags.yaml`, tags found in names first."""

    tags: tuple[str, ...]
    arch: tuple[str, ...]
    dtype: tuple[str, ...]


@dataclass(frozen=True)
class _Table:
    """One part of `tags.yaml`: what triggers its phrases."""

    order: Mapping[str, int]
    """Places of the phrases in the file."""
    meanings: Mapping[str, Sequence[tuple[frozenset[str], str]]]
    """By a trigger: all triggers that are needed beside it, and the phrase that they mean."""

    def phrases(self, triggers: Set[str]) -> set[str]:
        """Return what `triggers` mean, alone and together."""
        return {
            phrase
            for trigger in triggers
            for others, phrase in self.meanings.get(trigger, ())
            if others <= triggers
        }

    def sorted(self, phrases: Iterable[str]) -> tuple[str, ...]:
        """Return `phrases` in the order of the file."""
        return tuple(sorted(phrases, key=self.order.__getitem__))


@dataclass(frozen=True)
class _Dictionary:
    name: _Table
    text: _Table
    archs: _Table
    dtypes: _Table
    triggers: frozenset[str]
    """Triggers of all tables."""


def facts_of(names: str, text: str) -> CodeFacts:
    """Return what a chunk is about: `names` say what is computed, the code in `text` how."""
    dictionary = _dictionary()
    in_names = _triggers(names) | _spoken(names)
    everywhere = in_names | _triggers(text)
    operators = dictionary.name.sorted(dictionary.name.phrases(in_names))
    named = dictionary.text.phrases(in_names)
    means = dictionary.text.phrases(everywhere)
    return CodeFacts(
        tags=(
            *operators,
            *dictionary.text.sorted(named),
            *dictionary.text.sorted(means - named),
        ),
        arch=dictionary.archs.sorted(dictionary.archs.phrases(everywhere | _guards(text))),
        dtype=dictionary.dtypes.sorted(dictionary.dtypes.phrases(everywhere)),
    )


def known_archs() -> tuple[str, ...]:
    """Return the architectures that chunks may be tagged with, oldest first."""
    return tuple(_dictionary().archs.order)


def known_dtypes() -> tuple[str, ...]:
    """Return the number types that chunks may be tagged with, widest first."""
    return tuple(_dictionary().dtypes.order)


def _triggers(text: str) -> set[str]:
    found: set[str] = set()
    for name in set(_NAME.findall(text)):
        found.update(_name_triggers(name))
    return found


def _spoken(text: str) -> set[str]:
    """Return the triggers that stand as separate words: `paged KV cache`."""
    return set(_runs([part.lower() for part in NAME_PART.findall(text)]))


@lru_cache(maxsize=1 << 18)
def _name_triggers(name: str) -> tuple[str, ...]:
    return tuple(_runs([part.lower() for part in NAME_PART.findall(name[:_LONGEST_NAME])]))


def _runs(parts: list[str]) -> Iterable[str]:
    """Yield the triggers among runs of whole parts; a count behind a type is not part of it."""
    triggers = _dictionary().triggers
    for begin in range(len(parts)):
        run = ""
        for part in parts[begin : begin + _MOST_PARTS]:
            run += part
            if run in triggers:
                yield run
            elif "x" in part and (single := _COUNT.sub("", run)) in triggers:
                yield single


def _guards(text: str) -> set[str]:
    if "__CUDA_ARCH__" not in text:
        return set()
    return {f"sm{number}" for number in _ARCH_GUARD.findall(text)}


@lru_cache(maxsize=1)
def _dictionary() -> _Dictionary:
    fields: dict[str, Any] = own_data("words/tags.yaml")
    tables = {
        "name": _table(_flat(fields["name"])),
        "text": _table(_flat(fields["text"])),
        "archs": _table(fields["archs"]),
        "dtypes": _table(fields["dtypes"]),
    }
    triggers = frozenset(
        trigger
        for table in tables.values()
        for first, meanings in table.meanings.items()
        for needed in ({first}, *(others for others, _phrase in meanings))
        for trigger in needed
    )
    return _Dictionary(**tables, triggers=triggers)


def _flat(families: Mapping[str, Mapping[str, list[str]]]) -> dict[str, list[str]]:
    return {phrase: said for family in families.values() for phrase, said in family.items()}


def _table(phrases: Mapping[str, list[str]]) -> _Table:
    meanings: dict[str, list[tuple[frozenset[str], str]]] = {}
    for phrase, said in phrases.items():
        for trigger in said:
            first, *others = (_NOT_IN_NAMES.sub("", one).lower() for one in trigger.split("&"))
            meanings.setdefault(first, []).append((frozenset(others), phrase))
    return _Table({phrase: at for at, phrase in enumerate(phrases)}, meanings)


Ask = tuple[tuple[str, ...], ...]
"""A question must have one phrase of each; in stems."""


def subjects_of(query: str) -> tuple[str, ...]:
    """Return the tags of a question."""
    return tuple(dict.fromkeys((*facts_of(query, "").tags, *asked_tags(query))))


def asked_tags(query: str) -> tuple[str, ...]:
    """Return the tags that the words of `query` ask for, in the order of the file."""
    said = _spoken_stems(query)
    return tuple(
        tag
        for tag, asks in _asks().items()
        if any(all(any(phrase in said for phrase in one) for one in ask) for ask in asks)
    )


@lru_cache(maxsize=1)
def _asks() -> dict[str, tuple[Ask, ...]]:
    fields: dict[str, list[str]] = own_data("words/asks.yaml")
    return {tag: tuple(_ask(words) for words in asks) for tag, asks in fields.items()}


def _ask(words: str) -> Ask:
    return tuple(tuple(_spoken_stems(phrase) for phrase in one.split("/")) for one in words.split())


def _spoken_stems(text: str) -> str:
    """Return the stems of `text`, each between spaces."""
    return f" {' '.join(plain_words(text))} "
