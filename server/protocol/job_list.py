"""Replies about jobs as such: which there are, and that one was over already."""

from mcp.types import CallToolResult

from kopt.server.jobs.records import JobView
from kopt.server.work.requests import tool_of


def jobs_answer(views: list[JobView]) -> CallToolResult:
    """Return the reply that lists jobs, newest first."""
    from .replies.reply import facts_reply  # loads numpy: not when a server starts

    return facts_reply(
        {"status": "passed", "jobs": [job_line(one) for one in views], "next": _next(views)}
    )


def over_answer(view: JobView) -> CallToolResult:
    """Return the reply to a call that would end a job which has ended."""
    from .replies.reply import facts_reply

    job_id = view.request.id
    step = f"job_wait with job_id={job_id} has its result"
    if view.state == "cancelled":
        step = f"call {tool_of(view.request.work)} again if it is wanted after all"
    return facts_reply(
        {"status": view.state, "job_id": job_id, "message": "it was over already", "next": step}
    )


def job_line(view: JobView) -> str:
    """Return a job in a line: id, state, tool, kernel or run, progress."""
    work = view.request.work
    words = [view.request.id, view.state, tool_of(work)]
    about = work.kernel or getattr(work, "run_id", "")
    words += [about] if about else []
    if view.state == "running" and view.progress is not None:
        words.append(f"({view.progress.message[:80]})")
    return " ".join(words)


def _next(views: list[JobView]) -> str:
    waiting = [one.request.id for one in views if not one.is_over]
    if waiting:
        return f"call job_wait with job_id={waiting[0]}"
    return "call job_wait with one of these ids for its result" if views else "no job was begun yet"
