"""What a chunk is about, in the words of a person: tags, architectures and number types.

A dictionary from the parts of names to tags (`tags.yaml`), looked up once per name: no pattern is
searched in the text.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import yaml

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
class _Meaning:
    """One trigger that was spelled out: all of `needs` mean `says`."""

    needs: frozenset[str]
    says: str


@dataclass(frozen=True)
class _Table:
    """One part of `tags.yaml`: its phrases in order and what triggers them."""

    order: Mapping[str, int]
    alone: Mapping[str, tuple[str, ...]]
    """Trigger to phrases."""
    together: tuple[_Meaning, ...]

    def phrases(self, triggers: Iterable[str]) -> set[str]:
        """Return what `triggers` mean, alone and together."""
        known = set(triggers)
        found = {phrase for trigger in known for phrase in self.alone.get(trigger, ())}
        found.update(meaning.says for meaning in self.together if meaning.needs <= known)
        return found

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
    text = files("kopt.tools.docs.words").joinpath("tags.yaml").read_text("utf-8")
    fields: dict[str, Any] = yaml.safe_load(text)
    tables = {
        "name": _table(_flat(fields["name"])),
        "text": _table(_flat(fields["text"])),
        "archs": _table(fields["archs"]),
        "dtypes": _table(fields["dtypes"]),
    }
    triggers = {trigger for table in tables.values() for trigger in table.alone}
    for table in tables.values():
        triggers.update(need for meaning in table.together for need in meaning.needs)
    return _Dictionary(**tables, triggers=frozenset(triggers))


def _flat(families: Mapping[str, Mapping[str, list[str]]]) -> dict[str, list[str]]:
    return {phrase: said for family in families.values() for phrase, said in family.items()}


def _table(phrases: Mapping[str, list[str]]) -> _Table:
    alone: dict[str, list[str]] = {}
    together: list[_Meaning] = []
    for phrase, said in phrases.items():
        for trigger in said:
            needs = [_NOT_IN_NAMES.sub("", part).lower() for part in trigger.split("&")]
            if len(needs) == 1:
                alone.setdefault(needs[0], []).append(phrase)
            else:
                together.append(_Meaning(frozenset(needs), phrase))
    return _Table(
        order={phrase: at for at, phrase in enumerate(phrases)},
        alone={trigger: tuple(said) for trigger, said in alone.items()},
        together=tuple(together),
    )


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
    text = files("kopt.tools.docs.words").joinpath("asks.yaml").read_text("utf-8")
    fields: dict[str, list[str]] = yaml.safe_load(text)
    return {tag: tuple(_ask(words) for words in asks) for tag, asks in fields.items()}


def _ask(words: str) -> Ask:
    return tuple(tuple(_spoken_stems(phrase) for phrase in one.split("/")) for one in words.split())


def _spoken_stems(text: str) -> str:
    """Return the stems of `text`, each between spaces."""
    return f" {' '.join(plain_words(text))} "
