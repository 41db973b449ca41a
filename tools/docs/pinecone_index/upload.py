"""One upload: the records that a namespace lacks, sent batch by batch and noted at once.

However it ends, what the service took is known, and the next upload goes on from there.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from .index_shape import MOST_RECORDS, IndexShape
from .namespaces import ids_in, records_in
from .pacing import Pacing, patiently, until
from .push_plan import Plan
from .push_records import PushProgress
from .remote_records import RemoteRecord, batches
from .sent_ids import forget, known_namespaces, note_sent, sent_ids

if TYPE_CHECKING:
    from pinecone import AsyncIndex

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
