"""`kopt run`: search for faster kernels, or go on with a search that was interrupted."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from kopt.config.callbacks import ignore
from kopt.config.device_names import asks_for_simulator
from kopt.config.errors import ToolError
from kopt.kernels.problem_loader import find_kernel, load_problems
from kopt.search.records.budget import UNLIMITED
from kopt.search.reports.run_report import RunReport
from kopt.server.all_runs import all_runs_view, run_all
from kopt.server.exits import ExitCode
from kopt.server.next_of_run import after_run
from kopt.server.opened_device import DeviceChoice
from kopt.server.options import device_arch_option, device_option, provider_option
from kopt.server.run_driving import (
    agree_on_runs,
    begin_and_drive,
    read_settings,
    refuse_typos,
    resume,
)
from kopt.server.run_options import RunOptions
from kopt.server.session import Session, command_body
from kopt.server.spending import warn_of_eaten_dollar
from kopt.server.suite_search import SuiteSearch, suite_searches
from kopt.server.views.run_view import run_view
from kopt.tools.device_choice import device_name
from kopt.tools.facts.next_command import NextCommand

EPILOG = """\b
Examples:
  kopt run --kernel add_rmsnorm_fp4quant_b128xh2048
  kopt run --kernel silu_and_mul_b8xh14336 --device cuda:0 --budget 5usd,2h
  kopt run --kernel silu_and_mul_b8xh14336 --dry-run
  kopt run --kernel silu_and_mul_b8xh14336 --strategy maic_rl --budget 5usd
  kopt run --kernel silu_and_mul_b8xh14336 --provider claude-code --budget 5usd
  kopt run --resume run-20260101-120000-000
  kopt run --all --budget 2usd
  kopt run --suite resnet_parts --budget 20usd

\b
With ANTHROPIC_API_KEY Claude plans, writes, fixes and merges kernels; with --provider
claude-code or codex the client of that name does, by its own login; without, or
with --no-models, kopt writes kernels itself for functions that it knows, and tries
the `tune` values of these and of the start. What a model may cost is said first, and on
a terminal asked about; elsewhere name the dollars in --budget, or add --yes. --all runs
every kernel, one after the other; --budget is that of each. --suite runs those of a
suite, such as kopt split writes; --budget is that of all, divided by the tasks' weights.
Ctrl-C pauses a run; --resume goes on, also after kill -9: nothing finished is lost or paid twice.
The report is in the run's folder (report.md, report.html).
Exit codes: 0 every run has a winner, 1 one has none, 2 wrong usage, 3 this
machine or the model lacks something, 130 interrupted."""


@click.command("run", epilog=EPILOG)
@click.option("--kernel", metavar="ID", help="Kernel id (kopt list).")
@click.option("--all", "every", is_flag=True, help="Every kernel, one run after the other.")
@click.option(
    "--suite",
    metavar="DIR",
    type=click.Path(path_type=Path, file_okay=False),
    help="The tasks of a suite, one run after the other; --budget is divided by their weights.",
)
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
    " evaluation (90s, 10m, 2h), dollars (5usd), tokens (2Mtok), GPU time (gpu:10m); several with"
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
@provider_option
@click.option("--no-models", is_flag=True, help="Ask no model, key or not, and pay nothing.")
@click.option("--yes", is_flag=True, help="Agree to what a model may cost: nothing is asked.")
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
    if options.no_models:
        session = session.without_models
    if options.suite is not None:
        return _search_suite(session, options, suite_searches(options.suite, options.device))
    kernels = _kernels(options, session)
    if options.dry_run:
        return _show_plan(session, options, kernels)
    if options.every:
        read_settings(options, session)  # wrong for one, wrong for all
        agree_on_runs(options, session, len(kernels))
        every = run_all(kernels, partial(begin_and_drive, session, options))
        session.show(every, all_runs_view(every), NextCommand(("kopt", "runs"), "all runs"))
        return every.exit_code
    if options.resume is None:
        (kernel,) = kernels
        refuse_typos(options, kernel, session)
        agree_on_runs(options, session, 1)
        report = begin_and_drive(session, options, kernel)
    else:
        report = resume(session, options, options.resume)
    start = _start_of(report, options, session)
    session.show(report, run_view(report), *after_run(report, start))
    return ExitCode.FELL_SHORT if report.winner is None else ExitCode.PASSED


def _search_suite(session: Session, options: RunOptions, ahead: Sequence[SuiteSearch]) -> int:
    """Run the tasks of a suite, each with its share of the budget."""
    by_kernel = {one.kernel: one for one in ahead}

    def run(kernel: str) -> RunReport:
        task = by_kernel[kernel]
        return begin_and_drive(task.session(session), replace(options, share=task.share), kernel)

    read_settings(options, session)
    agree_on_runs(options, session, 1)  # they share one budget
    every = run_all(list(by_kernel), run)
    session.show(every, all_runs_view(every), NextCommand(("kopt", "runs"), "all runs"))
    return every.exit_code


def _start_of(report: RunReport, options: RunOptions, session: Session) -> Path:
    """Return the file that the run's starting kernel came from."""
    problem, _ = find_kernel(report.kernel, session.settings.problems)
    return options.start or problem.folder / "reference.cu"


def _kernels(options: RunOptions, session: Session) -> tuple[str, ...]:
    """Return the kernels that new runs are asked for; () with --resume.

    Raises:
        ToolError: None is named.
    """
    if options.kernel is not None or options.resume is not None:
        return () if options.kernel is None else (options.kernel,)
    left_out = {"check"}  # it is there to be checked; a run times what it searches
    if options.every and asks_for_simulator(device_name(options.device, ignore)):
        left_out.add("time")
    kernels = tuple(
        problem.kernel_id(workload)
        for problem in load_problems(session.settings.problems).values()
        for workload in problem.workloads
        if workload.use not in left_out
    )
    if not options.every:
        raise ToolError(f"name a kernel, --kernel ID (kopt list), or run all {len(kernels)}: --all")
    return kernels


def _show_plan(session: Session, options: RunOptions, kernels: Sequence[str]) -> int:
    """Show what would be done and what it may cost, for each kernel; nothing is begun."""
    from kopt.server.dry_run import print_dry_run

    if options.resume is not None:
        raise ToolError("--dry-run shows the plan of a new run: leave --resume out")
    if options.models.is_paid(session.settings) and not options.is_quiet(session):
        warn_of_eaten_dollar(options.parsed_budget or UNLIMITED)
    requests = [refuse_typos(options, kernel, session) for kernel in kernels]
    return print_dry_run(session, requests, DeviceChoice(options.device, options.arch))


def _refuse_contradictions(options: RunOptions) -> None:
    """Refuse options that cannot be meant together, before anything is opened."""
    if options.record is not None and options.replay is not None:
        raise ToolError("--record writes a recording and --replay reads one: name one of them")
    of_models = (options.record, options.replay, options.provider)
    if options.no_models and any(one is not None for one in of_models):
        raise ToolError("--no-models asks nobody: leave out --record, --replay and --provider")
    is_one = options.kernel is not None or options.resume is not None
    if options.suite is not None and (is_one or options.every or options.dry_run):
        raise ToolError(
            "--suite runs its own tasks: leave out --kernel, --all, --resume, --dry-run"
        )
    if options.every and is_one:
        raise ToolError("--all is every kernel: leave out --kernel and --resume")
    for name in ("start", "record", "replay"):
        if getattr(options, name) is not None and not is_one:
            raise ToolError(f"--{name} is of one kernel: name it with --kernel ID (kopt list)")
