"""A base from a document: kopt.knowledge/1 in YAML, or kopt.knowledge_base/1 in JSON.

Documents come from elsewhere: every name, number and reference in them is checked, and texts stay
data. A document is taken whole or not at all.
"""

import re
from typing import Any, TypeVar, cast

from pydantic import TypeAdapter, ValidationError

from kopt.config.errors import ToolError
from kopt.kernels.families import FAMILIES
from kopt.kernels.record import Record
from kopt.kernels.strict_yaml import Node, Scalar, Sequence, YamlError, load_yaml
from kopt.search.knowledge.base import EntryKey, KnowledgeBase, PairKey, entry_key, pair_key
from kopt.search.knowledge.base_json import parse_base
from kopt.search.knowledge.records import (
    Count,
    Entry,
    Evidence,
    Origin,
    Pair,
    State,
    Technique,
)
from kopt.search.knowledge.rendering import FORMAT

DOCUMENT_LIMIT = 4 << 20
"""Bytes: eighty times a mature base.yaml."""
_FORMAT = re.compile(r"kopt\.knowledge/(\d+)")
_KEY = re.compile(
    r"(?P<subject>[a-z0-9_+ ]+?)"
    r"(?: on (?P<arch>[a-z0-9_]+(?: estimated)?) by (?P<origin>[a-z0-9]+)| note (?P<note>\d+))?"
)
_Built = TypeVar("_Built")


class _Refused(Exception):
    """What is wrong with a document, for `read_base` to say with its name."""


def read_base(text: str, name: str) -> KnowledgeBase:
    """Return the base that the document `text` describes; `name` is what messages call it.

    Raises:
        ToolError: It is none, damaged, of a newer format, or contradicts itself. Nothing of it
            was taken.
    """
    try:
        base = _parsed(text)
        _refuse_contradictions(base)
    except _Refused as error:
        raise ToolError(f"{name}: {error}; nothing was read from it") from error
    return base


def _parsed(text: str) -> KnowledgeBase:
    if len(text) > DOCUMENT_LIMIT:
        raise _Refused(f"larger than {DOCUMENT_LIMIT} bytes")
    if text.lstrip().startswith("{"):
        return _parsed_json(text)
    try:
        tree = _plain(load_yaml(text, max_bytes=DOCUMENT_LIMIT))
    except YamlError as error:
        raise _Refused(f"line {error.line}: {error}") from error
    if not isinstance(tree, dict):
        raise _Refused(f"not a knowledge base ({FORMAT})")
    return _base(cast(dict[str, Any], tree))


def _parsed_json(text: str) -> KnowledgeBase:
    try:
        return parse_base(text)
    except ValidationError as error:
        raise _Refused(f"not a knowledge base: {_first(error)}") from error


def _plain(node: Node) -> Any:
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        return [_plain(item) for item in node.items]
    return {key: _plain(value) for key, value in node.entries.items()}


def _base(tree: dict[str, Any]) -> KnowledgeBase:
    _refuse_other_format(tree.pop("schema", None))
    head = _built(_Head, {key: tree.get(key) for key in _Head.model_fields}, "the head")
    sections = {key: tree.pop(key) for key in list(tree) if key not in _Head.model_fields}
    unknown = sections.keys() - {"states", "techniques", "entries", "pairs"}
    if unknown:
        raise _Refused(f"unknown key {min(unknown)}")
    entries: dict[EntryKey, Entry] = {}
    for state, lines in _mapping(sections.get("entries"), "entries").items():
        for subject, fields in _subjects(_mapping(lines, state), state).items():
            names = subject.split(" + ")
            entry = _built(Entry, {"state": state, "techniques": names, **fields}, subject)
            entries[entry_key(entry)] = entry
    pairs: dict[PairKey, Pair] = {}
    for subject, fields in _subjects(_mapping(sections.get("pairs"), "pairs"), "pairs").items():
        before, _, after = subject.partition(" before ")
        pair = _built(Pair, {"before": before, "after": after, **fields}, subject)
        pairs[pair_key(pair)] = pair
    return KnowledgeBase(
        version=head.version,
        origin=head.origin,
        origins=head.origins,
        states=_described(State, sections.get("states")),
        techniques=_described(Technique, sections.get("techniques")),
        entries=dict(sorted(entries.items())),
        pairs=dict(sorted(pairs.items())),
    )


class _Head(Record):
    """What stands above the sections."""

    version: Count
    origin: Origin
    origins: dict[Origin, Count]


def _refuse_other_format(schema: object) -> None:
    if schema == FORMAT:
        return
    found = _FORMAT.fullmatch(schema) if isinstance(schema, str) else None
    if found:
        raise _Refused(f"has format {schema}, this kopt reads {FORMAT}: upgrade kopt")
    raise _Refused(f"not a knowledge base: `schema` is {schema!r}, not {FORMAT}")


def _described(kind: type[_Built], section: object) -> dict[str, _Built]:
    """Return the states or techniques of a section; what ships with kopt may lack its texts."""
    found: dict[str, _Built] = {}
    for name, fields in _mapping(section, kind.__name__).items():
        line = _mapping(fields, name)
        told = {"id": name, "description": "", "source": "seed"}
        is_discovered = {"is_discovered": line.pop("discovered", False)}
        found[name] = _built(kind, told | line | is_discovered, name)
    return dict(sorted(found.items()))


def _subjects(lines: dict[str, Any], where: str) -> dict[str, dict[str, Any]]:
    """Return the fields of each entry or pair of a section, collected from its lines."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in lines.items():
        parts = _KEY.fullmatch(key)
        if parts is None:
            raise _Refused(f"{where}: the key {key!r} is none of ours")
        item = found.setdefault(parts["subject"], {"evidence": {}})
        line = _mapping(value, key)
        if parts["arch"]:
            item["evidence"].setdefault(parts["arch"], {})[parts["origin"]] = line
        elif parts["note"]:
            item["notes"] = [*item.get("notes", ()), line]
        else:
            if line.pop("deprecated", False):
                item["is_deprecated"] = True
            if line:
                gain, weight = line.pop("prior", 0.0), line.pop("weight", 0.0)
                item["prior"] = {"source": "", **line, "gain": gain, "weight": weight}
    return found


def _mapping(value: object, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _Refused(f"{where}: expected keys with values, got {value!r:.80}")
    return dict(cast(dict[str, Any], value))


def _built(kind: type[_Built], fields: dict[str, Any], where: str) -> _Built:
    try:
        return TypeAdapter(kind).validate_python(fields)
    except ValidationError as error:
        raise _Refused(f"{where}: {_first(error)}") from error


def _first(error: ValidationError) -> str:
    found = error.errors()[0]
    return f"{'.'.join(map(str, found['loc']))}: {found['msg']}"


def _refuse_contradictions(base: KnowledgeBase) -> None:
    """Raise for references to nothing and for counts that do not add up."""
    states = {state for state, _ in base.entries}
    states |= {state.inherits for state in base.states.values() if state.inherits}
    techniques = {name for _, names in base.entries for name in names}
    techniques |= {name for key in base.pairs for name in key}
    unknown = (states - base.states.keys()) | (techniques - base.techniques.keys())
    unknown |= {one.family for one in base.techniques.values()} - set(FAMILIES)
    if unknown:
        raise _Refused(f"names {min(unknown)}, which it does not describe")
    held: list[Entry | Pair] = [*base.entries.values(), *base.pairs.values()]
    for item in held:
        for origins in item.evidence.values():
            for origin, evidence in origins.items():
                _refuse_evidence(evidence, origin, base)


def _refuse_evidence(evidence: Evidence, origin: str, base: KnowledgeBase) -> None:
    counted = evidence.gained + evidence.lost + evidence.within_noise + evidence.failed
    if evidence.tries != counted:
        raise _Refused(f"evidence of {origin}: {evidence.tries} tries, but {counted} outcomes")
    if evidence.weight > evidence.gained + evidence.lost:
        raise _Refused(f"evidence of {origin} weighs more than the tries that it has")
    if origin not in base.origins:
        raise _Refused(f"evidence of {origin}, which is not among the origins")
