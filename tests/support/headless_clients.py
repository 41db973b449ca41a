"""`claude` and `codex` on PATH, played by `headless_stand_in.py`."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

TESTS = Path(__file__).parents[1]
_SCRIPT = """\
#!{python}
import sys
sys.path.insert(0, {tests!r})
from support.headless_stand_in import main
sys.exit(main({client!r}))
"""


@dataclass(frozen=True)
class HeadlessClients:
    """The stand-ins, and what they were called with."""

    log: Path

    @property
    def calls(self) -> list[dict[str, Any]]:
        """Every call of either, in order."""
        if not self.log.exists():
            return []
        return [json.loads(line) for line in self.log.read_text("utf-8").splitlines()]

    @property
    def turns(self) -> list[dict[str, Any]]:
        """The calls that asked the model."""
        return [call for call in self.calls if call["words"][0] in ("-p", "exec")]


def put_on_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> HeadlessClients:
    """Return the stand-ins, which this process and its children find first from now on."""
    programs, log = folder / "programs", folder / "calls.jsonl"
    programs.mkdir(parents=True)
    for client in ("claude", "codex"):
        program = programs / client
        text = _SCRIPT.format(python=sys.executable, tests=str(TESTS), client=client)
        program.write_text(text, "utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("STAND_IN_LOG", str(log))
    monkeypatch.delenv("STAND_IN", raising=False)
    return HeadlessClients(log)
