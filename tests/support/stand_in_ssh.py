"""An `ssh` that runs the command on this machine, as another one whose home folder is elsewhere.

It passes bytes on as a network does: when it dies, both sides see the end. A test may have it die
after so many bytes, or refuse. This file is also the program itself.
"""

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

_PLAN, _LOG, _PIDS, _ANSWERED = "plan.json", "log", "pids", "answered"
_CHUNK_BYTES = 1 << 14
_UNREACHABLE = "ssh: connect to host box port 22: No route to host"


@dataclass
class StandInSsh:
    """The program's folder, and what it does for each connection."""

    folder: Path
    """Comes first on PATH."""
    far_home: Path
    """KOPT_HOME of the other machine."""
    python_path: str = ""
    """PYTHONPATH of the other machine."""

    def install(self, python: str = sys.executable) -> None:
        """Write the program."""
        self.folder.mkdir()
        program = self.folder / "ssh"
        program.write_text(f'#!/bin/sh\nexec {python} -S {__file__} "{self.folder}" "$@"\n')
        program.chmod(0o755)
        self.plan()

    def plan(self, *cuts: int | None, refusal: str = "") -> None:
        """Say what becomes of the next connections.

        Args:
            cuts: Bytes of answers after which each of them dies, 0 for none; None: it does not.
            refusal: What further ones write to stderr instead of connecting; "": they live.
        """
        document = {
            "before": len(self.connections),
            "cuts": cuts,
            "refusal": refusal,
            "far_home": str(self.far_home),
            "python_path": self.python_path,
        }
        (self.folder / _PLAN).write_text(json.dumps(document))

    @property
    def connections(self) -> list[str]:
        """The arguments of each connection so far."""
        log = self.folder / _LOG
        return log.read_text().splitlines() if log.exists() else []

    @property
    def answered_bytes(self) -> int:
        """Bytes of answers over the last connection that ended in order."""
        return int((self.folder / _ANSWERED).read_text())

    @property
    def far_pids(self) -> list[int]:
        """The processes that were started on the other machine."""
        return [int(text) for text in (self.folder / _PIDS).read_text().split()]

    @property
    def codes(self) -> list[Path]:
        """The folders of kopt's code on the other machine."""
        return sorted((self.far_home / "remote" / "code").glob("*"))


def main(folder: Path, words: list[str]) -> int:
    """Connect, or do not, as the plan says."""
    with (folder / _LOG).open("a") as log:
        log.write(" ".join(words[: words.index("--") + 2]) + "\n")
    plan = json.loads((folder / _PLAN).read_text())
    number = len((folder / _LOG).read_text().splitlines()) - plan["before"] - 1
    cut = plan["cuts"][number] if number < len(plan["cuts"]) else None
    if cut == 0 or (plan["refusal"] and number >= len(plan["cuts"])):
        sys.stderr.write((plan["refusal"] or _UNREACHABLE) + "\r\n")  # as ssh ends its lines
        return 255
    command = " ".join(words[words.index("--") + 2 :])
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "KOPT_HOME": plan["far_home"],
        "KOPT_JOBS": "2",
        "PYTHONPATH": plan["python_path"],
    }
    child = subprocess.Popen(
        ["sh", "-c", command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        cwd=folder,
        start_new_session=True,
    )
    with (folder / _PIDS).open("a") as pids:
        pids.write(f"{child.pid}\n")
    threading.Thread(target=_pass_in, args=(child,), daemon=True).start()
    (folder / _ANSWERED).write_text(str(_pass_out(child, cut)))
    return child.wait()


def _pass_in(child: "subprocess.Popen[bytes]") -> None:
    assert child.stdin is not None
    try:
        while chunk := os.read(0, _CHUNK_BYTES):
            child.stdin.write(chunk)
            child.stdin.flush()
        child.stdin.close()
    except BrokenPipeError:
        return


def _pass_out(child: "subprocess.Popen[bytes]", cut: int | None) -> int:
    """Return the bytes that were passed on."""
    assert child.stdout is not None
    passed = 0
    while chunk := os.read(child.stdout.fileno(), _CHUNK_BYTES):
        if cut is not None and passed + len(chunk) > cut:
            os.write(1, chunk[: cut - passed])
            sys.stderr.write("Connection to box closed by remote host.\n")
            sys.stderr.flush()
            os._exit(255)
        os.write(1, chunk)
        passed += len(chunk)
    return passed


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
