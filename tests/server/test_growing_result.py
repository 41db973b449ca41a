"""A result that grows while it is made: what is printed when a signal ends the work."""

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.text import Text

from kopt.config.settings import Settings
from kopt.config.termination import terminated_as_by_ctrl_c
from kopt.kernels.record import Record
from kopt.server.session import Session

Keep = Callable[["Rows"], None]


class Rows(Record):
    """A result of some rows."""

    rows: int


@pytest.fixture(autouse=True)
def default_action() -> Iterator[None]:
    """Let SIGTERM end the process again after each test."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _terminated(rows: int) -> Callable[[Keep], Rows]:
    """Return work that keeps so many rows and is then ended by SIGTERM."""

    def make(keep: Keep) -> Rows:
        for number in range(1, rows + 1):
            keep(Rows(rows=number))
        os.kill(os.getpid(), signal.SIGTERM)
        raise AssertionError("SIGTERM did not end the work")

    return make


def _shown(session: Session, make: Callable[[Keep], Rows]) -> Rows | None:
    return session.show_growing(
        make, lambda one: [Text(f"{one.rows} rows")], lambda one: f"{one.rows} of 3 rows"
    )


def test_sigterm_prints_what_there_is_so_far(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    session = Session(Settings(tmp_path), as_json=True)
    assert _shown(session, _terminated(2)) is None
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"rows": 2}
    assert "interrupted after 2 of 3 rows" in printed.err
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_sigterm_before_any_result_ends_the_command(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        _shown(Session(Settings(tmp_path), as_json=True), _terminated(0))


def test_a_process_that_takes_sigterm_itself_goes_on_to_do_so() -> None:
    taken: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: taken.append(number))
    with terminated_as_by_ctrl_c():
        os.kill(os.getpid(), signal.SIGTERM)
    assert taken == [signal.SIGTERM]


def test_other_threads_leave_signals_alone() -> None:
    found: list[object] = []

    def work() -> None:
        with terminated_as_by_ctrl_c():
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.SIG_DFL]
