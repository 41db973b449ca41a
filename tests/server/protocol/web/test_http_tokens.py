"""A server with tokens: who has one comes in and is known by it, and nobody else does."""

from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer
from mcp.server.mcpserver import Context

from kopt.server.protocol.caller import caller_of
from kopt.server.protocol.web.listen_address import HttpOptions
from support.http_asking import answering

pytestmark = pytest.mark.anyio
FIRST = "Zm9vYmFyYmF6cXV1eGNvcmdlZ3JhdWx0Z2FycGx5"
SECOND = "d2FsZG9mcmVkcGx1Z2h4eXp6eXRodWRmb29iYXI="


@pytest.fixture
def options(tmp_path: Path) -> HttpOptions:
    """Return the options of a server with two tokens."""
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text(f"{FIRST}\n{SECOND}\n")
    return HttpOptions(port=0, token_file=path)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (None, "no Authorization header came"),
        ("Bearer", "this token is not in it"),
        (f"Bearer {FIRST[:-1]}", "this token is not in it"),
        (f"Bearer {FIRST}x", "this token is not in it"),
        (f"Basic {FIRST}", "the scheme is not Bearer"),
        (FIRST, "the scheme is not Bearer"),
    ],
)
async def test_without_a_valid_token_the_reason_and_the_remedy_come_back(
    options: HttpOptions, header: str | None, said: str
) -> None:
    async with answering(options=options) as server:
        answer = await server.ping({} if header is None else {"Authorization": header})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="kopt"'
    description = answer.json()["error_description"]
    assert "--token-file" in description
    assert said in description
    assert FIRST[:-1] not in answer.text


async def test_two_tokens_at_once_are_refused(options: HttpOptions) -> None:
    headers = [("Authorization", f"Bearer {FIRST}"), ("Authorization", f"Bearer {SECOND}")]
    async with answering(options=options) as server:
        answer = await server.http.post("/mcp", headers=headers)
    assert answer.status_code == 401


@pytest.mark.parametrize("header", [f"Bearer {FIRST}", f"bearer {SECOND}", f"BEARER  {SECOND}"])
async def test_each_token_of_the_file_lets_in(options: HttpOptions, header: str) -> None:
    async with answering(options=options) as server:
        answer = await server.ping({"Authorization": header})
    assert answer.status_code == 200


async def test_healthz_asks_for_no_token(options: HttpOptions) -> None:
    async with answering(options=options) as server:
        assert (await server.http.get("/healthz")).status_code == 200


async def test_guessing_is_slowed_down_and_does_not_shut_others_out(options: HttpOptions) -> None:
    async with answering(options=options) as server:
        guesses = [await server.ping({"Authorization": f"Bearer {n:040}"}) for n in range(40)]
        good = await server.ping({"Authorization": f"Bearer {FIRST}"})
    assert guesses[0].status_code == 401
    refused = [guess for guess in guesses if guess.status_code == 429]  # but for one a second
    assert int(refused[0].headers["retry-after"]) >= 1
    assert good.status_code == 200


async def test_a_caller_is_known_by_its_token_whatever_it_says(options: HttpOptions) -> None:
    server = MCPServer("who")

    @server.tool(structured_output=False)
    async def who(ctx: Context) -> str:  # pyright: ignore[reportUnusedFunction] # the SDK calls it
        return caller_of(ctx).name

    async with answering(server, options) as here:
        for token, name in ((FIRST, "token-1"), (SECOND, "token-2")):
            assert await _who(here.url, token) == name


async def _who(url: str, token: str) -> str:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        reply = await client.call_tool("who", {})
    content = reply.content[0]
    assert content.type == "text"
    return content.text
