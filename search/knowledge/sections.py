"""The sections of a kopt.knowledge/1 document as records: each line is checked by its record."""

import re
from collections.abc import Sequence
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from kopt.kernels.record import Record
from kopt.search.knowledge.base import EntryKey, KnowledgeBase, PairKey, entry_key, pair_key
from kopt.search.knowledge.records import Count, Entry, Origin, Pair, State, Technique
from kopt.search.knowledge.rendering import EVIDENCE_NUMBERS

_SECTIONS = ("states", "techniques", "entries", "pairs")
_KEY = re.compile(
    r"(?P<subject>[a-z0-9_+ ]+?)"
    r"(?: on (?P<arch>[a-z0-9_]+(?: estimated)?)(?: by (?P<origin>[a-z0-9]+))?"
    r"| note (?P<note>\d+))?"
)
_Built = TypeVar("_Built", bound=Record)


class Refused(Exception):
    """What is wrong with a document; `read_base` says it with the document's name."""


class _Head(Record):
    """What stands above the sections."""

    version: Count
    origin: Origin
    origins: dict[Origin, Count]


def base_of(fields: dict[str, Any]) -> KnowledgeBase:
    """Return the base of a document's keys, its schema aside.

    Raises:
        Refused: A key, name or number in it is none of ours.
    """
    sections = {name: _mapping(fields.pop(name, None), name) for name in _SECTIONS}
    head = _built(_Head, fields, "the head")
    entries: dict[EntryKey, Entry] = {}
    for state, lines in sections["entries"].items():
        for subject, told in _subjects(_mapping(lines, state), state, head.origin).items():
            names = subject.split(" + ")
            entry = _built(Entry, {"state": state, "techniques": names, **told}, subject)
            entries[entry_key(entry)] = entry
    pairs: dict[PairKey, Pair] = {}
    for subject, told in _subjects(sections["pairs"], "pairs", head.origin).items():
        before, _, after = subject.partition(" before ")
        pair = _built(Pair, {"before": before, "after": after, **told}, subject)
        pairs[pair_key(pair)] = pair
    return KnowledgeBase(
        version=head.version,
        origin=head.origin,
        origins=head.origins,
        states=_described(State, sections["states"]),
        techniques=_described(Technique, sections["techniques"]),
        entries=dict(sorted(entries.items())),
        pairs=dict(sorted(pairs.items())),
    )


def _described(kind: type[_Built], lines: dict[str, Any]) -> dict[str, _Built]:
    """Return the states or techniques of a section."""
    found: dict[str, _Built] = {}
    for name, fields in sorted(lines.items()):
        line = _mapping(fields, name)
        is_discovered = line.pop("discovered", False)
        told = {"id": name, "description": "", "source": ""}
        found[name] = _built(kind, {**told, **line, "is_discovered": is_discovered}, name)
    return found


def _subjects(lines: dict[str, Any], where: str, origin: str) -> dict[str, dict[str, Any]]:
    """Return the fields of each entry or pair of a section, collected from its lines."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in lines.items():
        parts = _KEY.fullmatch(key)
        if parts is None:
            raise Refused(f"{where}: the key {key!r} is none of ours")
        item = found.setdefault(parts["subject"], {"evidence": {}})
        if parts["arch"]:
            by = item["evidence"].setdefault(parts["arch"], {})
            by[parts["origin"] or origin] = _evidence(value, key)
        elif parts["note"]:
            item["notes"] = [*item.get("notes", ()), _mapping(value, key)]
        else:
            item |= _told(_mapping(value, key))
    return found


def _told(line: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an entry's or a pair's own line."""
    is_deprecated = {"is_deprecated": True} if line.pop("deprecated", False) else {}
    if not line:
        return is_deprecated
    gain, weight = line.pop("prior", 0.0), line.pop("weight", 0.0)
    return {"prior": {"source": "", **line, "gain": gain, "weight": weight}, **is_deprecated}


def _evidence(value: object, where: str) -> dict[str, Any]:
    """Return the fields of evidence, which may be a mere list of its numbers."""
    if not isinstance(value, list):
        return _mapping(value, where)
    numbers = cast(Sequence[Any], value)
    if len(numbers) != len(EVIDENCE_NUMBERS):
        raise Refused(f"{where}: expected {len(EVIDENCE_NUMBERS)} numbers, got {len(numbers)}")
    return dict(zip(EVIDENCE_NUMBERS, numbers, strict=True))


def _mapping(value: object, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Refused(f"{where}: expected keys with values, got {value!r:.80}")
    return dict(cast(dict[str, Any], value))


def _built(kind: type[_Built], fields: dict[str, Any], where: str) -> _Built:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise Refused(f"{where}: {first_error(error)}") from error


def first_error(error: ValidationError) -> str:
    """Return the first finding of a validation: where, and what is wrong there."""
    found = error.errors()[0]
    return f"{'.'.join(map(str, found['loc']))}: {found['msg']}"
