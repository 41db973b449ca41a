"""The way to a device `ssh://...`: ssh, then kopt's code there, then a connection."""

from collections.abc import Callable

from kopt.config.callbacks import ignore
from kopt.config.errors import SetupError
from kopt.config.remote_address import RemoteAddress
from kopt.config.settings import Settings

from .code_bundle import code_bundle
from .link import Link
from .reconnecting import lacking
from .ssh_client import FarPython, install_command, start_ssh, too_old
from .ssh_pipe import SshPipe


class SshRoute:
    """Implements `reconnecting.DeviceRoute`."""

    def __init__(
        self,
        address: RemoteAddress,
        settings: Settings,
        show: Callable[[str], None] = ignore,
    ) -> None:
        """Connect to nothing yet.

        Args:
            address: The device.
            settings: Of this process.
            show: Told of connecting and sending, and the lines of the other machine.
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
        """The other machine, as its user types it."""
        return self._address.machine

    def connect(self) -> Link:
        """Return a new connection on which kopt's code runs.

        Raises:
            SetupError: It cannot be had; the message says why and what to do.
        """
        bundle = code_bundle()
        self._show(f"connecting to {self.machine}")
        pipe = SshPipe(start_ssh(self._address, bundle.digest, self._settings), self._address)
        try:
            python = pipe.greet()
            if python is not None:
                self._refuse_unusable(python)
                if not python.has_code:
                    self._show(f"sending kopt's code to {self.machine}, once a version")
                if pipe.bring(bundle, python):
                    return Link(pipe, self._show)
            raise SetupError(pipe.why_ended())
        except SetupError as error:
            pipe.hang_up()
            raise lacking(self, error) from error
        except BaseException:
            pipe.hang_up()
            raise

    def _refuse_unusable(self, python: FarPython) -> None:
        if not python.is_new_enough:
            raise SetupError(too_old(python))
        if python.lacking:
            command = install_command(self._address, python, self._settings)
            raise SetupError(f"no {', '.join(python.lacking)} there: {command}")
