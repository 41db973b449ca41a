"""How much may wait for a runner: a queued job holds an open file, its sources hold memory."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kopt.config.errors import ToolError
from kopt.server.work.requests import StepWork, Work

MAX_JOBS_OF_CALLER = 64
MAX_JOBS = 256
MAX_BYTES_OF_CALLER = 16 << 20
MAX_BYTES = 64 << 20


@dataclass(frozen=True)
class Waiting:
    """A job that waits, as far as the limits care."""

    caller: str
    source_bytes: int


def source_bytes(work: Work) -> int:
    """Return how large the candidates of `work` are, in bytes of UTF-8."""
    sources = (
        [one.source for one in work.candidates] if isinstance(work, StepWork) else [work.source]
    )
    return sum(len(source.encode("utf-8", "surrogatepass")) for source in sources)


def refuse_if_full(waiting: Sequence[Waiting], new: Waiting) -> None:
    """Return if `new` may wait beside `waiting`.

    Raises:
        ToolError: It would be one too many, or too large; the message says what to do.
    """
    jobs: Counter[str] = Counter(one.caller for one in waiting)
    sizes: Counter[str] = Counter()
    for one in (*waiting, new):
        sizes[one.caller] += one.source_bytes
    if jobs[new.caller] >= MAX_JOBS_OF_CALLER:
        raise ToolError(
            f"{MAX_JOBS_OF_CALLER} jobs of yours wait already, and no more may: get their results"
            " with job_wait, or end some with job_cancel, and then call again"
        )
    if sizes[new.caller] > MAX_BYTES_OF_CALLER:
        raise ToolError(
            f"the sources of your waiting jobs would be {sizes[new.caller]} bytes, at most"
            f" {MAX_BYTES_OF_CALLER} may be: wait for some of them with job_wait, or hand in less"
            " source text, and then call again"
        )
    if len(waiting) >= MAX_JOBS or sizes.total() > MAX_BYTES:
        raise ToolError(
            f"this server is full: {len(waiting)} jobs of all its callers wait, at most {MAX_JOBS}"
            f" jobs and {MAX_BYTES} bytes of source may; call again when some are done"
        )
