"""The script that counts what MCP replies cost: what it counts, and of what."""

from mcp.types import CallToolResult, ResourceLink, TextContent
from reply_tokens import BUDGETS, counter, shown


def test_a_reply_counts_as_compact_json_and_a_line_a_link() -> None:
    link = ResourceLink(name="log", uri="kopt://jobs/1/log", description="All of it")
    reply = CallToolResult(
        content=[TextContent(type="text", text="status: passed"), link],
        structured_content={"status": "passed", "ä": 1},
    )
    assert shown(reply) == (
        '{"status":"passed","ä":1}\n[Resource link: log] kopt://jobs/1/log (All of it)'
    )


def test_an_error_counts_as_its_text() -> None:
    text = TextContent(type="text", text="no such kernel")
    assert shown(CallToolResult(content=[text], is_error=True)) == "no such kernel"


def test_the_count_names_its_tokenizer_and_budgets_are_those_of_the_manual() -> None:
    count, name = counter()
    assert name in ("o200k_base", "characters / 4")
    assert count("") == 0 < count("registers per thread")
    assert BUDGETS["all definitions"] == 4_500
