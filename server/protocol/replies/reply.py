"""Replies of tools: the same facts as text and as structured content, cut to fit, `next` last.

A candidate that falls short is a normal reply. An error is a call that could not be carried out;
clients show its text only, so that the text has everything in both cases.
"""

from typing import Annotated, Any

from mcp.types import CallToolResult, ResourceLink, TextContent
from pydantic import Field, TypeAdapter, ValidationError

from kopt.kernels.bench_result import BenchResult
from kopt.kernels.check_result import CheckResult
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.profile_result import ProfileResult
from kopt.search.step.result import StepResult
from kopt.server.jobs.records import JobView
from kopt.server.protocol.addresses import job_links, log_uri, result_uri
from kopt.tools.facts.bench_facts import bench_facts
from kopt.tools.facts.check_facts import check_facts
from kopt.tools.facts.compile_facts import compile_facts
from kopt.tools.facts.findings import with_excerpts
from kopt.tools.facts.fitting import Detail, Facts, cleaned, fitted, page
from kopt.tools.facts.profile_facts import profile_facts
from kopt.tools.facts.rendering import render, structured

from .job_states import (
    UNREADABLE,
    cancelled_next,
    failure_facts,
    failure_next,
    job_facts,
    waiting_facts,
    waiting_next,
)
from .next_steps import bench_next, check_next, compile_next, profile_next
from .step_reply import step_facts, step_next

__all__ = ["Detail", "facts_reply", "job_reply"]


StageResult = CompileResult | CheckResult | BenchResult | ProfileResult | StepResult
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
        facts = failure_facts(view, view.error)
        return _reply(_fitted(facts, view), failure_next(view, view.error), is_error=True)
    if view.state == "cancelled":
        return _reply(job_facts(view), cancelled_next(view))
    if view.state != "done" or view.result is None:
        return _reply(_fitted(waiting_facts(view), view), waiting_next(view))
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
        facts = job_facts(view) | {"message": UNREADABLE, "result": result_uri(job_id)}
        step = f"Read {result_uri(job_id)}, or call {view.request.work.kind} again."
        return _reply(facts, step, links)
    facts, step = _facts_and_next(result, detail)
    where: Facts = {"job_id": job_id, "result": result_uri(job_id)}
    if len(links) > 1 and (detail == "full" or result.status != "passed"):
        where["log"] = log_uri(job_id)
    if detail == "concise":
        return _reply(_fitted(facts | where, view), step, links)
    shown, next_offset = page(facts | where, offset)
    if next_offset is None:
        return _reply(shown, step, links)
    shown["next_offset"] = next_offset
    more = f"detail=full and offset={next_offset}"
    return _reply(shown, f"Call job_wait with job_id={job_id}, {more} for the next page.", links)


def _facts_and_next(result: StageResult, detail: Detail) -> tuple[Facts, str]:
    match result:
        case CompileResult():
            return compile_facts(result, detail), compile_next(result)
        case CheckResult():
            return check_facts(result, detail), check_next(result)
        case BenchResult():
            return bench_facts(result, detail), bench_next(result)
        case ProfileResult():
            return profile_facts(result, detail), profile_next(result)
        case StepResult():
            return step_facts(result, detail), step_next(result)


def _fitted(facts: Facts, view: JobView) -> Facts:
    job_id = view.request.id
    rest = f"job_wait with job_id={job_id} and detail=full"
    return fitted(facts, rest if view.state == "done" else "nowhere else")


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
