"""How a server starts: soon, without a look at the machine, and with which folders and devices."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.command_line import Kopt
from support.stdio_process import StdioProcess
from support.tiny_problem import write_tiny_problem

pytestmark = pytest.mark.slow  # server processes
HEAVY = ("numpy", "torch", "elftools", "sqlite3", "kopt.kernels.problem_loader")
STAGES = ("kopt.search", "kopt.tools")
LOADED_STAGES = {
    *("kopt.tools.facts", "kopt.tools.facts.fitting", "kopt.tools.facts.next_command"),
    *("kopt.tools.facts.rendering", "kopt.tools.facts.wording"),
    *("kopt.tools", "kopt.tools.sandbox", "kopt.tools.sandbox.policy"),
}
"""What tells a GPU's jobs from the others, and the words of replies."""

WATCHED_BUILD = """
import sys
seen = []
def watch(event, arguments):
    if event in ("subprocess.Popen", "os.fork", "os.posix_spawn", "ctypes.dlopen"):
        seen.append(event)
    if event == "open" and str(arguments[0]).startswith(("/dev/nvidia", "/proc/driver")):
        seen.append(str(arguments[0]))
sys.addaudithook(watch)
from pathlib import Path
from kopt.config.settings import Settings
from kopt.server.jobs.job_host import JobHost
from kopt.server.protocol.app import build_server
from kopt.server.protocol.serve_options import ServeOptions
home = Path(sys.argv[1])
build_server(ServeOptions(Settings(home=home)), JobHost(Settings(home=home)))
print("\\n".join([*sys.modules, *("EVENT " + event for event in seen)]))
"""


@pytest.fixture
def watched(tmp_path: Path) -> list[str]:
    """Return the modules that building the server loads, and the events that it causes."""
    words = [sys.executable, "-P", "-W", "error", "-c", WATCHED_BUILD, str(tmp_path / "home")]
    ending = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ending.returncode == 0, ending.stderr
    return ending.stdout.splitlines()


def test_building_the_server_loads_nothing_heavy(watched: list[str]) -> None:
    assert [name for name in HEAVY if name in watched] == []
    assert {name for name in watched if name.startswith(STAGES)} == LOADED_STAGES


def test_building_the_server_starts_no_process_and_looks_at_no_gpu(
    watched: list[str], tmp_path: Path
) -> None:
    assert [line for line in watched if line.startswith("EVENT")] == []
    assert not (tmp_path / "home").exists()


def test_server_is_ready_soon(tmp_path: Path) -> None:
    with StdioProcess(tmp_path / "home") as server:
        server.greet()
        server.ask("tools/list", {})
        wall_s = time.monotonic() - server.started_at
        fields = Path(f"/proc/{server.process.pid}/stat").read_text("ascii").rpartition(")")[2]
        ticks = sum(int(field) for field in fields.split()[11:13])  # utime and stime, proc(5)
        cpu_s = ticks / os.sysconf("SC_CLK_TCK")
        # Wall time says how busy the machine is; the limits leave room for that.
        print(f"\nready after {wall_s:.2f} s, {cpu_s:.2f} s of CPU (promised: 2 s)")
        assert cpu_s < 4
        assert wall_s < 40


def read(server: StdioProcess, path: str) -> str:
    """Return what a call with `path` is answered."""
    arguments = {"kernel": "silu_and_mul_b8xh14336", "path": path, "wait_s": 0}
    reply = server.ask("tools/call", {"name": "compile", "arguments": arguments})
    text: str = reply["content"][0]["text"]
    return text


def test_project_folder_of_the_client_is_the_workspace(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "mine.cu").write_text("x", "utf-8")
    with StdioProcess(tmp_path / "home", CLAUDE_PROJECT_DIR=str(project)) as server:
        server.greet()
        assert "job_id" in read(server, "mine.cu")
        assert str(project) in read(server, "none.cu")


def test_current_folder_is_the_workspace_of_other_clients(tmp_path: Path) -> None:
    with StdioProcess(tmp_path / "home", CLAUDE_PROJECT_DIR="") as server:
        server.greet()
        assert str(tmp_path / "home") in read(server, "none.cu")


@pytest.mark.parametrize("folder", ["/", "~"])
def test_whole_disk_or_home_folder_is_no_workspace(folder: str, tmp_path: Path) -> None:
    where = str(Path(folder).expanduser())
    with StdioProcess(tmp_path / "home", CLAUDE_PROJECT_DIR=where) as server:
        server.greet()
        assert "has no workspace folder" in read(server, "none.cu")


def test_named_workspaces_replace_the_default(tmp_path: Path) -> None:
    named = tmp_path / "named"
    named.mkdir()
    with StdioProcess(tmp_path / "home", "--workspace", str(named)) as server:
        server.greet()
        assert f"in the workspace ({named})" in read(server, "none.cu")


def listed_kernels(server: StdioProcess, query: str) -> list[str]:
    """Return the ids that list_kernels gives for `query`."""
    reply = server.call("list_kernels", query=query)
    return [row["kernel"] for row in reply["kernels"]]


def test_problem_that_is_written_into_the_workspace_is_a_kernel_without_a_restart(
    tmp_path: Path,
) -> None:
    with StdioProcess(tmp_path / "home") as server:
        server.greet()
        assert listed_kernels(server, "scale_rows") == []
        own = server.home / "kopt_problems"
        own.mkdir()
        write_tiny_problem(own)
        assert listed_kernels(server, "scale_rows") == ["scale_rows_b8xh64", "scale_rows_b32xh256"]


def test_named_problems_take_the_place_of_those_in_the_workspace(tmp_path: Path) -> None:
    named, home = tmp_path / "named", tmp_path / "home"
    for folder in (named, home / "kopt_problems"):
        folder.mkdir(parents=True)
    write_tiny_problem(named)
    (home / "kopt_problems" / "broken").mkdir()
    (home / "kopt_problems" / "broken" / "problem.yaml").write_text("name: broken\n", "utf-8")
    with StdioProcess(home, "--problems", str(named)) as server:
        server.greet()
        reply = server.call("list_kernels", query="scale_rows")
    assert reply["total"] == 2
    assert "own_problems" not in reply


def test_read_only_server_lists_three_tools(tmp_path: Path) -> None:
    with StdioProcess(tmp_path / "home", "--read-only") as server:
        server.greet()
        names = {tool["name"] for tool in server.ask("tools/list", {})["tools"]}
        assert names == {"search_docs", "list_kernels", "job_wait"}
        assert server.call("list_kernels", query="silu")["status"] == "passed"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--device", "gpu"], "'gpu' is unknown"),
        (["--device", "auto"], "auto names no device"),
        (["--workspace", "/no/such/folder"], "does not exist"),
        (["--problems", "/no/such/folder"], "does not exist"),
        (["--prot", "1"], "No such option"),
    ],
)
def test_wrong_option_is_refused_before_anything_is_served(
    words: list[str], expected: str, kopt: Kopt
) -> None:
    ending = kopt("serve", *words)
    assert ending.code == 2
    assert ending.stdout == ""
    assert expected in ending.stderr


def test_server_without_stdin_says_so(tmp_path: Path) -> None:
    command = f"exec {sys.executable} -P -m kopt serve 0<&-"
    environment = {**os.environ, "KOPT_HOME": str(tmp_path)}
    ending = subprocess.run(
        ["/bin/sh", "-c", command], env=environment, capture_output=True, text=True, check=False
    )
    assert (ending.returncode, ending.stdout) == (2, "")
    assert "stdin is closed" in ending.stderr


def test_help_says_how_it_ends_and_that_it_runs_code(kopt: Kopt) -> None:
    ending = kopt("serve", "--help")
    assert ending.code == 0
    assert "compiles and runs the CUDA code" in " ".join(ending.stdout.split())
    assert "when stdin closes" in ending.stdout
