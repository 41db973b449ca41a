"""The findings of `kopt doctor` as a table."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from .tables import View


@dataclass(frozen=True)
class Finding:
    """One thing that kopt uses, and whether this machine has it."""

    name: str
    is_present: bool
    is_required: bool
    detail: str
    """What was found and where, or what is missing and how to get it."""


def doctor_view(findings: Sequence[Finding]) -> View:
    """Yield one line for each finding, and how many that kopt needs are missing."""
    table = Table(box=None, pad_edge=False, show_header=False)
    for finding in findings:
        if finding.is_present:
            mark = Text("ok", style="green")
        elif finding.is_required:
            mark = Text("missing", style="bold red")
        else:
            mark = Text("-")
        table.add_row(mark, finding.name, finding.detail)
    missing = sum(finding.is_required and not finding.is_present for finding in findings)
    if missing:
        verdict = f"{missing} missing"
    else:
        lacks = [f.name for f in findings if not f.is_present]
        optional = f" Not here, and optional: {', '.join(lacks)}." if lacks else ""
        verdict = f"Everything that kopt needs is here.{optional}"
    yield table
    yield Text(verdict)
