"""A base as JSON, exact to the last bit: for snapshots of runs, for the store's own and --json.

The file for people is YAML, with rounded numbers: `rendering.py`.
"""

from typing import Literal

from pydantic import Field

from kopt.kernels.record import Record
from kopt.search.knowledge.base import KnowledgeBase, entry_key, pair_key
from kopt.search.knowledge.records import Count, Entry, Origin, Pair, State, Technique


class _BaseDocument(Record):
    """A base without keys that repeat what its items say."""

    schema_: Literal["kopt.knowledge_base/1"] = Field(alias="schema")
    version: Count
    origin: Origin
    origins: dict[Origin, Count]
    states: tuple[State, ...]
    techniques: tuple[Technique, ...]
    entries: tuple[Entry, ...]
    pairs: tuple[Pair, ...]


def dump_base(base: KnowledgeBase) -> str:
    """Return `base` as one JSON document, kopt.knowledge_base/1."""
    return _BaseDocument(
        schema="kopt.knowledge_base/1",
        version=base.version,
        origin=base.origin,
        origins=dict(base.origins),
        states=tuple(base.states.values()),
        techniques=tuple(base.techniques.values()),
        entries=tuple(base.entries.values()),
        pairs=tuple(base.pairs.values()),
    ).model_dump_json(by_alias=True, exclude_defaults=True)


def parse_base(text: str | bytes) -> KnowledgeBase:
    """Return the base that `dump_base` wrote.

    Raises:
        ValidationError: It is something else, or damaged.
    """
    document = _BaseDocument.model_validate_json(text)
    return KnowledgeBase(
        version=document.version,
        origin=document.origin,
        origins=document.origins,
        states={state.id: state for state in document.states},
        techniques={technique.id: technique for technique in document.techniques},
        entries={entry_key(entry): entry for entry in document.entries},
        pairs={pair_key(pair): pair for pair in document.pairs},
    )
