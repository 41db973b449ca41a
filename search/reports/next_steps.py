"""What to do after a run: commands that work as they are printed, each with what it is for."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from .run_report import RunReport


@dataclass(frozen=True)
class NextCommand:
    """A command for a shell."""

    purpose: str
    command: str


def next_commands(report: RunReport) -> tuple[NextCommand, ...]:
    """Return what follows from the state of a run, the most useful first."""
    return tuple(_commands(report))


def _commands(report: RunReport) -> Iterator[NextCommand]:
    if report.status == "running":
        yield NextCommand("Watch it in a browser", f"kopt view {report.run}")
        yield NextCommand("What it has found so far", f"kopt runs show {report.run}")
        return
    if report.status in ("paused", "interrupted"):
        yield NextCommand("Go on with the search", f"kopt run --resume {report.run}")
    if report.status == "budget" and report.larger_budget:
        more = f"kopt run --resume {report.run} --budget {report.larger_budget}"
        yield NextCommand("Go on with twice the budget", more)
    if report.winner is None or report.winner_path is None:
        if report.status in ("failed", "budget"):
            yield NextCommand("Why candidates fell short", f"kopt runs show {report.run}")
            again = f"kopt step --run {report.run}"
            yield NextCommand("Let kopt try more tune values", again)
        return
    yield from _of_winner(report, shlex.quote(report.winner_path))


def _of_winner(report: RunReport, winner: str) -> Iterator[NextCommand]:
    on = f"--kernel {report.kernel}"
    if report.gpu is None:
        yield NextCommand(
            "Measure the winner, on a machine with an NVIDIA GPU; elsewhere this estimates",
            f"kopt bench {winner} {on}",
        )
    elif not any(one.outcome == "promoted" for one in report.judgements):
        yield NextCommand(
            "Measure it in fresh processes, and keep it with a receipt if it is faster",
            f"kopt bench {winner} {on} --device {report.device} --promote",
        )
    yield NextCommand(
        "See what limits it", f"kopt profile {winner} {on} --device {report.device}{_arch(report)}"
    )
    yield NextCommand("Search on from it", f"kopt run {on} --start {winner}")
    yield NextCommand(
        "Use it elsewhere: as ordinary CUDA code with its own test",
        f"kopt export {report.run}/{report.winner} --as cuda",
    )


def _arch(report: RunReport) -> str:
    """Return the target where the device does not say it."""
    return f" --arch {report.arch}" if report.gpu is None else ""
