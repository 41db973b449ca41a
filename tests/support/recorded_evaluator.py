"""The offline twin of `LocalEvaluator`: answers come from a function, at once, without a tool."""

from collections.abc import Callable
from concurrent.futures import Future

from kopt.config.errors import KoptError
from kopt.search.records.evaluation import CLOSE_GRACE_S, Evaluation, EvaluationJob


class RecordedEvaluator:
    """Evaluates by looking the answer up; deterministic and free of threads and processes."""

    def __init__(self, answer: Callable[[EvaluationJob], Evaluation], slots: int = 1) -> None:
        """Answer every job by `answer`, which may raise `InfraError` like a real machine."""
        self._answer = answer
        self._slots = slots
        self.jobs: list[EvaluationJob] = []

    @property
    def slots(self) -> int:
        """How many jobs are handed out at the same time."""
        return self._slots

    def submit(self, job: EvaluationJob) -> "Future[Evaluation]":
        """Return a future that is done already."""
        self.jobs.append(job)
        future: Future[Evaluation] = Future()
        try:
            future.set_result(self._answer(job))
        except KoptError as error:
            future.set_exception(error)
        return future

    def close(self, grace_s: float = CLOSE_GRACE_S) -> None:
        """Nothing runs in the background."""
