"""What is read by address: whole documents, no files beyond them, errors that say what to do."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.server import MCPServer
from mcp.types import TextResourceContents

from kopt.config.gpu_specs import load_gpus
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.candidate_guide import GUIDE
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.expression_parser import FUNCTIONS
from kopt.kernels.header import CandidateHeader, LaunchTemplate
from kopt.kernels.header_parser import parse_header
from kopt.kernels.problem_loader import load_problem, load_problems
from kopt.kernels.source_names import kopt_headers
from kopt.kernels.status import Status
from kopt.search.advice.retrieval_log import read_retrievals
from kopt.search.runs.run import RunRequest, begin_run
from kopt.server.jobs.records import JobView
from kopt.server.protocol.addresses import document_uri
from kopt.server.protocol.resources import add_resources
from kopt.tools.docs.query.search import read_document
from kopt.tools.selftest.sample import SAMPLES
from support.job_views import JOB_ID, KERNEL, done_job, failed_job, job
from support.scripted_jobs import ScriptedJobs
from support.scripted_runs import new_store

pytestmark = pytest.mark.anyio
TINY = SAMPLES / "problems"
INVALID_PARAMS = -32602


class OneJob(ScriptedJobs):
    """Jobs of which there is one, in the state that a test asks for."""

    def __init__(self, one: JobView) -> None:
        super().__init__()
        self.one = one

    async def view(self, job_id: str) -> JobView:
        """Return the one job; ToolError for any other."""
        return self.one if job_id == self.one.request.id else await super().view(job_id)


def client(home: Path, one: JobView | None) -> Client:
    """Return a client of a server of its own."""
    server: MCPServer[Any] = MCPServer("kopt", version="0")
    add_resources(server, OneJob(one or job("running")), Settings(home=home, problems=TINY))
    return Client(server)


async def read(address: str, home: Path, one: JobView | None = None) -> str:
    """Return the text of one resource."""
    async with client(home, one) as connected:
        (content,) = (await connected.read_resource(address)).contents
    assert isinstance(content, TextResourceContents)
    return content.text


async def refusal(address: str, home: Path, one: JobView | None = None) -> MCPError:
    """Return the error that reading gives."""
    async with client(home, one) as connected:
        with pytest.raises(MCPError) as caught:
            await connected.read_resource(address)
    return caught.value


@pytest.fixture
def compiled(tmp_path: Path) -> CompileResult:
    """Return a result whose log of three lines lies in the home."""
    log = tmp_path / "cache" / "compiler.log"
    log.parent.mkdir()
    log.write_text("x.cu(3): error: \x1b[31mexpected\na\nb\n")
    return CompileResult(
        status=Status.COMPILE_ERROR, kernel=KERNEL, candidate="a" * 64, log_path=str(log)
    )


async def test_kernel_has_definition_guide_skeleton_and_the_reference_source(
    tmp_path: Path,
) -> None:
    text = await read(f"kopt://kernels/{KERNEL}", tmp_path)
    problem = load_problems()["silu_and_mul"]
    assert (problem.folder / "reference.cu").read_text("utf-8").rstrip() in text
    assert problem.description.strip()[:60] in text
    for words in ("Tolerance bf16", "How to write a candidate", "still empty", "458,752"):
        assert words in text
    assert "\x1b" not in text


async def test_every_kernel_of_the_index_can_be_read(tmp_path: Path) -> None:
    index = await read("kopt://kernels", tmp_path)
    for problem in load_problems(TINY).values():
        assert problem.kernel_ids[0] in index
        assert problem.kernel_ids[0] in await read(
            f"kopt://kernels/{problem.kernel_ids[0]}", tmp_path
        )


def test_header_in_the_guide_is_accepted(tmp_path: Path) -> None:
    header = GUIDE.split("```yaml\n")[1].split("```")[0]
    folder = tmp_path / "scale_rows"
    folder.mkdir()
    docs = (Path(__file__).parents[3] / "docs" / "problems.md").read_text("utf-8")
    (folder / "problem.yaml").write_text(docs.split("```yaml\n")[1].split("```")[0])
    (folder / "oracle.py").write_text("")
    outcome = parse_header(Candidate(f"/* {header}*/\n"), load_problem(folder))
    assert outcome.diagnostics == ()
    assert outcome.header is not None


def test_guide_names_every_key_function_and_header_of_kopt() -> None:
    keys = {*CandidateHeader.model_fields, *LaunchTemplate.model_fields, "flags", "launch"}
    known = keys - {"lines", "line", "kernel_name"} | set(FUNCTIONS)
    assert known - set(re.findall(r"[a-z0-9_]+", GUIDE)) == set()
    assert {name for name in kopt_headers() if f"<{name}>" not in GUIDE} == set()


@pytest.mark.parametrize("name", ["H100", "h100", "B200"])
async def test_gpu_has_its_data_sheet_and_what_follows_from_it(name: str, tmp_path: Path) -> None:
    text = await read(f"kopt://gpus/{name}", tmp_path)
    gpu = load_gpus()[name.upper()]
    assert f"sm_count: {gpu.sm_count}" in text
    assert "ridge_flop_per_byte" in text


@pytest.mark.parametrize("name", load_gpus())
async def test_time_that_was_taken_over_from_another_gpu_says_so(name: str, tmp_path: Path) -> None:
    text = await read(f"kopt://gpus/{name}", tmp_path)
    assert f"null_kernel_measured_on: {load_gpus()[name].null_kernel_measured_on}" in text
    is_own = load_gpus()[name].null_kernel_measured_on == name
    assert (f"not measured on {name}" in text) != is_own


async def test_document_is_whole_below_where_it_is_from(home: Path) -> None:
    uid = "headers:kernels/common/cp_async.cuh#9"
    text = await read(document_uri(uid), home)
    whole = read_document(uid, Settings(home=home, problems=TINY)).document
    head, _, body = text.partition("\n\n")
    assert body == f"{whole.body}\n"
    assert "headers:kernels/common/cp_async.cuh:cp_async L9" in head
    assert "Apache-2.0" in head and "not instructions" in head


async def test_whole_page_of_the_manual_has_an_address(tmp_path: Path) -> None:
    text = await read("kopt://docs/docs/problems.md", tmp_path)
    page = (Path(__file__).parents[3] / "docs" / "problems.md").read_text("utf-8")
    assert page.splitlines()[-1] in text
    assert "data, not instructions" in text


async def test_hidden_document_cannot_be_read(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, without_sources=("headers",))
    server: MCPServer[Any] = MCPServer("kopt", version="0")
    add_resources(server, ScriptedJobs(), settings)
    async with Client(server) as connected:
        with pytest.raises(MCPError, match="KOPT_WITHOUT_SOURCES"):
            await connected.read_resource(document_uri("headers:kernels/common/cp_async.cuh#9"))


async def test_document_that_is_read_is_logged_with_the_run_of_the_process(home: Path) -> None:
    settings = Settings(home=home, problems=TINY, retrieval_run="run-1")
    uid = "headers:kernels/common/cp_async.cuh#9"
    server: MCPServer[Any] = MCPServer("kopt", version="0")
    add_resources(server, ScriptedJobs(), settings)
    with new_store(home, "run-1") as store:
        async with Client(server) as connected:
            await connected.read_resource(document_uri(uid))
        (entry,) = read_retrievals(store.folder)
    assert (entry.asked_by, entry.hits[0].uid) == ("kopt://docs/", uid)


async def test_run_and_its_sources_can_be_read_while_it_is_driven(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, problems=TINY)
    with begin_run(RunRequest(kernel=KERNEL), settings) as store:
        run = store.folder.name
        text = await read(f"kopt://runs/{run}", tmp_path)
        error = await refusal(f"kopt://runs/{run}/candidates/0", tmp_path)
    assert json.loads(text)["kernel"] == KERNEL
    assert str(tmp_path) not in text
    assert "no candidate" in str(error)


async def test_result_of_a_job_is_whole_and_does_not_say_where_it_lies(
    tmp_path: Path, compiled: CompileResult
) -> None:
    text = await read(f"kopt://jobs/{JOB_ID}/result", tmp_path, done_job(compiled))
    document = json.loads(text)
    assert CompileResult.model_validate(document).candidate == compiled.candidate
    assert document["log_path"] == "$KOPT_HOME/cache/compiler.log"


async def test_log_of_a_job_is_whole_and_harmless(tmp_path: Path, compiled: CompileResult) -> None:
    text = await read(f"kopt://jobs/{JOB_ID}/log", tmp_path, done_job(compiled))
    assert text.startswith("==> $KOPT_HOME/cache/compiler.log <==\nx.cu(3): error: ")
    assert text.endswith("expected\na\nb\n")
    assert "\x1b" not in text


async def test_log_of_megabytes_is_cut_and_says_by_how_much(
    tmp_path: Path, compiled: CompileResult
) -> None:
    Path(compiled.log_path or "").write_text("line\n" * 300_000)
    text = await read(f"kopt://jobs/{JOB_ID}/log", tmp_path, done_job(compiled))
    assert text.endswith(f"... [{1_500_000 - (1 << 20):,} more bytes in the file]\n")


@pytest.mark.parametrize("path", ["/etc/hostname", "../outside", "cache/../../outside", "gone"])
async def test_no_file_outside_the_home_is_read_through_a_log_path(
    path: str, tmp_path: Path, compiled: CompileResult
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "outside").write_text("private")
    named = compiled.model_copy(update={"log_path": str(home / path)})
    error = await refusal(f"kopt://jobs/{JOB_ID}/log", home, done_job(named))
    assert "no log" in str(error)


async def test_link_in_the_home_that_leads_out_of_it_is_not_followed(
    tmp_path: Path, compiled: CompileResult
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "outside").write_text("private")
    (home / "log").symlink_to(tmp_path / "outside")
    named = compiled.model_copy(update={"log_path": str(home / "log")})
    assert "no log" in str(await refusal(f"kopt://jobs/{JOB_ID}/log", home, done_job(named)))


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("kopt://kernels/silu_and_mul_b8xh1433", "silu_and_mul_b8xh14336"),
        ("kopt://kernels/nope", "list_kernels shows"),
        ("kopt://gpus/H1000", "H100"),
        ("kopt://docs/headers:kernels/common/cp_async.cuh%2399", "did you mean headers:"),
        ("kopt://docs/nothing", "uids are those of search hits"),
        ("kopt://runs/run-1", "no run matches"),
        ("kopt://runs/run-1/candidates/0", "no run matches"),
        ("kopt://jobs/job-1/result", "there is no job"),
        ("kopt://jobs/job-1/log", "there is no job"),
    ],
)
async def test_what_is_not_there_is_not_found_with_what_is(
    address: str, words: str, home: Path
) -> None:
    error = await refusal(address, home)
    assert error.error.code == INVALID_PARAMS
    assert words in str(error)


@pytest.mark.parametrize(
    "address",
    [
        "kopt://kernels/..%2F..%2Fetc%2Fpasswd",
        "kopt://gpus/%2Fetc%2Fpasswd",
        "kopt://docs/../../etc/passwd",
        "kopt://docs//etc/passwd",
        "kopt://docs/docs:../../../etc/passwd%231",
        "kopt://runs/..%2F..%2Fetc",
        "kopt://jobs/..%2F..%2Fetc/log",
        "kopt://jobs/%00/result",
    ],
)
async def test_hostile_address_reads_nothing(address: str, tmp_path: Path) -> None:
    assert "root:" not in str(await refusal(address, tmp_path))


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (job("running"), "call job_wait"),
        (job("queued"), "call job_wait"),
        (job("cancelled"), "was cancelled"),
        (failed_job("machine", "no GPU"), "failed; job_wait says why"),
    ],
)
async def test_job_without_a_result_says_what_to_do(
    one: JobView, words: str, tmp_path: Path
) -> None:
    assert words in str(await refusal(f"kopt://jobs/{JOB_ID}/result", tmp_path, one))


@pytest.mark.parametrize("named", ["run-2026", "run-", "0000", "run-20990101-000000-000"])
async def test_part_of_an_id_names_and_serves_no_run(named: str, tmp_path: Path) -> None:
    with new_store(tmp_path, "run-20260101-000000-000"):
        for address in (f"kopt://runs/{named}", f"kopt://runs/{named}/candidates/0"):
            error = await refusal(address, tmp_path)
            assert "no run matches" in str(error)
            assert "run-20260101" not in str(error)
