"""One run in turns: `kopt run` with a coding agent, and an agent's own `beam_step` over MCP."""

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kopt.server.jobs.job_host import JobHost
from kopt.server.protocol.serve_options import ServeOptions
from support.command_line import Kopt
from support.headless_clients import put_on_path
from support.headless_stand_in import COST_USD
from support.job_works import job_settings
from support.played.moves import MOVES
from support.small_silu import KERNEL, SHIPPED, write_small_silu
from support.tool_client import connected, facts_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]  # a whole run with agents
LIMIT_S = 240.0


@pytest.fixture
def anyio_backend() -> str:
    """Return the one event loop that the server runs on."""
    return "asyncio"


@pytest.fixture
async def options(
    tmp_path: Path, shared_home: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncGenerator[ServeOptions]:
    """Yield the options of a server over the home that `kopt` has here."""
    problems = write_small_silu(tmp_path / "problems")
    monkeypatch.setenv("KOPT_PROBLEMS", str(problems))
    monkeypatch.setenv("KOPT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    settings = job_settings(tmp_path / "home", shared_home)
    yield ServeOptions(settings=replace(settings, problems=problems))


async def _step(options: ServeOptions, **arguments: Any) -> dict[str, Any]:
    host = JobHost(options.settings)
    await host.start()
    try:
        async with connected(options, host) as client, asyncio.timeout(LIMIT_S):
            reply = await client.call_tool("beam_step", arguments)
            while facts_of(reply)["status"] in ("queued", "running"):
                job = {"job_id": facts_of(reply)["job_id"]}
                reply = await client.call_tool("job_wait", job)
            return facts_of(reply)
    finally:
        await host.close()


async def test_a_step_over_mcp_and_two_clients_drive_one_run_in_turns(
    kopt: Kopt, options: ServeOptions, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KOPT_HOME", str(options.settings.home))
    monkeypatch.setenv("KOPT_PROBLEMS", str(options.settings.problems))
    clients = put_on_path(tmp_path / "clients", monkeypatch)
    reference = (SHIPPED / "reference.cu").read_text("utf-8")
    written = [new for move in MOVES if (new := move.write(reference)) is not None]
    mine = {"source": written[-1], "hypothesis": "mine", "family": "vectorization"}

    size = ("--beam-width", "1", "--rounds", "1", "--device", "sim")
    by_claude = ("--provider", "claude-code", "--budget", "9usd", "--json")
    first = kopt("run", "--kernel", KERNEL, *size, *by_claude).document
    run, asked = first["run"], len(clients.turns)
    assert first["spend"]["calls"] == asked > 0

    after = await _step(options, run_id=run, candidates=[mine])
    assert after["candidates"][0]["number"] == len(first["population"])
    assert len(clients.turns) == asked, "a step asks no coding agent"

    refused = kopt("run", "--resume", run, "--provider", "codex")
    assert "Codex by its own login" in refused.stderr and len(clients.turns) == asked
    kopt("run", "--resume", run, "--provider", "codex", "--budget", "9Mtok,7", "--json")
    report = json.loads(kopt("runs", "show", run, "--json").stdout)
    by_round = {one["round"]: one["proposer"] for one in report["population"]}
    assert list(by_round.values()) == ["start", "coder", "sweep", "caller", "combiner"]
    by_codex = len(clients.turns) - asked
    assert {one["client"] for one in clients.turns[asked:]} == {"codex"} and by_codex > 0
    spend = report["spend"]
    assert spend["calls"] == asked + by_codex
    assert spend["cost_usd"] == pytest.approx(asked * COST_USD)
    costs = {one["model"].partition(":")[0]: one["cost_kind"] for one in spend["roles"]}
    assert costs == {"claude-code": "reported", "codex": "unavailable"}
    page = (Path(first["folder"]) / "report.md").read_text("utf-8")
    assert f"reported by the client, cost of {by_codex} calls unavailable" in page
