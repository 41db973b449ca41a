"""Every way in which a client ends `kopt serve`, idle and in the middle of a job."""

import signal
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from support.job_works import KERNEL, ON_SIM, REFERENCE, SPINNING, job_settings
from support.stdio_process import END_LIMIT_S, StdioProcess, wait_until_gone

pytestmark = pytest.mark.slow  # endings of whole processes

ENDINGS = [
    pytest.param(None, 0, id="EOF"),
    pytest.param(signal.SIGINT, 130, id="SIGINT"),
    pytest.param(signal.SIGTERM, 143, id="SIGTERM"),
    pytest.param(signal.SIGHUP, 129, id="SIGHUP"),
    pytest.param(signal.SIGKILL, -9, id="SIGKILL"),
]


@pytest.fixture
def home(tmp_path: Path, shared_home: Path) -> Path:
    """Return a state folder with jobs of its own and the caches of all tests."""
    return job_settings(tmp_path / "home", shared_home).home


def begin_spinning(server: StdioProcess) -> str:
    """Return the id of a job whose kernel spins on the simulator by now."""
    server.greet()
    begun = server.call(
        "check_correctness", kernel=KERNEL, source=SPINNING.source, device="sim", wait_s=0
    )
    job_id: str = begun["job_id"]
    server.wait_until_told(job_id, ON_SIM)
    server.wait_for_tree(4)  # the server, a runner with its guard, the kernel in its sandbox
    return job_id


@pytest.mark.parametrize(("ending", "code"), ENDINGS)
def test_idle_server_ends_with_its_code(
    ending: signal.Signals | None, code: int, tmp_path: Path
) -> None:
    with StdioProcess(tmp_path / "home") as server:
        server.greet()
        assert server.end(ending) == code
        assert server.stderr == ""


@pytest.mark.parametrize(("ending", "code"), ENDINGS)
def test_server_with_a_running_job_leaves_no_process_and_no_lost_job(
    ending: signal.Signals | None, code: int, home: Path
) -> None:
    with StdioProcess(home) as server:
        job_id = begin_spinning(server)
        tree = server.tree()
        began = time.monotonic()
        assert server.end(ending) == code
        wait_until_gone(tree)
        gone_s = time.monotonic() - began
        print(f"\nall {len(tree)} processes gone after {gone_s:.2f} s (promised: 2 s)")
        assert "Traceback" not in server.stderr
    with StdioProcess(home) as another:
        another.greet()
        assert another.call("job_wait", job_id=job_id, wait_s=0)["status"] in ("queued", "running")
        assert another.call("job_cancel", job_id=job_id)["status"] == "cancelled"


def test_result_of_a_job_is_there_for_the_next_server(home: Path) -> None:
    with StdioProcess(home) as server:
        server.greet()
        begun = server.call("compile", kernel=KERNEL, source=REFERENCE)
        assert server.end(signal.SIGKILL) == -9
    with StdioProcess(home) as another:
        another.greet()
        assert another.call("job_wait", job_id=begun["job_id"], wait_s=0) == begun


def test_cancelled_job_leaves_no_process_while_the_server_goes_on(home: Path) -> None:
    with StdioProcess(home) as server:
        job_id = begin_spinning(server)
        below = server.tree()
        assert server.call("job_cancel", job_id=job_id)["status"] == "cancelled"
        (alone,) = [key for key in below if key.pid == server.process.pid]
        wait_until_gone(below - {alone})
        assert server.call("list_kernels", query="silu")["status"] == "passed"


def test_client_that_closes_its_end_of_stdout_ends_the_server(home: Path) -> None:
    with StdioProcess(home) as server:
        begin_spinning(server)
        tree = server.tree()
        server.close_stdout()  # stdin stays open
        assert server.process.wait(END_LIMIT_S) == 0
        wait_until_gone(tree)
        assert "Traceback" not in server.stderr


def test_second_signal_does_no_harm(home: Path) -> None:
    """Claude Code sends SIGINT, and SIGTERM soon after."""
    with StdioProcess(home) as server:
        begin_spinning(server)
        tree = server.tree()
        server.process.send_signal(signal.SIGINT)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(END_LIMIT_S) in (130, 143)
        wait_until_gone(tree)


def test_everything_on_stdout_is_protocol(home: Path) -> None:
    """`receive` fails on any other line; here a whole day's work goes by."""
    with StdioProcess(home) as server:
        assert server.greet()["serverInfo"]["name"] == "kopt"
        server.call("list_kernels")
        server.call("compile", kernel=KERNEL, source=REFERENCE)
        server.call("check_correctness", kernel=KERNEL, source="#error no\n", device="sim")
        assert server.end(None) == 0
        assert server.stderr == ""


@pytest.fixture(scope="module")
def lasting(tmp_path_factory: pytest.TempPathFactory) -> Generator[StdioProcess]:
    """Yield one server that all hostile lines go to, one after another."""
    with StdioProcess(tmp_path_factory.mktemp("lasting")) as server:
        server.greet()
        yield server


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        b"{",
        b"[]",
        b"null",
        b"12",
        b"\xff\xfe\x00",
        b'{"jsonrpc": "1.0"}',
        b'{"jsonrpc": "2.0", "method": 5}',
        b'{"jsonrpc": "2.0", "id": {}, "method": "tools/call"}',
        b'{"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": []}',
        b'{"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {"name": 5}}',
        b'{"jsonrpc": "2.0", "id": 77, "method": "tools/call"}',
        b'{"jsonrpc": "2.0", "id": 77, "method": "no/such"}',
        b'{"jsonrpc": "2.0", "id": 99, "result": {}}',
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'"' + b"x" * 5_000_000 + b'"',
    ],
    ids=lambda line: str(line[:60]),
)
def test_hostile_line_is_survived(line: bytes, lasting: StdioProcess) -> None:
    lasting.send_line(line)
    assert len(lasting.ask("tools/list", {})["tools"]) == 9
    assert "Traceback" not in lasting.stderr


@pytest.mark.parametrize("arguments", ["text", [1], 5])
def test_arguments_that_are_no_object_are_refused(arguments: Any, lasting: StdioProcess) -> None:
    number = lasting.begin("tools/call", {"name": "compile", "arguments": arguments})
    while (answer := lasting.receive()).get("id") != number:
        continue
    assert "error" in answer or answer["result"]["isError"]
