"""The GPU of a resident evaluator, whose oracles' graphs run in a process of this one's.

Right results stay here: an evaluator executes candidates, and is sent no graph. What starts
processes is imported with the first graph: most callers of an evaluator never start any.
"""

import threading
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from kopt.config.settings import Settings
from kopt.kernels.graph_runs import GraphResults, GraphRuns
from kopt.tools.remote.answers import OpenedAnswer
from kopt.tools.remote.device import RemoteGpu
from kopt.tools.remote.reconnecting import Uplink

if TYPE_CHECKING:
    from kopt.tools.gpu.graph_worker import GraphWorker


class ResidentGpu(RemoteGpu):
    """Implements `kernels.graph_runs.GraphRunner` beside what another machine's GPU does."""

    def __init__(
        self, uplink: Uplink, opened: OpenedAnswer, settings: Settings, show: Callable[[str], None]
    ) -> None:
        """Take over an uplink; no process is started before a graph is to run."""
        super().__init__(uplink, opened)
        self._settings = settings
        self._show = show
        self._making = threading.Lock()  # of `_graphs`: several threads may want the first

    def run_graph(self, runs: GraphRuns) -> GraphResults | None:
        """Return the results of an oracle's graph; None if it does not run here.

        The evaluator's turns and this one are of one queue: not to be called within a timing.
        """
        with self._making:
            graphs = self._graphs
        return graphs.run(runs)

    def close(self) -> None:
        """End the process for graphs, and hang up."""
        if "_graphs" in vars(self):
            self._graphs.close()
        super().close()

    @cached_property
    def _graphs(self) -> "GraphWorker":
        from kopt.tools.gpu.gpu_turns import GpuTurns
        from kopt.tools.gpu.graph_worker import GraphWorker
        from kopt.tools.gpu.open_gpu import graph_pool
        from kopt.tools.gpu.ticket_lock import TicketLock

        pool, lock = graph_pool(self.facts.uuid, self._settings), TicketLock(self.facts.uuid)
        turns = GpuTurns(lock, pool, lambda wait: self._show(wait.told_of(self.name)))
        return GraphWorker(pool, turns, self._show)
