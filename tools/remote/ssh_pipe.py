"""ssh as what carries a connection: kopt's code brought to the other machine, then frames.

The first lines from there are those of `bootstrap.py`, past what a login shell prints.
"""

import hashlib
import json
import subprocess
import threading
from contextlib import suppress
from typing import Any, cast

from kopt.config.errors import SetupError
from kopt.config.remote_address import RemoteAddress

from .bootstrap import MARK
from .child_pipe import ChildPipe
from .code_bundle import CodeBundle
from .link import one_line
from .ssh_client import FarPython, why_refused

GREETING_S = 60.0
"""Longest wait for the first code there; a login shell may wait for something that never comes."""
_GREETING_BYTES = 1 << 16
"""The most that a login shell there may print before kopt is heard."""
_END_S = 5.0


class SshPipe(ChildPipe):
    """Implements `link.Carrier` on a process of ssh."""

    def __init__(self, process: subprocess.Popen[bytes], address: RemoteAddress) -> None:
        """Take over an ssh that was just started, with pipes for stdin, stdout and stderr."""
        super().__init__(process, _END_S)
        self._address = address

    def why_ended(self) -> str:
        """Return why ssh got nowhere, in one line that says what to do."""
        return why_refused(self._address, *self.ending(_END_S))

    def greet(self) -> FarPython | None:
        """Return what is there; None if the connection ended before anything was heard.

        Raises:
            SetupError: Something is there that cannot be used.
        """
        late = threading.Timer(GREETING_S, self._give_up)
        late.start()
        try:
            facts = self._read_facts()
        finally:
            late.cancel()
        if facts is None:
            return None
        try:
            return FarPython(
                version=one_line(facts["python"]),
                executable=one_line(facts["executable"]),
                is_new_enough=bool(facts["is_new_enough"]),
                lacking=tuple(map(one_line, facts["lacking"])),
                has_code=bool(facts["has_code"]),
                home=one_line(facts["home"]),
            )
        except (KeyError, TypeError) as error:
            raise SetupError("what answers there is no kopt") from error

    def _give_up(self) -> None:
        self._said += f"nothing of kopt is heard within {GREETING_S:.0f} s".encode()
        self._process.kill()

    def bring(self, bundle: CodeBundle, python: FarPython) -> bool:
        """Send the code if it is not there; False if the connection ended.

        Raises:
            SetupError: The code cannot be kept or imported there.
        """
        archive = b"" if python.has_code else bundle.archive()
        parcel = {"bytes": len(archive), "sha256": hashlib.sha256(archive).hexdigest()}
        with suppress(OSError):  # why it hangs up is read below
            self._to.write(json.dumps(parcel).encode() + b"\n" + archive)
            self._to.flush()
        return self._read_facts() is not None

    def _read_facts(self) -> dict[str, Any] | None:
        """Return the next line that is kopt's, past what a login shell prints."""
        left_bytes = _GREETING_BYTES
        while left_bytes > 0 and (line := self._from.readline(left_bytes)):
            left_bytes -= len(line)
            text = line.decode(errors="replace")
            if not text.startswith(MARK):
                continue
            try:
                said: object = json.loads(text.removeprefix(MARK))
            except ValueError:
                continue
            if not isinstance(said, dict):
                continue
            facts = cast("dict[str, Any]", said)
            if "error" in facts:
                raise SetupError(one_line(facts["error"]))
            return facts
        return None
