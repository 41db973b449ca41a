"""`kopt bench FILE`: time a candidate against its baselines; `--all`: every kernel in one table.

What `--all` and `--promote` need beside is imported where they begin.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import click

from kopt.kernels.bench_result import BenchResult, without_samples
from kopt.kernels.case import Case
from kopt.kernels.status import Verdict
from kopt.server.exits import ExitCode, exit_code_of
from kopt.server.find_case import find_case, find_problems, refuse_foreign_kernel
from kopt.server.opened_device import DeviceChoice, opened_device, timing_device
from kopt.server.options import device_arch_option, device_option, file_argument, tune_option
from kopt.server.progress import status_line
from kopt.server.session import Session, command_body
from kopt.server.views.bench_view import bench_view
from kopt.server.what_next import NamedFile, after_bench, after_promotion
from kopt.server.work.stages import bench
from kopt.tools.bench.request import MAX_PAIRS, MIN_PAIRS, BaselineChoice, BenchRequest

EPILOG = """\b
Examples:
  kopt bench mine.cu --kernel fused_add_rmsnorm_b128xh4096
  kopt bench mine.cu --kernel fused_add_rmsnorm_b128xh4096 --tune BLOCK=512 --json
  kopt bench mine.cu --kernel fused_add_rmsnorm_b128xh4096 --baseline reference
  kopt bench mine.cu --kernel fused_add_rmsnorm_b128xh4096 --promote
  kopt bench --all --markdown table.md
  kopt bench --all --kernel fused_add_rmsnorm --kernel silu --json

\b
The candidate is checked first (level quick), its timed outputs afterwards; where
it is faster, a full check follows and decides (--quick leaves it out). Times
come from pairs of replays in one process; the verdict is that of the whole 95 %
interval against the noise of this device. On sim nothing is measured: the
verdict is "estimated". --promote measures every workload that the header claims
in fresh processes and writes a winner with its receipt, or says why not and
which workloads held (docs/receipts.md).
Exit codes: 0 passed and not slower, 1 the candidate fell short (not passed,
slower, impossible, or faster after a quick check only), 2 wrong usage, 3 this
machine lacks something."""


@dataclass(frozen=True)
class BenchOptions:
    """The options of `kopt bench`."""

    file: Path | None
    kernel: tuple[str, ...]
    device: str
    arch: str | None
    tune: dict[str, int] | None
    baseline: BaselineChoice | None
    pairs: int | None
    detail: Literal["concise", "full"]
    every: bool
    markdown: Path | None
    promote: bool
    quick: bool
    winners: Path | None
    replaces: bool


@click.command("bench", epilog=EPILOG)
@file_argument(required=False)
@click.option(
    "--kernel",
    multiple=True,
    metavar="ID",
    help="Kernel id (kopt list). Default: the problem in whose folder the file lies. With --all: a "
    "part of an id, may be given several times.",
)
@device_option
@device_arch_option
@tune_option
@click.option(
    "--baseline",
    type=click.Choice(get_args(BaselineChoice)),
    help="auto: the fastest library path that runs here, and the reference kernel. library: an "
    "error where none runs. reference: that kernel alone. every: all library paths.  [default: "
    "auto; with --all every]",
)
@click.option(
    "--pairs",
    type=click.IntRange(MIN_PAIRS, MAX_PAIRS),
    metavar="N",
    help=f"Timed pairs at least; up to {MAX_PAIRS} while the verdict is open.  [default:"
    f" {MIN_PAIRS}]",
)
@click.option(
    "--detail",
    type=click.Choice(["concise", "full"]),
    default="concise",
    show_default=True,
    help="full: the spread of the times, kernels, noise floors; with --json every pair.",
)
@click.option(
    "--all", "every", is_flag=True, help="Every problem: its reference kernel and winners."
)
@click.option(
    "--markdown",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the table of --all there as Markdown.",
)
@click.option(
    "--promote",
    is_flag=True,
    help="Full check, sanitizer, 6 measurements in 2 fresh processes at every workload of the "
    "header's domain; if all agree, write the winner and its receipt.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="No full check behind the verdict: `faster` is then no proof, and ends with 1.",
)
@click.option(
    "--winners",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Where --promote writes.  [default: KOPT_HOME/winners]",
)
@click.option(
    "--replace",
    "replaces",
    is_flag=True,
    help="With --promote: take the place of an existing winner, whatever it is.",
)
@command_body(BenchOptions)
def command(session: Session, options: BenchOptions) -> int:
    """Time a candidate against the fastest library baseline and the reference kernel.

    Says faster, slower or inconclusive with the ratio and its 95 % interval, and what stands
    behind it. Paired replays over buffers larger than the L2, on a GPU; on the simulator only the
    ratio of two estimates.
    """
    _refuse_contradictions(options)
    if options.every:
        from kopt.server.bench_table import TableRequest, show_table

        problems = find_problems(options.kernel, session.settings)
        every = DeviceChoice(options.device, options.arch, needs_gpu=True)
        baselines = options.baseline or "every"
        return show_table(session, TableRequest(problems, every, baselines, options.markdown))
    kernel = next(iter(options.kernel), None)
    case = find_case(options.file or Path(), kernel, session.settings, options.tune)
    if options.promote:
        return _promote(session, options, case if kernel else case.at_timed)
    runs_libraries = options.baseline in ("library", "every")
    choice = DeviceChoice(options.device, options.arch, needs_gpu=runs_libraries, has_spare=False)
    with (
        status_line(quiet=session.as_json) as show,
        opened_device(choice, session.settings, show) as opened,
    ):
        is_timed = opened.timer is not None and kernel is None
        request = BenchRequest(
            case.at_timed if is_timed else case,
            baselines=options.baseline or "auto",
            min_pairs=options.pairs or MIN_PAIRS,
            may_end_early=options.pairs is None,
            proves=not options.quick,
            copies=True,
            progress=show,
        )
        result = bench(request, opened, session.settings)
    if options.detail == "concise":
        result = without_samples(result)
    view = bench_view(str(options.file), result, options.detail == "full")
    session.show(result, view, after_bench(_named(options, result.kernel), result))
    return _exit_code(result)


def _refuse_contradictions(options: BenchOptions) -> None:
    """Refuse flags that do not go together.

    Raises:
        click.UsageError: The message says which.
    """
    if options.every and options.file is not None:
        raise click.UsageError("--all takes no FILE: it times every problem's own kernels")
    if not options.every and options.file is None:
        raise click.UsageError("name a FILE to time, or --all for every problem's own kernels")
    if options.every and options.tune is not None:
        raise click.UsageError("--tune needs a FILE: the kernels of --all have their own values")
    if options.every and options.pairs is not None:
        raise click.UsageError("--pairs needs a FILE: --all times every kernel with as many")
    if options.detail == "full" and (options.every or options.promote):
        raise click.UsageError("--detail full goes with neither --all nor --promote")
    if not options.every and options.markdown is not None:
        raise click.UsageError("--markdown needs --all")
    if options.promote and (options.every or options.baseline or options.pairs or options.quick):
        raise click.UsageError("--promote goes with neither --all, --baseline, --pairs nor --quick")
    if not options.promote and (options.winners is not None or options.replaces):
        raise click.UsageError("--winners and --replace need --promote")
    if not options.every and len(options.kernel) > 1:
        raise click.UsageError("a FILE is timed for one kernel: give --kernel once")


def _promote(session: Session, options: BenchOptions, case: Case) -> ExitCode:
    """Promote the candidate, its tune values made the defaults of its header."""
    from kopt.search.store.winner import pin_tune
    from kopt.server.views.receipt_view import promotion_view
    from kopt.tools.bench.promotion import PromotionRequest, promote_candidate

    refuse_foreign_kernel(case)
    if case.tune:
        pinned = replace(case.candidate, source=pin_tune(case.candidate.source, case.tune))
        case = Case(case.problem, case.workload, pinned)
    choice, settings = DeviceChoice(options.device, options.arch), session.settings
    with status_line(quiet=session.as_json) as show:
        request = PromotionRequest(
            case=case,
            winners=options.winners,
            on_existing="replace" if options.replaces else "keep_better",
            progress=show,
        )
        result = promote_candidate(request, lambda: timing_device(choice, settings, show), settings)
    then = after_promotion(_named(options, result.kernel), result)
    session.show(result, promotion_view(str(options.file), result), then)
    return ExitCode.PASSED if result.outcome == "promoted" else ExitCode.FELL_SHORT


def _named(options: BenchOptions, kernel: str) -> NamedFile:
    return NamedFile(options.file or Path(), kernel, options.tune, options.device, options.arch)


def _exit_code(result: BenchResult) -> ExitCode:
    bad = result.is_unproven or result.verdict in (Verdict.SLOWER, Verdict.IMPOSSIBLE)
    return ExitCode.FELL_SHORT if bad else exit_code_of(result.status)
