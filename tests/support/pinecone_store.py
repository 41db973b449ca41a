"""What the loopback Pinecone holds: one index, its namespaces, filters and rankings.

Written for these tests after the published limits of the service. Likeness is the cosine of
lower-cased word counts.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

MOST_RECORDS = 96
MOST_BYTES = 2 * 2**20
MOST_METADATA_BYTES = 40_960
Fields = dict[str, Any]


class Refused(Exception):
    """An answer other than success."""

    def __init__(self, status: int, code: str, message: str) -> None:
        """Keep what the reply says."""
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


@dataclass
class Index:
    """One index and all its records."""

    name: str
    schema: Fields
    text_field: str
    namespaces: dict[str, dict[str, Fields]] = field(default_factory=dict[str, dict[str, Fields]])
    describes_until_ready: int = 0

    def described(self, host: str) -> Fields:
        """Return what the control plane says of it; each time it is nearer to being ready."""
        ready = self.describes_until_ready <= 0
        self.describes_until_ready -= 1
        return {
            "name": self.name,
            "host": host,
            "status": {"ready": ready, "state": "Ready" if ready else "Initializing"},
            "schema": {"fields": self.schema},
            "deployment": {
                "deployment_type": "managed",
                "cloud": "aws",
                "region": "us-east-1",
                "environment": "loopback",
            },
            "deletion_protection": "disabled",
            "read_capacity": {"mode": "OnDemand", "status": {"state": "Ready"}},
        }

    def upsert(self, namespace: str, records: list[Fields]) -> None:
        """Store records; all or none."""
        if len(records) > MOST_RECORDS:
            raise _bad(f"{len(records)} records; at most {MOST_RECORDS}")
        for record in records:
            self._check(record)
        stored = self.namespaces.setdefault(namespace, {})
        stored.update({record["_id"]: record for record in records})

    def search(self, namespace: str, text: str, filter_: Fields, top_k: int) -> list[Fields]:
        """Return the records that are most like the text, with `_score`."""
        found = [
            record | {"_score": likeness(text, record[self.text_field])}
            for record in self.namespaces.get(namespace, {}).values()
            if _passes(record, filter_)
        ]
        return sorted(found, key=lambda one: (-one["_score"], one["_id"]))[:top_k]

    def _check(self, record: Fields) -> None:
        id_ = record.get("_id")
        if not isinstance(id_, str) or not id_.isascii() or not 0 < len(id_) <= 512:
            raise _bad(f"_id {id_!r}")
        if not isinstance(record.get(self.text_field), str):
            raise _bad(f"no text field {self.text_field}")
        metadata = {key: value for key, value in record.items() if key != "_id"}
        for key, value in metadata.items():
            words = cast("list[object]", value if isinstance(value, list) else [""])
            is_list = isinstance(value, list) and all(isinstance(word, str) for word in words)
            if not (is_list or isinstance(value, str | int | float | bool)):
                raise _bad(f"metadata {key} is {value!r}")
        if len(json.dumps(metadata)) > MOST_METADATA_BYTES:
            raise _bad("metadata too large")


def records_index(name: str, text_field: str = "chunk_text", ready_after: int = 0) -> Index:
    """Return an index of the records API."""
    fields = {
        "type": "semantic_text",
        "model": "multilingual-e5-large",
        "metric": "cosine",
        "read_parameters": {"input_type": "query", "truncate": "END"},
        "write_parameters": {"input_type": "passage", "truncate": "END"},
    }
    return Index(name, {text_field: fields}, text_field, describes_until_ready=ready_after)


def documents_index(name: str, text_field: str = "body") -> Index:
    """Return a document index."""
    fields = {"type": "string", "embed": {"model": "multilingual-e5-large"}}
    schema = {"kind": {"type": "string", "filterable": True}, text_field: fields}
    return Index(name, schema, text_field)


def dense_index(name: str) -> Index:
    """Return an index that embeds nothing."""
    fields = {"type": "dense_vector", "dimension": 8, "metric": "cosine"}
    return Index(name, {"values": fields}, "values")


def likeness(one: str, other: str) -> float:
    """Return the cosine of the word counts of two texts."""
    left, right = (Counter(re.findall(r"\w+", text.lower())) for text in (one, other))
    dot = sum(count * right[word] for word, count in left.items())
    norms = (math.sqrt(sum(count * count for count in words.values())) for words in (left, right))
    return dot / (math.prod(norms) or 1.0)


def _passes(record: Fields, filter_: Mapping[str, Any]) -> bool:
    return all(_holds(record, key, condition) for key, condition in filter_.items())


def _holds(record: Fields, key: str, condition: Any) -> bool:
    if key in ("$and", "$or"):
        parts = [_passes(record, part) for part in condition]
        return all(parts) if key == "$and" else any(parts)
    tests = cast("Fields", condition) if isinstance(condition, dict) else {"$eq": condition}
    return all(_compares(record.get(key), operator, value) for operator, value in tests.items())


def _compares(stored: list[str] | str | None, operator: str, value: Any) -> bool:
    elements = stored if isinstance(stored, list) else [stored]
    match operator:
        case "$eq":
            return value in elements
        case "$ne":
            return value not in elements
        case "$in":
            return any(element in value for element in elements)
        case "$nin":
            return not any(element in value for element in elements)
        case "$exists":
            return (stored is not None) is bool(value)
        case _:
            raise _bad(f"unknown operator {operator}")


def _bad(message: str) -> Refused:
    return Refused(400, "INVALID_ARGUMENT", message)
