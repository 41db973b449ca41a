"""What `list_kernels` answers: pages of ids, and one kernel with all that an author needs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp.types import TextResourceContents

from kopt.kernels.candidate import Candidate
from kopt.kernels.header_parser import parse_header
from kopt.kernels.problem_loader import find_kernel, load_problems
from kopt.tools.facts.fitting import tokens
from support.scripted_jobs import ScriptedJobs
from support.tiny_problem import write_tiny_problem
from support.tool_client import ERAS, KERNEL, connected, facts_of, serve_options, standing, text_of

pytestmark = pytest.mark.anyio

MAX_TOKENS = 2_500
ALL = [kernel for problem in load_problems().values() for kernel in problem.kernel_ids]


async def listed(mode: str = "auto", **arguments: Any) -> dict[str, Any]:
    """Return the structured reply to one call."""
    async with standing(mode) as client:
        return facts_of(await client.call_tool("list_kernels", arguments))


@pytest.mark.parametrize("mode", ERAS)
async def test_all_kernels_fit_one_concise_reply(mode: str) -> None:
    facts = await listed(mode)
    assert [row["kernel"] for row in facts["kernels"]] == ALL
    assert facts["total"] == len(ALL)
    assert tokens(facts) <= MAX_TOKENS
    assert list(facts)[-1] == "next"


async def test_pages_cover_every_kernel_once() -> None:
    found: list[str] = []
    while len(found) < len(ALL):
        facts = await listed(limit=10, offset=len(found))
        found += [row["kernel"] for row in facts["kernels"]]
        assert (f"offset {len(found)}" in facts["next"]) == (len(found) < len(ALL))
    assert found == ALL


async def test_a_broken_problem_of_ones_own_is_named_and_hides_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "kopt_problems"
    folder.mkdir()
    sound = write_tiny_problem(folder).rename(folder / "sound_rows")
    text = (sound / "problem.yaml").read_text("utf-8")
    (sound / "problem.yaml").write_text(text.replace("scale_rows", "sound_rows"), "utf-8")
    (write_tiny_problem(folder) / "problem.yaml").write_text("name: 3\n", "utf-8")
    options = serve_options(tmp_path / "home")
    options = replace(options, settings=replace(options.settings, problems=folder))
    async with connected(options, ScriptedJobs()) as client:
        every = facts_of(await client.call_tool("list_kernels", {"limit": 100}))
        none = facts_of(await client.call_tool("list_kernels", {"query": "scale_rows"}))
        index = (await client.read_resource("kopt://kernels")).contents[0]
    own = ["sound_rows_b8xh64", "sound_rows_b32xh256"]
    assert [row["kernel"] for row in every["kernels"]] == [*ALL, *own]
    assert isinstance(index, TextResourceContents)
    assert all(kernel in index.text for kernel in (*ALL, *own))
    assert "problem.yaml:1: " in index.text
    for facts in (every, none):
        assert "problem.yaml:1: " in facts["own_problems"]
        assert list(facts)[-1] == "next"


async def test_query_without_a_match_says_how_a_function_becomes_a_kernel(tmp_path: Path) -> None:
    workspace = serve_options(tmp_path, workspaces=(tmp_path,))
    async with connected(workspace, ScriptedJobs()) as client:
        facts = facts_of(await client.call_tool("list_kernels", {"query": "layer_norm"}))
    assert facts["kernels"] == []
    assert "kopt new model.py -o kopt_problems" in facts["own_problems"]
    assert "read=docs/problems.md" in facts["own_problems"]
    assert "--problems" in (await listed(query="layer_norm"))["own_problems"]


async def test_page_behind_the_last_one_is_refused() -> None:
    async with standing() as client:
        reply = await client.call_tool("list_kernels", {"offset": 1000})
    assert reply.is_error
    assert f"behind the last of {len(ALL)} kernels" in text_of(reply)


async def test_query_and_target_narrow_the_list() -> None:
    named = await listed(query="SILU_and")
    assert {row["kernel"].rpartition("_")[0] for row in named["kernels"]} == {"silu_and_mul"}
    hopper = await listed(arch="sm_90a")
    assert 0 < hopper["total"] < len(ALL)
    assert hopper["floors_for"] == "H100"


async def test_full_rows_say_bytes_and_baselines() -> None:
    (row, *_) = (await listed(query=KERNEL, detail="full"))["kernels"]
    assert row["total_bytes"] == 8 * 14336 * 3 * 2
    assert row["baselines"] == ["flashinfer"]
    assert row["axes"]["H"] == 14336


@pytest.mark.parametrize("query", ["zzz", "'; DROP TABLE", ".*", "\0"])
async def test_query_that_fits_nothing_says_how_to_go_on(query: str) -> None:
    facts = await listed(query=query)
    assert (facts["total"], facts["kernels"]) == (0, [])
    assert "without filters" in facts["next"]


@pytest.mark.parametrize("query", ["silu-mul", "silu_and_mul_b8xh1433x", "rmsnrm", "fused rmsnorm"])
async def test_query_that_fits_nothing_is_answered_with_near_names(query: str) -> None:
    facts = await listed(query=query)
    assert facts["total"] == 0
    assert 0 < len(facts["near"]) <= 5
    assert set(facts["near"]) <= set(ALL)


async def test_query_beside_a_kernel_is_refused() -> None:
    async with standing() as client:
        reply = await client.call_tool("list_kernels", {"kernel": KERNEL, "query": "silu"})
    assert reply.is_error
    assert "not both" in text_of(reply)


async def test_read_only_server_points_to_no_tool_that_it_lacks() -> None:
    async with standing(read_only=True) as client:
        for arguments in ({"kernel": KERNEL}, {"query": "silu"}):
            facts = facts_of(await client.call_tool("list_kernels", arguments))
            assert "call compile" not in facts["next"]
            assert "candidate" not in facts["next"]


@pytest.mark.slow  # every kernel
@pytest.mark.parametrize("kernel", ALL)
async def test_one_kernel_has_what_an_author_needs(kernel: str) -> None:
    facts = await listed(kernel=kernel)
    problem, _workload = find_kernel(kernel)
    assert tokens(facts) <= MAX_TOKENS
    names = [argument.partition(":")[0] for argument in facts["arguments"]]
    tensors = [tensor.name for tensor in problem.tensors]
    assert names == tensors + [scalar.name for scalar in problem.scalars]
    # Beside a long reference source there is no room: then a skeleton is there, and where it is.
    example = facts.get("skeleton") or facts["reference_source"]
    assert parse_header(Candidate(example), problem).header is not None
    assert ("skeleton" in facts) == ("detail" in facts["reference_source"][:200])


@pytest.mark.parametrize("kernel", [KERNEL, "add_rmsnorm_fp4quant_sf128x4_b128xh2048"])
async def test_full_kernel_has_the_whole_reference_source(kernel: str) -> None:
    facts = await listed(kernel=kernel, detail="full")
    problem, _workload = find_kernel(kernel)
    reference = (problem.folder / "reference.cu").read_text("utf-8")
    assert facts["reference_source"].strip() == reference.strip()
    assert {"skeleton", "rooflines", "baselines", "workloads", "how_to_write"} <= set(facts)


async def test_text_says_the_same_as_the_structure() -> None:
    async with standing() as client:
        reply = await client.call_tool("list_kernels", {"kernel": KERNEL})
    facts = facts_of(reply)
    assert all(name in text_of(reply) for name in facts)
    assert 'extern "C" __global__' in text_of(reply)
    json.dumps(facts)


async def test_broken_problems_that_are_not_named_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "kopt_problems"
    for number in range(5):
        (folder / f"broken{number}").mkdir(parents=True)
        (folder / f"broken{number}" / "problem.yaml").write_text("axes: [\n", "utf-8")
    options = serve_options(tmp_path / "home")
    options = replace(options, settings=replace(options.settings, problems=folder))
    async with connected(options, ScriptedJobs()) as client:
        facts = facts_of(await client.call_tool("list_kernels", {}))
    named = facts["own_problems"].splitlines()
    assert ["broken2" in named[2], named[3:]] == [True, ["2 more are in kopt://kernels"]]


async def test_own_problems_are_listed_too(tmp_path: Path) -> None:
    options = serve_options(tmp_path)
    folder = write_tiny_problem(tmp_path)
    options = replace(options, settings=replace(options.settings, problems=folder))
    async with connected(options, ScriptedJobs()) as client:
        facts = facts_of(await client.call_tool("list_kernels", {"limit": 100}))
    assert facts["total"] > len(ALL)
