"""What is sent of a chunk: its card and the head of its code as text, and little metadata.

The code itself stays on this machine, where the library index has it.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kopt.tools.docs.chunking.cards import card_of
from kopt.tools.docs.excerpts import BYTES_PER_TOKEN, estimated_tokens
from kopt.tools.docs.records import Chunk

from .remote_filters import ANY_ARCH
from .remote_ids import remote_id

MOST_TOKENS = 480
"""Of one text. multilingual-e5-large reads 507; ours are estimated."""
MOST_BYTES = 1_900_000
"""Of one request. 2 MB are allowed."""
_ID_KEY = "_id"
_LONGEST_PATH = 300


@dataclass(frozen=True)
class RemoteRecord:
    """One record but for the name of the field that its text goes into."""

    id: str
    text: str
    metadata: dict[str, str | list[str]]

    def fields(self, text_field: str) -> dict[str, str | list[str]]:
        """Return the record as it is sent."""
        return {_ID_KEY: self.id, text_field: self.text, **self.metadata}

    @property
    def tokens(self) -> int:
        """Return the estimated number of tokens that are embedded."""
        return estimated_tokens(self.text)


def remote_record(chunk: Chunk, most_tokens: int) -> RemoteRecord:
    """Return the record of `chunk`, whose text has about `most_tokens` at most."""
    text = "\n".join(part for part in (card_of(chunk), chunk.head, chunk.body) if part)
    cut = text.encode("utf-8", errors="replace")[: most_tokens * BYTES_PER_TOKEN]
    metadata: dict[str, str | list[str]] = {
        "source": chunk.source,
        "kind": chunk.kind,
        "arch": list(chunk.arch) or [ANY_ARCH],
        "path": chunk.path[-_LONGEST_PATH:],
    }
    if chunk.dtype:
        metadata["dtype"] = list(chunk.dtype)
    return RemoteRecord(remote_id(chunk.uid), cut.decode("utf-8", errors="ignore"), metadata)


def batches(
    records: Sequence[RemoteRecord], text_field: str, most_records: int
) -> Iterator[list[RemoteRecord]]:
    """Yield the records in order, as many at a time as one request may have."""
    batch: list[RemoteRecord] = []
    size = 0
    for record in records:
        line = len(json.dumps(record.fields(text_field), ensure_ascii=False).encode()) + 1
        if batch and (len(batch) == most_records or size + line > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += line
    if batch:
        yield batch
