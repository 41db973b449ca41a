"""How far a build or an upload of the library index is, in words."""

from kopt.config.counted import counted
from kopt.tools.docs.build_records import BuildProgress
from kopt.tools.docs.pinecone_index.push_records import PushProgress

from .progress import WorkStep

MB = 1_000_000
MANY = 100
"""Files or documents whose quarters are told; fewer are there before anyone wonders."""
_QUARTER = 25


def build_step(progress: BuildProgress) -> WorkStep:
    """Return how far a build is."""
    match progress.step:
        case "wait":
            words = "waiting for another process that builds"
            return WorkStep(words, "", words, 0, None)
        case "download":
            return _download(progress)
        case "read":
            return _counted(f"{progress.source}: reading", "file", progress)
        case "write":
            return _counted("writing the index", "document", progress)


def push_step(progress: PushProgress) -> WorkStep:
    """Return how far an upload is."""
    words = {
        "wait": "waiting",
        "index": "waiting for the index to be ready",
        "upload": "uploading",
        "settle": "waiting until all records can be found",
    }[progress.step]
    if progress.note:
        words += f": {progress.note}"
    total = counted(progress.total, "record")
    amount = f"{progress.done:,} of {total}"
    line = f"{words}, {total}"
    if progress.step == "upload":
        line += f", {_quarter(progress.done, progress.total)} %"
    return WorkStep(words, amount, line, progress.done, progress.total or None)


def _download(progress: BuildProgress) -> WorkStep:
    words = f"{progress.source}: getting"
    done, total = progress.done, progress.total
    if total is None:
        amount = f"{done / MB:,.1f} MB" if done else ""
        return WorkStep(words, amount, "", done, None)
    line = f"{words} {total / MB:,.1f} MB"
    if total >= MB:
        line += f", {_quarter(done, total)} %"
    return WorkStep(words, f"{done / MB:,.1f} of {total / MB:,.1f} MB", line, done, total)


def _counted(words: str, noun: str, progress: BuildProgress) -> WorkStep:
    if progress.total is None:
        return WorkStep(words, "", words, progress.done, None)
    total = counted(progress.total, noun)
    line = f"{words}, {total}"
    if progress.total >= MANY:
        line += f", {_quarter(progress.done, progress.total)} %"
    return WorkStep(words, f"{progress.done:,} of {total}", line, progress.done, progress.total)


def _quarter(done: int, total: int) -> int:
    """Return per cent, rounded down to quarters: a line for each is enough."""
    return 100 if done >= total else done * 100 // total // _QUARTER * _QUARTER
