"""Engines of the worker for graphs where there is no GPU: torch computes on the CPU."""

import os
from pathlib import Path

from kopt.tools.gpu.messages import Answer, GraphRunsAnswer, GraphRunsRequest, OpenedGpu, Request
from kopt.tools.pytorch.graph_engine import GraphEngine

CPU_ENGINE = "support.graph_engines:CpuGraphEngine"
FULL_ENGINE = "support.graph_engines:FullGraphEngine"
ENDING_ENGINE = "support.graph_engines:EndingGraphEngine"


class CpuGraphEngine(GraphEngine):
    """Has no GPU to find."""

    def start(self, uuid: str) -> OpenedGpu:
        """Open nothing."""
        return OpenedGpu(index=0, uuid=uuid, sm_count=1, l2_bytes=1)


class FullGraphEngine(CpuGraphEngine):
    """Has no memory for a graph."""

    def answer(self, request: Request, folder: Path) -> Answer:
        """Refuse graphs as torch does."""
        if isinstance(request, GraphRunsRequest):
            return GraphRunsAnswer(results=None, refused="CUDA out of memory")
        return super().answer(request, folder)


class EndingGraphEngine(CpuGraphEngine):
    """Ends its process when it is asked for a graph."""

    def answer(self, request: Request, folder: Path) -> Answer:
        """Start, and end with the first graph."""
        if isinstance(request, GraphRunsRequest):
            os._exit(3)
        return super().answer(request, folder)
