"""The way to the resident evaluator of a GPU of this machine: its socket, started if need be."""

import os
import sys
from collections.abc import Callable

from kopt.config.errors import SetupError
from kopt.tools.remote.link import Link
from kopt.tools.remote.socket_carrier import SocketCarrier

from .greeting import Wish, greet, peer_of
from .place import ResidentPlace

_TRIES = 5
"""An evaluator may be about to end when it is connected to; the next one is another."""


class ResidentRoute:
    """Implements `remote.reconnecting.DeviceRoute`."""

    def __init__(
        self,
        place: ResidentPlace,
        start: Callable[[], None],
        show: Callable[[str], None],
    ) -> None:
        """Connect to nothing yet.

        Args:
            place: Where the evaluator is.
            start: Starts it where none is, or waits for one that others start; raises SetupError.
            show: Told the evaluator's lines of progress.
        """
        self._place = place
        self._start = start
        self._show = show

    @property
    def name(self) -> str:
        """`cuda:<index>`: results are as without an evaluator."""
        return self._place.device

    @property
    def device(self) -> str:
        """The same there: it sees the GPUs that this process sees."""
        return self._place.device

    @property
    def machine(self) -> str:
        """The evaluator, in words."""
        return f"the resident evaluator of {self.name}"

    def connect(self) -> Link:
        """Return a new connection to an evaluator that serves it.

        Raises:
            SetupError: None can be started, or the one that is there does not answer.
        """
        for _ in range(_TRIES):
            link = self._connected()
            if link is not None:
                return link
            self._start()
        raise SetupError(
            f"{self.machine} ends as soon as it has started; {self._place.log} may say why"
        )

    def _connected(self) -> Link | None:
        connection = self._place.connected()
        if connection is None:
            return None
        try:
            greeting = greet(connection, Wish(kind="serve", caller=own_words()))
        except TimeoutError as error:
            pid = peer_of(connection).pid
            connection.close()
            raise SetupError(
                f"{self.machine}, process {pid}, does not answer: kill -CONT {pid} if somebody has"
                f" stopped it, else kill -9 {pid}; {self._place.log} may say why"
            ) from error
        if greeting is None:
            connection.close()
            return None
        connection.settimeout(None)
        ending = f"the resident evaluator has ended; {self._place.log} may say why"
        return Link(SocketCarrier(connection, ending), self._show, remembered_bytes=0)


def own_words() -> str:
    """Return this process in words for others who wait: its number and its sub-command."""
    command = " ".join([os.path.basename(sys.argv[0]), *sys.argv[1:2]])
    return f"process {os.getpid()} ({' '.join(command.split())})"
