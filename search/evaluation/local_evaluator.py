"""The evaluator of this machine: compile, check and time or estimate, several candidates at once.

Threads suffice, because the work is done by child processes that the stages start. The threads are
daemons, which those of a ThreadPoolExecutor are not: when kopt is told to stop, it does not wait
for a check that takes half a minute, and the kernel ends the children with the threads.
"""

import threading
import time
from concurrent.futures import Future

from kopt.search.records.evaluation import CLOSE_GRACE_S, Evaluation, EvaluationJob

from .evaluate_job import evaluate_job
from .evaluation_site import EvaluationSite


class LocalEvaluator:
    """Evaluates on the device of its site, several candidates at a time.

    A GPU serves one of them at a time, by its lock; the others compile and are judged meanwhile. A
    pool serves as many as it has evaluators, and may grow and shrink.
    """

    def __init__(self, site: EvaluationSite) -> None:
        """Evaluate on `site`; each job has a thread of its own."""
        self._site = site
        self._most = site.settings.jobs  # until it is asked how many the device serves
        self._at_work = 0
        self._room = threading.Condition()
        self._jobs: list[tuple[threading.Thread, Future[Evaluation]]] = []

    @property
    def slots(self) -> int:
        """How many jobs it works on at the same time."""
        with self._room:
            self._most = self._site.at_once
            self._room.notify_all()
            return self._most

    def submit(self, job: EvaluationJob) -> "Future[Evaluation]":
        """Begin `job` as soon as a slot is free; see `Evaluator` for what the future raises."""
        future: Future[Evaluation] = Future()
        thread = threading.Thread(
            target=self._work, args=(job, future), name=f"evaluator {job.id}", daemon=True
        )
        self._jobs = [*((one, of) for one, of in self._jobs if one.is_alive()), (thread, future)]
        thread.start()
        return future

    def close(self, grace_s: float = CLOSE_GRACE_S) -> None:
        """Drop what has not begun and wait up to `grace_s` for the rest."""
        begun = [thread for thread, future in self._jobs if not future.cancel()]
        deadline = time.monotonic() + grace_s
        for thread in begun:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self, job: EvaluationJob, future: "Future[Evaluation]") -> None:
        with self._room:
            self._room.wait_for(lambda: self._at_work < self._most)
            self._at_work += 1
        try:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(evaluate_job(job, self._site))
            except BaseException as error:  # the future's reader is the frame that handles it
                future.set_exception(error)
        finally:
            with self._room:
                self._at_work -= 1
                self._room.notify()
