"""The removal of runs as text: which go, which stay and why, what it frees."""

from rich.text import Text

from kopt.config.counted import counted
from kopt.search.reports.removal import RunRemoval

from .sizes import size_words
from .tables import View, grid


def removal_view(removal: RunRemoval) -> View:
    """Yield the runs that go, those that stay, and what is freed."""
    if removal.runs:
        table = grid("run", "status", "kernel", "size#", whole=("run",))
        for one in removal.runs:
            table.add_row(one.run, one.status, one.kernel, size_words(one.size_bytes))
        yield table
    for kept in removal.kept:
        yield Text(f"{kept.run} stays: it {kept.why}", style="yellow")
    runs = counted(len(removal.runs), "run")
    freed = size_words(removal.freed_bytes)
    if not removal.is_done:
        yield Text(f"{runs} would go: {freed}, and what no other run refers to")
        return
    artifacts = f" and {counted(removal.artifacts, 'artifact')}" if removal.artifacts else ""
    yield Text(f"Removed {runs}{artifacts}: {freed} freed")
    if removal.artifacts_stay is not None:
        yield Text(f"Sources and results of removed runs stay: {removal.artifacts_stay}")
