"""How long a tool call waits for its job before it replies with the job's id."""

from pydantic import Field

from kopt.kernels.record import ToldRecord

DEFAULT_WAIT_S = 45.0
MAX_WAIT_S = 50.0
"""Clients give up on a silent call after a minute at the earliest."""


class WaitArgument(ToldRecord):
    """The argument of tools that may have to wait."""

    wait_s: float = Field(default=DEFAULT_WAIT_S, ge=0, le=MAX_WAIT_S)
    """Seconds to wait; then the reply is a job_id for job_wait."""
