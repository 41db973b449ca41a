"""Asking a model for one thing while the main thread attends to the run."""

from collections.abc import Callable
from typing import TypeVar

from kopt.search.models.errors import BudgetSpent

from .crew import Crew
from .drive import RunDrive

T = TypeVar("T")


def in_crew(drive: RunDrive, name: str, work: Callable[[], T]) -> T:
    """Do one piece of work in a thread, so that its calls and the user's Ctrl-C are attended to.

    Raises:
        BudgetSpent: It cannot be paid any more, or the time is spent.
        CallFailed: No model can be asked now, or with this key.
    """
    found: list[T] = []
    crew = Crew(drive.search.mailbox)
    crew.start(name, lambda: found.append(work()))
    drive.evaluations.drain("quick", crew)
    if not found:
        raise crew.spent or BudgetSpent(drive.spent_time() or "the time is spent")
    return found[0]
