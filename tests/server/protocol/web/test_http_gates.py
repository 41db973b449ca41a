"""Which names and web pages an HTTP server answers to, before it looks at anything else."""

import pytest

from kopt.server.protocol.web.listen_address import HttpOptions
from support.http_asking import answering

pytestmark = pytest.mark.anyio
PAGE = "https://tools.example"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example:{port}",
        "localhost.evil.example",
        "localhost:80@evil.example",
        "127.0.0.2:{port}",
        "[::2]",
        "xlocalhost",
    ],
)
async def test_a_request_for_another_name_is_misdirected_whatever_it_asks(host: str) -> None:
    async with answering() as server:
        headers = {"Host": host.format(port=server.port)}
        paths = ("/mcp", "/healthz", "/", "/nothing")
        answers = [await server.http.post(path, headers=headers) for path in paths]
    assert [answer.status_code for answer in answers] == [421] * len(paths)
    assert "--allowed-host" in answers[0].json()["error"]["message"]


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]", "LocalHost"])
async def test_loopback_names_are_served_with_any_port(name: str) -> None:
    """The port of an SSH tunnel's other end may be any."""
    async with answering() as server:
        hosts = (name, f"{name}:{server.port}", f"{name}:9999")
        answers = [await server.ping({"Host": host}) for host in hosts]
    assert [answer.status_code for answer in answers] == [200, 200, 200]


async def test_a_page_that_rebinds_its_name_is_refused_by_its_host() -> None:
    """What DNS rebinding looks like: a page of evil.example whose name now means 127.0.0.1."""
    async with answering() as server:
        name = f"evil.example:{server.port}"
        answer = await server.ping({"Host": name, "Origin": f"http://{name}"})
    assert answer.status_code == 421


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "null",
        "",
        "http://localhost:1",
        "http://localhost",
        "https://localhost:{port}",
        "http://localhost:{port}.evil.example",
    ],
)
async def test_a_foreign_web_page_is_refused(origin: str) -> None:
    async with answering() as server:
        answer = await server.ping({"Origin": origin.format(port=server.port)})
        cors = "access-control-allow-origin" in answer.headers
    assert (answer.status_code, cors) == (403, False)
    assert "--allowed-origin" in answer.json()["error"]["message"]


async def test_a_page_from_the_server_s_own_address_may_call_and_not_read() -> None:
    async with answering() as server:
        answer = await server.ping({"Origin": f"http://localhost:{server.port}"})
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers


async def test_a_named_page_may_read_and_it_alone_is_named() -> None:
    async with answering(options=HttpOptions(port=0, allowed_origins=(PAGE,))) as server:
        answer = await server.ping({"Origin": PAGE})
        foreign = await server.ping({"Origin": "https://evil.example"})
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert (foreign.status_code, "access-control-allow-origin" in foreign.headers) == (403, False)


async def test_a_named_page_s_preflight_needs_no_token_and_allows_its_headers() -> None:
    preflight = {
        "Origin": PAGE,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization, mcp-method",
    }
    async with answering(options=HttpOptions(port=0, allowed_origins=(PAGE,))) as server:
        answer = await server.http.options("/mcp", headers=preflight)
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "authorization" in answer.headers["access-control-allow-headers"].lower()


async def test_a_named_host_is_served_beside_loopback() -> None:
    async with answering(options=HttpOptions(port=0, allowed_hosts=("GPU-box:8765",))) as server:
        named = await server.ping({"Host": "gpu-box:8765"})
        other_port = await server.ping({"Host": "gpu-box:80"})
        loopback = await server.ping()
    assert [a.status_code for a in (named, other_port, loopback)] == [200, 421, 200]


async def test_health_is_all_that_healthz_tells() -> None:
    async with answering() as server:
        answer = await server.http.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
    assert "server" not in answer.headers


@pytest.mark.parametrize(("method", "path"), [("GET", "/mcp"), ("DELETE", "/mcp"), ("PUT", "/mcp")])
async def test_only_post_reaches_the_protocol(method: str, path: str) -> None:
    async with answering() as server:
        answer = await server.http.request(method, path, headers={"Accept": "text/event-stream"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


async def test_any_other_path_is_not_found() -> None:
    async with answering() as server:
        answer = await server.http.get("/admin")
    assert answer.status_code == 404
