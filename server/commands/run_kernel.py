"""`kopt run`: search for a faster kernel, or go on with a search that was interrupted."""

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from kopt.config.errors import KoptError, ToolError
from kopt.config.search_settings import load_search_settings
from kopt.kernels.candidate import read_candidate
from kopt.kernels.problem_loader import find_kernel
from kopt.search.budget import parse_budget
from kopt.search.evaluate_job import EvaluationSite
from kopt.search.run_records import RunState
from kopt.search.run_report import RunReport, report_run, view_run
from kopt.search.runs import RunRequest, begin_run, drive_run, goes_on, reopen_run
from kopt.search.store import RunStore
from kopt.server.console import print_record, print_views
from kopt.server.devices import DeviceChoice, OpenedDevice, opened_device
from kopt.server.exits import ExitCode, Interrupted
from kopt.server.options import device_arch_option, device_option
from kopt.server.run_progress import run_progress, waiting_lines
from kopt.server.session import Session, command_body
from kopt.server.views.run_view import run_view

EPILOG = """\b
Examples:
  kopt run --kernel add_rmsnorm_fp4quant_b128xh2048
  kopt run --kernel add_rmsnorm_fp4quant_b128xh2048 --start mine.cu --rounds 2
  kopt run --kernel silu_and_mul_b8xh14336 --device cuda:0 --budget 10m
  kopt run --resume run-20260101-120000-000

\b
The search tries the `tune` values that the starting kernel declares. Ctrl-C
pauses it; --resume goes on, also after kill -9, and nothing finished is lost.
Exit codes: 0 a winner passed the full check, 1 no candidate did, 2 wrong usage,
3 this machine lacks something, 130 interrupted."""


@dataclass(frozen=True)
class RunOptions:
    """What the command line asked for; None where it said nothing."""

    kernel: str | None
    device: str
    arch: str | None
    rounds: int | None
    beam_width: int | None
    seed: int | None
    budget: str | None
    config: Path | None
    start: Path | None
    resume: str | None
    progress: bool

    def of_new_run(self) -> dict[str, Any]:
        """Return what was given of all that only a new run can be told."""
        names = ("kernel", "arch", "rounds", "beam_width", "seed", "config", "start")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None}


@click.command("run", epilog=EPILOG)
@click.option("--kernel", metavar="ID", help="Kernel id (kopt list); not with --resume.")
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
    "--seed", type=int, help=f"Seed of the search's own draws.  [default: {RunRequest.seed}]"
)
@click.option(
    "--budget",
    metavar="N|TIME",
    help="Evaluations (50) or wall time (90s, 10m, 2h) that the search may spend.",
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
@click.option("--progress", is_flag=True, help="Show progress on stderr with --json too.")
@command_body(RunOptions)
def command(session: Session, options: RunOptions) -> int:
    """Search for a faster kernel and say what was found.

    Each round proposes candidates, compiles and checks them, and keeps the best: on a GPU by
    their measured speed against the baseline, on the simulator by estimated time. The best of all
    must pass the full check to be the winner.
    """
    budget = None if options.budget is None else parse_budget(options.budget)
    before = None if options.resume is None else _state_before(options, session)
    if before is not None and not goes_on(before, budget):
        report = _report(before.id, session)
    else:
        report = _search(session, options, before)
    if session.as_json:
        print_record(report)
    else:
        print_views(run_view(report))
    return ExitCode.FELL_SHORT if report.winner is None else ExitCode.PASSED


def _state_before(options: RunOptions, session: Session) -> RunState:
    """Return where the run that is to be resumed stands."""
    given = options.of_new_run()
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise ToolError(f"{names} cannot be changed by --resume; only --budget can")
    with view_run(options.resume or "", session.settings) as (reader, _):
        return reader.state()


def _report(run: str, session: Session) -> RunReport:
    with view_run(run, session.settings) as (reader, folder):
        return report_run(reader, folder)


def _search(session: Session, options: RunOptions, before: RunState | None) -> RunReport:
    """Open the device, drive the new or resumed run to its end and return its report."""
    if before is None:
        _refuse_typos(options, session)
    quiet = session.as_json and not options.progress
    device = options.device
    if before is not None and device == "auto":
        device = before.settings.device
    measures = before is not None and before.settings.device != "sim"
    choice = DeviceChoice(device, options.arch, needs_gpu=measures)
    with (
        opened_device(choice, session.settings, waiting_lines(quiet)) as opened,
        closing(_open(session, options, opened)) as store,
    ):
        if not quiet:
            click.echo(f"{store.folder.name} of {store.reader.state().settings.kernel}", err=True)
        _drive(store, session, opened, quiet)
        return report_run(store.reader, store.folder)


def _refuse_typos(options: RunOptions, session: Session) -> None:
    """Refuse a kernel or a start that is not there, before anything waits for a GPU."""
    if options.kernel is None:
        raise ToolError("name a kernel with --kernel ID (kopt list), or a run with --resume RUN")
    find_kernel(options.kernel, session.settings.problems)
    if options.start is not None:
        read_candidate(options.start)


def _open(session: Session, options: RunOptions, opened: OpenedDevice) -> RunStore:
    """Return the open store of the new or resumed run."""
    budget = None if options.budget is None else parse_budget(options.budget)
    gpu = None if opened.timer is None else opened.timer.facts
    if options.resume is not None:
        return reopen_run(options.resume, session.settings, budget, gpu)
    search = load_search_settings(options.config).with_beam(options.beam_width, options.rounds)
    request = RunRequest(
        kernel=options.kernel or "",
        start=options.start,
        seed=options.seed or 0,
        search=search,
        arch=opened.arch,
        device=opened.device.name,
        gpu=gpu,
    )
    if budget is not None:
        request = replace(request, budget=budget)
    return begin_run(request, session.settings)


def _drive(store: RunStore, session: Session, opened: OpenedDevice, quiet: bool) -> None:
    """Drive the run to its end.

    Raises:
        Interrupted: Ctrl-C; the message says how to go on.
        KoptError: This machine cannot evaluate; the message says how to go on, too.
    """
    name = store.folder.name
    go_on = f"{name} is paused; go on with: kopt run --resume {name}"
    place = EvaluationSite(opened.device, opened.timer, session.settings, store.artifacts)
    try:
        with run_progress(quiet) as on_event:
            drive_run(store, place, on_event)
    except KeyboardInterrupt as stop:
        raise Interrupted(f"interrupted; {go_on}") from stop
    except KoptError as error:
        raise type(error)(f"{error} ({go_on})") from error
