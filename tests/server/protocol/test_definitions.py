"""What a client is told about the tools before it calls one, and what that costs."""

import json
from pathlib import Path
from typing import Any

import pytest

from kopt import __version__
from kopt.server.protocol.app import TOOLS
from support.tool_client import ERAS, standing

pytestmark = pytest.mark.anyio

SNAPSHOTS = Path(__file__).with_name("snapshots")
NAMES = [spec.name for spec in TOOLS]
CORE = ("search_docs", "compile", "check_correctness", "benchmark", "profile", "beam_step")
LOADED = (*CORE, "list_kernels", "job_wait")
"""What a model calls first, and what every long call ends in, is never deferred either."""
MAX_TOKENS = 4_500
CHARACTERS_PER_TOKEN = 4.0
"""What o200k_base takes for a token in these definitions: benchmarks/reply_tokens.py counts."""
CLAUDE_CODE_CUTS_AT = 4096
"""Characters of a description or of the instructions that Claude Code shows."""


async def definitions(mode: str = "auto", **fields: Any) -> dict[str, dict[str, Any]]:
    """Return the tools as they go over the wire, by name."""
    async with standing(mode, **fields) as client:
        tools = (await client.list_tools()).tools
    return {
        tool.name: tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools
    }


@pytest.mark.parametrize("mode", ERAS)
async def test_the_nine_tools_are_offered_in_order(mode: str) -> None:
    assert list(await definitions(mode)) == NAMES
    assert len(NAMES) == 9


async def test_all_definitions_cost_at_most_4500_tokens() -> None:
    tools = await definitions()
    sizes = {
        name: len(json.dumps(tool, ensure_ascii=False, separators=(",", ":")))
        for name, tool in tools.items()
    }
    tokens = {name: round(size / CHARACTERS_PER_TOKEN) for name, size in sizes.items()}
    print(f"\ntokens of all definitions: {sum(tokens.values())} of {MAX_TOKENS}: {tokens}")
    assert sum(sizes.values()) / CHARACTERS_PER_TOKEN <= MAX_TOKENS


@pytest.mark.parametrize("name", NAMES)
async def test_definition_is_the_one_that_was_reviewed(name: str) -> None:
    """Renew after a change that is meant: delete the file that is named and run this test once."""
    snapshot = SNAPSHOTS / f"{name}.json"
    found = json.dumps((await definitions())[name], indent=2, ensure_ascii=False) + "\n"
    if not snapshot.exists():
        snapshot.write_text(found, "utf-8")
        pytest.fail(f"wrote {snapshot}: read it, commit it, and run the test again")
    assert snapshot.read_text("utf-8") == found, (
        f"the definition of {name} changed, which every client sees; if that is meant, delete"
        f" {snapshot}, run this test once to write it anew, and review the difference"
    )


def test_no_snapshot_is_left_over() -> None:
    assert sorted(path.stem for path in SNAPSHOTS.iterdir()) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
async def test_every_argument_is_described_and_no_other_is_allowed(name: str) -> None:
    schema = (await definitions())[name]["inputSchema"]
    undescribed = [
        argument for argument, field in schema["properties"].items() if not field.get("description")
    ]
    assert undescribed == []
    assert schema["additionalProperties"] is False
    assert schema["properties"]["detail"]["enum"] == ["concise", "full"]
    assert "$ref" not in json.dumps(schema)


@pytest.mark.parametrize("name", NAMES)
async def test_description_says_what_for_and_gives_an_example_that_is_valid(name: str) -> None:
    tool = (await definitions())[name]
    description = tool["description"]
    assert "Use it" in description or "Call it first" in description
    assert len(description) <= CLAUDE_CODE_CUTS_AT
    example, _end = json.JSONDecoder().raw_decode(description.partition("Example: ")[2])
    assert set(example) <= set(tool["inputSchema"]["properties"])
    assert set(tool["inputSchema"].get("required", ())) <= set(example)


@pytest.mark.parametrize("name", NAMES)
async def test_core_tools_are_always_loaded_and_the_others_can_be_searched(name: str) -> None:
    meta = (await definitions())[name]["_meta"]
    meta.pop("ui", None)
    assert (meta == {"anthropic/alwaysLoad": True}) == (name in LOADED)
    assert name in LOADED or meta["anthropic/searchHint"]


async def test_only_what_runs_nothing_is_annotated_as_read_only() -> None:
    tools = await definitions()
    read_only = {name for name, tool in tools.items() if tool["annotations"]["readOnlyHint"]}
    assert read_only == {"search_docs", "list_kernels", "job_wait"}
    assert not any(tool["annotations"]["openWorldHint"] for tool in tools.values())


async def test_read_only_server_offers_inspection_alone() -> None:
    tools = await definitions(read_only=True)
    assert set(tools) == {"search_docs", "list_kernels", "job_wait"}


@pytest.mark.parametrize("mode", ERAS)
async def test_instructions_begin_with_the_order_of_work(mode: str) -> None:
    async with standing(mode) as client:
        instructions = client.instructions or ""
    places = [instructions.index(name) for name in ("list_kernels", *CORE[1:])]
    assert places == sorted(places)
    assert len(instructions) <= CLAUDE_CODE_CUTS_AT
    assert "job_wait" in instructions


@pytest.mark.parametrize("name", NAMES)
async def test_every_tool_says_what_its_replies_have(name: str) -> None:
    schema = (await definitions())[name]["outputSchema"]
    assert schema["type"] == "object"
    assert set(schema["properties"]) >= set(schema["required"])
    assert "status" in schema["required"]


@pytest.mark.parametrize("mode", ERAS)
async def test_nothing_is_advertised_that_is_never_sent(mode: str) -> None:
    async with standing(mode) as client:
        told = client.server_capabilities
    assert told is not None and told.tools and told.resources and told.prompts
    assert not told.resources.subscribe
    assert not any(one.list_changed for one in (told.tools, told.resources, told.prompts))
    assert told.completions is not None


async def test_server_says_its_name_and_version() -> None:
    async with standing("legacy") as client:
        info = client.server_info
    assert info is not None
    assert (info.name, info.version) == ("kopt", __version__)
