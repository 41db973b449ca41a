"""One upload: the records that a namespace lacks, sent batch by batch and noted at once.

However it ends, what the service took is known, and the next upload goes on from there.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from kopt.config.files import ensure_folder
from kopt.config.settings import Settings

from .push_plan import Plan
from .push_records import PushProgress, RemoteRecord, batches
from .service import MOST_RECORDS, IndexShape, ids_in, records_in

if TYPE_CHECKING:
    from pinecone import AsyncIndex

T = TypeVar("T")
_FIRST_S, _LONGEST_S = 1.0, 60.0
_POLL_S = 2.0


@dataclass(frozen=True)
class Pacing:
    """How long to wait, and by what: tests put something else in place of the clock."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    most_wait_s: float = 300.0
    """In a row, without a success. Limits by the minute need one of it."""
    settle_s: float = 60.0
    """For what was written to be counted."""


async def patiently(
    call: Callable[[], Awaitable[T]], pacing: Pacing, on_wait: Callable[[str], None]
) -> T:
    """Return what `call` comes back with, called again after failures that may pass.

    Raises:
        PineconeError: It failed in another way, or for longer than `pacing.most_wait_s`.
    """
    from pinecone.errors import (
        ApiError,
        PineconeConnectionError,
        PineconeTimeoutError,
        RateLimitError,
        ServiceError,
    )

    waited_s, delay_s = 0.0, _FIRST_S
    while True:
        try:
            return await call()
        except (
            PineconeConnectionError,
            PineconeTimeoutError,
            RateLimitError,
            ServiceError,
        ) as error:
            asked_s = (error.retry_after or 0.0) if isinstance(error, RateLimitError) else 0.0
            wait_s = max(asked_s, delay_s)
            # What is used up for a month does not come back in a minute.
            if waited_s + wait_s > pacing.most_wait_s or "month" in error.message.lower():
                raise
            said = f"answers {error.status_code}" if isinstance(error, ApiError) else "is silent"
            on_wait(f"Pinecone {said}: again in {wait_s:.0f} s")
            await pacing.sleep(wait_s)
            waited_s += wait_s
            delay_s = min(2 * delay_s, _LONGEST_S)


async def until(is_done: Callable[[], Awaitable[bool]], limit_s: float, pacing: Pacing) -> bool:
    """Ask `is_done` every two seconds, and say whether it was within `limit_s`."""
    waited_s = 0.0
    while not await is_done():
        if waited_s >= limit_s:
            return False
        await pacing.sleep(_POLL_S)
        waited_s += _POLL_S
    return True


OnProgress = Callable[[PushProgress], None]


@dataclass(frozen=True)
class Way:
    """How an upload waits and what it tells."""

    pacing: Pacing
    on_progress: OnProgress


@dataclass(frozen=True)
class Target:
    """The index that is written to."""

    index: "AsyncIndex"
    shape: IndexShape
    folder: Path
    """Of what this machine knows about it."""


@dataclass
class Tally:
    """What one upload has done so far."""

    there: int = 0
    """Records that the namespace has, these included."""
    sent: int = 0
    requests: int = 0
    tokens: int = 0
    """Estimated."""


class Upload:
    """Sends a plan to a target."""

    def __init__(self, plan: Plan, target: Target, way: Way) -> None:
        """Send nothing yet."""
        self._plan = plan
        self._target = target
        self._way = way
        self.tally = Tally()

    async def send_missing(self) -> None:
        """Send every record that is not there yet.

        Raises:
            PineconeError: The service does not take one, or not in time.
        """
        there = await self._there()
        missing = [record for record in self._plan.records if record.id not in there]
        self.tally.there = len(self._plan.records) - len(missing)
        shape = self._target.shape
        self._tell("upload")
        for batch in batches(missing, shape.text_field, MOST_RECORDS[shape.kind]):
            await self._send(batch)

    async def settle(self) -> bool:
        """Wait until the service counts all records, and say whether it does."""
        self._tell("settle")

        async def counted() -> bool:
            count = await records_in(self._target.index, self._plan.namespace)
            return count >= len(self._plan.records)

        return await until(counted, self._way.pacing.settle_s, self._way.pacing)

    async def delete_earlier(self) -> tuple[str, ...]:
        """Delete the other namespaces that this machine filled, and return their names."""
        from pinecone.errors import NotFoundError

        deleted: list[str] = []
        for name in known_namespaces(self._target.folder):
            if name == self._plan.namespace:
                continue
            try:
                await self._target.index.delete_namespace(name=name)
                deleted.append(name)
            except NotFoundError:
                pass  # somebody else has
            forget(self._target.folder, name)
        return tuple(deleted)

    async def _there(self) -> frozenset[str]:
        """Return the ids that need not be sent.

        What this machine has noted is right if the service counts as many: else others have
        written or deleted, and the service is asked for all.
        """
        target, namespace = self._target, self._plan.namespace
        noted = sent_ids(target.folder, namespace)
        count = await records_in(target.index, namespace)
        if count == len(noted):
            return noted
        there = await ids_in(target.index, target.shape, namespace) if count else frozenset[str]()
        forget(target.folder, namespace)
        note_sent(target.folder, namespace, sorted(there))
        return there

    async def _send(self, batch: list[RemoteRecord]) -> None:
        from pinecone.errors import PayloadTooLargeError

        try:
            await patiently(lambda: self._upsert(batch), self._way.pacing, self._tell_wait)
        except PayloadTooLargeError:
            if len(batch) == 1:
                raise
            middle = len(batch) // 2
            await self._send(batch[:middle])
            await self._send(batch[middle:])
            return
        note_sent(self._target.folder, self._plan.namespace, [record.id for record in batch])
        self.tally.there += len(batch)
        self.tally.sent += len(batch)
        self.tally.tokens += sum(record.tokens for record in batch)
        self._tell("upload")

    async def _upsert(self, batch: list[RemoteRecord]) -> None:
        self.tally.requests += 1
        index, shape = self._target.index, self._target.shape
        fields = [record.fields(shape.text_field) for record in batch]
        if shape.kind == "documents":
            await index.documents.upsert(namespace=self._plan.namespace, documents=fields)
        else:
            await index.upsert_records(namespace=self._plan.namespace, records=fields)

    def _tell(self, step: Literal["upload", "settle", "wait"], note: str = "") -> None:
        total = len(self._plan.records)
        self._way.on_progress(PushProgress(step, self.tally.there, total, note))

    def _tell_wait(self, note: str) -> None:
        self._tell("wait", note)


_SUFFIX = ".ids"


def sent_folder(host: str, settings: Settings) -> Path:
    """Return the folder of the namespaces of the index at `host`.

    Raises:
        SetupError: It cannot be written.
    """
    name = hashlib.sha256(host.encode()).hexdigest()[:16]
    return ensure_folder(settings.docs_cache / "pinecone" / name)


def sent_ids(folder: Path, namespace: str) -> frozenset[str]:
    """Return the ids; a line that was cut off in writing is none."""
    try:
        text = (folder / f"{namespace}{_SUFFIX}").read_text(encoding="ascii")
    except FileNotFoundError:
        return frozenset()
    return frozenset(line for line in text.split("\n")[:-1] if line)


def note_sent(folder: Path, namespace: str, ids: Iterable[str]) -> None:
    """Add ids that the service has taken."""
    with (folder / f"{namespace}{_SUFFIX}").open("a", encoding="ascii") as file:
        file.write("".join(f"{id_}\n" for id_ in ids))


def forget(folder: Path, namespace: str) -> None:
    """Drop what is known of a namespace."""
    (folder / f"{namespace}{_SUFFIX}").unlink(missing_ok=True)


def known_namespaces(folder: Path) -> list[str]:
    """Return the namespaces that something was sent to."""
    return sorted(path.name.removesuffix(_SUFFIX) for path in folder.glob(f"*{_SUFFIX}"))
