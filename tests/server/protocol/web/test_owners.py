"""A job or run of one token, asked for with another: answered as one that does not exist."""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.extension import ClientExtension
from mcp.client.streamable_http import streamable_http_client
from mcp.types import Request, RequestParams, Result
from pydantic import ConfigDict

from kopt.config.folder_owner import may_see
from kopt.config.settings import Settings
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.status import Status
from kopt.search.runs.run import RunRequest, begin_run
from kopt.server.jobs.job_host import JobHost
from kopt.server.jobs.job_store import JobStore
from kopt.server.protocol.app import TOOLS, build_server
from kopt.server.protocol.cancelled_calls import WaitingCalls
from kopt.server.protocol.serve_options import ServeOptions
from kopt.server.protocol.tasks_extension import Tasks
from kopt.server.protocol.tool_spec import build_tool
from kopt.server.protocol.web.listen_address import HttpOptions
from kopt.server.protocol.web.token_file import read_tokens
from kopt.server.work.requests import CompileWork
from kopt.tools.selftest.sample import SAMPLES
from support.http_asking import LIMIT_S, Answering, answering
from support.scripted_jobs import ScriptedJobs

pytestmark = [pytest.mark.anyio, pytest.mark.slow]  # an HTTP server for each way to ask
TINY = SAMPLES / "problems"
KERNEL = "silu_and_mul_b8xh14336"
MINE, THEIRS = (
    "Zm9vYmFyYmF6cXV1eGNvcmdlZ3JhdWx0Z2FycGx5",
    "d2FsZG9mcmVkcGx1Z2h4eXp6eXRodWRmb29iYXI=",
)
NO_JOB, NO_RUN = "job-20260101-000000-00000000", "run-20260101-000000-000"

ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "beam_step": ("run_id", {"candidates": [{"source": "x"}], "wait_s": 0}),
    "search_docs": ("run_id", {"query": "warp"}),
    "job_wait": ("job_id", {"wait_s": 0}),
    "job_cancel": ("job_id", {}),
}
"""Every tool that takes the id of a job or run: the argument, and what else a call needs."""
READ = (
    "kopt://runs/{run_id}",
    "kopt://runs/{run_id}/candidates/{number}",
    "kopt://runs/{run_id}/page",
    "kopt://runs/{run_id}/code/{number}",
    "kopt://jobs/{job_id}/result",
    "kopt://jobs/{job_id}/log",
)
"""Every resource below the id of a job or run."""
OF_ALL = {"kernel_id", "name", "+uid"}
"""What the addresses of other resources name: kernels, GPUs, documents."""
_NAMES_WORK = re.compile(r"(^|_)(id|ids|job|run|task|candidate|owner|caller)(_|s?$)")
_NOT_WORK = {"candidates"}
"""Arguments whose names say so, and that name no work."""


@dataclass(frozen=True)
class Work:
    """The jobs and the run of the token MINE."""

    settings: Settings
    options: HttpOptions
    queued: str
    done: str
    run: str


@pytest.fixture
def work(tmp_path: Path, home: Path) -> Work:
    """Return a home in which MINE has a queued job, one with a result and log, and a run."""
    token_file = tmp_path / "tokens"
    token_file.touch(0o600)
    token_file.write_text(f"{MINE}\n{THEIRS}\n")
    holder = read_tokens(token_file).holder(MINE.encode())
    assert holder is not None
    settings = Settings(home, problems=TINY)
    store = JobStore(settings.jobs_folder)
    asked = CompileWork(kernel=KERNEL, source="x")
    jobs = [store.create(asked, holder.name, owner=holder.owner) for _ in range(2)]
    log = settings.home / "compiler.log"
    log.write_text("x.cu(3): error: expected")
    failed = Status.COMPILE_ERROR
    result = CompileResult(status=failed, kernel=KERNEL, candidate="0" * 64, log_path=str(log))
    jobs[1].files.write_result(result)
    jobs[1].release()  # the other stays held, as by another server
    with begin_run(RunRequest(kernel=KERNEL, owner=holder.owner), settings) as run:
        name = run.folder.name
    options = HttpOptions(port=0, token_file=token_file)
    return Work(settings, options, jobs[0].request.id, jobs[1].request.id, name)


@asynccontextmanager
async def served(work: Work) -> AsyncGenerator[Answering]:
    """Serve the jobs and runs of a home over HTTP, to both tokens."""
    host = JobHost(work.settings)
    try:
        server = build_server(ServeOptions(work.settings), host)
        async with answering(server, work.options) as here:
            yield here
    finally:
        await host.close()


@asynccontextmanager
async def caller(
    here: Answering, token: str, *extensions: ClientExtension
) -> AsyncGenerator[Client]:
    """Yield a client with a token."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=LIMIT_S) as http,
        Client(streamable_http_client(here.url, http_client=http), extensions=extensions) as client,
    ):
        yield client


def _ids(work: Work, argument: str) -> tuple[tuple[str, ...], str]:
    """Return the ids of MINE that an argument or address can name, and one that nobody has."""
    return ((work.queued, work.done), NO_JOB) if argument == "job_id" else ((work.run,), NO_RUN)


def test_every_tool_and_resource_that_names_work_is_asked_here(tmp_path: Path) -> None:
    """A new tool or address fails here until it is in `ASKED`, `READ` or `OF_ALL`."""
    options = ServeOptions(Settings(tmp_path))
    jobs, calls = ScriptedJobs(), WaitingCalls()
    naming = {
        spec.name: {
            name
            for name in build_tool(spec, options, jobs, calls).parameters["properties"]
            if _NAMES_WORK.search(name) and name not in _NOT_WORK
        }
        for spec in TOOLS
    }
    assert {tool: names for tool, names in naming.items() if names} == {
        tool: {argument} for tool, (argument, _) in ASKED.items()
    }


async def test_every_address_that_names_work_is_read_here(tmp_path: Path) -> None:
    server = build_server(ServeOptions(Settings(tmp_path)), ScriptedJobs())
    async with Client(server) as client:
        templates = (await client.list_resource_templates()).resource_templates
        listed = {str(one.uri) for one in (await client.list_resources()).resources}
    named = {t.uri_template: set(re.findall(r"\{([^}]*)\}", t.uri_template)) for t in templates}
    assert {one for one, names in named.items() if not names <= OF_ALL} == set(READ)
    fixed = {one for one in listed if one.startswith("kopt:")}  # skill and view: same for all
    assert fixed == {f"kopt://{one}" for one in ("kernels", "jobs", "runs")}


@pytest.mark.parametrize("tool", ASKED)
async def test_tool_answers_a_foreign_id_as_an_unknown_one(tool: str, work: Work) -> None:
    argument, more = ASKED[tool]
    mine, unknown = _ids(work, argument)
    none = ""
    async with served(work) as here:
        for one in mine:
            foreign, none = [
                (await _called(here, THEIRS, tool, {argument: each, **more})).replace(each, "ID")
                for each in (one, unknown)
            ]
            assert foreign == none
        # Not the held job, whose end `job_cancel` would wait for.
        own = await _called(here, MINE, tool, {argument: mine[-1], **more})
        assert own.replace(mine[-1], "ID") != none
    assert not (work.settings.jobs_folder / work.done / "cancelled").exists()


async def test_foreign_job_is_neither_listed_nor_cancelled(work: Work) -> None:
    async with served(work) as here:
        for address, own in (("kopt://jobs", work.queued), ("kopt://runs", work.run)):
            assert own in await _read(here, MINE, address, "")
            assert own not in await _read(here, THEIRS, address, "")
        await _called(here, THEIRS, "job_cancel", {"job_id": work.queued})
    assert not (work.settings.jobs_folder / work.queued / "cancel_request").exists()


@pytest.mark.parametrize("address", READ)
async def test_resource_answers_a_foreign_id_as_an_unknown_one(address: str, work: Work) -> None:
    argument = "job_id" if "{job_id}" in address else "run_id"
    mine, unknown = _ids(work, argument)
    async with served(work) as here:
        for one in mine:
            foreign, none = [
                (await _read(here, THEIRS, address, each)).replace(each, "ID")
                for each in (one, unknown)
            ]
            assert foreign == none and foreign.startswith("-32")
            own = await _read(here, MINE, address, one)
            assert own.replace(one, "ID") != none
    assert not (work.settings.runs / work.run / "retrievals.jsonl").exists()


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/update"])
async def test_task_of_another_is_as_unknown_as_none(method: str, work: Work) -> None:
    async with served(work) as here:
        foreign, none = [
            (await _task(here, THEIRS, method, each)).replace(each, "ID")
            for each in (work.done, NO_JOB)
        ]
        assert foreign == none and foreign.startswith("-32602")
        own = await _task(here, MINE, method, work.done)
        assert own.replace(work.done, "ID") != none


async def test_damaged_job_is_told_to_no_token(work: Work) -> None:
    (work.settings.jobs_folder / work.done / "request.json").write_text("{")
    async with served(work) as here:
        for token in (MINE, THEIRS):
            said = await _called(here, token, "job_wait", {"job_id": work.done, "wait_s": 0})
            assert "no job" in said and "damaged" not in said


async def test_server_without_tokens_shows_its_user_everything(work: Work) -> None:
    host = JobHost(work.settings)
    try:
        server = build_server(ServeOptions(work.settings), host)
        async with answering(server) as here, Client(here.url) as client:
            for address in READ[:1]:
                text = await client.read_resource(address.format(run_id=work.run))
                assert work.run in str(text)
            reply = await client.call_tool("job_wait", {"job_id": work.done})
            assert not reply.is_error
    finally:
        await host.close()


async def test_what_the_command_line_began_is_no_tokens(work: Work) -> None:
    with begin_run(RunRequest(kernel=KERNEL), work.settings) as run:
        folder = run.folder
    assert may_see("", folder)
    async with served(work) as here:
        for token in (MINE, THEIRS):
            said = await _read(here, token, READ[0], folder.name)
            assert said.startswith("-32") and "no run matches" in said


async def test_jobs_are_their_tokens(tmp_path: Path, work: Work) -> None:
    jobs = ScriptedJobs()
    server = build_server(ServeOptions(Settings(tmp_path, problems=TINY)), jobs)
    async with answering(server, work.options) as here:
        for token in (MINE, THEIRS):
            await _called(here, token, "compile", {"kernel": KERNEL, "source": "x"})
    mine, theirs = jobs.owners
    assert mine != theirs and mine.startswith("token:")


async def _called(here: Answering, token: str, tool: str, arguments: dict[str, Any]) -> str:
    """Return the whole reply to a call."""
    async with caller(here, token) as client:
        return (await client.call_tool(tool, arguments)).model_dump_json()


async def _read(here: Answering, token: str, address: str, work_id: str) -> str:
    """Return what is read at an address, or the error."""
    uri = address.format(run_id=work_id, job_id=work_id, number="0")
    async with caller(here, token) as client:
        try:
            return (await client.read_resource(uri)).model_dump_json()
        except MCPError as error:
            return f"{error.error.code} {error.error.message} {json.dumps(error.error.data)}"


class _Declared(ClientExtension):
    identifier = Tasks.identifier


class _Ref(RequestParams):
    task_id: str


class _Answer(Result):
    model_config = ConfigDict(extra="allow")


class _TaskRequest(Request[_Ref, str]):
    method: str
    params: _Ref


async def _task(here: Answering, token: str, method: str, task_id: str) -> str:
    """Return the answer to a method of the tasks extension, or the error."""
    request = _TaskRequest(method=method, params=_Ref(task_id=task_id))
    async with caller(here, token, _Declared()) as client:
        try:
            return (await client.session.send_request(request, _Answer)).model_dump_json()
        except MCPError as error:
            return f"{error.error.code} {error.error.message} {json.dumps(error.error.data)}"
