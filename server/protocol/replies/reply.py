"""Replies of tools: the same facts as text and as structured content, cut to fit, `next` last.

A candidate that falls short is a normal reply. An error is a call that could not be carried out;
clients show its text only, so that the text has everything in both cases.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mcp.types import CallToolResult, ResourceLink, TextContent
from pydantic import ValidationError

from kopt.kernels.bench_result import BenchResult
from kopt.kernels.check_result import CheckResult
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.profile_result import ProfileResult
from kopt.kernels.record import Record
from kopt.search.step.result import StepResult
from kopt.server.jobs.records import JobView
from kopt.tools.facts.bench_facts import bench_facts
from kopt.tools.facts.check_facts import check_facts
from kopt.tools.facts.compile_facts import compile_facts
from kopt.tools.facts.findings import with_excerpts
from kopt.tools.facts.fitting import Detail, Facts, cleaned, fitted, page
from kopt.tools.facts.profile_facts import profile_facts
from kopt.tools.facts.rendering import render, structured

from .job_links import job_links, log_uri, result_uri
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


@dataclass(frozen=True)
class _Kind:
    """How the document of one stage becomes a reply."""

    record: type[Record]
    facts: Callable[[Any, Detail], Facts]
    next_step: Callable[[Any], str]


_KINDS = {
    "kopt.compile/1": _Kind(CompileResult, compile_facts, compile_next),
    "kopt.check/1": _Kind(CheckResult, check_facts, check_next),
    "kopt.bench/1": _Kind(BenchResult, bench_facts, bench_next),
    "kopt.profile/1": _Kind(ProfileResult, profile_facts, profile_next),
    "kopt.step/1": _Kind(StepResult, step_facts, step_next),
}


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
    kind = _KINDS.get(str(document.get("schema")))
    links = job_links(job_id, document)
    try:
        if kind is None:
            raise KeyError(document.get("schema"))
        source = getattr(view.request.work, "source", "")
        result: Any = kind.record.model_validate(with_excerpts(document, source))
    except (KeyError, ValidationError):
        facts = job_facts(view) | {"message": UNREADABLE, "result": result_uri(job_id)}
        step = f"Read {result_uri(job_id)}, or call {view.request.work.kind} again."
        return _reply(facts, step, links)
    facts = kind.facts(result, detail)
    where: Facts = {"job_id": job_id, "result": result_uri(job_id)}
    if len(links) > 1 and (detail == "full" or result.status != "passed"):
        where["log"] = log_uri(job_id)
    if detail == "concise":
        return _reply(_fitted(facts | where, view), kind.next_step(result), links)
    shown, next_offset = page(facts | where, offset)
    if next_offset is None:
        return _reply(shown, kind.next_step(result), links)
    shown["next_offset"] = next_offset
    more = f"detail=full and offset={next_offset}"
    return _reply(shown, f"Call job_wait with job_id={job_id}, {more} for the next page.", links)


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
