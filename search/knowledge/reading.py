"""A base from a document: kopt.knowledge/1 in YAML, or kopt.knowledge_base/1 in JSON.

Documents come from elsewhere: every name, number and reference in them is checked, and texts stay
data. A document is taken whole or not at all.
"""

import re
from typing import Any, cast

from pydantic import ValidationError

from kopt.config.errors import ToolError
from kopt.kernels.strict_yaml import Node, Scalar, Sequence, YamlError, load_yaml
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.base_json import parse_base
from kopt.search.knowledge.merge import with_seed
from kopt.search.knowledge.records import GAIN_LIMIT, MEAN_LIMIT, NAME_LIMIT, Entry, Evidence, Pair
from kopt.search.knowledge.rendering import FORMAT, SEED_KEY
from kopt.search.knowledge.sections import Refused, base_of, first_error
from kopt.search.knowledge.seed_base import load_seed

DOCUMENT_LIMIT = 4 << 20
"""Bytes: eighty times a mature base.yaml."""
ITEM_LIMIT = 4096
"""Entries or pairs of a document."""
_ROUNDING = 1.02  # base.yaml may have three digits of each number, sums their last bit
_FORMAT = re.compile(r"kopt\.knowledge/(\d+)")


def read_base(text: str, name: str) -> KnowledgeBase:
    """Return the base that the document `text` describes; `name` is what messages call it.

    Raises:
        ToolError: It is none, damaged, of a newer format, or contradicts itself. Nothing of it
            was taken.
    """
    try:
        base = _parsed(text)
        _refuse_contradictions(base)
    except Refused as error:
        raise ToolError(f"{name}: {error}; nothing was read from it") from error
    return base


def _parsed(text: str) -> KnowledgeBase:
    if len(text) > DOCUMENT_LIMIT:
        raise Refused(f"larger than {DOCUMENT_LIMIT} bytes")
    if text.lstrip().startswith("{"):
        return _parsed_json(text)
    try:
        tree = _plain(load_yaml(text, max_bytes=DOCUMENT_LIMIT))
    except YamlError as error:
        raise Refused(f"line {error.line}: {error}") from error
    if not isinstance(tree, dict):
        raise Refused(f"not a knowledge base ({FORMAT})")
    fields = cast(dict[str, Any], tree)
    _refuse_other_format(fields.pop("schema", None))
    lacks_seed = fields.pop(SEED_KEY, None) == "left_out"
    base = base_of(fields)
    return with_seed(base, load_seed()) if lacks_seed else base


def _parsed_json(text: str) -> KnowledgeBase:
    try:
        return parse_base(text)
    except ValidationError as error:
        raise Refused(f"not a knowledge base: {first_error(error)}") from error


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
        raise Refused(f"has format {schema}, this kopt reads {FORMAT}: upgrade kopt")
    raise Refused(f"not a knowledge base: `schema` is {schema!r}, not {FORMAT}")


def _refuse_contradictions(base: KnowledgeBase) -> None:
    """Raise for references to nothing, for counts that do not add up and for floods."""
    for names in (base.states, base.techniques, base.origins):
        if len(names) > NAME_LIMIT:
            raise Refused(f"has {len(names)} states, techniques or origins: {NAME_LIMIT} at most")
    if max(len(base.entries), len(base.pairs)) > ITEM_LIMIT:
        raise Refused(f"has more than {ITEM_LIMIT} entries or pairs")
    if unknown := base.undefined():
        raise Refused(f"names {min(unknown)}, which it does not describe")
    held: list[Entry | Pair] = [*base.entries.values(), *base.pairs.values()]
    for item in held:
        largest = GAIN_LIMIT if isinstance(item, Entry) else MEAN_LIMIT
        for origins in item.evidence.values():
            for origin, evidence in origins.items():
                _refuse_evidence(evidence, origin, largest)
                if origin not in base.origins:
                    raise Refused(f"evidence of {origin}, which is not among the origins")


def _refuse_evidence(evidence: Evidence, origin: str, largest: float) -> None:
    """Raise for moments that no gains up to `largest` have."""
    counted = evidence.gained + evidence.lost + evidence.within_noise + evidence.failed
    if evidence.tries != counted:
        raise Refused(f"evidence of {origin}: {evidence.tries} tries, but {counted} outcomes")
    if evidence.weight > _ROUNDING * (evidence.gained + evidence.lost):
        raise Refused(f"evidence of {origin} weighs more than the tries that it has")
    is_possible = evidence.m2 <= _ROUNDING * largest**2 * evidence.weight
    if abs(evidence.mean) > _ROUNDING * largest or not is_possible:
        raise Refused(f"evidence of {origin} has a mean or an m2 that no gains have")
