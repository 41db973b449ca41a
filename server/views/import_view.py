"""An imported benchmark as text: the tasks that are no problems, and how many are."""

from rich.text import Text

from kopt.config.counted import counted
from kopt.tools.imports.imported_task import ImportedSuite, ImportedTask

from .tables import View, grid

_SHOWN = 40
"""So many tasks that were not imported are named; all are in imported.json."""


def imported_suite_view(suite: ImportedSuite) -> View:
    """Yield the tasks that were not imported with their reasons, and what the suite has."""
    others = [one for one in suite.tasks if one.outcome != "imported"]
    rows = [(one.task, _outcome(one), one.reason.partition("\n")[0]) for one in others[:_SHOWN]]
    if rows:
        yield grid("Not imported", "Outcome", "Why", rows=rows, overflow="fold")
    if len(others) > _SHOWN:
        yield Text(f"and {len(others) - _SHOWN} more")
    warned = [one for one in suite.tasks if one.warnings]
    if warned:
        yield Text(f"{counted(len(warned), 'task')} with warnings: see import.json of each")
    done = len(suite.tasks)
    amount = counted(done, "task") + ("" if done == suite.planned else f" of {suite.planned}")
    kept = f", {suite.kept} of them done before" if suite.kept else ""
    yield Text(f"{amount}{kept}: {suite.counted('imported')} imported", style="bold")
    yield Text(f"Suite: {suite.folder}")


def _outcome(task: ImportedTask) -> str:
    return f"refused, {task.mark}" if task.outcome == "refused" else task.outcome
