"""How far a build or an upload of the library index is, in words."""

from kopt.server.views.docs_words import MB, counted
from kopt.tools.docs.library_index.build_records import BuildProgress
from kopt.tools.docs.pinecone_index.push_records import PushProgress

from .step_bar import Step

MANY = 100
"""Files or documents whose quarters are told; fewer are there before anyone wonders."""
_QUARTER = 25


def build_step(progress: BuildProgress) -> Step:
    """Return how far a build is."""
    match progress.step:
        case "wait":
            words = "waiting for another process that builds"
            return Step(words, "", words, 0, None)
        case "download":
            return _download(progress)
        case "read":
            return _counted(f"{progress.source}: reading", "file", progress)
        case "write":
            return _counted("writing the index", "document", progress)


def push_step(progress: PushProgress) -> Step:
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
    return Step(words, amount, line, progress.done, progress.total or None)


def _download(progress: BuildProgress) -> Step:
    words = f"{progress.source}: getting"
    done, total = progress.done, progress.total
    if total is None:
        amount = f"{done / MB:,.1f} MB" if done else ""
        return Step(words, amount, "", done, None)
    line = f"{words} {total / MB:,.1f} MB"
    if total >= MB:
        line += f", {_quarter(done, total)} %"
    return Step(words, f"{done / MB:,.1f} of {total / MB:,.1f} MB", line, done, total)


def _counted(words: str, noun: str, progress: BuildProgress) -> Step:
    if progress.total is None:
        return Step(words, "", words, progress.done, None)
    total = counted(progress.total, noun)
    line = f"{words}, {total}"
    if progress.total >= MANY:
        line += f", {_quarter(progress.done, progress.total)} %"
    return Step(words, f"{progress.done:,} of {total}", line, progress.done, progress.total)


def _quarter(done: int, total: int) -> int:
    """Return per cent, rounded down to quarters: a line for each is enough."""
    return 100 if done >= total else done * 100 // total // _QUARTER * _QUARTER
