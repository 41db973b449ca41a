"""`kopt bench --all`: times every problem's own kernels and shows, or writes, one table.

Minutes of work: the Markdown file is written anew after each row, and an interrupted call shows the
rows that it has.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kopt.config.device_names import asks_for_simulator
from kopt.config.errors import SetupError
from kopt.kernels.bench_result import BenchAllResult
from kopt.kernels.problem import Problem
from kopt.kernels.status import Verdict
from kopt.server.views.bench_table_view import bench_table_markdown, bench_table_view
from kopt.tools.bench.bench_all import BenchAllRequest, bench_all
from kopt.tools.bench.request import BaselineChoice

from .exits import ExitCode
from .opened_device import DeviceChoice, opened_device
from .progress import status_line
from .session import Session


@dataclass(frozen=True)
class TableRequest:
    """The kernels and baselines of a table, and the file that it is written to."""

    problems: tuple[Problem, ...]
    choice: DeviceChoice
    baselines: BaselineChoice
    markdown: Path | None


def show_table(session: Session, request: TableRequest) -> ExitCode:
    """Time all kernels and print the table.

    Raises:
        SetupError: There is no GPU, or the file cannot be written: said before anything is timed,
            or behind the rows so far.
        KeyboardInterrupt: Ctrl-C before the first row; later the rows so far are shown.
    """

    def measure(keep: Callable[[BenchAllResult], None]) -> BenchAllResult:
        def keep_and_write(so_far: BenchAllResult) -> None:
            keep(so_far)
            if request.markdown is not None:
                _write(request.markdown, bench_table_markdown(so_far))

        return _measure(session, request, keep_and_write)

    table = session.show_growing(
        measure, bench_table_view, lambda one: f"{len(one.rows)} of {one.planned} rows"
    )
    return ExitCode.INTERRUPTED if table is None else _exit_code(table)


def _measure(
    session: Session, request: TableRequest, keep: Callable[[BenchAllResult], None]
) -> BenchAllResult:
    with (
        status_line(quiet=session.as_json) as show,
        opened_device(request.choice, session.settings, show) as opened,
    ):
        if opened.timer is None:
            is_asked = asks_for_simulator(request.choice.name)
            none_here = "" if is_asked else ", and no GPU can be used here"
            raise SetupError(f"kopt bench --all needs a GPU: sim measures no time{none_here}")
        if request.markdown is not None:
            _write(request.markdown, "", "a")
        asked = BenchAllRequest(request.problems, request.baselines, show, keep)
        return bench_all(asked, opened.timer, session.settings)


def _write(path: Path, text: str, mode: Literal["a", "w"] = "w") -> None:
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise SetupError(f"cannot write {path}: {error.strerror}") from error


def _exit_code(table: BenchAllResult) -> ExitCode:
    """Return 0 if all passed: a reference kernel slower than a library is no failure."""
    if any(row.result is None for row in table.rows):
        return ExitCode.MACHINE
    impossible = any(
        row.result is not None and row.result.verdict is Verdict.IMPOSSIBLE for row in table.rows
    )
    return ExitCode.FELL_SHORT if table.failed or impossible else ExitCode.PASSED
