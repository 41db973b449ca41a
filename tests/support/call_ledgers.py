"""The real ledger of a run in a file, used from any thread, and what stands in it."""

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kopt.search.budget import UNLIMITED, Budget
from kopt.search.models.call_desk import CallDesk
from kopt.search.models.call_errors import CallFailed
from kopt.search.models.call_store import CallStore
from kopt.search.models.halt import Halt
from kopt.search.models.ledger import CallDocuments, Reservation, Settlement
from kopt.search.models.model import Model
from kopt.search.models.patience import Patience
from kopt.search.models.prices import load_prices
from kopt.search.models.rate import RateLimit, RateSettings
from kopt.search.models.spend import Spend, read_spend
from kopt.search.store.artifacts import ArtifactStore, open_artifacts
from kopt.search.store.run_log import RunLog
from kopt.search.store.schema import open_writer

_T = TypeVar("_T")

AT_ONCE = Patience(step_s=0.0)
"""Waits no longer than the service asks."""


@dataclass(frozen=True)
class OneThreadLedger:
    """A `CallStore` whose every method runs on one thread, as in a run."""

    store: CallStore
    artifacts: ArtifactStore
    thread: ThreadPoolExecutor

    def find(self, call: str) -> CallDocuments | None:
        """As `CallStore.find`."""
        return self.do(lambda: self.store.find(call))

    def last_of(self, prefix: str) -> CallDocuments | None:
        """As `CallStore.last_of`."""
        return self.do(lambda: self.store.last_of(prefix))

    def reserve(self, reservation: Reservation) -> str | None:
        """As `CallStore.reserve`."""
        return self.do(lambda: self.store.reserve(reservation))

    def retry(self, row: str, failure: CallFailed, wait_s: float) -> None:
        """As `CallStore.retry`."""
        self.do(lambda: self.store.retry(row, failure, wait_s))

    def settle(self, row: str, settlement: Settlement) -> None:
        """As `CallStore.settle`."""
        self.do(lambda: self.store.settle(row, settlement))

    def fail(self, row: str, failure: CallFailed) -> None:
        """As `CallStore.fail`."""
        self.do(lambda: self.store.fail(row, failure))

    def do(self, work: Callable[[], _T]) -> _T:
        """Return what `work` returns on that thread."""
        return self.thread.submit(work).result(timeout=30.0)

    def spend(self) -> Spend:
        """Return what the calls have taken."""
        return self.do(lambda: read_spend(self.store.log.connection))

    def rows(self, columns: str) -> list[tuple[Any, ...]]:
        """Return these columns of every row, by id."""
        query = f"SELECT {columns} FROM llm_call ORDER BY id"
        return self.do(lambda: self.store.log.connection.execute(query).fetchall())

    def events(self) -> list[str]:
        """Return the kinds of all events."""
        query = "SELECT kind FROM event ORDER BY seq"
        rows = self.do(lambda: self.store.log.connection.execute(query).fetchall())
        return [kind for (kind,) in rows]


@contextmanager
def open_ledger(folder: Path, budget: Budget = UNLIMITED) -> Generator[OneThreadLedger]:
    """Open the run file in `folder`, created if need be."""
    artifacts = open_artifacts(folder)
    with ThreadPoolExecutor(1) as thread:
        connection = thread.submit(open_writer, folder / "run.sqlite").result(timeout=30.0)
        store = CallStore(RunLog(connection, artifacts), budget)
        try:
            yield OneThreadLedger(store, artifacts, thread)
        finally:
            thread.submit(connection.close).result(timeout=30.0)


def desk_for(
    model: Model, ledger: OneThreadLedger, halt: Halt | None = None, concurrency: int = 8
) -> CallDesk:
    """Return a desk that asks `model`, with the packaged prices."""
    halt = halt or Halt()
    return CallDesk(
        model=model,
        ledger=ledger,
        artifacts=ledger.artifacts,
        prices=load_prices(Path("/nowhere")),
        rate=RateLimit(RateSettings(concurrency), halt),
        halt=halt,
        patience=AT_ONCE,
    )
