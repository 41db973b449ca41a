"""What `kopt pool status` tells: the evaluators of a pool, and who waits for them."""

from typing import Literal

from .record import Record


class PoolEvaluator(Record):
    """One evaluator: a GPU, or a simulator, with the actor that serves it."""

    kind: Literal["cuda", "sim"]
    host: str
    """The machine's name, else the id of its node."""
    model: str
    """NVIDIA H100 80GB HBM3; "" for a simulator, and until the actor has looked."""
    gpu: str
    """UUID of the GPU; "" as above."""
    state: Literal["starting", "free", "busy", "restarting", "unfit"]
    detail: str
    """Why it is unfit, or who holds it."""
    calls: int
    """Executions and timing sessions that it has finished."""


class PoolCaller(Record):
    """One process of kopt that evaluates on the pool."""

    name: str
    """Its host and pid."""
    holds: int
    """Evaluators that work for it now."""
    waits: int
    """Calls that wait for an evaluator."""
    calls: int
    """Executions and timing sessions that were finished for it."""
    evaluations: int
    """Evaluations that were finished for it."""


class PoolStatus(Record):
    """A pool of one version of kopt, as it is at one moment."""

    version: str
    """The name of its actor in Ray's namespace kopt, made of the code's digest."""
    evaluators: tuple[PoolEvaluator, ...]
    callers: tuple[PoolCaller, ...]
    evaluations_a_minute: float
    """Over the last minute, or since the pool began where that is shorter."""
    calls_a_minute: float
    """Executions and timing sessions, likewise."""
    up_s: float
    """How long it has been there."""
