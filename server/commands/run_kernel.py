"""`kopt run`: search for faster kernels, or go on with a search that was interrupted."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import click
from pydantic import Field
from rich.text import Text

from kopt.config.errors import KoptError, SetupError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.record import Record
from kopt.search.reports.run_list import RunList, RunSummary
from kopt.search.reports.run_report import RunReport
from kopt.server.exits import ExitCode, Interrupted
from kopt.server.opened_device import DeviceChoice
from kopt.server.options import device_arch_option, device_option
from kopt.server.run_driving import RunOptions, begin_and_drive, read_settings, refuse_typos, resume
from kopt.server.session import Session, command_body
from kopt.server.views.run_view import run_view, runs_table
from kopt.server.views.tables import View

EPILOG = """\b
Examples:
  kopt run --kernel add_rmsnorm_fp4quant_b128xh2048
  kopt run --kernel silu_and_mul_b8xh14336 --device cuda:0 --budget '$5,2h'
  kopt run --kernel silu_and_mul_b8xh14336 --dry-run
  kopt run --kernel silu_and_mul_b8xh14336 --strategy maic_rl --budget '$5'
  kopt run --resume run-20260101-120000-000
  kopt run --budget '$2'

\b
With ANTHROPIC_API_KEY Claude plans, writes, mends and merges kernels; without,
the `tune` values that the starting kernel declares are tried. Without --kernel
every kernel gets a run, one after the other; --budget is that of each. Ctrl-C
pauses a run; --resume goes on, also after kill -9: nothing finished is lost or
paid twice. The report is in the run's folder (report.md, report.html).
Exit codes: 0 every run has a winner, 1 one has none, 2 wrong usage, 3 this
machine or the model lacks something, 130 interrupted."""


@click.command("run", epilog=EPILOG)
@click.option("--kernel", metavar="ID", help="Kernel id (kopt list); default: all of them.")
@device_option
@device_arch_option
@click.option(
    "--rounds",
    type=click.IntRange(min=0),
    help="Rounds after the starting kernel's own evaluation.  [default: 4]",
)
@click.option(
    "--beam-width",
    type=click.IntRange(min=1),
    help="Candidates kept after each round.  [default: 4]",
)
@click.option(
    "--strategy",
    type=click.Choice(["beam", "maic_rl"]),
    help="Who decides what is tried: beam, rounds over the best; maic_rl, trajectories of"
    " techniques drawn from the knowledge base (kopt kb).  [default: beam]",
)
@click.option("--seed", type=int, help="Seed of the search's own draws.  [default: 0]")
@click.option(
    "--budget",
    metavar="LIMITS",
    help="What the search may spend: evaluations (50), wall time after the starting kernel's own"
    " evaluation (90s, 10m, 2h), dollars ($5), tokens (2Mtok), GPU time (gpu:10m); several with"
    " commas.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="YAML with what shall differ from config/search.yaml, which explains every key.",
)
@click.option(
    "--start",
    type=click.Path(path_type=Path),
    help="Your own kernel to start from; default: the problem's reference.cu.",
)
@click.option("--resume", metavar="RUN", help="Go on with this run (kopt runs).")
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write what Claude says to this file.",
)
@click.option(
    "--replay",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Let this recording answer in Claude's place: the same run again, without a key.",
)
@click.option("--dry-run", is_flag=True, help="Show the plan and what it may cost; run nothing.")
@click.option("--progress", is_flag=True, help="Show progress on stderr with --json too.")
@command_body(RunOptions)
def command(session: Session, options: RunOptions) -> int:
    """Search for a faster kernel and say what was found.

    Each round proposes candidates, compiles and checks them, and keeps the best: on a GPU by
    their measured speed against the baseline, on the simulator by estimated time. The best of all
    must pass the full check to be the winner; on a GPU it is promoted by the rule of `kopt bench
    --promote`.
    """
    _refuse_contradictions(options)
    if options.dry_run:
        return _show_plan(session, options)
    if options.resume is None and options.kernel is None:
        read_settings(options, session)  # wrong for one, wrong for all
        every = run_all(session.settings, partial(begin_and_drive, session, options))
        session.show(every, all_runs_view(every))
        return every.exit_code
    if options.resume is None:
        report = begin_and_drive(session, options, options.kernel or "")
    else:
        report = resume(session, options, options.resume)
    session.show(report, run_view(report))
    return ExitCode.FELL_SHORT if report.winner is None else ExitCode.PASSED


def _show_plan(session: Session, options: RunOptions) -> int:
    """Show what would be done and what it may cost, for each kernel; nothing is begun."""
    from kopt.server.dry_run import print_dry_run

    if options.resume is not None:
        raise ToolError("--dry-run shows the plan of a new run: leave --resume out")
    problems = load_problems(session.settings.problems).values()
    every = [kernel for problem in problems for kernel in problem.kernel_ids]
    kernels = every if options.kernel is None else [options.kernel]
    requests = [refuse_typos(options, kernel, session) for kernel in kernels]
    return print_dry_run(session, requests, DeviceChoice(options.device, options.arch))


def _refuse_contradictions(options: RunOptions) -> None:
    """Refuse options that cannot be meant together, before anything is opened."""
    if options.record is not None and options.replay is not None:
        raise ToolError("--record writes a recording and --replay reads one: name one of them")
    is_one = options.kernel is not None or options.resume is not None
    for name in ("start", "record", "replay"):
        if getattr(options, name) is not None and not is_one:
            raise ToolError(f"--{name} is of one kernel: name it with --kernel ID (kopt list)")


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
    """Kernels after Ctrl-C, or after one that this machine, or the key, lacked something for."""

    @property
    def exit_code(self) -> ExitCode:
        """Return 130 after Ctrl-C, 3 where a run did not end, else 1 where one has no winner."""
        if self.status == "interrupted":
            return ExitCode.INTERRUPTED
        if self.failed:
            return ExitCode.MACHINE
        return ExitCode.PASSED if self.status == "done" else ExitCode.FELL_SHORT


def run_all(settings: Settings, run: Callable[[str], RunReport]) -> AllRuns:
    """Return what became of a run of every kernel; one that fails does not end the others.

    What this machine lacks (`SetupError`) it lacks for the others too: they are not begun. Ctrl-C
    pauses the run that it meets and ends them all: what was done until then is returned.
    """
    problems = load_problems(settings.problems).values()
    ahead = [kernel for problem in problems for kernel in problem.kernel_ids]
    runs: list[RunSummary] = []
    failed: list[FailedKernel] = []
    was_interrupted = False
    while ahead and not was_interrupted:
        kernel = ahead.pop(0)
        try:
            report = run(kernel)
        except (Interrupted, KoptError) as error:
            click.echo(f"{kernel}: {error}", err=True)
            failed.append(FailedKernel(kernel=kernel, problem=str(error)))
            was_interrupted = isinstance(error, Interrupted)
            if isinstance(error, SetupError):
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
