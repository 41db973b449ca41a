"""Requests and replies as they lie among the artifacts: their JSON, compressed."""

import zlib
from typing import TypeVar

from kopt.kernels.record import Record

_R = TypeVar("_R", bound=Record)


def pack(record: Record) -> bytes:
    """Return the document of a request or a reply; the same record gives the same bytes."""
    return zlib.compress(record.model_dump_json().encode(), level=6)


def unpack(kind: type[_R], document: bytes) -> _R:
    """Return the record that `pack` made a document of.

    Raises:
        zlib.error, ValidationError: The document is something else.
    """
    return kind.model_validate_json(zlib.decompress(document))
