"""`kopt check FILE`: run a candidate and compare its outputs with the fp64 oracle."""

from dataclasses import dataclass
from pathlib import Path

import click

from kopt.kernels.check_result import CheckLevel
from kopt.kernels.status import Status
from kopt.server.console import print_record, print_views
from kopt.server.devices import DeviceChoice, opened_device
from kopt.server.exits import ExitCode
from kopt.server.options import (
    device_arch_option,
    device_option,
    file_argument,
    kernel_option,
    tune_option,
)
from kopt.server.progress import status_line
from kopt.server.session import Session, command_body
from kopt.server.target import find_target, refuse_unknown_tune
from kopt.server.views.check_view import check_view
from kopt.tools.check.stage import CheckRequest, check_candidate

EPILOG = """\b
Examples:
  kopt check mine.cu --kernel add_rmsnorm_fp4quant_b128xh2048
  kopt check mine.cu --kernel silu_and_mul_b8xh14336 --level full --json
  kopt check mine.cu --kernel silu_and_mul_b8xh14336 --tune BLOCK=512
  kopt check mine.cu --kernel silu_and_mul_b8xh14336 --device cuda:0

\b
Exit codes: 0 passed, 1 the candidate fell short (its status says how:
docs/statuses.md), 2 wrong usage, 3 this machine lacks something."""


@dataclass(frozen=True)
class CheckOptions:
    """What the command line asked for."""

    file: Path
    kernel: str | None
    device: str
    level: CheckLevel
    seeds: tuple[int, ...]
    arch: str | None
    tune: dict[str, int] | None


def _seeds(_: click.Context, __: click.Parameter, text: str) -> tuple[int, ...]:
    """Read `1,2,3`."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        raise click.BadParameter(f"{text!r} is not a list of whole numbers such as 1,2,3")
    return tuple(dict.fromkeys(int(part) for part in parts))


@click.command("check", epilog=EPILOG)
@file_argument
@kernel_option(required=False)
@device_option
@click.option(
    "--level",
    type=click.Choice(["quick", "full"]),
    default="quick",
    show_default=True,
    help="quick: the named workload, 1 seed, 1 schedule. full: every workload that the header "
    "claims, all seeds, 2 of them hidden, several schedules.",
)
@click.option(
    "--seeds",
    default="1,2,3",
    show_default=True,
    callback=_seeds,
    metavar="N,...",
    help="Visible seeds of the inputs; hidden ones are drawn beside them.",
)
@device_arch_option
@tune_option
@command_body(CheckOptions)
def command(session: Session, options: CheckOptions) -> int:
    """Check a candidate against the fp64 oracle, on a GPU or on the CPU simulator.

    Says passed, or the first thing that is wrong and where: a wrong element with its row and
    column. The simulator also finds accesses out of bounds with kernel line, block and thread,
    races and divergence; a GPU runs what ships, raw PTX and tensor cores included.
    """
    target = find_target(options.file, options.kernel, session.settings)
    refuse_unknown_tune(target, options.tune)
    choice = DeviceChoice(options.device, options.arch)
    with (
        status_line(quiet=session.as_json) as show,
        opened_device(choice, session.settings, show) as opened,
    ):
        request = CheckRequest(
            problem=target.problem,
            workload=target.workload,
            candidate=target.candidate,
            level=options.level,
            tune=options.tune,
            seeds=options.seeds,
            arch=opened.arch,
            progress=show,
        )
        result = check_candidate(request, opened.device, session.settings)
    if session.as_json:
        print_record(result)
    else:
        print_views(check_view(str(options.file), result))
    return ExitCode.PASSED if result.status is Status.PASSED else ExitCode.FELL_SHORT
