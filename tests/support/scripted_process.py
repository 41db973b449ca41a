"""A process that drives a scripted run and prints one line per event, for tests that kill it.

Usage: python scripted_process.py HOME RUN_ID; begins the run or resumes it.
"""

import sys
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from kopt.config.errors import KoptError
from kopt.search.records.evaluation import CLOSE_GRACE_S, Evaluation, EvaluationJob
from kopt.search.records.run_state import Event
from kopt.search.rounds.advance import run_search
from kopt.search.rounds.run_context import Search
from kopt.search.rounds.sweep import SweepProposer
from kopt.search.storage.artifacts import open_artifacts
from kopt.search.store.store import RunStore
from support.populations import SOURCE
from support.scripted_runs import grid_choices, scripted_answer, settings, start


class ThreadedEvaluator:
    """Gives the scripted answers from threads, so that they come in any order."""

    def __init__(self) -> None:
        """Work on three jobs at once."""
        self.slots = 3
        self._pool = ThreadPoolExecutor(self.slots)

    def submit(self, job: EvaluationJob) -> "Future[Evaluation]":
        """Start `job` in a thread."""
        return self._pool.submit(scripted_answer, job)

    def close(self, grace_s: float = CLOSE_GRACE_S) -> None:
        """Wait for the threads."""
        self._pool.shutdown()


def show(event: Event) -> None:
    """Print an event at once."""
    print(event.seq, event.kind.value, flush=True)


def main(home: Path, run_id: str) -> int:
    """Drive the run; 2 with the reason on stderr where that cannot be done."""
    folder = home / "runs" / run_id
    folder.mkdir(parents=True, exist_ok=True)
    try:
        store = RunStore(folder, open_artifacts(home))
    except KoptError as error:
        print(error, file=sys.stderr)
        return 2
    with store:
        if not store.reader.run_exists():
            store.artifacts.put(SOURCE.encode())
            store.begin(settings(), "0.0")
        elif not store.reader.state().is_finished:
            store.resume(settings())
        evaluator = ThreadedEvaluator()
        proposer = SweepProposer(lambda _: grid_choices())
        run_search(Search(store, evaluator, proposer, start()), show)
        evaluator.close()
    return 0


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), sys.argv[2]))
