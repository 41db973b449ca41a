"""Tasks: a job for clients that declare the extension, nothing new for those that do not."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import anyio
import pytest
from mcp import Client, MCPError
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.types import CallToolRequestParams, CallToolResult, Request, RequestParams, Result
from pydantic import ConfigDict

from kopt.server.jobs.records import JobView
from kopt.server.protocol.app import build_server
from kopt.server.protocol.replies.reply import job_reply
from kopt.server.protocol.tasks_extension import (
    KEPT_MS,
    REVISION,
    SOON_S,
    Tasks,
    task_fields,
)
from support.http_asking import answering
from support.job_views import JOB_ID, KERNEL, failed_job, job, progress
from support.scripted_jobs import ScriptedJobs
from support.tool_client import facts_of, serve_options, standing_server

pytestmark = pytest.mark.anyio
CALL = {"kernel": KERNEL, "source": "x"}


class TaskRef(RequestParams):
    """Names a task, and on purpose anything else."""

    model_config = ConfigDict(extra="allow")
    task_id: str


class TaskResult(Result):
    """What the server says of a task, as it stands on the wire."""

    model_config = ConfigDict(extra="allow")
    result_type: Literal["task"] = "task"


class Polled(Result):
    """A task as `tasks/get` tells it."""

    model_config = ConfigDict(extra="allow")


class TaskRequest(Request[TaskRef, str]):
    """One of the methods of the extension."""

    method: str
    params: TaskRef


async def ask(client: Client, method: str, task_id: str) -> dict[str, Any]:
    """Return the answer to `method` for one task."""
    request = TaskRequest(method=method, params=TaskRef(task_id=task_id))
    answer = await client.session.send_request(request, Polled)
    return answer.model_dump(by_alias=True, mode="json")


class Declared(ClientExtension):
    """A client that takes tasks, and notes them instead of waiting."""

    identifier = Tasks.identifier

    def __init__(self) -> None:
        self.tasks: list[dict[str, Any]] = []

    def claims(self) -> tuple[ResultClaim[TaskResult], ...]:
        """Claim the results that are tasks."""
        return (ResultClaim(result_type="task", model=TaskResult, resolve=self._note),)

    async def _note(self, task: TaskResult, context: ClaimContext) -> CallToolResult:
        del context
        self.tasks.append(task.model_dump(by_alias=True, mode="json"))
        return CallToolResult(content=[], structured_content={"status": "working"})


class Rig:
    """A server with scripted jobs, and clients of it."""

    def __init__(self) -> None:
        self.server, self.jobs = standing_server()
        self.declared = Declared()

    def client(self) -> Client:
        """Return a client that declares tasks."""
        return Client(self.server, extensions=[self.declared])

    async def begin(self, client: Client, tool: str = "compile", **more: Any) -> str:
        """Call `tool` while jobs are held; the id of the task that it became."""
        self.jobs.go.clear()
        with anyio.fail_after(30):
            await client.call_tool(tool, CALL | {"wait_s": 0} | more)
        return str(self.declared.tasks[-1]["taskId"])


@pytest.fixture
async def rig() -> Rig:
    """Return a rig whose server had no jobs before."""
    return Rig()


async def test_call_that_takes_longer_is_a_task_whose_id_is_the_job_id(rig: Rig) -> None:
    async with rig.client() as client:
        task_id = await rig.begin(client)
        (task,) = rig.declared.tasks
        view = await rig.jobs.view(task_id)
        assert view.state == "running"
        assert (task["resultType"], task["status"], task["ttlMs"]) == ("task", "working", KEPT_MS)
        polled = await ask(client, "tasks/get", task_id)
        assert (polled["status"], polled["resultType"]) == ("working", "complete")
        rig.jobs.go.set()
        done = await ask(client, "tasks/get", task_id)
    assert done["status"] == "completed"
    assert done["result"]["structuredContent"]["status"] == "compile_error"
    assert done["result"]["structuredContent"]["job_id"] == task_id
    assert "error" not in done


async def test_call_that_is_done_soon_comes_back_without_a_task(rig: Rig) -> None:
    async with rig.client() as client:
        reply = await client.call_tool("compile", CALL)
    assert facts_of(reply)["status"] == "compile_error"
    assert rig.declared.tasks == []


async def test_task_does_not_wait_as_long_as_the_call_allows(rig: Rig) -> None:
    async with rig.client() as client:
        with anyio.fail_after(SOON_S + 20):
            await rig.begin(client, wait_s=50)
    assert rig.declared.tasks[0]["status"] == "working"


async def test_refused_call_is_no_task(rig: Rig) -> None:
    async with rig.client() as client:
        reply = await client.call_tool("compile", {"kernel": "no_such", "source": "x"})
    assert reply.is_error
    assert rig.declared.tasks == []
    assert rig.jobs.works == []


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_client_without_the_extension_gets_a_job_id(mode: str, rig: Rig) -> None:
    rig.jobs.go.clear()
    async with Client(rig.server, mode=mode) as client:
        reply = await client.call_tool("compile", CALL | {"wait_s": 0})
    assert facts_of(reply)["status"] == "running"
    assert "job_wait" in facts_of(reply)["next"]


@pytest.mark.parametrize(("revision", "is_task"), [(REVISION, True), ("2025-11-25", False)])
async def test_older_era_has_no_tasks_even_for_a_client_that_declares_them(
    revision: str, is_task: bool
) -> None:
    jobs = ScriptedJobs()
    jobs.go.clear()
    job_id = await jobs.submit(job("running", "compile").request.work, "local")
    capabilities = SimpleNamespace(extensions={Tasks.identifier: {}})
    session = SimpleNamespace(client_capabilities=capabilities)
    ctx: Any = SimpleNamespace(protocol_version=revision, session=session, request=None)

    async def call_next(_: Any) -> CallToolResult:
        return job_reply(await jobs.view(job_id), "concise")

    params = CallToolRequestParams(name="compile", arguments={})
    result = await Tasks(jobs).intercept_tool_call(params, ctx, call_next)
    assert isinstance(result, dict) == is_task


async def test_tools_without_jobs_are_never_tasks(rig: Rig) -> None:
    async with rig.client() as client:
        assert facts_of(await client.call_tool("list_kernels", {}))["kernels"]
        task_id = await rig.begin(client)
        reply = await client.call_tool("job_wait", {"job_id": task_id, "wait_s": 0})
        assert facts_of(reply)["status"] == "running"
    assert len(rig.declared.tasks) == 1


async def test_full_detail_of_the_call_is_kept_for_its_result(rig: Rig) -> None:
    async with rig.client() as client:
        task_id = await rig.begin(client, "compile", detail="full")
        rig.jobs.go.set()
        done = await ask(client, "tasks/get", task_id)
        waited = await client.call_tool("job_wait", {"job_id": task_id, "detail": "full"})
    assert done["result"]["structuredContent"] == facts_of(waited)


async def test_task_outlives_its_connection_and_its_server(rig: Rig, tmp_path: Path) -> None:
    async with rig.client() as client:
        task_id = await rig.begin(client)
    rig.jobs.go.set()
    later = build_server(serve_options(tmp_path), rig.jobs)
    async with Client(later, extensions=[rig.declared]) as client:
        assert (await ask(client, "tasks/get", task_id))["status"] == "completed"


async def test_cancelled_task_is_a_cancelled_job(rig: Rig) -> None:
    async with rig.client() as client:
        task_id = await rig.begin(client)
        assert (await ask(client, "tasks/cancel", task_id))["resultType"] == "complete"
        polled = await ask(client, "tasks/get", task_id)
    assert polled["status"] == "cancelled"
    assert "result" not in polled
    assert rig.jobs.cancelled == {task_id}


async def test_update_is_acknowledged_and_changes_nothing(rig: Rig) -> None:
    async with rig.client() as client:
        task_id = await rig.begin(client)
        assert (await ask(client, "tasks/update", task_id))["resultType"] == "complete"
        assert (await ask(client, "tasks/get", task_id))["status"] == "working"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/update"])
@pytest.mark.parametrize("task_id", ["job-20200101-000000-00000000", "", "../x", "\x1b" * 500])
async def test_unknown_task_is_invalid_params(method: str, task_id: str, rig: Rig) -> None:
    async with rig.client() as client:
        with pytest.raises(MCPError) as caught:
            await ask(client, method, task_id)
    assert caught.value.error.code == -32602
    assert "unknown or expired task" in str(caught.value)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("method", ["tasks/get", "tasks/cancel", "tasks/update"])
async def test_client_that_did_not_declare_tasks_is_told_so(method: str, rig: Rig) -> None:
    async with Client(rig.server) as client:
        with pytest.raises(MCPError) as caught:
            await ask(client, method, JOB_ID)
    assert caught.value.error.code == -32021


@pytest.mark.parametrize(("named", "code"), [(JOB_ID, -32602), ("job-other", -32020)])
async def test_header_over_http_must_name_the_task(named: str, code: int, rig: Rig) -> None:
    body: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tasks/get",
        "params": {
            "taskId": JOB_ID,
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": REVISION,
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"},
                "io.modelcontextprotocol/clientCapabilities": {
                    "extensions": {Tasks.identifier: {}}
                },
            },
        },
    }
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": REVISION,
        "Mcp-Method": "tasks/get",
        "Mcp-Name": named,
    }
    async with answering(rig.server) as served:
        reply = await served.http.post("/mcp", json=body, headers=headers)
    assert reply.json()["error"]["code"] == code, reply.text


def test_job_that_failed_completes_its_task_with_an_error_for_the_model() -> None:
    fields = task_fields(failed_job("machine", "no GPU"))
    assert fields["status"] == "completed"


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (job("queued"), "waiting for its turn"),
        (
            job("running", progress=progress("timing\x1b\nnext: x")),
            "timing\N{REPLACEMENT CHARACTER} next: x",
        ),
        (job("running", progress=progress("m" * 1000)), "m" * 200 + "... [800 more characters]"),
        (job("cancelled", progress=progress("timing")), None),
        (job("running"), None),
    ],
)
def test_message_of_a_task_is_its_progress(view: JobView, message: str | None) -> None:
    assert task_fields(view).get("statusMessage") == message


def test_times_of_a_task_are_iso_and_in_order() -> None:
    fields = task_fields(job("running", progress=progress("x")))
    assert fields["createdAt"] < fields["lastUpdatedAt"]
    assert fields["createdAt"].endswith("+00:00")
