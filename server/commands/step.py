"""`kopt step`: one round of a search, with candidates of your own or kopt's."""

from dataclasses import dataclass
from pathlib import Path

import click

from kopt.config.errors import InfraError, SetupError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.status import Status
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.records.budget import parse_budget
from kopt.search.records.members import StepCandidate
from kopt.search.step.result import StepHooks, StepRequest, StepResult, step_device
from kopt.search.step.step import take_step
from kopt.search.storage.artifacts import open_artifacts
from kopt.server.exits import ExitCode, Interrupted
from kopt.server.find_case import read_named_candidate
from kopt.server.opened_device import DeviceChoice, opened_device
from kopt.server.options import device_arch_option, device_option
from kopt.server.run_progress import run_progress, waiting_lines
from kopt.server.session import Session, command_body
from kopt.server.starting import program_name
from kopt.server.views.step_view import step_view
from kopt.server.what_next import after_step
from kopt.tools.facts.next_command import NextCommand

EPILOG = """\b
Examples:
  kopt step --kernel silu_and_mul_b8xh14336 mine.cu other.cu
  kopt step --kernel silu_and_mul_b8xh14336 mine.cu --device sim --arch H100
  kopt step --run run-20260101-120000-000 better.cu --parent 3
  kopt step --run 120000-000
  kopt step --run 120000-000 --json

\b
--kernel begins a run, whose round 0 is the problem's reference.cu; --run goes
on with one, also with one of kopt run. A file's `note` says why it should be
faster and its first `family` counts. Without files kopt tries `tune` values of
the kernels in the beam; when it is out of ideas, or the run's rounds or budget
are spent, the best are put to the full check, and the run ends with a winner.
Ctrl-C pauses the step; the same call again finishes it.
Exit codes: 0 passed, 1 no candidate of the step passed or the run ended without
a winner, 2 wrong usage, 3 this machine lacks something, 130 interrupted."""


@dataclass(frozen=True)
class StepOptions:
    """What the command line asked for; None where it said nothing."""

    files: tuple[Path, ...]
    kernel: str | None
    run: str | None
    device: str
    arch: str | None
    parents: tuple[int, ...]
    techniques: tuple[str, ...]
    budget: str | None
    wait: int
    progress: bool


@click.command("step", epilog=EPILOG)
@click.argument("files", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE]...")
@click.option("--kernel", metavar="ID", help="Begin a new run for this kernel (kopt list).")
@click.option("--run", metavar="RUN", help="Go on with this run (kopt runs).")
@device_option
@device_arch_option
@click.option(
    "--parent",
    "parents",
    type=click.IntRange(min=0),
    multiple=True,
    metavar="N",
    help="Number of the candidate that the files come from; may be repeated.",
)
@click.option(
    "--technique",
    "techniques",
    multiple=True,
    metavar="ID",
    help="Technique that the files apply to the candidate that they come from, so that memory"
    " learns from them (kopt kb show); may be repeated.",
)
@click.option(
    "--budget",
    metavar="N|TIME",
    help="Evaluations (50) or wall time after the starting kernel's own evaluation (90s, 10m, 2h)"
    " of a new run, or more for an old one.",
)
@click.option(
    "--wait",
    type=click.IntRange(min=0),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait while another process works on the run.",
)
@click.option("--progress", is_flag=True, help="Show progress on stderr with --json too.")
@command_body(StepOptions)
def command(session: Session, options: StepOptions) -> int:
    """Evaluate one round of candidates and say what is kept, why, and what to try next.

    The files form one round. Files that the run knows already are not evaluated again; one that
    does not compile or is wrong counts as tried.
    """
    request = _request(options)
    quiet = session.as_json and not options.progress
    choice = DeviceChoice(step_device(request, session.settings), options.arch)
    tell = waiting_lines(quiet)
    with opened_device(choice, session.settings, tell) as opened:
        artifacts = open_artifacts(session.settings.home)
        site = EvaluationSite(opened.device, opened.timer, session.settings, artifacts)
        if request.kernel is not None:
            request = request.model_copy(update={"arch": opened.arch})
        result = _step(request, session.settings, site, quiet)
    session.show(result, step_view(result), after_step(result, options.files))
    return _exit_code(result)


def _request(options: StepOptions) -> StepRequest:
    """Return the request; the files are read before anything waits for a device."""
    if options.kernel is None and options.run is None:
        raise ToolError("name a kernel with --kernel ID (kopt list), or a run with --run RUN")
    if options.run is not None and options.arch is not None:
        raise ToolError("--arch goes with --kernel: a run stays with the target it began with")
    candidates = [read_named_candidate(file, options.kernel) for file in options.files]
    if (options.parents or options.techniques) and not candidates:
        raise ToolError("--parent and --technique are of FILES: name them too")
    return StepRequest(
        kernel=options.kernel,
        run_id=options.run,
        candidates=tuple(
            StepCandidate(
                source=one.source,
                source_name=one.name,
                parents=options.parents,
                techniques=options.techniques,
            )
            for one in candidates
        ),
        device=options.device,
        arch=options.arch,
        budget=None if options.budget is None else parse_budget(options.budget),
        lock_wait_s=options.wait,
    )


def _step(
    request: StepRequest, settings: Settings, site: EvaluationSite, quiet: bool
) -> StepResult:
    """Take the step.

    Raises:
        Interrupted: Ctrl-C; the message says how to go on.
        KoptError: The step cannot be taken; if the machine is why, the message says how to go on.
    """
    runs: list[str] = []

    def name(run: str) -> None:
        runs.append(run)
        if not quiet:
            click.echo(run, err=True)

    try:
        with run_progress(quiet) as callbacks:
            hooks = StepHooks(on_event=callbacks.on_event, on_run=name, say=callbacks.say)
            return take_step(request, settings, site, hooks)
    except KeyboardInterrupt as stop:
        if not runs:
            raise Interrupted("interrupted") from stop
        again = _finishing(runs[0], settings)
        raise Interrupted(f"interrupted; {runs[0]} is paused", again) from stop
    except (SetupError, InfraError) as error:
        if not runs:
            raise
        finish = _finishing(runs[0], settings).by(program_name()).shell
        paused = f"{runs[0]} is paused, finish the step with: {finish}"
        raise type(error)(f"{error}; {paused}") from error


def _finishing(run: str, settings: Settings) -> NextCommand:
    """Return how a step that was cut short is finished."""
    command = NextCommand(("kopt", "step", "--run", run), "finish the step")
    return command.on(settings.problems)


def _exit_code(result: StepResult) -> ExitCode:
    """Return 1 where nothing of the step passed, or where the run ended without a winner."""
    if result.candidates:
        passed = any(one.status is Status.PASSED for one in result.candidates)
        return ExitCode.PASSED if passed else ExitCode.FELL_SHORT
    has_ended = result.status != "paused"
    return ExitCode.FELL_SHORT if has_ended and result.winner is None else ExitCode.PASSED
