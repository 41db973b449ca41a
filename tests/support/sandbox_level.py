"""One level of the sandbox ladder, ready to run hostile Python programs."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.tools.sandbox.ladder import available_level, run_sandboxed
from kopt.tools.sandbox.policy import SandboxedRun, SandboxPolicy

LEVELS = ("bubblewrap", "landlock", "plain")
PYTHON = Path(sys.executable).resolve()
HANG_LIMIT_S = 20.0


@dataclass(frozen=True)
class Level:
    """A level with the folder that programs may write."""

    settings: Settings
    work: Path

    @property
    def name(self) -> str:
        """Name of the level."""
        return self.settings.sandbox

    @property
    def policy(self) -> SandboxPolicy:
        """The interpreter readable, the folder writable, generous limits."""
        return SandboxPolicy(
            readable=(Path(sys.base_prefix),), writable=(self.work,), wall_s=HANG_LIMIT_S
        )

    def run(self, code: str, policy: SandboxPolicy | None = None) -> SandboxedRun:
        """Run Python code under `policy` and return how it ended."""
        return run_sandboxed([PYTHON, "-ISc", code], policy or self.policy, self.settings)


def open_level(name: str, settings: Settings, folder: Path) -> Level:
    """Return the level called `name`; the test is skipped where the machine does not have it."""
    forced = replace(settings, sandbox=name)
    try:
        available_level(forced)
    except SetupError as error:
        if name == "plain":
            raise
        pytest.skip(str(error))  # a machine may have neither bubblewrap nor Landlock
    work = folder / "work"
    work.mkdir()
    return Level(forced, work)
