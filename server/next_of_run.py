"""What follows a run: which command takes the user on, whether it has ended or not.

What follows the stages is in `what_next.py`, which reads nothing of the search.
"""

from pathlib import Path

from kopt.kernels.status import Status
from kopt.search.reports.next_steps import next_commands
from kopt.search.reports.run_report import RunReport
from kopt.tools.facts.next_command import NextCommand

from .what_next import NamedFile

_UNFINISHED = ("running", "paused", "interrupted")


def after_run(report: RunReport, start: Path | None = None) -> tuple[NextCommand, ...]:
    """Return what follows: the winner as code and its time, or what the start or the run lacks.

    Args:
        report: Of the run.
        start: The file that its starting kernel came from; None where the caller does not know.
    """
    can_go_on = report.winner is None and report.status == "budget"
    if report.status in _UNFINISHED or can_go_on:
        return next_commands(report)[:1]
    if report.winner is not None:
        export = ("kopt", "export", report.run, "--as", "torch")
        bench = ("kopt", "bench", str(report.winner_path), "--kernel", report.kernel, "--promote")
        as_code = NextCommand(export, "the winner as code")
        timed = NextCommand(bench, "on a GPU: its speed, and a receipt")
        return (as_code, timed) if report.gpu is None else (as_code,)
    first = next(iter(report.population), None)
    is_broken = first is not None and first.status not in (None, Status.PASSED)
    if start is not None and is_broken:
        return (NamedFile(start, report.kernel, device=report.device).again("check"),)
    return (NextCommand(("kopt", "runs", "report", report.run), "what was tried, as a page"),)
