"""What to do after a run: commands that work as they are printed, each with what it is for."""

from collections.abc import Iterator

from kopt.tools.facts.next_command import NextCommand

from .run_report import RunReport


def next_commands(report: RunReport) -> tuple[NextCommand, ...]:
    """Return what follows from the state of a run, the most useful first."""
    return tuple(one.on(report.problems) for one in _commands(report))


def resuming(run: str, problems: str | None) -> NextCommand:
    """Return how a run is gone on with that was paused or interrupted.

    Args:
        run: Its id.
        problems: The folder of the user's own problems that its kernel is of.
    """
    return NextCommand(("kopt", "run", "--resume", run), "go on with the search").on(problems)


def _commands(report: RunReport) -> Iterator[NextCommand]:
    run = report.run
    if report.status == "running":
        yield NextCommand(("kopt", "view", run), "watch it in a browser")
        yield NextCommand(("kopt", "runs", "show", run), "what it has found so far")
        return
    if report.status in ("paused", "interrupted"):
        yield resuming(run, None)
    if report.status == "budget" and report.larger_budget:
        more = ("kopt", "run", "--resume", run, "--budget", report.larger_budget)
        yield NextCommand(more, "go on with twice the budget")
    if report.winner is None or report.winner_path is None:
        if report.status in ("failed", "budget"):
            yield NextCommand(("kopt", "runs", "show", run), "why candidates fell short")
            yield NextCommand(("kopt", "step", "--run", run), "let kopt try more tune values")
        return
    yield from _of_winner(report, report.winner_path)


def _of_winner(report: RunReport, winner: str) -> Iterator[NextCommand]:
    on = ("--kernel", report.kernel)
    if report.gpu is None:
        why = "measure the winner, on a machine with an NVIDIA GPU; elsewhere this estimates"
        yield NextCommand(("kopt", "bench", winner, *on), why)
    elif not any(one.outcome == "promoted" for one in report.judgements):
        promote = ("kopt", "bench", winner, *on, "--device", report.device, "--promote")
        yield NextCommand(
            promote, "measure it in fresh processes, and keep it with a receipt if it is faster"
        )
    arch = ("--arch", report.arch) if report.gpu is None else ()  # a GPU has its own
    profile = ("kopt", "profile", winner, *on, "--device", report.device, *arch)
    yield NextCommand(profile, "what limits it")
    yield NextCommand(("kopt", "run", *on, "--start", winner), "search on from it")
    yield NextCommand(
        ("kopt", "export", f"{report.run}/{report.winner}", "--as", "cuda"),
        "the winner as ordinary CUDA code with its own test",
    )
