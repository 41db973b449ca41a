"""The real ledger of a run in a file, used from any thread, and what stands in it."""

from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kopt.search.models.call_ledger import CallLedger, read_spend
from kopt.search.models.client import ModelClient
from kopt.search.models.errors import Halt
from kopt.search.models.model import Model
from kopt.search.models.prices import load_prices
from kopt.search.models.rate_limit import RateLimit, RateSettings
from kopt.search.models.retry import RetryPolicy
from kopt.search.records.budget import UNLIMITED, Budget, Spend
from kopt.search.storage.artifacts import open_artifacts
from kopt.search.store.run_log import RunLog
from kopt.search.store.schema import open_writer

_T = TypeVar("_T")

AT_ONCE = RetryPolicy(step_s=0.0)
"""Waits no longer than the service asks."""


@dataclass(frozen=True)
class OneThreadLedger:
    """A `CallLedger` and the one thread that uses it, as in a run."""

    store: CallLedger
    thread: ThreadPoolExecutor

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
    artifacts = open_artifacts(folder)  # creates the folder too
    with ThreadPoolExecutor(1) as thread:
        connection = thread.submit(open_writer, folder / "run.sqlite").result(timeout=30.0)
        store = CallLedger(RunLog(connection, artifacts), budget)
        try:
            yield OneThreadLedger(store, thread)
        finally:
            thread.submit(connection.close).result(timeout=30.0)


def desk_for(
    model: Model, ledger: OneThreadLedger, halt: Halt | None = None, concurrency: int = 8
) -> ModelClient:
    """Return a desk that asks `model`, with the packaged prices."""
    halt = halt or Halt()
    return ModelClient(
        model=model,
        ledger=ledger.store,
        thread=ledger,
        prices=load_prices(Path("/nowhere")),
        rate=RateLimit(RateSettings(concurrency), halt),
        halt=halt,
        policy=AT_ONCE,
    )
