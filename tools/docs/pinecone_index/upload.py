"""One upload: the records that a namespace lacks, sent batch by batch and noted at once.

However it ends, what the service took is known, and the next upload goes on from there.
"""

import hashlib
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kopt.config.files import ensure_folder
from kopt.config.settings import Settings

from .push_plan import PushPlan
from .push_records import PushProgress, RemoteRecord, batches
from .service import MOST_RECORDS, IndexShape, ids_in, records_in

if TYPE_CHECKING:
    from pinecone import Index

_FIRST_S, _LONGEST_S = 1.0, 60.0
_POLL_S = 2.0


@dataclass(frozen=True)
class Pacing:
    """How long to wait, and by what: tests put something else in place of the clock."""

    sleep: Callable[[float], None] = time.sleep
    most_wait_s: float = 300.0
    """Limit on waiting in a row without a success; a limit by the minute needs one minute."""
    settle_s: float = 60.0
    """Limit on waiting until what was written is counted."""


def until(is_done: Callable[[], bool], limit_s: float, pacing: Pacing) -> bool:
    """Ask `is_done` every two seconds, and say whether it was within `limit_s`."""
    waited_s = 0.0
    while not is_done():
        if waited_s >= limit_s:
            return False
        pacing.sleep(_POLL_S)
        waited_s += _POLL_S
    return True


OnProgress = Callable[[PushProgress], None]


@dataclass
class Upload:
    """Sends a plan to an index, and counts what it has sent."""

    plan: PushPlan
    index: "Index"
    shape: IndexShape
    folder: Path
    """Folder of what this machine knows about the index."""
    pacing: Pacing
    on_progress: OnProgress
    there: int = field(default=0, init=False)
    """Records that the namespace has, those of this upload included."""
    sent: int = field(default=0, init=False)
    requests: int = field(default=0, init=False)
    tokens: int = field(default=0, init=False)
    """Tokens that were sent, estimated."""

    def send_missing(self) -> None:
        """Send every record that is not there yet.

        Raises:
            PineconeError: The service does not take one, or not in time.
        """
        there = self._there()
        missing = [record for record in self.plan.records if record.id not in there]
        self.there = len(self.plan.records) - len(missing)
        self._tell("upload")
        most = MOST_RECORDS[self.shape.kind]
        for batch in batches(missing, self.shape.text_field, most):
            self._send(batch)

    def settle(self) -> bool:
        """Wait until the service counts all records, and say whether it does."""
        self._tell("settle")

        def counted() -> bool:
            return records_in(self.index, self.plan.namespace) >= len(self.plan.records)

        return until(counted, self.pacing.settle_s, self.pacing)

    def delete_earlier(self) -> tuple[str, ...]:
        """Delete the other namespaces that this machine filled, and return their names."""
        from pinecone.errors import NotFoundError

        deleted: list[str] = []
        for name in known_namespaces(self.folder) - {self.plan.namespace}:
            with suppress(NotFoundError):  # somebody else has
                self.index.delete_namespace(name=name)
                deleted.append(name)
            forget(self.folder, name)
        return tuple(sorted(deleted))

    def _there(self) -> frozenset[str]:
        """Return the ids that need not be sent.

        What this machine has noted is right if the service counts as many: else others have
        written or deleted, and the service is asked for all.
        """
        namespace = self.plan.namespace
        noted = sent_ids(self.folder, namespace)
        count = records_in(self.index, namespace)
        if count == len(noted):
            return noted
        there = ids_in(self.index, self.shape, namespace) if count else frozenset[str]()
        forget(self.folder, namespace)
        note_sent(self.folder, namespace, sorted(there))
        return there

    def _send(self, batch: list[RemoteRecord]) -> None:
        from pinecone.errors import PayloadTooLargeError

        try:
            self._with_retries(lambda: self._upsert(batch))
        except PayloadTooLargeError:
            if len(batch) == 1:
                raise
            middle = len(batch) // 2
            self._send(batch[:middle])
            self._send(batch[middle:])
            return
        note_sent(self.folder, self.plan.namespace, [record.id for record in batch])
        self.there += len(batch)
        self.sent += len(batch)
        self.tokens += sum(record.tokens for record in batch)
        self._tell("upload")

    def _with_retries(self, call: Callable[[], None]) -> None:
        """Do `call`, again after failures that may pass, for `pacing.most_wait_s` in a row."""
        from pinecone.errors import (
            ApiError,
            PineconeConnectionError,
            PineconeTimeoutError,
            RateLimitError,
            ServiceError,
        )

        passing = (PineconeConnectionError, PineconeTimeoutError, RateLimitError, ServiceError)
        waited_s, delay_s = 0.0, _FIRST_S
        while True:
            try:
                return call()
            except passing as error:
                asked_s = (error.retry_after or 0.0) if isinstance(error, RateLimitError) else 0.0
                wait_s = max(asked_s, delay_s)
                is_over = waited_s + wait_s > self.pacing.most_wait_s
                # What is used up for a month does not come back in a minute.
                if is_over or "month" in error.message.lower():
                    raise
                status = error.status_code if isinstance(error, ApiError) else None
                said = f"answers {status}" if status else "is silent"
                self._tell("wait", f"Pinecone {said}: again in {wait_s:.0f} s")
                self.pacing.sleep(wait_s)
                waited_s += wait_s
                delay_s = min(2 * delay_s, _LONGEST_S)

    def _upsert(self, batch: list[RemoteRecord]) -> None:
        self.requests += 1
        fields = [record.fields(self.shape.text_field) for record in batch]
        if self.shape.kind == "documents":
            self.index.documents.upsert(namespace=self.plan.namespace, documents=fields)
        else:
            self.index.upsert_records(namespace=self.plan.namespace, records=fields)

    def _tell(self, step: Literal["upload", "settle", "wait"], note: str = "") -> None:
        self.on_progress(PushProgress(step, self.there, len(self.plan.records), note))


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


def known_namespaces(folder: Path) -> set[str]:
    """Return the namespaces that something was sent to."""
    return {path.name.removesuffix(_SUFFIX) for path in folder.glob(f"*{_SUFFIX}")}
