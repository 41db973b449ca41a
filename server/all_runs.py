"""A run for each of many kernels, one after the other, and what became of them."""

from collections.abc import Callable, Sequence
from typing import Literal

import click
from pydantic import Field
from rich.text import Text

from kopt.config.errors import BackendUnavailable, KoptError, SetupError
from kopt.kernels.record import Record
from kopt.search.reports.run_list import RunList, RunSummary
from kopt.search.reports.run_report import RunReport

from .exits import ExitCode, Interrupted
from .starting import program_name
from .views.run_view import runs_table
from .views.tables import View


class FailedKernel(Record):
    """A kernel whose run did not end."""

    kernel: str
    problem: str
    """What went wrong, and how to go on if that is possible."""


class AllRuns(Record):
    """A run of every kernel, or of those before Ctrl-C or what no later kernel could do without."""

    schema_: Literal["kopt.all-runs/1"] = Field(default="kopt.all-runs/1", alias="schema")
    status: Literal["done", "failed", "interrupted"]
    """failed: at least one run has no winner, or did not end. interrupted: Ctrl-C."""
    runs: tuple[RunSummary, ...]
    """In the order of the kernels; each has a report of its own (kopt runs report)."""
    failed: tuple[FailedKernel, ...]
    not_begun: tuple[str, ...] = ()
    """Kernels after Ctrl-C, or after a fault that is not the kernel's: this machine, the key, a
    service that does not answer."""

    @property
    def exit_code(self) -> ExitCode:
        """Return 130 after Ctrl-C, 3 where a run did not end, else 1 where one has no winner."""
        if self.status == "interrupted":
            return ExitCode.INTERRUPTED
        if self.failed:
            return ExitCode.MACHINE
        return ExitCode.PASSED if self.status == "done" else ExitCode.FELL_SHORT


def _go_on(error: Exception) -> str:
    if not isinstance(error, Interrupted) or error.again is None:
        return ""
    return f"; go on with: {error.again.by(program_name()).shell}"


def run_all(kernels: Sequence[str], run: Callable[[str], RunReport]) -> AllRuns:
    """Return what became of a run of each of `kernels`; one that fails does not end the others.

    What this machine, the key or the service lacks they lack for the others too: those are not
    begun. Ctrl-C
    pauses the run that it meets and ends them all: what was done until then is returned.
    """
    ahead = list(kernels)
    runs: list[RunSummary] = []
    failed: list[FailedKernel] = []
    was_interrupted = False
    while ahead and not was_interrupted:
        kernel = ahead.pop(0)
        try:
            report = run(kernel)
        except (Interrupted, KoptError) as error:
            problem = f"{error}{_go_on(error)}"
            click.echo(f"{kernel}: {problem}", err=True)
            failed.append(FailedKernel(kernel=kernel, problem=problem))
            was_interrupted = isinstance(error, Interrupted)
            if isinstance(error, SetupError | BackendUnavailable):
                break
        else:
            runs.append(_summary(report))
    is_done = not failed and all(one.winner is not None for one in runs)
    return AllRuns(
        status="interrupted" if was_interrupted else "done" if is_done else "failed",
        runs=tuple(runs),
        failed=tuple(failed),
        not_begun=tuple(ahead),
    )


def all_runs_view(all_runs: AllRuns) -> View:
    """Yield one line for each kernel that got a run, and how many did not."""
    if all_runs.runs:
        yield from runs_table(RunList(runs=all_runs.runs))
    yield from (Text(f"{one.kernel}: {one.problem}", style="red") for one in all_runs.failed)
    if all_runs.not_begun:
        count = len(all_runs.not_begun)
        why = (
            "kopt run --kernel ID begins one"
            if all_runs.status == "interrupted"
            else "they would lack the same"
        )
        yield Text(f"{count} more kernels were not begun: {why}.")


def _summary(report: RunReport) -> RunSummary:
    names = set(RunSummary.model_fields) - {"schema_"}
    return RunSummary(**{name: getattr(report, name) for name in names})
