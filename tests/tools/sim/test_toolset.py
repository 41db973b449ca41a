"""The parts of the simulator that all programs share: built by one, for all."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from kopt.config.locks import key_lock
from kopt.config.settings import Settings
from kopt.tools.sim import toolset

LIMIT_S = 60.0


def test_of_two_that_need_it_at_once_one_builds_it_and_the_other_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = threading.Semaphore(0)
    built: list[Path] = []

    def lock(path: Path, wait_s: float) -> AbstractContextManager[bool]:
        asked.release()
        return key_lock(path, wait_s)

    def build(_gxx: Path, _sources: object, folder: Path, _settings: Settings) -> None:
        for _ in range(2):  # both are where one of them can only wait
            assert asked.acquire(timeout=LIMIT_S)
        built.append(folder)
        folder.mkdir()

    monkeypatch.setattr(toolset, "key_lock", lock)
    monkeypatch.setattr(toolset, "_build", build)
    homes = [Settings(home=tmp_path, jobs=jobs) for jobs in (1, 2)]  # no answer is remembered
    with ThreadPoolExecutor(2) as threads:
        found = {tools.folder for tools in threads.map(toolset.find_toolset, homes)}
    assert found == set(built)
    assert len(built) == 1
