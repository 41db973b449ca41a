"""Calls that cannot be carried out as they are written: refused before a job is made of them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from kopt.server.protocol import argument_check
from kopt.server.work.requests import CompileWork, ProfileWork
from support.scripted_jobs import ScriptedJobs
from support.tool_client import (
    ERAS,
    KERNEL,
    connected,
    serve_options,
    standing_server,
    text_of,
)

pytestmark = pytest.mark.anyio

GOOD = {"kernel": KERNEL, "source": "x"}


async def refusal(tool: str, arguments: dict[str, Any], mode: str = "auto", **options: Any) -> str:
    """Return the text of the error that a call gets, after which no job may be there."""
    server, jobs = standing_server(**options)
    async with Client(server, mode=mode) as client:
        reply = await client.call_tool(tool, arguments)
    assert reply.is_error, text_of(reply)
    assert jobs.works == []
    return text_of(reply)


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("tool", "misspelt", "meant"),
    [
        ("search_docs", {"query": "x", "max_token": 5}, "max_tokens"),
        ("compile", {**GOOD, "archs": ["sm_90a"]}, "arch"),
        ("check_correctness", {**GOOD, "seed": [1]}, "seeds"),
        ("benchmark", {**GOOD, "devise": "sim"}, "device"),
        ("profile", {**GOOD, "counter": False}, "counters"),
        ("beam_step", {"kernel": KERNEL, "candidate": []}, "candidates"),
        ("list_kernels", {"detial": "full"}, "detail"),
        ("job_wait", {"job_id": "job-1", "wait": 3}, "wait_s"),
        ("job_cancel", {"job_id": "job-1", "details": "full"}, "detail"),
    ],
)
async def test_unknown_argument_is_answered_with_the_nearest_one(
    tool: str, misspelt: dict[str, Any], meant: str, mode: str
) -> None:
    text = await refusal(tool, misspelt, mode)
    assert text.startswith(f"{tool}: unknown argument")
    assert f"did you mean {meant}" in text


async def test_argument_that_resembles_none_is_answered_with_all() -> None:
    text = await refusal("job_cancel", {"job_id": "job-1", "xyzzy": 1})
    assert "allowed: job_id, detail" in text


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("compile", {"source": "x"}, "kernel is missing: Kernel id, from list_kernels"),
        ("job_cancel", {}, "job_id is missing"),
        ("check_correctness", {**GOOD, "level": "ful"}, "level is 'ful', did you mean full?"),
        ("compile", {**GOOD, "detail": "all"}, "detail is 'all', allowed: concise, full"),
        ("compile", {**GOOD, "wait_s": 51}, "wait_s is 51: at most 50 is expected"),
        ("compile", {**GOOD, "wait_s": -1}, "wait_s is -1"),
        ("compile", {**GOOD, "tune": {"BLOCK": "x"}}, "tune.BLOCK is 'x': a whole number"),
        ("compile", {**GOOD, "arch": 90}, "arch is 90: a list is"),
        ("profile", {**GOOD, "sass": "hott"}, "sass is 'hott': expected is \"hot\""),
        ("benchmark", {**GOOD, "arch": ["sm_80", "sm_90a"]}, "arch is "),
        ("check_correctness", {**GOOD, "seeds": []}, "seeds is []: at least one is expected"),
        ("check_correctness", {**GOOD, "seeds": [-1]}, "seeds[0] is -1"),
        ("search_docs", {"query": ""}, "got neither"),
        ("search_docs", {"query": "x", "k": 0}, "k is 0"),
        ("list_kernels", {"limit": 1000}, "limit is 1000"),
        ("list_kernels", {"offset": -1}, "offset is -1"),
    ],
)
async def test_bad_value_is_named_with_what_is_allowed(
    tool: str, arguments: dict[str, Any], expected: str
) -> None:
    assert expected in await refusal(tool, arguments)


async def test_many_mistakes_are_reported_at_once_but_not_all() -> None:
    text = await refusal("compile", {f"wrong{n}": n for n in range(40)})
    assert text.count("unknown argument") == 5
    assert "and 36 more" in text  # 40 unknown ones, and the kernel is missing


@pytest.mark.parametrize(
    "flood",
    [
        {f"wrong{n}": 0 for n in range(101)},
        {"seeds": ["x"] * 10_001},
        {"tune": {f"wrong{n}": "x" for n in range(10_001)}},
        {"seeds": [[["x"] * 101] * 100]},
    ],
)
async def test_more_arguments_than_any_call_needs_are_not_looked_at(
    flood: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(argument_check, "argument_mistakes", None)
    text = await refusal("check_correctness", flood)
    assert "more than 100 arguments or 10000 values" in text
    assert "allowed: kernel, source" in text


async def test_near_names_are_looked_for_as_often_as_they_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    def nearest(name: str, _: Iterable[str]) -> str:
        asked.append(name)
        return "allowed: none"

    monkeypatch.setattr(argument_check, "nearest", nearest)
    candidate = {f"wrong{n}": 0 for n in range(1_000)}
    await refusal("compile", {f"wrong{n}": n for n in range(90)})
    await refusal("beam_step", {"kernel": KERNEL, "candidates": [candidate]})
    assert len(asked) == 10


async def test_huge_value_is_cut_in_the_message() -> None:
    text = await refusal("compile", {**GOOD, "kernel": "k" * 100_000})
    assert len(text) < 1_000
    assert "(100002 characters)" in text


@pytest.mark.parametrize("mode", ERAS)
async def test_unknown_tool_is_answered_with_the_nearest_one(mode: str) -> None:
    assert "did you mean benchmark?" in await refusal("bench", {}, mode)


async def test_tool_that_a_read_only_server_leaves_out_says_so() -> None:
    text = await refusal("compile", GOOD, read_only=True)
    assert "--read-only" in text
    assert "list_kernels" in text


@pytest.mark.parametrize("tool", ["compile", "check_correctness", "benchmark", "profile"])
async def test_unknown_kernel_is_answered_with_near_matches(tool: str) -> None:
    text = await refusal(tool, {"kernel": "silu_and_mul_b8xh1433", "source": "x"})
    assert f"did you mean {KERNEL}" in text


async def test_kernel_like_no_other_is_answered_with_the_tool_that_lists_them() -> None:
    text = await refusal("compile", {"kernel": "?", "source": "x"})
    assert "list_kernels shows" in text


@pytest.mark.parametrize("both", [{}, {"source": "x", "path": "y.cu"}])
async def test_source_and_path_are_exactly_one(both: dict[str, str]) -> None:
    text = await refusal("compile", {"kernel": KERNEL, **both})
    assert "exactly one of source" in text


@pytest.mark.parametrize("device", ["gpu", "cuda:x", "cuda:-1", "", "SIM", "cuda:0; rm"])
@pytest.mark.parametrize("tool", ["check_correctness", "benchmark", "profile"])
async def test_unknown_device_is_answered_with_those_that_there_are(tool: str, device: str) -> None:
    text = await refusal(tool, {**GOOD, "device": device})
    assert f"device {device!r} is unknown" in text
    assert "sim" in text


async def test_device_that_the_server_was_not_given_is_refused() -> None:
    arguments = {**GOOD, "device": "cuda:0"}
    text = await refusal("benchmark", arguments, devices=("cuda:1",))
    assert "cuda:0 is not offered by this server: auto, sim, cuda:1" in text


async def test_server_for_the_simulator_alone_names_it_once() -> None:
    arguments = {**GOOD, "device": "cuda:0"}
    text = await refusal("benchmark", arguments, devices=("sim",))
    assert text == "device cuda:0 is not offered by this server: auto, sim"


@pytest.mark.parametrize(("arch", "near"), [("sm90a", "sm_90a"), ("sm_100A", "sm_100a")])
async def test_unknown_target_is_answered_with_the_nearest(arch: str, near: str) -> None:
    text = await refusal("compile", {**GOOD, "arch": [arch]})
    assert f"did you mean {near}" in text


@pytest.mark.parametrize(
    ("tool", "arch", "taken"), [("compile", "sm_90a", ("sm_90a",)), ("profile", ["H100"], "sm_90a")]
)
async def test_target_may_be_a_text_or_a_list_of_one(
    tool: str, arch: str | list[str], taken: str | tuple[str, ...], tmp_path: Path
) -> None:
    jobs = ScriptedJobs()
    async with connected(serve_options(tmp_path), jobs) as client:
        await client.call_tool(tool, {**GOOD, "arch": arch, "wait_s": 0})
    (work,) = jobs.works
    assert isinstance(work, CompileWork | ProfileWork)
    assert work.arch == taken


async def test_target_without_a_data_sheet_is_refused() -> None:
    text = await refusal("compile", {**GOOD, "arch": ["sm_42"]})
    assert "no GPU data sheet for sm_42" in text


@pytest.mark.parametrize("chosen", [{}, {"kernel": KERNEL, "run_id": "run-1"}])
async def test_step_begins_a_run_or_goes_on_with_one(chosen: dict[str, str]) -> None:
    assert "exactly one of kernel" in await refusal("beam_step", chosen)


@pytest.mark.parametrize("tool", ["job_wait", "job_cancel"])
async def test_run_id_in_place_of_a_job_id_is_answered_with_what_takes_it(tool: str) -> None:
    run_id = "run-20260101-000000-00000000"
    text = await refusal(tool, {"job_id": run_id})
    assert f"beam_step with run_id={run_id}" in text
    assert f"kopt://runs/{run_id}" in text
    read_only = await refusal("job_wait", {"job_id": run_id}, read_only=True)
    assert "beam_step" not in read_only


@pytest.mark.parametrize("run_id", ["../../etc", "run-", "job-20260101-000000-00000000"])
async def test_what_is_no_run_id_is_refused(run_id: str) -> None:
    assert "run_id" in await refusal("beam_step", {"run_id": run_id})


@pytest.mark.parametrize(
    ("candidate", "expected"),
    [
        ({}, "candidates[0]: give exactly one of source"),
        ({"sorce": "x"}, "candidates[0].sorce, did you mean source"),
        ({"source": "x", "family": "vectorisation"}, "did you mean vectorization"),
        ({"path": "/etc/passwd"}, "candidates[0]: "),
    ],
)
async def test_bad_candidate_of_a_step_is_named_by_its_place(
    candidate: dict[str, str], expected: str
) -> None:
    text = await refusal("beam_step", {"kernel": KERNEL, "candidates": [candidate]})
    assert expected in text
