"""`kopt profile FILE`: what limits a candidate, without timing it."""

from dataclasses import dataclass
from pathlib import Path

import click

from kopt.config.settings import DEFAULT_ARCH
from kopt.kernels.status import Status
from kopt.server.console import print_record, print_views
from kopt.server.exits import ExitCode
from kopt.server.options import (
    device_name,
    device_option,
    file_argument,
    kernel_option,
    one_arch,
    tune_option,
)
from kopt.server.progress import status_line
from kopt.server.session import Session, command_body
from kopt.server.target import find_target, refuse_unknown_tune
from kopt.server.views.profile_view import profile_view
from kopt.tools.profile_stage import ProfileRequest, profile_candidate
from kopt.tools.sim.device import SimDevice

EPILOG = """\b
Examples:
  kopt profile mine.cu --kernel add_rmsnorm_fp4quant_b128xh2048
  kopt profile mine.cu --kernel silu_and_mul_b8xh14336 --arch sm_90a --json

\b
No value is checked here: kopt check does that. Nothing is measured: the time
is an estimate (docs/estimate.md).
Exit codes: 0 passed, 1 the candidate fell short, 2 wrong usage, 3 this machine
lacks something."""


@dataclass(frozen=True)
class ProfileOptions:
    """What the command line asked for."""

    file: Path
    kernel: str | None
    device: str
    arch: str
    tune: dict[str, int] | None


@click.command("profile", epilog=EPILOG)
@file_argument
@kernel_option(required=False)
@device_option
@click.option(
    "--arch",
    default=DEFAULT_ARCH,
    show_default=True,
    callback=one_arch,
    metavar="ARCH",
    help="Its data sheet gives the floors and the estimate.",
)
@tune_option
@command_body(ProfileOptions)
def command(session: Session, options: ProfileOptions) -> int:
    """Say what limits a candidate: static facts, bytes moved, roofline, estimated time.

    The candidate is compiled and executed once on the simulator, which counts its accesses.
    """
    device_name(options.device)
    target = find_target(options.file, options.kernel, session.settings)
    refuse_unknown_tune(target, options.tune)
    request = ProfileRequest(
        target.problem, target.workload, target.candidate, options.arch, options.tune
    )
    with status_line(quiet=session.as_json) as show:
        show(f"compiling for {options.arch} and executing once on sim")
        profile = profile_candidate(request, session.settings, SimDevice(session.settings))
    if session.as_json:
        print_record(profile)
    else:
        print_views(profile_view(str(options.file), profile))
    return ExitCode.PASSED if profile.status is Status.PASSED else ExitCode.FELL_SHORT
