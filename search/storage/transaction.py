"""A transaction of a SQLite file that Ctrl-C may hit anywhere, and the clock of its rows."""

import sqlite3
import time
from types import TracebackType


class Transaction:
    """BEGIN at the entry of a `with` block, COMMIT at its end, ROLLBACK for any exception.

    A class and no generator: an interrupt between a generator's `yield` and the block would leave
    the transaction open, and the generator's end would undo a later one.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Write through `connection`, whose transactions are all of this kind."""
        self._connection = connection

    def __enter__(self) -> None:
        """Begin."""
        self._undo()  # what an interrupt has left behind, just before its block
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._undo()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Commit, or undo everything if the block or the commit fails."""
        try:
            if kind is None:
                self._connection.execute("COMMIT")
        finally:
            self._undo()

    def _undo(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")


def now_us() -> int:
    """Return the Unix time in microseconds, for the record only."""
    return time.time_ns() // 1000
