"""The worker that runs graphs of oracles on a GPU: right results in less than a second.

It is a process of its own, in which no candidate ever runs: nothing that a kernel does to its
context reaches an expected output. It serves all problems, and starts with the first graph.
"""

import threading
from collections.abc import Callable

import numpy as np

from kopt.config.errors import InfraError, KoptError
from kopt.kernels.graph_runs import GraphResults, GraphRuns
from kopt.tools.devices.device import Arrays

from .array_file import read_arrays, write_arrays
from .described_arrays import ArrayFile
from .gpu_turns import GpuTurns
from .messages import GraphRunsAnswer, GraphRunsRequest
from .worker_pool import WorkerPool
from .worker_process import WorkerProcess, ask_for

_RUNS_S = 180.0
"""Far more than any graph takes whose values a GPU holds."""
_GRAPH = "graph.json"
_INPUTS = "inputs"


class GraphWorker:
    """At most one process; safe from several threads, which take turns."""

    def __init__(
        self, pool: WorkerPool | None, turns: GpuTurns, tell: Callable[[str], None]
    ) -> None:
        """Start nothing yet.

        Args:
            pool: Makes the process; nobody else uses it. None: no graph runs.
            turns: Those of the GPU.
            tell: Called with a line when a graph does not run here.
        """
        self._pool = pool
        self._turns = turns
        self._tell = tell
        self._threads = threading.Lock()  # of the pool; taken before a turn, never within one

    def run(self, runs: GraphRuns, refuse: Callable[[], object] = tuple) -> GraphResults | None:
        """Return the results; None if no graph runs, or, with a line to the user, if this fails.

        What fails is not the candidate, and the CPU can do it: torch without CUDA, a GPU or a disk
        without room, a worker that ends.

        Args:
            runs: What is asked.
            refuse: Raises where the device was abandoned; asked before anything is begun.

        Raises:
            InfraError: `refuse` does.
        """
        pool = self._pool
        if pool is None:
            return None
        with self._threads:
            try:
                return self._run(pool, runs, refuse)
            except (KoptError, OSError) as error:
                pool.discard()
                refuse()
                self._tell(f"right results are computed on the CPU: {error}")
                return None
            except BaseException:
                pool.discard()
                raise

    def abandon(self) -> None:
        """End the process under the thread that waits for it; the next graph finds another."""
        if self._pool is not None:
            self._pool.end_current()

    def close(self) -> None:
        """End the process, and start none again."""
        if self._pool is not None:
            self._pool.close()

    def _run(
        self, pool: WorkerPool, runs: GraphRuns, refuse: Callable[[], object]
    ) -> GraphResults | None:
        refuse()
        worker = pool.process_for(None, None, library=False)
        text = np.frombuffer(runs.graph, np.uint8)
        request = GraphRunsRequest(
            axes=dict(runs.axes),
            tf32=runs.tf32,
            samples=runs.samples,
            inputs=write_arrays(worker.folder, _INPUTS, [*runs.inputs.items(), (_GRAPH, text)]),
            dtypes={name: array.dtype.name for name, array in runs.inputs.items()},
        )
        with self._turns.hold():
            refuse()
            answer = _asked(pool, worker, request)
        (worker.folder / _INPUTS).unlink()
        if answer.results is None:
            raise InfraError(answer.refused)
        results = _read_results(worker, answer.results)
        (worker.folder / answer.results.file).unlink()  # expected outputs do not stay on disk
        return _results_of(results)


def _asked(pool: WorkerPool, worker: WorkerProcess, request: GraphRunsRequest) -> GraphRunsAnswer:
    """Return the answer of a worker, which has a context then."""
    if not pool.has_context:
        pool.create_context()
    answer = ask_for(GraphRunsAnswer, worker, request, _RUNS_S)
    if not isinstance(answer, GraphRunsAnswer):
        raise InfraError(f"the GPU worker for right results ended: {answer.detail}")
    return answer


def _read_results(worker: WorkerProcess, file: ArrayFile) -> Arrays:
    """Return the arrays of an answer, copied.

    Raises:
        InfraError: The file is not what the answer says.
    """
    return read_arrays(worker.folder, file, {entry.name: "float64" for entry in file.entries})


def _results_of(arrays: Arrays) -> GraphResults:
    found: dict[str, Arrays] = {"exact": {}, "deviation": {}}
    for name, array in arrays.items():
        kind, _, output = name.partition("/")
        found[kind][output] = array
    return GraphResults(found["exact"], found["deviation"])
