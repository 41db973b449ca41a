"""Replies of tools: the same facts as text and as structured content, cut to fit, `next` last.

A candidate that falls short is a normal reply. An error is a call that could not be carried out;
clients show its text only, so that the text has everything in both cases.
"""

from datetime import UTC, datetime
from typing import Annotated, Any

from mcp.types import CallToolResult, ResourceLink, TextContent
from pydantic import Field, TypeAdapter, ValidationError

from kopt.config.device_names import is_simulated
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.check_result import CheckResult
from kopt.kernels.choice_table import ChoiceTable
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.profile_result import ProfileResult
from kopt.search.step.result import StepResult, run_of_key
from kopt.server.jobs.records import JobError, JobView, Progress
from kopt.server.protocol.addresses import job_links, log_uri, result_uri
from kopt.server.protocol.tool_spec import BUG
from kopt.server.work.requests import CompileWork, StepWork, Work, tool_of
from kopt.tools.facts.bench_facts import bench_facts
from kopt.tools.facts.check_facts import check_facts
from kopt.tools.facts.compile_facts import compile_facts
from kopt.tools.facts.findings import with_excerpts
from kopt.tools.facts.fitting import Detail, Facts, Listing, cleaned, fitted, page
from kopt.tools.facts.profile_facts import profile_facts
from kopt.tools.facts.rendering import render, structured
from kopt.tools.facts.table_facts import table_facts

from .next_steps import Archs, bench_next, check_next, compile_next, profile_next, table_next
from .step_reply import step_facts, step_next

_ASK_AGAIN_S = 45
_CLAIMED = 6
"""Workloads of a header that are named."""
REST = "job_wait with this job_id and detail=full"
UNREADABLE = "its result was written by another version of kopt and cannot be summed up"

StageResult = CompileResult | CheckResult | BenchResult | ProfileResult | ChoiceTable | StepResult
_RESULT: TypeAdapter[StageResult] = TypeAdapter(
    Annotated[StageResult, Field(discriminator="schema_")]
)


def job_reply(view: JobView, detail: Detail, offset: int = 0) -> CallToolResult:
    """Return the reply to a job in any state.

    Args:
        view: The job as it stands.
        detail: concise: what decides the next step, at most 1,500 tokens. full: everything that is
            not for programs only, in pages.
        offset: Where a page of a full reply begins: `next_offset` of the one before.
    """
    if view.state == "failed" and view.error is not None:
        facts = _failure_facts(view, view.error)
        return _reply(_fitted(facts, view), _failure_next(view, view.error), is_error=True)
    if view.state == "cancelled":
        return _reply(_job_facts(view), _cancelled_next(view))
    if view.state != "done" or view.result is None:
        return _reply(_fitted(_waiting_facts(view), view), _waiting_next(view))
    return _result_reply(view, view.result, detail, max(0, offset))


def facts_reply(facts: dict[str, Any]) -> CallToolResult:
    """Return the reply of a tool that is no job: text and structured content of `facts`.

    Nothing is cut. Control characters are made visible, and `next` goes to the end.
    """
    cleaned_facts: Facts = cleaned(facts)
    step = cleaned_facts.pop("next", None)
    return _reply(cleaned_facts, step)


def _result_reply(
    view: JobView, document: dict[str, Any], detail: Detail, offset: int
) -> CallToolResult:
    job_id = view.request.id
    links = job_links(job_id, document)
    try:
        source = getattr(view.request.work, "source", "")
        result = _RESULT.validate_python(with_excerpts(document, source))
    except ValidationError:
        facts = _job_facts(view) | {"message": UNREADABLE, "result": result_uri(job_id)}
        step = f"Read {result_uri(job_id)}, or call {tool_of(view.request.work)} again."
        return _reply(facts, step, links)
    facts, step = _facts_and_next(result, detail, _asked_archs(view.request.work))
    where: Facts = {"job_id": job_id}
    if detail == "concise":
        if len(links) > 1 and result.status not in ("passed", "paused"):
            where["log"] = log_uri(job_id)
        return _reply(_fitted(facts | where, view), step)
    where["result"] = result_uri(job_id)
    if len(links) > 1:
        where["log"] = log_uri(job_id)
    shown, next_offset = page(facts | where, offset)
    if next_offset is None:
        return _reply(shown, step, links)
    shown["next_offset"] = next_offset
    more = f"detail=full and offset={next_offset}"
    return _reply(shown, f"Call job_wait with job_id={job_id}, {more} for the next page.", links)


def _asked_archs(work: Work) -> Archs:
    """Return the targets that a call asked for; () for the default."""
    if isinstance(work, CompileWork):
        return work.arch
    return (work.arch,) if work.arch else ()


def _facts_and_next(result: StageResult, detail: Detail, archs: Archs) -> tuple[Facts, str]:
    match result:
        case CompileResult():
            facts = compile_facts(result, detail) | _claims(result)
            return slimmed(facts, detail), compile_next(result, archs)
        case CheckResult():
            return slimmed(check_facts(result, detail), detail), check_next(result, archs)
        case BenchResult():
            return slimmed(bench_facts(result, detail), detail), bench_next(result, archs)
        case ProfileResult():
            return profile_facts(result, detail), profile_next(result, archs)
        case ChoiceTable():
            return table_facts(result, detail), table_next(result)
        case StepResult():
            return step_facts(result, detail), step_next(result)


def _claims(result: CompileResult) -> Facts:
    """Return the workloads that the header claims, where it claims more than the one asked for."""
    names = list(dict.fromkeys(name for build in result.builds for name in build.workloads))
    if len(names) < 2:
        return {}
    shown = ", ".join(names[:_CLAIMED]) + (", ..." if len(names) > _CLAIMED else "")
    return {"claims": f"{shown}: `where` holds for all, so a full check runs them all"}


def slimmed(facts: Facts, detail: Detail) -> Facts:
    """Return the facts of a concise reply without what the caller knows, or what `answer` says.

    Which candidate it was, that sim judges no speed and that estimates prove nothing stand in tool
    descriptions; a full reply has all of it.
    """
    if detail == "full" or facts["status"] != "passed":
        return facts
    kept = {name: value for name, value in facts.items() if name not in _KNOWN}
    if "estimated" in kept:
        kept["estimated"] = {k: v for k, v in kept["estimated"].items() if k != "ratios"}
    functions = kept.get("computed", {}).get("functions")
    if isinstance(functions, Listing):
        rows = tuple(map(_telling, functions.items))
        kept["computed"] = {**kept["computed"], "functions": Listing(rows, functions.most)}
    return kept


_KNOWN = ("candidate", "device_note", "how")
"""Fields of a concise reply that are left out of one that passed."""


def _telling(row: Facts) -> Facts:
    """Return a function's facts without no shared memory, and what limits a full occupancy."""
    needless = ["static_smem_bytes"] if not row.get("static_smem_bytes") else []
    needless += ["limited_by"] if row.get("theoretical_occupancy") == 1 else []
    return {name: value for name, value in row.items() if name not in needless}


def _fitted(facts: Facts, view: JobView) -> Facts:
    return fitted(facts, REST if view.state == "done" else "nowhere else")


def _reply(
    facts: Facts, step: str | None, links: list[ResourceLink] | None = None, is_error: bool = False
) -> CallToolResult:
    whole = facts if step is None else facts | {"next": step}
    text = TextContent(type="text", text=render(whole))
    return CallToolResult(
        content=[text, *(links or ())],
        structured_content=structured(whole),
        is_error=is_error,
    )


def _job_facts(view: JobView) -> Facts:
    """Return what identifies a job: its state as `status`, id, tool, kernel, run."""
    work = view.request.work
    facts: Facts = {"status": view.state, "job_id": view.request.id, "tool": tool_of(work)}
    if work.kernel:
        facts["kernel"] = work.kernel
    run_id = _run_of(view)
    if run_id is not None:
        facts["run_id"] = run_id
    return facts


def _run_of(view: JobView) -> str | None:
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


def _waiting_facts(view: JobView) -> Facts:
    """Return the facts of a job that is queued or running."""
    facts = _job_facts(view)
    if view.progress is not None and view.progress.at_us:
        facts["progress"] = _progress(view.progress)
    if view.state == "running" and view.attempts > 1:
        facts["attempt"] = view.attempts
    if view.needed_server is not None:
        facts["note"] = f"no server works on it now, and this one cannot: {view.needed_server} can"
    elif view.holder is None:
        facts["note"] = "no server works on it now: one takes it up when it is asked for"
    return facts


def _waiting_next(view: JobView) -> str:
    """Return how to wait for it, and how not to."""
    job = f"job_id={view.request.id}"
    wait = f"Call job_wait with {job} and wait_s={_ASK_AGAIN_S}; job_cancel with {job} ends it"
    if view.needed_server is not None:
        wait = f"Ask the user to start {view.needed_server}. {wait}"
    run_id = _run_of(view)
    return f"{wait}." if run_id is None else f"{wait}; later go on with run_id={run_id}."


def _cancelled_next(view: JobView) -> str:
    """Return how to start anew."""
    work, run_id = view.request.work, _run_of(view)
    if run_id is None:
        return f"Call {tool_of(work)} again if it is wanted after all."
    new = "" if not work.kernel else f"; if there is no such run, with kernel={work.kernel}"
    return f"Call beam_step with run_id={run_id} to go on with what it had finished{new}."


def _failure_facts(view: JobView, error: JobError) -> Facts:
    """Return why a job has no result. A bug's own text stays in the server's log."""
    facts = _job_facts(view) | {"error": error.kind}
    facts["message"] = BUG if error.kind == "bug" else error.message
    if error.hint and error.kind != "bug":
        facts["hint"] = error.hint
    return facts


def _failure_next(view: JobView, error: JobError) -> str:
    """Return what to do: fix the call, fix the machine, or go around the bug."""
    tool = tool_of(view.request.work)
    match error.kind:
        case "usage":
            return f"Change the arguments as the message says and call {tool} again."
        case "machine":
            device = getattr(view.request.work, "device", "sim")
            other = "" if is_simulated(device) else ", with device=sim for what needs no GPU"
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
