"""An MCP server whose device is on another machine: tools, jobs, and what a caller may not name."""

import signal
from pathlib import Path
from typing import Any

import pytest

from support.shared_caches import share_caches
from support.stand_in_ssh import StandInSsh
from support.stdio_process import StdioProcess
from support.tiny_problem import write_tiny_problem

pytestmark = pytest.mark.slow  # a server, its runner and the other machine's Python

DEVICE = "ssh://box/sim"
KERNEL = "scale_rows_b8xh64"


@pytest.fixture
def home(tmp_path: Path, shared_caches: Path) -> Path:
    """Return the server's folder."""
    return share_caches(tmp_path / "home", shared_caches)


def _checked(server: StdioProcess, **arguments: object) -> dict[str, Any]:
    begun = server.call("check_correctness", **arguments)
    return server.wait_until_over(begun["job_id"]) if "job_id" in begun else begun


def test_a_tool_call_is_done_there_as_a_job(box: StandInSsh, home: Path, tmp_path: Path) -> None:
    folder = write_tiny_problem(tmp_path)
    words = ("--workspace", str(tmp_path), "--device", DEVICE)
    with StdioProcess(home, *words, "--problems", str(folder.parent)) as server:
        server.greet()
        source = (folder / "reference.cu").read_text()
        assert _checked(server, kernel=KERNEL, source=source)["status"] == "passed"
        assert len(box.connections) == 1
        # The connection stays for the next call; `auto` above is the same device by its name.
        again = _checked(server, kernel=KERNEL, source=source, device=DEVICE, seeds=[7])
        assert again["status"] == "passed"
        assert len(box.connections) == 1
        assert server.end(signal.SIGTERM) == 143


def test_a_caller_cannot_choose_another_machine(box: StandInSsh, home: Path) -> None:
    with StdioProcess(home, "--device", DEVICE) as server:
        server.greet()
        arguments = {"kernel": "silu_and_mul_b8xh14336", "source": "x", "device": "ssh://evil/sim"}
        told = server.ask("tools/call", {"name": "check_correctness", "arguments": arguments})
        assert told["isError"]
        text = told["content"][0]["text"]
        assert "ssh://evil/sim" in text
        assert "is not offered by this server" in text
    assert box.connections == []
