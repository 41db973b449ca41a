"""What an upload to Pinecone is asked for, would cost, tells while it runs, and gives."""

from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from kopt.kernels.record import Record

from .remote_records import MOST_TOKENS

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
    """Of each text: less costs less and finds less."""
    cloud: str = STARTER_PLAN_CLOUD
    """For a new index."""
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
    """Of this library; a later one gets another."""
    cloud: str
    """Of the index, where it has to be made."""
    region: str
    model: str
    """What embeds the texts."""
    sources: dict[str, int]
    """Records by source."""
    kept_back: dict[str, str]
    """Sources of the library that are not sent, whole or in part, and why."""
    left_out: int
    """Records that the service cannot take: their ids are too long."""
    records: int
    requests: int
    """At least: the service may ask for smaller ones."""
    estimated_tokens: int
    """Estimated from bytes, three a token; the service counts for itself."""
    starter_plan_tokens: int = STARTER_PLAN_TOKENS
    """What the Starter plan embeds a month."""
    fits_starter_plan: bool
    """By the estimate, in one month and with nothing else."""
    most_tokens: int
    """Of one record."""
    most_tokens_that_fit: int | None
    """Of one record, so that all fit the Starter plan; None if they do as they are."""


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
    """That the namespace should hold."""
    sent: int
    """This time; the others were there."""
    requests: int
    estimated_tokens: int
    """Of what was sent."""
    is_visible: bool
    """False if the service did not count all of them yet: searches may miss some for a while."""
    deleted_namespaces: tuple[str, ...]
    """Of earlier libraries, uploaded from this machine."""
    seconds: float
