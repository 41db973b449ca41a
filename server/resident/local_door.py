"""The socket by which processes of this user on this machine come to a resident evaluator."""

import os
import socket
from contextlib import suppress

from kopt.config.errors import SetupError
from kopt.config.locks import try_lock
from kopt.config.plain_text import plain
from kopt.tools.resident.greeting import Greeting, Wish, peer_of, receive_line, send_line
from kopt.tools.resident.place import ResidentPlace

from .evaluator import Guest, ResidentEvaluator


class LocalDoor:
    """Implements `evaluator.Door` on a socket in KOPT_HOME."""

    def __init__(self, place: ResidentPlace) -> None:
        """Listen in a place, alone until `retire`, or until this process ends.

        Raises:
            SetupError: Another evaluator has the place, the file system has no sockets, or it
                cannot be written.
        """
        lock = try_lock(place.life)
        if lock is None:
            raise SetupError(
                f"another resident evaluator of {place.device} is there: kopt gpu stop"
            )
        self._lock = lock
        self._path = place.socket_path
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._path.unlink(missing_ok=True)  # of one that was killed
            with place.address() as path:
                self.listener.bind(path)
            self._path.chmod(0o600)
            self.listener.listen(64)
        except OSError as error:
            self.listener.close()
            lock.release()
            raise SetupError(f"cannot listen at {self._path}: {error.strerror}") from error

    def meet(self, connection: socket.socket, evaluator: ResidentEvaluator) -> Guest | None:
        """Do what one connection wants, or return that it wants to be served.

        Raises:
            OSError: It broke.
            ValidationError: It wants nothing that there is.
        """
        if peer_of(connection).user != os.geteuid():
            return None
        wish = Wish.model_validate_json(receive_line(connection))
        if wish.kind == "serve":
            greeting = Greeting(pid=os.getpid())
            words = plain(wish.caller, but="")[:200]
            return Guest(
                connection,
                words,
                lambda: send_line(connection, greeting),
                refuse=lambda: None,
                remembered_bytes=0,
            )
        if wish.kind != "status":
            evaluator.retire()
        try:
            send_line(connection, Greeting(pid=os.getpid(), status=evaluator.status()))
        finally:  # and not before: the process may end at once
            if wish.kind == "end":
                evaluator.end()
            elif wish.kind == "stop":
                evaluator.stop()
        return None

    def retire(self) -> None:
        """Leave the place to another evaluator, and listen under a name for `kopt gpu` alone."""
        retired = self._path.with_suffix(f".{os.getpid()}{self._path.suffix}")
        with suppress(FileNotFoundError):  # somebody has removed KOPT_HOME
            self._path.rename(retired)
        self._path = retired
        self._lock.release()

    def close(self) -> None:
        """Listen no longer, after `retire`."""
        self._path.unlink(missing_ok=True)
        self.listener.close()
