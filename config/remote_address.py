"""The name of a device of another machine: `ssh://[user@]host[:port][/cuda:N]`, or `/sim`.

`https://host[:port][/cuda:N]` is a GPU that `kopt gpu serve` serves there.
"""

import re
from dataclasses import dataclass

from .errors import ToolError

SCHEME = "ssh://"
_WEB_SCHEMES = ("https://", "http://")
# No part may begin with a dash: ssh would take it for an option.
_FORM = re.compile(
    r"ssh://(?:(?P<user>[A-Za-z0-9_.][A-Za-z0-9_.+-]{0,63})@)?"
    r"(?P<host>[A-Za-z0-9_][A-Za-z0-9_.-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])"
    r"(?::(?P<port>\d{1,5}))?(?:/(?P<device>sim|cuda(?::\d{1,4})?)?)?"
)
_WEB_FORM = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9][A-Za-z0-9_.-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])"
    r"(?::(?P<port>\d{1,5}))?(?:/(?P<device>cuda(?::\d{1,4})?)?)?"
)
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class RemoteAddress:
    """A device, and how ssh gets to its machine."""

    host: str
    """The machine as ssh knows it: a name, an alias of ~/.ssh/config, or a number."""
    device: str
    """`cuda:<index>` or `sim`, as that machine calls it."""
    user: str | None = None
    """None: as ssh decides."""
    port: int | None = None
    """None: as ssh decides."""

    @property
    def machine(self) -> str:
        """The address without the device, for messages: `user@host:port`."""
        user = "" if self.user is None else f"{self.user}@"
        port = "" if self.port is None else f":{self.port}"
        return f"{user}{self.host}{port}"

    @property
    def ssh_words(self) -> tuple[str, ...]:
        """What ssh is given to get there."""
        user = () if self.user is None else ("-l", self.user)
        port = () if self.port is None else ("-p", str(self.port))
        return (*port, *user, "--", self.host.strip("[]"))

    @property
    def by_hand(self) -> str:
        """The command by which a person gets there."""
        user = "" if self.user is None else f"{self.user}@"
        port = "" if self.port is None else f"-p {self.port} "
        return f"ssh {port}{user}{self.host.strip('[]')}"

    def __str__(self) -> str:
        """Return the whole name, as `--device` takes it."""
        return f"{SCHEME}{self.machine}/{self.device}"


@dataclass(frozen=True)
class WebAddress:
    """A GPU behind a port of another machine."""

    host: str
    port: int
    device: str
    """`cuda:<index>`, as that machine calls it."""
    is_encrypted: bool = True
    """Only a port of this machine, such as the end of a tunnel, may be reached without."""

    @property
    def machine(self) -> str:
        """Host and port, for messages."""
        return f"{self.host}:{self.port}"

    def __str__(self) -> str:
        """Return the whole name, as `--device` takes it."""
        scheme, usual = ("https", 443) if self.is_encrypted else ("http", 80)
        port = "" if self.port == usual else f":{self.port}"
        return f"{scheme}://{self.host}{port}/{self.device}"


def is_remote(name: str) -> bool:
    """Return whether a device's name says that it is on another machine."""
    return name.startswith((SCHEME, *_WEB_SCHEMES))


def remote_address(name: str) -> RemoteAddress | WebAddress:
    """Return the device that `name` means; without one it is the first GPU.

    Raises:
        ToolError: It has another form.
    """
    return _web_address(name) if name.startswith(_WEB_SCHEMES) else _ssh_address(name)


def _ssh_address(name: str) -> RemoteAddress:
    match = _FORM.fullmatch(name)
    if match is None or not 0 < int(match["port"] or 22) < 1 << 16:
        raise ToolError(
            f"{name!r} names no device of another machine; write"
            " ssh://[user@]host[:port]/cuda:N, or .../sim"
        )
    port = None if match["port"] is None else int(match["port"])
    return RemoteAddress(match["host"], _device(match), match["user"], port)


def _web_address(name: str) -> WebAddress:
    match = _WEB_FORM.fullmatch(name)
    usual = 443 if name.startswith("https:") else 80
    if match is None or not 0 < int(match["port"] or usual) < 1 << 16:
        raise ToolError(
            f"{name!r} names no GPU behind a port; write https://host[:port]/cuda:N (its simulator"
            " is reached over ssh:// alone)"
        )
    host = match["host"].lower()
    if usual == 80 and host not in _LOOPBACK:
        raise ToolError(
            f"{name!r} would send kernels and a token as plain text: write https://, or http:// to"
            " the end of a tunnel on 127.0.0.1"
        )
    return WebAddress(host, int(match["port"] or usual), _device(match), usual == 443)


def _device(match: re.Match[str]) -> str:
    device = match["device"] or "cuda:0"
    return "cuda:0" if device == "cuda" else device
