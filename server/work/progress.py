"""How far a piece of work is, as it is told to whoever waits."""

from kopt.kernels.record import Record


class Progress(Record):
    """How far a job is. `done` never falls while a job is watched."""

    done: float
    total: float | None = None
    """In the unit of `done`; None where the end is not known."""
    message: str = ""
    at_us: int = 0
