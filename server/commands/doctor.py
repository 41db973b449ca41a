"""`kopt doctor`: what this machine has of all that kopt uses, and how to get what is missing."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import click
from rich.text import Text

from kopt.config.pool_address import is_pool
from kopt.config.remote_address import is_remote, remote_address
from kopt.server.doctor.findings import (
    DoctorFinding,
    docs_findings,
    machine_findings,
    model_findings,
)
from kopt.server.doctor.gpu_findings import gpu_findings
from kopt.server.doctor.remote_findings import remote_findings
from kopt.server.exits import ExitCode
from kopt.server.opened_device import DeviceChoice, timing_device
from kopt.server.options import one_device_or_none
from kopt.server.progress import status_line
from kopt.server.session import Session, command_body
from kopt.server.views.calibration_view import calibration_view
from kopt.server.views.tables import Cell, View, grid

EPILOG = """\b
Examples:
  kopt doctor
  kopt doctor --json
  kopt doctor --calibrate       measure the GPU for config/gpus/, under a minute
  kopt doctor --device ssh://gpu-box/cuda:0   # whether that machine can evaluate

\b
Lines with "-" are optional; their text says how to get them. No GPU is needed.
Exit codes: 0 all that is needed is here, 3 something is missing."""


@dataclass(frozen=True)
class DoctorOptions:
    """The options of `kopt doctor`."""

    device: str | None
    calibrate: bool


@click.command("doctor", epilog=EPILOG)
@click.option(
    "--calibrate",
    is_flag=True,
    help="Measure a GPU instead: latencies, launches, copies, as its data sheet has them.",
)
@click.option(
    "--device",
    callback=one_device_or_none,
    metavar="cuda:N|ssh://HOST/cuda:N|https://HOST/cuda:N",
    help="Another machine to look at, whether ssh gets there and what it lacks; with --calibrate "
    "the GPU to measure.  [default: this machine, cuda:0]",
)
@command_body(DoctorOptions)
def command(session: Session, options: DoctorOptions) -> int:
    """Show what this machine has of all that kopt uses, and how to get what is missing.

    Compilers, sandbox, disk and problems; what documents are searched by; whether there is a key
    for Claude or a client that answers in its place, and the prices of models; GPUs with their
    drivers and locks, the libraries of the baselines, the profiler and whether it may read
    counters.
    """
    if options.calibrate:
        return _calibrate(session, options.device or "cuda:0")
    if options.device is not None and not is_remote(options.device):
        if is_pool(options.device):
            raise click.UsageError(
                f"what a pool has and lacks: kopt pool status --device {options.device}"
            )
        raise click.UsageError(
            "--device is for another machine, ssh://HOST/cuda:N or https://HOST/cuda:N, or for what"
            " --calibrate measures"
        )
    settings = session.settings
    if options.device is None:
        areas = (machine_findings, docs_findings, model_findings, gpu_findings)
        findings = [finding for area in areas for finding in area(settings)]
    else:
        findings = list(remote_findings(remote_address(options.device), settings))
    lacks = any(finding.is_required and not finding.is_present for finding in findings)
    document = {
        "schema": "kopt.doctor/1",
        "status": "error" if lacks else "passed",
        "findings": [asdict(finding) for finding in findings],
    }
    session.show(document, doctor_view(findings))
    return ExitCode.MACHINE if lacks else ExitCode.PASSED


def _calibrate(session: Session, device: str) -> int:
    """Measure a GPU for its data sheet.

    Raises:
        SetupError: There is no GPU.
    """
    from kopt.tools.calibration.stage import calibrate

    with (
        status_line(quiet=session.as_json) as show,
        timing_device(DeviceChoice(device), session.settings, show) as timer,
    ):
        result = calibrate(timer, session.settings, show)
    session.show(result, calibration_view(result))
    return ExitCode.PASSED


def doctor_view(findings: Sequence[DoctorFinding]) -> View:
    """Yield a line for each finding, and how many that kopt needs are missing."""
    table = grid("", "", "")
    table.show_header = False
    for finding in findings:
        table.add_row(_mark(finding), finding.name, finding.detail)
    yield table
    missing = sum(finding.is_required and not finding.is_present for finding in findings)
    lacks = ", ".join(finding.name for finding in findings if not finding.is_present)
    if missing:
        yield Text(f"{missing} missing")
    else:
        optional = f" Not here, and optional: {lacks}." if lacks else ""
        yield Text(f"Everything that kopt needs is here.{optional}")


def _mark(finding: DoctorFinding) -> Cell:
    if finding.is_present:
        return Text("ok", style="green")
    return Text("missing", style="bold red") if finding.is_required else "-"
