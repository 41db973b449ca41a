"""The way to a device `https://...`: TCP, TLS, a request to upgrade, then frames.

What answers there is `kopt gpu serve` of the same version: no code is sent.
"""

import socket
import ssl
import sys
from collections.abc import Callable

from kopt.config.callbacks import ignore
from kopt.config.errors import SetupError
from kopt.config.private_file import lines_of, private_text
from kopt.config.remote_address import WebAddress
from kopt.config.settings import Settings

from .byte_streams import ByteSocket
from .code_bundle import code_bundle
from .link import Link
from .reconnecting import lacking
from .socket_carrier import SocketCarrier
from .tls_socket import TlsSocket
from .web_upgrade import CODE_HEADER, upgraded

_CONNECT_S = 15.0
_UNHEARD_S = 90.0
"""Longest time that what was sent, a word every 15 s, is not received; else the line is lost."""
_SILENCE_S = 3600.0
"""Longest wait for an answer of a connection that is not broken: long kernels are answered late."""
_HOW = "put the line there that the server's --token-file has for you, and chmod 600"


class WebRoute:
    """Implements `reconnecting.DeviceRoute`."""

    def __init__(
        self, address: WebAddress, settings: Settings, show: Callable[[str], None] = ignore
    ) -> None:
        """Connect to nothing yet.

        Args:
            address: The device.
            settings: Of this process: where its token is.
            show: Told of connecting, and the lines of the other machine.
        """
        self._address = address
        self._settings = settings
        self._show = show

    @property
    def name(self) -> str:
        """The whole address."""
        return str(self._address)

    @property
    def device(self) -> str:
        """The device's name there."""
        return self._address.device

    @property
    def machine(self) -> str:
        """Host and port."""
        return self._address.machine

    def connect(self) -> Link:
        """Return a new connection on which calls are answered.

        Raises:
            SetupError: It cannot be had; the message says why and what to do.
            ToolError: The file of the token cannot be used.
        """
        headers = {"host": self.machine, CODE_HEADER: code_bundle().digest}
        token = self._token()
        if token is not None:
            headers["authorization"] = f"Bearer {token}"
        self._show(f"connecting to {self.machine}")
        try:
            connection = self._connected()
            try:
                upgraded(connection, f"/{self.device}", headers)
                connection.settimeout(_SILENCE_S)
                ending = f"{self.machine} has hung up; what it says of it is on its stderr"
                return Link(SocketCarrier(connection, ending), self._show)
            except BaseException:
                connection.close()
                raise
        except SetupError as error:
            raise lacking(self, error) from error
        except OSError as error:
            raise lacking(self, SetupError(_refused(error))) from error

    def _connected(self) -> ByteSocket:
        host, port = self._address.host.strip("[]"), self._address.port
        plain = socket.create_connection((host, port), _CONNECT_S)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if sys.platform == "linux":  # without it a quarter of an hour
                limit_ms = int(1e3 * _UNHEARD_S)
                plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, limit_ms)
            if not self._address.is_encrypted:
                return plain
            return TlsSocket(plain, ssl.create_default_context(), host)
        except BaseException:
            plain.close()
            raise

    def _token(self) -> str | None:
        """Return the first token of the file; None if no file is named."""
        path = self._settings.device_token_file
        if path is None:
            return None
        found = lines_of(private_text(path, _HOW))
        if not found:
            raise SetupError(f"{path} (KOPT_DEVICE_TOKEN_FILE) holds no token; {_HOW}")
        return found[0][1]


def _refused(error: OSError) -> str:
    """Return what a connection failed on, and what to do."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted here: {error.verify_message}; SSL_CERT_FILE names"
            " another file of authorities"
        )
    if isinstance(error, ssl.SSLError):
        return f"what answers there speaks no TLS ({error.reason}): is kopt gpu serve behind it?"
    said = error.strerror or str(error) or type(error).__name__
    return f"nothing answers there ({said}): does kopt gpu serve run, and is the port right?"
