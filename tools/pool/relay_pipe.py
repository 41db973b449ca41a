"""The process that speaks to Ray, as what carries a connection.

It is a process of its own because of what Ray does to one: see `server/pool/cluster.py`. It is
given no keys, so that nothing that Ray starts has any. Its stdin and stdout are one socket, which
carries arrays twice as fast as pipes do.
"""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress

from kopt.config.errors import SetupError
from kopt.tools.remote.byte_streams import streams_of
from kopt.tools.remote.child_pipe import ChildPipe
from kopt.tools.remote.link import CLOSE_S, one_line

_MODULE = "kopt.server.pool.relay"
_END_S = 15.0
"""Longest wait for it to give evaluators back; a cluster that it started ends with it."""


class RelayPipe(ChildPipe):
    """Implements `remote.link.Carrier`."""

    def __init__(self, options: Mapping[str, object], environment: Mapping[str, str]) -> None:
        """Start the process; `ready` says whether it serves.

        Args:
            options: As `server/pool/relay.py` takes them.
            environment: Of the process.
        """
        self._socket, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [os.path.abspath(sys.executable), "-P", "-m", _MODULE, json.dumps(options)],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=subprocess.PIPE,
                env=dict(environment),
                process_group=0,  # Ctrl-C is kopt's, which closes the connection in order
            )
        super().__init__(process, _END_S, streams_of(self._socket))

    def ready(self) -> None:
        """Wait until it has joined the cluster.

        Raises:
            SetupError: It cannot; the message says why and what to do.
        """
        line = self.source.readline()
        if not line:
            raise SetupError(self.why_ended())
        said: dict[str, str] = json.loads(line)
        if "error" in said:
            raise SetupError(one_line(said["error"]))

    def end(self) -> None:
        """Say goodbye, then wait for the process to end, or end it."""
        with suppress(OSError):  # it has ended
            self._socket.shutdown(socket.SHUT_WR)
        super().end()
        self._socket.close()

    def why_ended(self) -> str:
        """Return the last line that it wrote."""
        lines = self.ending(CLOSE_S)[0].strip().splitlines()
        return f"the process that speaks to Ray ended: {lines[-1] if lines else 'without a word'}"
