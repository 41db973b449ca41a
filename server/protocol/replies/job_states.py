"""The replies to a job that has no result: still at work, failed, cancelled, or unreadable."""

from datetime import UTC, datetime

from kopt.search.step.request import run_of_key
from kopt.server.jobs.records import JobError, JobView, Progress
from kopt.server.work.requests import StepWork
from kopt.tools.facts.fitting import Facts

_ASK_AGAIN_S = 45
UNREADABLE = "its result was written by another version of kopt and cannot be summed up"
BUG = "kopt has a bug here; the server's log has the details"


def job_facts(view: JobView) -> Facts:
    """Return what identifies a job: its state as `status`, id, tool, kernel, run."""
    work = view.request.work
    facts: Facts = {"status": view.state, "job_id": view.request.id, "tool": work.kind}
    if work.kernel:
        facts["kernel"] = work.kernel
    run_id = run_of(view)
    if run_id is not None:
        facts["run_id"] = run_id
    return facts


def run_of(view: JobView) -> str | None:
    """Return the run of a step: the one it goes on with, or that it begins unless it failed.

    None too for a step that was cancelled before anything worked on it, which began none.
    """
    work = view.request.work
    if not isinstance(work, StepWork):
        return None
    if work.run_id:
        return work.run_id
    begins = view.state in ("queued", "running") or (view.state == "cancelled" and view.attempts)
    return run_of_key(view.request.id) if begins else None


def waiting_facts(view: JobView) -> Facts:
    """Return the facts of a job that is queued or running."""
    facts = job_facts(view)
    if view.progress is not None and view.progress.at_us:
        facts["progress"] = _progress(view.progress)
    if view.state == "running" and view.attempts > 1:
        facts["attempt"] = view.attempts
    if view.needed_server is not None:
        facts["note"] = f"no server works on it now, and this one cannot: {view.needed_server} can"
    elif view.holder is None:
        facts["note"] = "no server works on it now: one takes it up when it is asked for"
    return facts


def waiting_next(view: JobView) -> str:
    """Return how to wait for it, and how not to."""
    job = f"job_id={view.request.id}"
    wait = f"Call job_wait with {job} and wait_s={_ASK_AGAIN_S}; job_cancel with {job} ends it"
    if view.needed_server is not None:
        wait = f"Ask the user to start {view.needed_server}. {wait}"
    run_id = run_of(view)
    return f"{wait}." if run_id is None else f"{wait}; later go on with run_id={run_id}."


def cancelled_next(view: JobView) -> str:
    """Return how to start anew."""
    work, run_id = view.request.work, run_of(view)
    if run_id is None:
        return f"Call {work.kind} again if it is wanted after all."
    new = "" if not work.kernel else f"; if there is no such run, with kernel={work.kernel}"
    return f"Call beam_step with run_id={run_id} to go on with what it had finished{new}."


def failure_facts(view: JobView, error: JobError) -> Facts:
    """Return why a job has no result. A bug's own text stays in the server's log."""
    facts = job_facts(view) | {"error": error.kind}
    facts["message"] = BUG if error.kind == "bug" else error.message
    if error.hint and error.kind != "bug":
        facts["hint"] = error.hint
    return facts


def failure_next(view: JobView, error: JobError) -> str:
    """Return what to do: mend the call, mend the machine, or go around the bug."""
    tool = view.request.work.kind
    match error.kind:
        case "usage":
            return f"Change the arguments as the message says and call {tool} again."
        case "machine":
            device = getattr(view.request.work, "device", "sim")
            other = "" if device == "sim" else ", with device=sim for what needs no GPU"
            return (
                f"The candidate is not at fault: call {tool} once more{other}, or ask the user to"
                " run `kopt doctor`, which shows what this machine lacks."
            )
        case _:
            return f"Report it to the user; another candidate may still work with {tool}."


def _progress(progress: Progress) -> Facts:
    at = datetime.fromtimestamp(progress.at_us / 1e6, UTC)
    facts: Facts = {"done": progress.done}
    if progress.total is not None:
        facts["total"] = progress.total
    return facts | {"message": progress.message, "at": f"{at:%Y-%m-%d %H:%M:%S} UTC"}
