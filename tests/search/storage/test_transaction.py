"""A transaction that is interrupted leaves nothing behind, and does not hinder the next."""

import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from kopt.search.storage.transaction import Transaction


class Interrupted(sqlite3.Connection):
    """Ctrl-C as it comes right behind a statement, once."""

    behind: str | None = None

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        cursor = super().execute(sql, *arguments)
        if sql == self.behind:
            self.behind = None
            raise KeyboardInterrupt
        return cursor


@pytest.fixture
def connection() -> Iterator[Interrupted]:
    connection = sqlite3.connect(":memory:", isolation_level=None, factory=Interrupted)
    connection.execute("CREATE TABLE word (text TEXT)")
    yield connection
    connection.close()


def words(connection: sqlite3.Connection) -> list[str]:
    return [text for (text,) in connection.execute("SELECT text FROM word ORDER BY text")]


def write(connection: Interrupted, text: str) -> None:
    with Transaction(connection):
        connection.execute("INSERT INTO word VALUES (?)", (text,))


@pytest.mark.parametrize(
    ("behind", "kept"),
    [
        ("BEGIN IMMEDIATE", []),
        ("INSERT INTO word VALUES (?)", []),
        ("COMMIT", ["interrupted"]),
    ],
)
def test_an_interrupt_leaves_all_or_nothing_and_no_open_transaction(
    connection: Interrupted, behind: str, kept: list[str]
) -> None:
    connection.behind = behind
    with pytest.raises(KeyboardInterrupt):
        write(connection, "interrupted")
    assert (words(connection), connection.in_transaction) == (kept, False)
    write(connection, "later")
    assert words(connection) == [*kept, "later"]


def test_what_was_begun_before_its_block_is_undone_by_the_next(connection: Interrupted) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("INSERT INTO word VALUES ('lost')")
    write(connection, "kept")
    assert words(connection) == ["kept"]


def test_an_error_in_the_block_undoes_it(connection: Interrupted) -> None:
    with pytest.raises(sqlite3.OperationalError), Transaction(connection):
        connection.execute("INSERT INTO word VALUES ('lost')")
        connection.execute("INSERT INTO nothing VALUES (1)")
    assert words(connection) == []
