"""The frame of the command line: help, exit codes, one clear line, one JSON document."""

import gc
import os
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from kopt.__main__ import main as start
from kopt.config.errors import InfraError, SetupError, ToolError
from kopt.server.cli import COMMANDS, group, main
from kopt.server.commands import list_kernels
from kopt.server.exits import ExitCode
from support.command_line import Kopt

WITHOUT_RESULT = ("help", "completion")
HEAVY = ("numpy", "pydantic", "rich", "yaml", "ml_dtypes", "elftools", "sqlite3", "asyncio")


def _command_raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(as_json: bool) -> None:
        raise error

    option = click.Option(["--json", "as_json"], is_flag=True)
    command = click.Command("list", callback=fail, params=[option])

    def get_command(*_: object) -> click.Command:
        return command

    monkeypatch.setattr(group, "get_command", get_command)


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from kopt.server.cli import main; main(['--help'])\n"
        f"print('loaded:', [name for name in {HEAVY} if name in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines()[-1] == "loaded: []"


@pytest.mark.parametrize("words", [["--help"], ["check", "missing.cu"], ["check", "--help"]])
def test_clients_of_services_are_imported_by_what_asks_them_alone(words: list[str]) -> None:
    code = (
        f"import sys; from kopt.server.cli import main; main({words})\n"
        "print('loaded:', [name for name in ('anthropic', 'pinecone') if name in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines()[-1] == "loaded: []"


@pytest.mark.slow  # a process each
@pytest.mark.parametrize(
    ("words", "unneeded"),
    [
        ("runs --help", ("kopt.search.agents.agent_tools", "kopt.tools.docs.query.search")),
        ("run --help", ("kopt.search.agents.agent_tools", "kopt.search.agents.roles")),
        ("docs search --help", ("kopt.tools.bench", "kopt.search.runs.run")),
        ("check --help", ("kopt.tools.sim.device", "kopt.tools.bench.stage", "elftools")),
        ("bench --help", ("kopt.tools.sim.device", "kopt.tools.bench.promotion", "elftools")),
    ],
)
def test_command_imports_no_more_than_it_does(words: str, unneeded: tuple[str, ...]) -> None:
    code = (
        f"import sys; from kopt.server.cli import main; main({words.split()})\n"
        f"print('loaded:', [name for name in {unneeded} if name in sys.modules])"
    )
    run = subprocess.run(
        [sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.splitlines()[-1] == "loaded: []"


def test_garbage_is_collected_from_when_a_command_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[bool] = []

    def begin() -> int:
        seen.append(gc.isenabled())
        return 0

    command = click.Command("list", callback=begin)
    monkeypatch.setattr(list_kernels, "command", command)
    monkeypatch.setattr("sys.argv", ["kopt", "list"])
    monkeypatch.setenv("PYDANTIC_DISABLE_PLUGINS", "__all__")  # which it would set for good
    try:
        assert start() == 0
    finally:
        gc.unfreeze()
    assert seen == [True]


def test_python_m_kopt_is_the_same_command(tmp_path: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "kopt", "--version"], capture_output=True, text=True, cwd=tmp_path
    )
    assert (run.returncode, run.stdout.split()[0]) == (0, "kopt")


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_every_command_has_examples_and_json(kopt: Kopt, name: str) -> None:
    ending = kopt(name, "--help")
    assert ending.code == 0
    assert "Examples:\n" in ending.stdout
    assert f"  kopt {name}" in ending.stdout
    assert "--problems" in ending.stdout or name in (
        "runs",
        "kb",
        "gpu",
        "pool",
        "suite",
        *WITHOUT_RESULT,
    )
    # The stdout of `serve` is the protocol's, that of `view` the address of its pages; the results
    # of `suite` are those of its commands.
    assert "--json" in ending.stdout or name in ("serve", "view", "suite", *WITHOUT_RESULT)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Usage: kopt [OPTIONS] COMMAND"),
        (("run",), "Usage: kopt run"),
        (("runs", "show"), "Usage: kopt runs show"),
    ],
)
def test_help_of_a_command_can_be_asked_for_by_name(
    kopt: Kopt, words: tuple[str, ...], said: str
) -> None:
    ending = kopt("help", *words)
    assert (ending.code, ending.stdout.startswith(said)) == (ExitCode.PASSED, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("CHECK",), "no such command 'CHECK'; did you mean check"),
        (("help", "rnu"), "no such command 'rnu'; did you mean run"),
        (("help", "run", "x"), "kopt run has no commands below it"),
        (("--json", "check"), "--json stands behind the command"),
        (("check", "--device"), "Try 'kopt check --help'"),
        (("completion", "tcsh"), "is not one of 'bash', 'zsh', 'fish'"),
        (("list", "--problems", "/", "--problems", "/"), "it is given twice"),
        (("list", "no such kernel"), "no kernel has 'no such kernel' in its id"),
    ],
)
def test_a_slip_is_answered_with_what_to_write(
    kopt: Kopt, words: tuple[str, ...], said: str
) -> None:
    ending = kopt(*words)
    assert (ending.code, said in ending.stderr) == (ExitCode.USAGE, True), ending.stderr


def test_a_text_chooses_among_the_kernels(kopt: Kopt) -> None:
    by_id = kopt("list", "SILU_AND", "--json").document["kernels"]
    by_words = kopt("list", "gated", "--json").document["kernels"]
    assert [row["kernel"] for row in by_id] == [row["kernel"] for row in by_words]
    assert {row["op_type"] for row in by_id} == {"activation"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_given_a_script_that_asks_kopt(kopt: Kopt, shell: str) -> None:
    ending = kopt("completion", shell)
    assert ending.code == ExitCode.PASSED
    assert f"_KOPT_COMPLETE={shell}_complete" in ending.stdout


@pytest.mark.slow  # a process for each question
def test_a_shell_that_asks_is_told_what_fits() -> None:
    asked = {"_KOPT_COMPLETE": "bash_complete", "COMP_WORDS": "kopt ru", "COMP_CWORD": "1"}
    run = subprocess.run(
        [sys.executable, "-m", "kopt"], capture_output=True, text=True, env={**os.environ, **asked}
    )
    assert (run.returncode, run.stdout.split()) == (0, ["plain,run", "plain,runs"])


@pytest.mark.parametrize(
    "interrupt", ["KeyboardInterrupt", "RuntimeError('in a class') from KeyboardInterrupt()"]
)
@pytest.mark.parametrize("module", ["kopt.server.cli", "kopt.server.commands.list_kernels"])
def test_ctrl_c_during_start_up_is_one_line(interrupt: str, module: str) -> None:
    code = (
        "import sys\n"
        "class Slow:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == {module!r}: raise {interrupt}\n"
        "sys.meta_path.insert(0, Slow())\n"
        "from kopt.__main__ import main\n"
        "raise SystemExit(main())"
    )
    words = [sys.executable, "-P", "-c", code, "list"]
    run = subprocess.run(words, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (ExitCode.INTERRUPTED, "kopt: interrupted\n")


def test_help_names_every_variable_that_is_read(kopt: Kopt) -> None:
    settings = (Path(__file__).parents[2] / "config" / "settings.py").read_text("utf-8")
    names = set(re.findall(r'"(KOPT_[A-Z]+)"', settings))
    assert names
    assert [name for name in names if name not in kopt("--help").stdout] == []


def test_unknown_command_names_the_nearest(kopt: Kopt) -> None:
    ending = kopt("profilee")
    assert ending.code == ExitCode.USAGE
    assert ending.stderr == "kopt: no such command 'profilee'; did you mean profile?\n" + (
        "Try 'kopt --help'.\n"
    )


def test_wrong_flag_is_one_line_without_traceback(kopt: Kopt) -> None:
    ending = kopt("list", "--archs", "sm_90a")
    assert ending.code == ExitCode.USAGE
    assert ending.stderr.splitlines()[0].startswith("kopt: No such option '--archs'")
    assert "Traceback" not in ending.stderr


def test_wrong_flag_with_json_is_one_document(kopt: Kopt) -> None:
    ending = kopt("list", "--json", "--archs", "sm_90a")
    assert (ending.code, ending.stderr) == (ExitCode.USAGE, "")
    assert ending.document["schema"] == "kopt.error/1"
    assert ending.document["status"] == "error"
    assert ending.document["error"] == "usage"
    assert "--help" in ending.document["hint"]


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (ToolError("wrong id"), ExitCode.USAGE, "kopt: wrong id"),
        (SetupError("no nvcc"), ExitCode.MACHINE, "kopt: no nvcc"),
        (InfraError("worker died"), ExitCode.MACHINE, "kopt: worker died"),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED, "kopt: interrupted"),
    ],
)
def test_errors_on_purpose_are_one_line_and_their_exit_code(
    kopt: Kopt, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: ExitCode, line: str
) -> None:
    _command_raising(monkeypatch, error)
    ending = kopt("list")
    assert (ending.code, ending.stderr.splitlines()[0]) == (code, line)
    assert "Traceback" not in ending.stderr


def test_a_bug_keeps_its_traceback_and_still_gives_one_document(
    kopt: Kopt, monkeypatch: pytest.MonkeyPatch
) -> None:
    _command_raising(monkeypatch, ZeroDivisionError("by design"))
    ending = kopt("list", "--json")
    assert ending.code == ExitCode.BUG
    assert "ZeroDivisionError: by design" in ending.stderr
    assert ending.document["error"] == "bug"


def test_a_reader_that_goes_away_ends_the_command_quietly() -> None:
    code = (
        "import sys, click; from kopt.server import cli\n"
        "body = lambda: [click.echo('x' * 1000) for _ in range(1000)] and 0\n"
        "cli.group.get_command = lambda *_: click.Command('list', callback=body)\n"
        "sys.exit(cli.main(['list']))"
    )
    with subprocess.Popen(
        [sys.executable, "-P", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == ExitCode.BROKEN_PIPE


def test_no_arguments_show_the_help() -> None:
    assert main([]) == ExitCode.USAGE
