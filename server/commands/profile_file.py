"""`kopt profile FILE`: what limits a candidate, estimated anywhere and measured on a GPU."""

from dataclasses import dataclass
from pathlib import Path

import click

from kopt.config.errors import ToolError
from kopt.kernels.profile_result import ProfileChoices, ProfileResult
from kopt.server.exits import exit_code_of
from kopt.server.find_case import find_case
from kopt.server.opened_device import DeviceChoice, opened_device
from kopt.server.options import (
    AskedTune,
    device_arch_option,
    device_option,
    file_argument,
    kernel_option,
    tune_or_all_option,
)
from kopt.server.progress import status_line
from kopt.server.session import Session, command_body
from kopt.server.views.profile_view import profile_choices_view, profile_view
from kopt.server.views.tables import View
from kopt.server.what_next import NamedFile, after_profile
from kopt.server.work.stages import profile, profile_choices
from kopt.tools.profiling.stage import ProfileRequest

EPILOG = """\b
Examples:
  kopt profile mine.cu --kernel add_rmsnorm_fp4quant_b128xh2048
  kopt profile mine.cu --kernel silu_and_mul_b8xh14336 --arch sm_90a --json
  kopt profile mine.cu --kernel silu_and_mul_b8xh14336 --device cuda:0
  kopt profile mine.cu --kernel silu_and_mul_b8xh14336 --tune all
  kopt profile mine.cu --kernel silu_and_mul_b8xh14336 --sass hot

\b
No value is checked here: kopt check does that. Without a GPU nothing is
measured, and the time is an estimate (docs/estimate.md). What the rules of the
bottleneck are, and what counters need: docs/profile.md. With --tune all there
is one line a choice, the fastest first, and no counters; the JSON document is
kopt.profile_choices/1.
Exit codes: 0 passed, 1 the candidate fell short, 2 wrong usage, 3 this machine
lacks something."""


@dataclass(frozen=True)
class ProfileOptions:
    """The options of `kopt profile`."""

    file: Path
    kernel: str | None
    device: str
    arch: str | None
    tune: AskedTune
    counters: bool
    sass: str


@click.command("profile", epilog=EPILOG)
@file_argument()
@kernel_option(required=False)
@device_option
@device_arch_option
@tune_or_all_option
@click.option(
    "--counters/--no-counters",
    default=True,
    show_default=True,
    help="Read the GPU's own counters with Nsight Compute, which takes seconds.",
)
@click.option(
    "--sass",
    default="",
    metavar="hot|LINE",
    help="Show machine code too: the hottest block, or what a line of the file became.",
)
@command_body(ProfileOptions)
def command(session: Session, options: ProfileOptions) -> int:
    """Say what limits a candidate: static facts, bytes moved, roofline, time, counters.

    The candidate is compiled, and executed once on the simulator, which counts its accesses. On a
    GPU it is also timed, and Nsight Compute reads the hardware's counters.
    """
    case = find_case(options.file, options.kernel, session.settings, options.tune.values)
    if options.sass and options.tune.every:
        raise ToolError("--sass is of one choice of tune values, not of --tune all")
    choice = DeviceChoice(options.device, options.arch, has_spare=False)
    with (
        status_line(quiet=session.as_json) as show,
        opened_device(choice, session.settings, show) as opened,
    ):
        request = ProfileRequest(case, counters=options.counters, sass=options.sass, progress=show)
        run = profile_choices if options.tune.every else profile
        result = run(request, opened, session.settings)
    tune = None if options.tune.every else options.tune.values
    file = NamedFile(options.file, result.kernel, tune, options.device, options.arch)
    session.show(result, _view(str(options.file), result), after_profile(file, result.status))
    return exit_code_of(result.status)


def _view(name: str, profile: ProfileResult | ProfileChoices) -> View:
    if isinstance(profile, ProfileChoices):
        return profile_choices_view(name, profile)
    return profile_view(name, profile)
