"""How a call ends that fails under kopt: the model reads what it can act on, and nothing else."""

import errno
import math
from pathlib import Path
from typing import Any

import pytest

from kopt.config.errors import InfraError, SetupError, ToolError
from kopt.server.protocol.app import TOOLS
from kopt.server.work.requests import Work
from support.scripted_jobs import ScriptedJobs
from support.tool_client import ERAS, KERNEL, connected, serve_options, text_of

pytestmark = pytest.mark.anyio

GOOD: dict[str, dict[str, Any]] = {
    "search_docs": {"query": "warp"},
    "compile": {"kernel": KERNEL, "source": "x"},
    "check_correctness": {"kernel": KERNEL, "source": "x"},
    "benchmark": {"kernel": KERNEL, "source": "x"},
    "profile": {"kernel": KERNEL, "source": "x"},
    "beam_step": {"kernel": KERNEL},
    "list_kernels": {},
    "job_wait": {"job_id": "job-20260101-000000-00000000", "wait_s": 0},
    "job_cancel": {"job_id": "job-20260101-000000-00000000"},
}
HOSTILE: tuple[Any, ...] = (
    None,
    True,
    -1,
    10**400,
    1.5,
    math.nan,
    math.inf,
    "",
    "\0",
    "a\ud800b",
    "\x1b[2J\u202e",
    "../../../etc/passwd",
    "{}",
    "x" * 200_000,
    [],
    [None],
    [[[]]],
    {},
    {"": ""},
    {"kernel": {"kernel": {}}},
)


class FailingJobs(ScriptedJobs):
    """Jobs that cannot be submitted."""

    def __init__(self, error: Exception) -> None:
        """Fail with `error`."""
        super().__init__()
        self.error = error

    async def submit(self, work: Work, caller: str, owner: str = "", joins: bool = False) -> str:
        """Fail."""
        raise self.error


async def failed(error: Exception, home: Path, mode: str = "auto") -> str:
    """Return what a call is answered whose job fails to be submitted."""
    async with connected(serve_options(home), FailingJobs(error), mode) as client:
        reply = await client.call_tool("compile", GOOD["compile"])
    assert reply.is_error
    return text_of(reply)


@pytest.mark.parametrize("mode", ERAS)
async def test_mistake_of_the_caller_is_said_as_it_is(mode: str, tmp_path: Path) -> None:
    assert await failed(ToolError("do this instead"), tmp_path, mode) == "do this instead"


async def test_lack_of_the_machine_names_the_doctor(tmp_path: Path) -> None:
    text = await failed(SetupError("no nvcc here"), tmp_path)
    assert text.startswith("no nvcc here")
    assert "kopt doctor" in text


async def test_failure_of_the_machine_says_try_again(tmp_path: Path) -> None:
    assert "try again" in await failed(InfraError("a worker died"), tmp_path)


async def test_full_disk_is_no_bug(tmp_path: Path) -> None:
    text = await failed(OSError(errno.ENOSPC, "No space left on device", "/x"), tmp_path)
    assert "free some space" in text


@pytest.mark.parametrize("mode", ERAS)
async def test_bug_says_nothing_of_the_inside_and_leaves_a_traceback(
    mode: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    text = await failed(RuntimeError("a secret of the inside"), tmp_path, mode)
    assert "secret" not in text
    assert "compile" in text
    assert "a secret of the inside" in caplog.text


@pytest.mark.slow  # every argument with every hostile value
@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize("tool", [spec.name for spec in TOOLS])
async def test_no_argument_of_any_tool_brings_out_a_bug(
    tool: str, mode: str, tmp_path: Path, shared_home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Every argument in turn gets every hostile value; the server answers each call in words."""
    jobs = ScriptedJobs()
    options = serve_options(shared_home, workspaces=(tmp_path.resolve(),))
    async with connected(options, jobs, mode) as client:
        (definition,) = [one for one in (await client.list_tools()).tools if one.name == tool]
        for name in definition.input_schema["properties"]:
            for value in HOSTILE:
                reply = await client.call_tool(tool, {**GOOD[tool], name: value})
                text = text_of(reply)
                assert not text.startswith("Error executing tool"), (name, value, text)
                assert len(text) < 20_000
                assert "\x1b" not in text
                assert "root:" not in text
    assert "Traceback" not in caplog.text
