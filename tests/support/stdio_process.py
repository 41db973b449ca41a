"""`kopt serve` as a client starts it: a process whose pipes carry one JSON message a line."""

import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Self

from kopt.server.jobs.process_tree import ProcessKey, living, session_tree

LIMIT_S = 60.0
"""For an answer on a busy machine."""
JOB_LIMIT_S = 240.0
"""For a job, whose first one builds the simulator."""
END_LIMIT_S = 20.0
"""Ten times what is promised."""


class StdioProcess:
    """The process; leaving the block kills it."""

    def __init__(self, home: Path, *options: str, **variables: str) -> None:
        """Start it with its state in `home`, which is its current folder too."""
        home.mkdir(exist_ok=True)
        self.home = home
        self.started_at = time.monotonic()
        with (home / "stderr").open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "kopt", "serve", *options],
                cwd=home,
                env={**os.environ, "KOPT_HOME": str(home), **variables},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        self._numbers = itertools.count(1)
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._is_deaf = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.notifications: list[dict[str, Any]] = []

    @property
    def stderr(self) -> str:
        """What it has said so far."""
        return (self.home / "stderr").read_text("utf-8")

    def greet(self) -> dict[str, Any]:
        """Do the handshake of 2025-11-25 and return what the server says of itself."""
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        told = self.ask("initialize", params)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return told

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its structured reply, which must be no error."""
        reply = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not reply.get("isError"), reply
        facts: dict[str, Any] = reply["structuredContent"]
        return facts

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its result."""
        number = self.begin(method, params)
        while True:
            message = self.receive()
            if message.get("id") == number:
                result: dict[str, Any] = message["result"]
                return result
            self.notifications.append(message)

    def begin(self, method: str, params: dict[str, Any]) -> int:
        """Send a request and return its id."""
        number = next(self._numbers)
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number

    def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        self.send_line(json.dumps(message).encode())

    def send_line(self, line: bytes) -> None:
        """Send one line, whatever it is."""
        stdin = self.process.stdin
        assert stdin is not None  # PIPE
        stdin.write(line + b"\n")
        stdin.flush()

    def receive(self) -> dict[str, Any]:
        """Return the next message; a line that is none fails."""
        line = self._lines.get(timeout=LIMIT_S)
        assert line, f"it ended: {self.stderr}"
        message: dict[str, Any] = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        return message

    def wait_until_told(self, job_id: str, words: str) -> None:
        """Wait for a job and return, with the call still open, once its progress says `words`."""
        deadline = time.monotonic() + JOB_LIMIT_S
        while time.monotonic() < deadline:
            self.begin("tools/call", _job_wait(job_id))
            while (message := self.receive()).get("method") == "notifications/progress":
                if words in message["params"].get("message", ""):
                    return
            assert message["result"]["structuredContent"]["status"] in ("queued", "running"), (
                message
            )
        raise AssertionError(f"it never said {words!r}")

    def wait_until_over(self, job_id: str) -> dict[str, Any]:
        """Return the reply of a job; what its progress says meanwhile is in `notifications`."""
        deadline = time.monotonic() + JOB_LIMIT_S
        while True:
            reply = self.ask("tools/call", _job_wait(job_id))
            facts: dict[str, Any] = reply["structuredContent"]
            if facts["status"] not in ("queued", "running"):
                return facts
            assert time.monotonic() < deadline, facts

    def tree(self) -> frozenset[ProcessKey]:
        """Return the server and everything below it."""
        return session_tree(self.process.pid)

    def wait_for_tree(self, processes: int) -> None:
        """Return once the server and what is below it are so many."""
        deadline = time.monotonic() + LIMIT_S
        while len(self.tree()) < processes:
            assert time.monotonic() < deadline, f"only {self.tree()}"
            time.sleep(0.01)  # there is no event for the start of a process that is not ours

    def end(self, number: signal.Signals | None) -> int:
        """Send a signal, or close stdin for None, and return the exit code."""
        if number is None:
            assert self.process.stdin is not None  # PIPE
            self.process.stdin.close()
        else:
            self.process.send_signal(number)
        return self.process.wait(END_LIMIT_S)

    def close_stdout(self) -> None:
        """Close the reading end of its stdout, after the next line."""
        self._is_deaf.set()

    def _read(self) -> None:
        stdout = self.process.stdout
        assert stdout is not None  # PIPE
        while line := stdout.readline():
            self._lines.put(line)
            if self._is_deaf.is_set():
                stdout.close()
                return
        self._lines.put(b"")

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave no process and no pipe."""
        self.process.kill()
        self.process.wait()
        self._reader.join(END_LIMIT_S)
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None  # PIPE
            try:
                pipe.close()
            except BrokenPipeError:  # what was not yet sent
                continue


def _job_wait(job_id: str) -> dict[str, Any]:
    arguments = {"job_id": job_id}
    return {"name": "job_wait", "arguments": arguments, "_meta": {"progressToken": "job"}}


def wait_until_gone(processes: frozenset[ProcessKey]) -> None:
    """Return once none of `processes` runs any more."""
    deadline = time.monotonic() + END_LIMIT_S
    while left := living(processes):
        assert time.monotonic() < deadline, f"still there: {left}"
        time.sleep(0.01)  # there is no event for the end of a process that is not ours
