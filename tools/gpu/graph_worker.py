"""The worker that runs graphs of oracles on a GPU: right results in less than a second.

It is a process of its own, in which no candidate ever runs: nothing that a kernel does to its
context reaches an expected output. It serves all problems, and starts with the first graph.
"""

import threading
from collections.abc import Callable

import numpy as np

from kopt.config.errors import InfraError
from kopt.kernels.graph_runs import GraphResults, GraphRuns
from kopt.tools.devices.device import Arrays

from .array_file import overwrite_arrays, read_arrays
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

    def __init__(self, pool: WorkerPool, turns: GpuTurns, tell: Callable[[str], None]) -> None:
        """Start nothing yet.

        Args:
            pool: Makes the process; nobody else uses it.
            turns: Those of the GPU.
            tell: Called with a line when a graph does not run here.
        """
        self._pool = pool
        self._turns = turns
        self._tell = tell
        self._threads = threading.Lock()  # of the pool; taken before a turn, never within one

    def run(self, runs: GraphRuns) -> GraphResults | None:
        """Return the results; None, and a line to the user, if torch refuses.

        Raises:
            SetupError: The process cannot start here.
            InfraError: It ended, or answered something else.
        """
        with self._threads:
            try:
                return self._run(runs)
            except BaseException:
                self._pool.discard()
                raise

    def close(self) -> None:
        """End the process."""
        self._pool.close()

    def _run(self, runs: GraphRuns) -> GraphResults | None:
        worker = self._pool.process_for(None, None, library=False)
        text = np.frombuffer(runs.graph, np.uint8)
        request = GraphRunsRequest(
            axes=dict(runs.axes),
            tf32=runs.tf32,
            samples=runs.samples,
            inputs=overwrite_arrays(worker.folder, _INPUTS, [*runs.inputs.items(), (_GRAPH, text)]),
            dtypes={name: array.dtype.name for name, array in runs.inputs.items()},
        )
        answer = self._ask(worker, request)
        if answer.results is None:
            self._tell(f"right results are computed on the CPU: {answer.refused}")
            return None
        return _results_of(read_results(worker, answer.results))

    def _ask(self, worker: WorkerProcess, request: GraphRunsRequest) -> GraphRunsAnswer:
        with self._turns.hold():
            if not self._pool.has_context:
                self._pool.create_context()
            answer = ask_for(GraphRunsAnswer, worker, request, _RUNS_S)
        if not isinstance(answer, GraphRunsAnswer):
            raise InfraError(f"the GPU worker for right results ended: {answer.detail}")
        return answer


def read_results(worker: WorkerProcess, file: ArrayFile) -> Arrays:
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
