"""What an upload to Pinecone is asked for, would cost, tells while it runs, and gives."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, unquote

from pydantic import Field

from kopt.kernels.record import Record
from kopt.tools.docs.indexing.entries import card_of
from kopt.tools.docs.records import Chunk
from kopt.tools.docs.visible_text import BYTES_PER_TOKEN, estimated_tokens

ANY_ARCH = "any"
"""The architecture of what is bound to none: a list that is empty matches no filter."""
MOST_TOKENS = 480
"""Limit on one text. multilingual-e5-large reads 507; ours are estimated."""
MOST_BYTES = 1_900_000
"""Limit on one request. The service allows 2 MB."""
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


STARTER_PLAN_TOKENS = 5_000_000
"""Embedded a month without payment, by Pinecone's documentation."""
STARTER_PLAN_CLOUD = "aws"
STARTER_PLAN_REGION = "us-east-1"
"""Its only place."""


@dataclass(frozen=True)
class PushRequest:
    """What to upload, and where."""

    create: bool = False
    """Make the index if there is none."""
    sources: tuple[str, ...] = ()
    """These alone; () for all known libraries. The user's folders must be named."""
    most_tokens: int = MOST_TOKENS
    """Limit on each text: less costs less and finds less."""
    cloud: str = STARTER_PLAN_CLOUD
    """Cloud of a new index."""
    region: str = STARTER_PLAN_REGION


@dataclass(frozen=True)
class PushProgress:
    """How far the upload is."""

    step: Literal["wait", "index", "upload", "settle"]
    """`wait`: for another process, or as the service asks; `index`: for the index to be there and
    ready; `upload`: record by record; `settle`: until the service counts all of them."""
    done: int
    total: int
    note: str = ""
    """Why it waits."""


class PushEstimate(Record):
    """What an upload would send; nothing was asked of the service."""

    schema_: Literal["kopt.docs-push-estimate/1"] = Field(
        default="kopt.docs-push-estimate/1", alias="schema"
    )
    status: Literal["passed"] = "passed"
    index: str
    namespace: str
    """Namespace of this library; a later one gets another."""
    cloud: str
    """Cloud of the index, where it has to be made."""
    region: str
    model: str
    """Model that embeds the texts."""
    sources: dict[str, int]
    """Records by source."""
    kept_back: dict[str, str]
    """Sources of the library that are not sent, whole or in part, and why."""
    left_out: int
    """Records that the service cannot take: their ids are too long."""
    records: int
    requests: int
    """Least number of requests: the service may ask for smaller ones."""
    estimated_tokens: int
    """Estimated from bytes, three a token; the service counts for itself."""
    starter_plan_tokens: int = STARTER_PLAN_TOKENS
    """Tokens that the Starter plan embeds in a month."""
    fits_starter_plan: bool
    """By the estimate, in one month and with nothing else."""
    most_tokens: int
    """Limit on one record."""
    most_tokens_that_fit: int | None
    """Limit on one record with which all fit the Starter plan; None if they do as they are."""


class PushResult(Record):
    """An upload that is complete."""

    schema_: Literal["kopt.docs-push/1"] = Field(default="kopt.docs-push/1", alias="schema")
    status: Literal["passed"] = "passed"
    index: str
    host: str
    namespace: str
    created: bool
    """The index was made."""
    sources: dict[str, int]
    """Records by source."""
    records: int
    """Records that the namespace should hold."""
    sent: int
    """This time; the others were there."""
    requests: int
    estimated_tokens: int
    """Tokens of what was sent."""
    is_visible: bool
    """False if the service did not count all of them yet: searches may miss some for a while."""
    deleted_namespaces: tuple[str, ...]
    """Namespaces of earlier libraries that this machine had uploaded."""
    seconds: float


MOST_ID_BYTES = 512
_KEPT = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")


def remote_id(uid: str) -> str:
    """Return the id of a uid."""
    return quote(uid, safe=_KEPT)


def uid_of(id_: str) -> str:
    """Return the uid of an id."""
    return unquote(id_)
