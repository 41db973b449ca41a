"""The evaluator of this machine: compile, check and time or estimate, several candidates at once.

Threads suffice, because the work is done by child processes that the stages start. The threads are
daemons: when kopt is told to stop, it does not wait for a check that takes half a minute, and the
kernel ends the children with the threads that started them. `recorded_evaluator.py` is the
offline twin.
"""

import queue
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass

from kopt.search.records.evaluation import CLOSE_GRACE_S, Evaluation, EvaluationJob

from .evaluate_job import EvaluationSite, evaluate_job


@dataclass(frozen=True)
class _Ticket:
    job: EvaluationJob
    future: "Future[Evaluation]"


class LocalEvaluator:
    """Evaluates on one device of this machine, `settings.jobs` candidates at a time.

    A GPU serves one of them at a time, by its lock; the others compile and are judged meanwhile.
    """

    def __init__(self, site: EvaluationSite) -> None:
        """Start the worker threads; `close` ends them."""
        self._site = site
        self._waiting: queue.SimpleQueue[_Ticket | None] = queue.SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"evaluator-{index}", daemon=True)
            for index in range(site.settings.jobs)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def slots(self) -> int:
        """How many jobs it works on at the same time."""
        return len(self._threads)

    def submit(self, job: EvaluationJob) -> "Future[Evaluation]":
        """Queue `job` for the next free thread; see `Evaluator` for what the future raises."""
        ticket = _Ticket(job, Future())
        self._waiting.put(ticket)
        return ticket.future

    def close(self, grace_s: float = CLOSE_GRACE_S) -> None:
        """Drop what has not begun and wait up to `grace_s` for the rest."""
        while not self._waiting.empty():
            ticket = self._waiting.get()
            if ticket is not None:
                ticket.future.cancel()
        for _ in self._threads:
            self._waiting.put(None)
        deadline = time.monotonic() + grace_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while (ticket := self._waiting.get()) is not None:
            if not ticket.future.set_running_or_notify_cancel():
                continue
            try:
                evaluation = evaluate_job(ticket.job, self._site)
            except BaseException as error:  # the future's reader is the frame that handles it
                ticket.future.set_exception(error)
            else:
                ticket.future.set_result(evaluation)
