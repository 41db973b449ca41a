"""`kopt run`: search for a faster kernel, or go on with a search that was interrupted."""

from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from kopt.config.errors import KoptError, ToolError
from kopt.config.gpu_specs import gpu_for_arch
from kopt.search.budget import parse_budget
from kopt.search.run_records import RunState
from kopt.search.run_report import report_run
from kopt.search.runs import RunRequest, begin_run, drive_run, reopen_run
from kopt.search.store import RunStore
from kopt.server.console import print_record, print_views
from kopt.server.exits import ExitCode, Interrupted
from kopt.server.options import device_name, device_option
from kopt.server.run_progress import run_progress
from kopt.server.session import Session, command_body
from kopt.server.views.run_view import run_view
from kopt.tools.sim.device import SimDevice

EPILOG = """\b
Examples:
  kopt run --kernel add_rmsnorm_fp4quant_b128xh2048
  kopt run --kernel add_rmsnorm_fp4quant_b128xh2048 --start mine.cu --rounds 2
  kopt run --kernel silu_and_mul_b8xh14336 --budget 10m --json
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
    start: Path | None
    resume: str | None
    progress: bool

    def of_new_run(self) -> dict[str, Any]:
        """Return what was given of all that only a new run can be told."""
        names = ("kernel", "arch", "rounds", "beam_width", "seed", "start")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None}


@click.command("run", epilog=EPILOG)
@click.option("--kernel", metavar="ID", help="Kernel id (kopt list); not with --resume.")
@device_option
@click.option("--arch", metavar="ARCH", help=f"Compile for this one.  [default: {RunRequest.arch}]")
@click.option(
    "--rounds",
    type=click.IntRange(min=0),
    help=f"Rounds after the starting kernel's own evaluation.  [default: {RunRequest.rounds}]",
)
@click.option(
    "--beam-width",
    type=click.IntRange(min=1),
    help=f"Candidates kept after each round.  [default: {RunRequest.beam_width}]",
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
    "--start",
    type=click.Path(path_type=Path),
    help="Your own kernel to start from; default: the problem's reference.cu.",
)
@click.option("--resume", metavar="RUN", help="Go on with this run (kopt runs).")
@click.option("--progress", is_flag=True, help="Show progress on stderr with --json too.")
@command_body(RunOptions)
def command(session: Session, options: RunOptions) -> int:
    """Search for a faster kernel and say what was found.

    Each round proposes candidates, compiles and checks them, and keeps the best by estimated
    time; the best of all must pass the full check to be the winner.
    """
    with closing(_open(session, options)) as store:
        quiet = session.as_json and not options.progress
        if not quiet:
            click.echo(f"{store.folder.name} of {store.reader.state().settings.kernel}", err=True)
        state = _drive(store, session, quiet)
        report = report_run(store.reader, store.folder)
    if session.as_json:
        print_record(report)
    else:
        print_views(run_view(report))
    return ExitCode.FELL_SHORT if state.winner is None else ExitCode.PASSED


def _open(session: Session, options: RunOptions) -> RunStore:
    """Return the open store of the new or resumed run."""
    budget = None if options.budget is None else parse_budget(options.budget)
    device = device_name(options.device)
    if options.arch is not None:
        gpu_for_arch(options.arch)  # refused here rather than by every evaluation of the run
    given = options.of_new_run()
    if options.resume is not None:
        if given:
            names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise ToolError(f"{names} cannot be changed by --resume; only --budget can")
        return reopen_run(options.resume, session.settings, budget)
    if options.kernel is None:
        raise ToolError("name a kernel with --kernel ID (kopt list), or a run with --resume RUN")
    request = replace(RunRequest(options.kernel, device=device), **given)
    if budget is not None:
        request = replace(request, budget=budget)
    return begin_run(request, session.settings)


def _drive(store: RunStore, session: Session, quiet: bool) -> RunState:
    """Drive the run to its end.

    Raises:
        Interrupted: Ctrl-C; the message says how to go on.
        KoptError: This machine cannot evaluate; the message says how to go on, too.
    """
    name = store.folder.name
    go_on = f"{name} is paused; go on with: kopt run --resume {name}"
    device = SimDevice(session.settings)
    try:
        with run_progress(quiet) as on_event:
            return drive_run(store, device, session.settings, on_event)
    except KeyboardInterrupt as stop:
        raise Interrupted(f"interrupted; {go_on}") from stop
    except KoptError as error:
        raise type(error)(f"{error} ({go_on})") from error
