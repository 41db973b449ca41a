"""A resident evaluator of this machine whose workers, in their sandbox, play a GPU."""

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from kopt.config.settings import Settings, settings_from_environment
from kopt.server.jobs.process_tree import session_tree
from kopt.tools.remote import reconnecting
from kopt.tools.resident import open_resident, starting
from kopt.tools.resident.control import ask_evaluators
from support import resident_twin
from support.shared_caches import share_caches
from support.stdio_process import wait_until_gone


def _found(*_: object) -> None:
    """Find what a test's evaluator does without."""


@pytest.fixture
def resident_settings(
    tmp_path: Path, shared_caches: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[Settings]:
    """Return the settings of callers; the evaluators that they start end with the test."""
    # Longer than the address of a socket may be.
    home = share_caches(tmp_path / ("h" * 100), shared_caches)
    monkeypatch.setenv("KOPT_HOME", str(home))
    monkeypatch.setenv("KOPT_GPU_IDLE_S", "60")
    tests = str(Path(__file__).parents[2])
    monkeypatch.setenv("PYTHONPATH", ":".join(filter(None, (tests, *sys.path))))
    monkeypatch.setattr(starting, "PROGRAM", (resident_twin.__file__, "workers"))
    for name in ("find_gpu", "require_worker_modules"):
        monkeypatch.setattr(open_resident, name, _found)
    monkeypatch.setattr(reconnecting, "PAUSES_S", (0.0, 0.0))
    settings = settings_from_environment()
    yield settings
    for one in ask_evaluators(settings, "end").evaluators:
        wait_until_gone(session_tree(one.pid))
