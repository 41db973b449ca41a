"""`kopt doctor`: what this machine has of all that kopt uses, and how to get what is missing."""

from collections.abc import Sequence
from dataclasses import asdict

import click
from rich.text import Text

from kopt.server.doctor.findings import (
    DoctorFinding,
    docs_findings,
    machine_findings,
    model_findings,
)
from kopt.server.doctor.gpu_findings import gpu_findings
from kopt.server.exits import ExitCode
from kopt.server.session import Session, command_body
from kopt.server.views.tables import Cell, View, grid

EPILOG = """\b
Examples:
  kopt doctor
  kopt doctor --json

\b
Lines with "-" are optional; their text says how to get them. No GPU is needed.
Exit codes: 0 all that is needed is here, 3 something is missing."""


@click.command("doctor", epilog=EPILOG)
@command_body()
def command(session: Session) -> int:
    """Show what this machine has of all that kopt uses, and how to get what is missing.

    Compilers, sandbox, disk and problems; what documents are searched by; whether there is a key
    for Claude or a client that answers in its place, and the prices of models; GPUs with their
    drivers and locks, the libraries of the baselines, the profiler and whether it may read
    counters.
    """
    settings = session.settings
    areas = (machine_findings, docs_findings, model_findings, gpu_findings)
    findings = [finding for area in areas for finding in area(settings)]
    lacks = any(finding.is_required and not finding.is_present for finding in findings)
    document = {
        "schema": "kopt.doctor/1",
        "status": "error" if lacks else "passed",
        "findings": [asdict(finding) for finding in findings],
    }
    session.show(document, doctor_view(findings))
    return ExitCode.MACHINE if lacks else ExitCode.PASSED


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
