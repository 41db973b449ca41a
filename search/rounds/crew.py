"""The threads of one phase: each works on its own, all write through the mailbox.

They are daemons: when kopt is told to stop it does not wait for a reply that takes ten minutes. A
thread that is left behind can write nothing, because its mailbox is closed.
"""

import threading
from collections.abc import Callable
from functools import partial

from kopt.search.models.errors import BudgetSpent, Stopped

from .main_thread import Mailbox


class Crew:
    """Workers that the main thread waits for by attending to its mailbox."""

    def __init__(self, mailbox: Mailbox) -> None:
        """Begin without workers; used by the owner of `mailbox` alone."""
        self._mailbox = mailbox
        self._working = 0
        self.spent: BudgetSpent | None = None
        """What the first worker said that did not go on because a budget is spent."""
        self._failure: BaseException | None = None

    @property
    def is_working(self) -> bool:
        """Whether any worker is under way."""
        return self._working > 0

    def start(self, name: str, work: Callable[[], None]) -> None:
        """Have a thread of its own do `work`."""
        self._working += 1
        run = partial(self._run, work)
        threading.Thread(target=run, name=name, daemon=True).start()

    def check(self) -> None:
        """Raise what a worker raised, once all of them have ended: what they cost is not lost."""
        if self._failure is not None and not self.is_working:
            raise self._failure

    def _run(self, work: Callable[[], None]) -> None:
        failure: BaseException | None = None
        try:
            work()
        except BaseException as error:  # the main thread is the frame that handles it
            failure = error
        self._mailbox.post(partial(self._end, failure))

    def _end(self, failure: BaseException | None) -> None:
        self._working -= 1
        if isinstance(failure, BudgetSpent):
            self.spent = self.spent or failure
        elif failure is not None and not isinstance(failure, Stopped):
            self._failure = self._failure or failure
