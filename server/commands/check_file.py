"""`kopt check FILE`: run a candidate and compare its outputs with the fp64 oracle."""

from dataclasses import dataclass
from pathlib import Path

import click

from kopt.config.device_names import asks_for_simulator
from kopt.config.errors import SetupError, ToolError
from kopt.kernels.check_result import CheckLevel
from kopt.kernels.status import Status
from kopt.server.exits import ExitCode, exit_code_of
from kopt.server.find_case import find_case
from kopt.server.opened_device import DeviceChoice, OpenedDevice, opened_device
from kopt.server.options import (
    device_arch_option,
    device_option,
    file_argument,
    kernel_option,
    tune_option,
)
from kopt.server.progress import status_line
from kopt.server.session import Session, command_body
from kopt.server.views.check_view import check_view
from kopt.server.what_next import NamedFile, after_check
from kopt.server.work.stages import check
from kopt.tools.check.request import CheckRequest

EPILOG = """\b
Examples:
  kopt check mine.cu --kernel add_rmsnorm_fp4quant_b128xh2048
  kopt check mine.cu --kernel silu_and_mul_b8xh14336 --level full --json
  kopt check mine.cu --kernel silu_and_mul_b8xh14336 --tune BLOCK=512
  kopt check mine.cu --kernel silu_and_mul_b8xh14336 --device cuda:0 --sanitize

\b
Exit codes: 0 passed, 1 the candidate fell short (its status says how:
docs/statuses.md), 2 wrong usage, 3 this machine lacks something, a whole
compute-sanitizer for --sanitize included."""


@dataclass(frozen=True)
class CheckOptions:
    """The options of `kopt check`."""

    file: Path
    kernel: str | None
    device: str
    level: CheckLevel
    seeds: tuple[int, ...]
    arch: str | None
    tune: dict[str, int] | None
    sanitize: bool


def _seeds(_: click.Context, __: click.Parameter, text: str) -> tuple[int, ...]:
    """Read `1,2,3`."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        raise click.BadParameter(f"{text!r} is not a list of whole numbers such as 1,2,3")
    return tuple(dict.fromkeys(int(part) for part in parts))


@click.command("check", epilog=EPILOG)
@file_argument()
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
@click.option(
    "--sanitize",
    is_flag=True,
    help="On a GPU: run it under compute-sanitizer too (memcheck, initcheck, racecheck, "
    "synccheck), which takes seconds.",
)
@command_body(CheckOptions)
def command(session: Session, options: CheckOptions) -> int:
    """Check a candidate against the fp64 oracle, on a GPU or on the CPU simulator.

    Says passed, or the first thing that is wrong and where: a wrong element with its row and
    column. The simulator also finds accesses out of bounds with kernel line, block and thread,
    races and divergence; a GPU runs what ships, raw PTX and tensor cores included.
    """
    case = find_case(options.file, options.kernel, session.settings, options.tune)
    choice = DeviceChoice(options.device, options.arch, needs_gpu=options.sanitize, has_spare=False)
    with (
        status_line(quiet=session.as_json) as show,
        opened_device(choice, session.settings, show) as opened,
    ):
        _refuse_sanitizing_sim(options, opened)
        request = CheckRequest(case, options.level, seeds=options.seeds, progress=show)
        result = check(request, opened, session.settings, sanitized=options.sanitize)
    file = NamedFile(options.file, result.kernel, options.tune, options.device, options.arch)
    session.show(result, check_view(str(options.file), result), after_check(file, result))
    if result.status is not Status.PASSED:
        return exit_code_of(result.status)
    judged = result.sanitizer is None or result.sanitizer.is_complete
    return ExitCode.PASSED if judged else ExitCode.MACHINE


def _refuse_sanitizing_sim(options: CheckOptions, opened: OpenedDevice) -> None:
    if not options.sanitize or opened.timer is not None:
        return
    instead = "the simulator finds wild accesses, races and divergence without it"
    if asks_for_simulator(options.device):
        raise ToolError(f"--sanitize examines an execution on a GPU, not on sim; {instead}")
    raise SetupError(f"--sanitize needs a GPU, and none can be used here; {instead}")
