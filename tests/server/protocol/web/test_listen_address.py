"""Where a server may listen: loopback as it is, anything else only with tokens and names."""

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.server.protocol.web import listen_address
from kopt.server.protocol.web.listen_address import Doorway, HttpOptions, open_doorway
from kopt.server.protocol.web.token_file import write_token

Open = Callable[[HttpOptions], Doorway]


@pytest.fixture
def opened() -> Iterator[Open]:
    """Return `open_doorway` with a socket that is closed at the end."""
    with ExitStack() as stack:

        def open_and_remember(options: HttpOptions) -> Doorway:
            doorway = open_doorway(options)
            stack.callback(doorway.listener.close)
            return doorway

        yield open_and_remember


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """Return a file with a token."""
    write_token(tmp_path / "token")
    return tmp_path / "token"


def test_where_the_kernel_does_not_tell_users_apart_a_token_is_a_must(
    opened: Open, token: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def names_none(_: str) -> bool:
        return False

    monkeypatch.setattr(listen_address, "names_peers", names_none)
    with pytest.raises(ToolError, match=r"does not tell whose process .*--token-file"):
        opened(HttpOptions(port=0))
    assert opened(HttpOptions(port=0, token_file=token)).is_loopback


def test_by_default_it_is_loopback_without_a_token(opened: Open) -> None:
    doorway = opened(HttpOptions(port=0))
    host, port = doorway.listener.getsockname()
    assert (host, doorway.is_loopback, doorway.access.tokens) == ("127.0.0.1", True, None)
    assert doorway.url == f"http://127.0.0.1:{port}/mcp"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.0.0.2"])
def test_every_loopback_address_needs_nothing(opened: Open, host: str) -> None:
    assert opened(HttpOptions(host=host, port=0)).is_loopback


def test_a_token_may_be_asked_for_on_loopback_too(opened: Open, token: Path) -> None:
    assert opened(HttpOptions(port=0, token_file=token)).access.tokens is not None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
@pytest.mark.parametrize(
    ("with_token", "names", "missing"),
    [
        (False, (), "without --token-file FILE and --allowed-host NAME\n"),
        (True, (), "without --allowed-host NAME\n"),
        (False, ("gpu-box",), "without --token-file FILE\n"),
    ],
)
def test_any_other_address_is_refused_with_the_reason_and_both_ways_out(
    token: Path, host: str, with_token: bool, names: tuple[str, ...], missing: str
) -> None:
    token_file = token if with_token else None
    with pytest.raises(ToolError) as refusal:
        open_doorway(HttpOptions(host, 8765, token_file, names))
    text = str(refusal.value)
    assert "compiles and runs code" in text
    assert missing in text
    assert "ssh -N -L 8765:127.0.0.1:8765" in text
    assert f"kopt serve --http --host {host} --port 8765 --token-file" in text
    assert f"--allowed-host {names[0] if names else socket.gethostname()}" in text


def test_with_a_token_and_a_name_any_address_is_served(opened: Open, token: Path) -> None:
    doorway = opened(HttpOptions("0.0.0.0", 0, token, ("GPU-box",)))
    port = doorway.listener.getsockname()[1]
    assert (doorway.url, doorway.is_loopback) == (f"http://gpu-box:{port}/mcp", False)
    assert doorway.access.allows_host("gpu-box:1")
    assert not doorway.access.allows_host("192.0.2.1")


@pytest.mark.parametrize("name", ["*", "*.example", "", "a b", "http://gpu-box", "gpu-box/", "a:b"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ToolError, match="no wildcards"):
        open_doorway(HttpOptions(port=0, allowed_hosts=(name,)))


@pytest.mark.parametrize("origin", ["*", "null", "tools.example", "https://a.example/path", ""])
def test_an_origin_that_no_browser_sends_is_refused(origin: str) -> None:
    with pytest.raises(ToolError, match="no wildcards"):
        open_doorway(HttpOptions(port=0, allowed_origins=(origin,)))


def test_a_port_in_use_is_named_with_the_remedy(opened: Open) -> None:
    port = opened(HttpOptions(port=0)).listener.getsockname()[1]
    with pytest.raises(ToolError, match=f"127.0.0.1 port {port}: it is in use; .*--port"):
        open_doorway(HttpOptions(port=port))


@pytest.mark.parametrize("host", ["", "no.such.host.invalid", "a" * 300, "1.2.3.4.5"])
def test_an_address_that_is_none_is_the_caller_s_mistake(host: str, token: Path) -> None:
    with pytest.raises(ToolError, match="is no address of this machine"):
        open_doorway(HttpOptions(host, 0, token, ("gpu-box",)))


def test_an_address_of_another_machine_is_the_caller_s_mistake(token: Path) -> None:
    with pytest.raises(ToolError, match="has no such address; choose another --host"):
        open_doorway(HttpOptions("192.0.2.1", 0, token, ("gpu-box",)))


def test_a_token_file_that_cannot_be_used_keeps_the_port_shut(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="cannot read"):
        open_doorway(HttpOptions(port=0, token_file=tmp_path / "nothing"))
