"""`kopt run` with a coding agent in the model's place, end to end: the agent is played."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kopt.config.settings import Settings
from kopt.server.exits import ExitCode
from support.built_docs import copy_docs
from support.command_line import Ending, Kopt
from support.headless_clients import HeadlessClients, put_on_path
from support.headless_stand_in import COST_USD, USAGE
from support.shared_caches import share_caches
from support.small_silu import KERNEL

pytestmark = pytest.mark.slow  # whole runs with agents

KOPT = Path(sys.executable).with_name("kopt")
SMALL = ("--beam-width", "1", "--rounds", "1", "--device", "sim")
TURN_TOKENS = sum(USAGE.values())
Run = Callable[..., Ending]


@pytest.fixture
def own_home(
    kopt: Kopt, tmp_path: Path, shared_home: Path, shared_caches: Path, small_silu: Path
) -> Path:
    """Return a state folder of the test's own, with the caches and the index of all tests."""
    del kopt, small_silu  # the first sets its own home, the second has made the index
    home = share_caches(tmp_path / "home", shared_caches)
    return copy_docs(Settings(home=shared_home).docs_cache, home)


@pytest.fixture
def clients(
    own_home: Path, small_silu: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> HeadlessClients:
    """Return played clients, and no key; a small kernel is there to be searched."""
    monkeypatch.setenv("KOPT_PROBLEMS", str(small_silu))
    monkeypatch.setenv("KOPT_HOME", str(own_home))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    return put_on_path(tmp_path / "clients", monkeypatch)


def _lines(kopt: Kopt, run: str, kind: str) -> list[dict[str, Any]]:
    rows = [json.loads(row) for row in kopt("runs", "export", run).stdout.splitlines()]
    return [row for row in rows if row["type"] == kind]


def test_claude_code_writes_a_winner_without_a_key_and_its_cost_is_what_it_reports(
    kopt: Kopt, clients: HeadlessClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "made-up")
    ending = kopt(
        *("run", "--kernel", KERNEL, "--provider", "claude-code", "--budget", "9usd"),
        *(*SMALL, "--json"),
    )
    report = ending.document
    assert (ending.code, report["winner"] not in (0, None)) == (ExitCode.PASSED, True)
    spend, turns = report["spend"], clients.turns
    assert spend["calls"] == len(turns) > 3
    assert spend["cost_usd"] == pytest.approx(len(turns) * COST_USD)
    assert spend["tokens"] == len(turns) * TURN_TOKENS
    assert {one["cost_kind"] for one in spend["roles"]} == {"reported"}
    assert {one["model"].partition(":")[0] for one in spend["roles"]} == {"claude-code"}
    page = (Path(report["folder"]) / "report.md").read_text("utf-8")
    assert "reported by the client" in page and "computed" not in page.split("tokens, $")[1][:30]
    for turn in turns:
        assert turn["files"] == [] and not Path(turn["folder"]).exists()
        assert not {"ANTHROPIC_API_KEY", "OPENAI_API_KEY"} & set(turn["variables"])
        assert sum(map(len, turn["words"])) < 40_000, "the conversation is no argument"


def test_a_key_in_the_environment_is_neither_used_nor_passed_on(
    kopt: Kopt, clients: HeadlessClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-not-a-key-of-anybody")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")  # nobody answers there
    words = ("--provider", "claude-code", "--budget", "9usd", "--rounds", "1", "--json")
    ending = kopt("run", "--kernel", KERNEL, "--device", "sim", "--beam-width", "1", *words)
    assert ending.code == ExitCode.PASSED
    assert clients.turns
    assert not any("ANTHROPIC_API_KEY" in one["variables"] for one in clients.calls)


def test_codex_writes_a_winner_and_its_cost_is_unavailable_and_not_zero(
    kopt: Kopt, clients: HeadlessClients
) -> None:
    words = ("run", "--kernel", KERNEL, "--provider", "codex", "--budget", "2Mtok", *SMALL)
    ending = kopt(*words, "--json", "--progress")
    report = ending.document
    assert (ending.code, report["winner"] not in (0, None)) == (ExitCode.PASSED, True)
    calls = [line for line in ending.stderr.splitlines() if "tokens in" in line]
    assert calls and all(" 70 out, " in one and "; no cost reported" in one for one in calls)
    spend = report["spend"]
    assert spend["calls"] == len(clients.turns) and spend["cost_usd"] is None
    assert {one["cost_kind"] for one in spend["roles"]} == {"unavailable"}
    assert {one["model"] for one in spend["roles"]} == {"codex:default"}
    assert spend["tokens"] == len(clients.turns) * TURN_TOKENS
    page = (Path(report["folder"]) / "report.md").read_text("utf-8")
    assert f"cost of {spend['calls']} calls unavailable" in page and "$0.0" not in page
    told = kopt("runs").stdout
    assert "unavailable" in told and "$0.00" not in told
    assert {row["cost_microusd"] for row in _lines(kopt, report["run"], "llm_call")} == {None}


@pytest.mark.parametrize(
    ("provider", "budget", "refusal"),
    [
        ("claude-code", (), "Claude Code by its own login, by the cost that it reports, up to $25"),
        ("codex", (), "Codex by its own login, without a limit in tokens; it reports no dollars"),
        ("codex", ("--budget", "5usd"), "Codex reports no cost, so 5usd cannot be kept"),
    ],
)
def test_nothing_is_spent_unasked(
    kopt: Kopt, clients: HeadlessClients, provider: str, budget: tuple[str, ...], refusal: str
) -> None:
    ending = kopt("run", "--kernel", KERNEL, "--provider", provider, *budget, *SMALL)
    assert (ending.code, refusal in ending.stderr) == (ExitCode.USAGE, True), ending.stderr
    assert "2Mtok" in ending.stderr or provider == "claude-code"
    assert not clients.turns


@pytest.mark.parametrize("provider", ["claude-code", "codex"])
def test_missing_or_logged_out_client_is_one_line_before_anything_begins(
    kopt: Kopt, clients: HeadlessClients, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    words = ("run", "--kernel", KERNEL, "--provider", provider, "--yes", *SMALL)
    monkeypatch.setenv("STAND_IN", "logged_out")
    ending = kopt(*words)
    (line, hint) = ending.stderr.splitlines()
    assert ending.code == ExitCode.MACHINE and "kopt doctor" in hint
    assert "is not logged in" in line and "login" in line
    monkeypatch.setenv("PATH", "/nowhere")
    (line, _) = kopt(*words).stderr.splitlines()
    assert "is not installed" in line and "npm install -g" in line
    assert not kopt("runs", "--json").document["runs"] and not clients.turns


def test_dry_run_and_doctor_need_no_login_and_say_how_the_cost_is_known(
    kopt: Kopt, clients: HeadlessClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN", "logged_out")
    words = ("run", "--kernel", KERNEL, "--dry-run", *SMALL)
    plan = kopt(*words, "--provider", "codex", "--json").document
    assert plan["asks_models"] and plan["expected_usd"] is None and plan["budget"] == "no limit"
    shown = kopt(*words, "--provider", "codex").stdout
    assert "Codex reports none" in shown and "$0.00" not in shown
    priced = kopt(*words, "--provider", "claude-code").stdout
    assert "what Claude Code reports, and not what a plan costs" in priced
    assert not clients.turns
    found = {one["name"]: one for one in kopt("doctor", "--json").document["findings"]}
    assert "is not logged in" in found["Claude Code"]["detail"]
    monkeypatch.delenv("STAND_IN")
    found = {one["name"]: one for one in kopt("doctor", "--json").document["findings"]}
    assert "--provider codex" in found["Codex"]["detail"]


@pytest.mark.parametrize(
    "provider", ["claude-code", pytest.param("codex", marks=pytest.mark.nightly)]
)
def test_limit_of_the_plan_pauses_the_run_and_it_goes_on_where_it_was(
    kopt: Kopt, clients: HeadlessClients, monkeypatch: pytest.MonkeyPatch, provider: str
) -> None:
    budget = "9usd" if provider == "claude-code" else "2Mtok"
    words = ("run", "--kernel", KERNEL, "--provider", provider, "--budget", budget, *SMALL)
    monkeypatch.setenv("STAND_IN", "limit")
    ending = kopt(*words)
    assert ending.code == ExitCode.MACHINE
    assert "limit" in ending.stderr and "is paused; go on with:" in ending.stderr
    (run,) = (one["run"] for one in kopt("runs", "--json").document["runs"])
    monkeypatch.delenv("STAND_IN")
    assert len(clients.turns) == 1, "a limit that lasts for hours is not asked again and again"
    spend = kopt("run", "--resume", run, "--json").document["spend"]
    assert spend["calls"] == len(clients.turns) > 3
    assert sum(one["failed"] for one in spend["roles"]) == 1 and spend["unsettled"] == 0


@pytest.fixture
def started(clients: HeadlessClients) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return what starts `kopt` as a process of its own; it is ended at the latest here."""
    del clients
    begun: list[subprocess.Popen[str]] = []

    def start(*words: str) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        begun.append(subprocess.Popen((KOPT, *words), stderr=pipe, text=True))
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("ended_by", [signal.SIGINT, signal.SIGKILL])
def test_a_turn_under_way_ends_with_kopt_and_is_asked_again_by_the_next(
    kopt: Kopt,
    clients: HeadlessClients,
    monkeypatch: pytest.MonkeyPatch,
    started: Callable[..., subprocess.Popen[str]],
    ended_by: signal.Signals,
) -> None:
    monkeypatch.setenv("STAND_IN", "hang")
    words = ("run", "--kernel", KERNEL, "--provider", "claude-code", "--budget", "9usd", *SMALL)
    process = started(*words)
    client = _first_turn(process, clients)
    process.send_signal(ended_by)
    assert os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT) is not None
    _wait_until_gone(client)
    (run,) = (one["run"] for one in kopt("runs", "--json").document["runs"])
    monkeypatch.delenv("STAND_IN")
    report = kopt("run", "--resume", run, "--json").document
    assert report["winner"] not in (0, None)
    unknown = [row for row in _lines(kopt, run, "llm_call") if row["state"] == "unknown"]
    assert [row["id"] for row in unknown] == ["r1/plan/0"]
    assert report["spend"]["unsettled"] == 1


def _first_turn(process: subprocess.Popen[str], clients: HeadlessClients) -> int:
    """Return the process of the first turn, once kopt says that it asks."""
    assert process.stderr is not None
    for line in process.stderr:
        if clients.turns or "is asked" in line:
            break
    while not clients.turns:
        assert process.poll() is None
    return int(clients.turns[0]["pid"])


def _wait_until_gone(pid: int) -> None:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with os.fdopen(descriptor) as ended:
        import select

        assert select.select([ended], [], [], 20.0)[0], "the client outlives kopt"


def test_study_takes_a_client_that_reports_its_cost_and_no_other(
    kopt: Kopt, clients: HeadlessClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("study", "--kernel", KERNEL, "--arm", "full", "--device", "sim", "--dry-run")
    forecast = kopt(*words, "--provider", "claude-code", "--json").document
    assert forecast["can_begin"] and forecast["expected_usd"] > 0
    assert not kopt(*words, "--json").document["can_begin"]
    refused = kopt(*words, "--provider", "codex")
    assert refused.code == ExitCode.USAGE
    assert "a study counts dollars, and Codex reports no cost" in refused.stderr
    monkeypatch.setenv("STAND_IN", "logged_out")
    begun = kopt(*words[:-1], "--provider", "claude-code", "--budget", "2usd")
    assert "Claude Code is not logged in" in begun.stderr
    assert not clients.turns


def test_recorded_run_of_a_client_is_the_same_again_without_the_client(
    kopt: Kopt, clients: HeadlessClients, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recording = tmp_path / "calls.jsonl"
    words = ("run", "--kernel", KERNEL, "--provider", "codex", *SMALL, "--json")
    first = kopt(*words, "--budget", "2Mtok", "--record", recording).document
    monkeypatch.setenv("PATH", "/nowhere:/usr/bin:/bin")
    again = kopt(*words, "--replay", recording, "--progress")
    assert "nothing is paid" in again.stderr and "differ" not in again.stderr
    assert again.document["winner"] == first["winner"]
    assert again.document["spend"]["cost_usd"] is None
