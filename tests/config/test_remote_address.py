"""Names of devices of other machines: read, told again, and refused with what is right."""

import pytest

from kopt.config.errors import ToolError
from kopt.config.remote_address import RemoteAddress, remote_address


@pytest.mark.parametrize(
    ("text", "name", "words"),
    [
        ("ssh://box", "ssh://box/cuda:0", ("--", "box")),
        ("ssh://box/cuda", "ssh://box/cuda:0", ("--", "box")),
        ("ssh://box/", "ssh://box/cuda:0", ("--", "box")),
        (
            "ssh://ada@box:2222/sim",
            "ssh://ada@box:2222/sim",
            ("-p", "2222", "-l", "ada", "--", "box"),
        ),
        ("ssh://10.0.0.7/cuda:3", "ssh://10.0.0.7/cuda:3", ("--", "10.0.0.7")),
        ("ssh://[fe80::1]:22/sim", "ssh://[fe80::1]:22/sim", ("-p", "22", "--", "fe80::1")),
    ],
)
def test_an_address_has_one_name_and_the_words_for_ssh(
    text: str, name: str, words: tuple[str, ...]
) -> None:
    address = remote_address(text)
    assert isinstance(address, RemoteAddress)
    assert (str(address), address.ssh_words) == (name, words)
    assert remote_address(name) == address


@pytest.mark.parametrize(
    "text",
    [
        "ssh://",
        "ssh:///cuda:0",
        "ssh://-oProxyCommand=id/sim",
        "ssh://-l@box/sim",
        "ssh://box:0/sim",
        "ssh://box:99999/sim",
        "ssh://box/auto",
        "ssh://box/cuda:x",
        "ssh://bo x/sim",
        "ssh://box;id/sim",
    ],
)
def test_what_names_no_device_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(ToolError, match=r"write ssh://\[user@\]host\[:port\]/cuda:N"):
        remote_address(text)


@pytest.mark.parametrize(
    ("text", "name", "machine"),
    [
        ("https://box", "https://box/cuda:0", "box:443"),
        ("https://Box:8766/cuda:1", "https://box:8766/cuda:1", "box:8766"),
        ("https://[fe80::1]:8766/cuda", "https://[fe80::1]:8766/cuda:0", "[fe80::1]:8766"),
        ("http://127.0.0.1:8766", "http://127.0.0.1:8766/cuda:0", "127.0.0.1:8766"),
    ],
)
def test_a_gpu_behind_a_port_has_one_name(text: str, name: str, machine: str) -> None:
    address = remote_address(text)
    assert (str(address), address.machine) == (name, machine)
    assert remote_address(name) == address


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("https://", "write https://host"),
        ("https://box/sim", "its simulator"),
        ("https://ada@box/cuda:0", "write https://host"),
        ("https://box:0/cuda:0", "write https://host"),
        ("https://box/cuda:0?token=x", "write https://host"),
        ("http://box:8766/cuda:0", "as plain text"),
    ],
)
def test_what_names_no_gpu_behind_a_port_is_refused(text: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        remote_address(text)


def test_a_person_gets_there_by_the_same_way() -> None:
    assert RemoteAddress("box", "sim", "ada", 2222).by_hand == "ssh -p 2222 ada@box"
