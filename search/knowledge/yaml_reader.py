"""A base from a document: kopt.knowledge/1 in YAML, or kopt.knowledge_base/1 in JSON.

Documents come from elsewhere: every name, number and reference in them is checked, and texts stay
data. A document is taken whole or not at all.
"""

import re
from collections.abc import Collection, Iterator
from typing import Any, TypeVar, cast

from pydantic import ValidationError

from kopt.config.errors import ToolError
from kopt.kernels.record import Record
from kopt.kernels.strict_yaml import Node, Scalar, Sequence, YamlError, load_yaml

from .base import SECTIONS, Item, KnowledgeBase, parse_base
from .merge import with_seed
from .records import (
    GAIN_LIMIT,
    MEAN_LIMIT,
    NAME_LIMIT,
    OUTCOMES,
    Count,
    Evidence,
    KnowledgeEntry,
    Origin,
    Pair,
    State,
    Technique,
)
from .seed_base import load_seed
from .yaml_writer import EVIDENCE_NUMBERS, FORMAT, SEED_KEY

DOCUMENT_LIMIT = 4 << 20
"""Bytes: eighty times a mature base.yaml."""
ITEM_LIMIT = 4096
"""Entries or pairs of a document."""
_ROUNDING = 1.02  # base.yaml may have three digits of each number, sums their last bit
_FORMAT = re.compile(r"kopt\.knowledge/(\d+)")
_KEY = re.compile(
    r"(?P<local_name>[a-z0-9_+ ]+?)"
    r"(?: on (?P<arch>[a-z0-9_]+(?: estimated)?)(?: by (?P<origin>[a-z0-9]+))?"
    r"| note (?P<note>\d+))?"
)
_Built = TypeVar("_Built", bound=Record)


class DocumentError(Exception):
    """A mistake in a document; `read_base` tells it with the document's name."""


class _Head(Record):
    """The keys above the sections."""

    version: Count
    origin: Origin
    origins: dict[Origin, Count]


def read_base(text: str, name: str) -> KnowledgeBase:
    """Return the base that the document `text` describes; `name` is what messages call it.

    Raises:
        ToolError: It is none, damaged, of a newer format, or contradicts itself. Nothing of it
            was taken.
    """
    try:
        base = _parsed(text)
        if why := next(_contradictions(base), None):
            raise DocumentError(why)
    except DocumentError as error:
        raise ToolError(f"{name}: {error}; nothing was read from it") from error
    return base


def _parsed(text: str) -> KnowledgeBase:
    if len(text) > DOCUMENT_LIMIT:
        raise DocumentError(f"larger than {DOCUMENT_LIMIT} bytes")
    try:
        if text.lstrip().startswith("{"):
            return parse_base(text)
        tree = _plain(load_yaml(text, max_bytes=DOCUMENT_LIMIT))
    except ValidationError as error:
        raise DocumentError(f"not a knowledge base: {_first_error(error)}") from error
    except YamlError as error:
        raise DocumentError(f"line {error.line}: {error}") from error
    if not isinstance(tree, dict):
        raise DocumentError(f"not a knowledge base ({FORMAT})")
    fields = cast(dict[str, Any], tree)
    _refuse_other_format(fields.pop("schema", None))
    lacks_seed = fields.pop(SEED_KEY, None) == "left_out"
    base = _base_of(fields)
    return with_seed(base, load_seed()) if lacks_seed else base


def _plain(node: Node) -> Any:
    if isinstance(node, Scalar):
        return node.value
    if isinstance(node, Sequence):
        return [_plain(item) for item in node.items]
    return {key: _plain(value) for key, value in node.entries.items()}


def _refuse_other_format(schema: object) -> None:
    if schema == FORMAT:
        return
    if isinstance(schema, str) and _FORMAT.fullmatch(schema):
        raise DocumentError(f"has format {schema}, this kopt reads {FORMAT}: upgrade kopt")
    raise DocumentError(f"not a knowledge base: `schema` is {schema!r}, not {FORMAT}")


def _base_of(fields: dict[str, Any]) -> KnowledgeBase:
    """Return the base of a document's keys, its schema aside."""
    sections = {name: _mapping(fields.pop(name, None), name) for name in SECTIONS}
    head = _built(_Head, fields, "the head")
    items: list[Item] = [
        *(_described(State, name, told) for name, told in sections["states"].items()),
        *(_described(Technique, name, told) for name, told in sections["techniques"].items()),
    ]
    for state, lines in sections["entries"].items():
        for local_name, told in _by_name(_mapping(lines, state), state, head.origin).items():
            entry = {"state": state, "techniques": local_name.split(" + "), **told}
            items.append(_built(KnowledgeEntry, entry, local_name))
    for local_name, told in _by_name(sections["pairs"], "pairs", head.origin).items():
        before, _, after = local_name.partition(" before ")
        items.append(_built(Pair, {"before": before, "after": after, **told}, local_name))
    return KnowledgeBase(head.version, head.origin, head.origins).with_items(items)


def _described(kind: type[_Built], name: str, fields: object) -> _Built:
    """Return a state or a technique."""
    line = _mapping(fields, name)
    is_discovered = line.pop("discovered", False)
    told = {"id": name, "description": "", "source": ""}
    return _built(kind, {**told, **line, "is_discovered": is_discovered}, name)


def _by_name(lines: dict[str, Any], where: str, origin: str) -> dict[str, dict[str, Any]]:
    """Return the fields of each entry or pair of a section, collected from its lines."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in lines.items():
        parts = _KEY.fullmatch(key)
        if parts is None:
            raise DocumentError(f"{where}: the key {key!r} is none of ours")
        item = found.setdefault(parts["local_name"], {"evidence": {}})
        if parts["arch"]:
            by = item["evidence"].setdefault(parts["arch"], {})
            by[parts["origin"] or origin] = _evidence(value, key)
        elif parts["note"]:
            item.setdefault("notes", []).append(_mapping(value, key))
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
    numbers = cast(Collection[Any], value)
    if len(numbers) != len(EVIDENCE_NUMBERS):
        raise DocumentError(
            f"{where}: expected {len(EVIDENCE_NUMBERS)} numbers, got {len(numbers)}"
        )
    return dict(zip(EVIDENCE_NUMBERS, numbers, strict=True))


def _mapping(value: object, where: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise DocumentError(f"{where}: expected keys with values, got {value!r:.80}")
    return dict(cast(dict[str, Any], value))


def _built(kind: type[_Built], fields: dict[str, Any], where: str) -> _Built:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise DocumentError(f"{where}: {_first_error(error)}") from error


def _first_error(error: ValidationError) -> str:
    """Return the first finding of a validation: where, and what is wrong there."""
    found = error.errors()[0]
    return f"{'.'.join(map(str, found['loc']))}: {found['msg']}"


def _contradictions(base: KnowledgeBase) -> Iterator[str]:
    """Yield references to nothing, counts that do not add up and floods."""
    for names in (base.states, base.techniques, base.origins):
        if len(names) > NAME_LIMIT:
            yield f"has {len(names)} states, techniques or origins: {NAME_LIMIT} at most"
    if max(len(base.entries), len(base.pairs)) > ITEM_LIMIT:
        yield f"has more than {ITEM_LIMIT} entries or pairs"
    yield from (f"names {name}, which it does not describe" for name in sorted(base.undefined()))
    for item in base.held:
        largest = GAIN_LIMIT if isinstance(item, KnowledgeEntry) else MEAN_LIMIT
        for origins in item.evidence.values():
            for origin, evidence in origins.items():
                yield from (f"evidence of {origin}{why}" for why in _impossible(evidence, largest))
                if origin not in base.origins:
                    yield f"evidence of {origin}, which is not among the origins"


def _impossible(evidence: Evidence, largest: float) -> Iterator[str]:
    """Yield what no evidence of gains up to `largest` has."""
    counted = sum(getattr(evidence, name) for name in OUTCOMES)
    if evidence.tries != counted:
        yield f": {evidence.tries} tries, but {counted} outcomes"
    if evidence.weight > _ROUNDING * (evidence.gained + evidence.lost):
        yield " weighs more than the tries that it has"
    is_possible = evidence.m2 <= _ROUNDING * largest**2 * evidence.weight
    if abs(evidence.mean) > _ROUNDING * largest or not is_possible:
        yield " has a mean or an m2 that no gains have"
