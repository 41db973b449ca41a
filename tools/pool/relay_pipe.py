"""The process that speaks to Ray, as what carries a connection.

It is a process of its own because of what Ray does to one: see `server/pool/cluster.py`. It is
given no keys, so that nothing that Ray starts has any.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping

from kopt.config.errors import SetupError
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
        process = subprocess.Popen(
            [os.path.abspath(sys.executable), "-P", "-m", _MODULE, json.dumps(options)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            process_group=0,  # Ctrl-C is kopt's, which closes the connection in order
        )
        super().__init__(process, _END_S)

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

    def why_ended(self) -> str:
        """Return the last line that it wrote."""
        lines = self.ending(CLOSE_S)[0].strip().splitlines()
        return f"the process that speaks to Ray ended: {lines[-1] if lines else 'without a word'}"
