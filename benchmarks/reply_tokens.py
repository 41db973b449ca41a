"""What the MCP tools cost a model: tokens of all definitions, and of each reply of a short session.

    python benchmarks/reply_tokens.py [--check]

A server is started over stdio in a folder of its own and asked as an agent asks: one kernel, a
sound candidate, sim, an H100's data sheet. Tokens are o200k_base's where `rs-bpe` is installed
(`pip install rs-bpe`), else characters / 4; the table says which. A reply counts as Claude Code
shows it: structured content as JSON, and a line a link. --check ends with 1 beyond a budget.
"""

import argparse
import asyncio
import importlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult, ResourceLink, TextContent

from kopt.tools.selftest.sample import SAMPLES

KERNEL = "silu_and_mul_b8xh14336"
SAMPLE = "good_vectorized_16_bytes.cu"
WRONG = ("gate / (1.0f + ", "gate / (2.0f + ")
BUDGETS = {
    "all definitions": 4_500,
    "compile: passed": 150,
    "check_correctness: passed": 200,
    "benchmark: estimated": 250,
    "beam_step: two candidates": 900,
    "search_docs": 1_200,
}
Count = Callable[[str], int]


def counter() -> tuple[Count, str]:
    """Return what counts the tokens of a text, and its name."""
    try:
        encoding: Any = importlib.import_module("rs_bpe.bpe").openai.o200k_base()
    except ImportError:
        return (lambda text: round(len(text) / 4)), "characters / 4"
    return (lambda text: len(encoding.encode(text))), "o200k_base"


def shown(reply: CallToolResult) -> str:
    """Return a reply as Claude Code shows it to its model."""
    links = [one for one in reply.content if isinstance(one, ResourceLink)]
    lines = [f"[Resource link: {one.name}] {one.uri} ({one.description})" for one in links]
    if reply.structured_content is None or reply.is_error:
        lines = [one.text for one in reply.content if isinstance(one, TextContent)]
        return "\n".join(lines)
    facts = json.dumps(reply.structured_content, ensure_ascii=False, separators=(",", ":"))
    return "\n".join((facts, *lines))


async def session(client: Client, count: Count, folder: Path) -> list[tuple[str, int, float]]:
    """Return name, tokens and seconds of each thing that an agent reads, in its order."""
    rows: list[tuple[str, int, float]] = []
    tools = (await client.list_tools()).tools
    told = [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools]
    text = "".join(json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in told)
    rows.append(("all definitions", count(text), 0.0))
    rows.append(("instructions", count(client.instructions or ""), 0.0))

    async def ask(name: str, tool: str, **arguments: Any) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        began = loop.time()
        reply = await client.call_tool(tool, arguments)
        facts: dict[str, Any] = reply.structured_content or {}
        while facts.get("status") in ("queued", "running"):
            reply = await client.call_tool("job_wait", {"job_id": facts["job_id"]})
            facts = reply.structured_content or {}
        rows.append((name, count(shown(reply)), loop.time() - began))
        return facts

    source = "".join(
        line
        for line in (SAMPLES / SAMPLE).read_text("utf-8").splitlines(keepends=True)
        if not line.startswith("// sample:")
    )
    (folder / "mine.cu").write_text(source, "utf-8")
    (folder / "broken.cu").write_text(source.replace("const uint4 up = row[", "up = rows["))
    mine: dict[str, Any] = {"kernel": KERNEL, "path": "mine.cu"}
    sim: dict[str, Any] = {**mine, "device": "sim", "arch": "sm_90a"}
    await ask("list_kernels: all", "list_kernels")
    await ask("list_kernels: one", "list_kernels", kernel=KERNEL)
    await ask("compile: compile_error", "compile", kernel=KERNEL, path="broken.cu")
    await ask("compile: passed", "compile", **mine, arch=["sm_90a"])
    await ask("check_correctness: passed", "check_correctness", **sim)
    await ask("check_correctness: full, passed", "check_correctness", **sim, level="full")
    await ask("benchmark: estimated", "benchmark", **sim)
    await ask("benchmark: every choice", "benchmark", **sim, tune="all")
    await ask("profile", "profile", **sim)
    await ask("profile: machine code", "profile", **sim, sass="hot")
    candidates = [
        {"path": "mine.cu", "hypothesis": "16-byte accesses", "family": "vectorization"},
        {"path": "mine.cu", "tune": {"BLOCK": 128}, "hypothesis": "smaller blocks"},
    ]
    step: dict[str, Any] = {"kernel": KERNEL, "candidates": candidates, "device": "sim"}
    begun = await ask("beam_step: two candidates", "beam_step", **step, arch="sm_90a")
    await ask("beam_step: kopt's own", "beam_step", run_id=begun["run_id"])
    await ask("search_docs", "search_docs", query="warp shuffle reduction rmsnorm")
    await ask("search_docs: a page", "search_docs", read="docs/statuses.md")
    await ask("job_wait: list", "job_wait")
    return rows


async def measured(count: Count) -> list[tuple[str, int, float]]:
    """Return the rows of a session with a server of its own."""
    with TemporaryDirectory(prefix="kopt-tokens-") as name:
        folder = Path(name)
        server = StdioServerParameters(
            command=sys.executable,
            args=["-m", "kopt", "serve", "--workspace", name],
            env=dict(os.environ),
            cwd=name,
        )
        async with Client(stdio_client(server)) as client:
            return await session(client, count, folder)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--check", action="store_true", help="end with 1 beyond a budget")
    options = parser.parse_args()
    count, name = counter()
    rows = asyncio.run(measured(count))
    print(f"| what | tokens ({name}) | budget | s |\n|---|---:|---:|---:|")
    for what, tokens, seconds in rows:
        most = f"{BUDGETS[what]:,}" if what in BUDGETS else ""
        print(f"| {what} | {tokens:,} | {most} | {seconds:.2f} |")
    beyond = [what for what, tokens, _ in rows if tokens > BUDGETS.get(what, tokens)]
    if beyond:
        print(f"beyond the budget: {', '.join(beyond)}", file=sys.stderr)
    return 1 if beyond and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
