"""The parts of the simulator that all programs share: built by one, for all."""

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from kopt.config.files import TEMPORARY_PREFIX, remove_folder, staging_folder
from kopt.config.locks import key_lock
from kopt.config.sealed_folder import publish_sealed
from kopt.config.settings import Settings
from kopt.tools.sim import toolset

LIMIT_S = 60.0
PARTS = ("runtime.o", "include/kopt_sim/device.h.gch", "include/kopt_sim/device.h")


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
        with staging_folder(folder) as work:
            publish_sealed(work, folder)

    monkeypatch.setattr(toolset, "key_lock", lock)
    monkeypatch.setattr(toolset, "_build", build)
    homes = [Settings(home=tmp_path, jobs=jobs) for jobs in (1, 2)]  # no answer is remembered
    with ThreadPoolExecutor(2) as threads:
        found = {tools.folder for tools in threads.map(toolset.find_toolset, homes)}
    assert found == set(built)
    assert len(built) == 1


def test_a_damaged_part_is_built_again_and_never_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(_gxx: Path, _sources: object, folder: Path, _settings: Settings) -> None:
        with staging_folder(folder) as work:
            (work / "include" / "kopt_sim").mkdir(parents=True)
            for part in PARTS:
                (work / part).write_text("sound")
            publish_sealed(work, folder)

    monkeypatch.setattr(toolset, "_build", build)
    for jobs, part in enumerate(PARTS, start=1):  # no answer is remembered
        folder = toolset.find_toolset(Settings(home=tmp_path / part, jobs=jobs)).folder
        (folder / part).write_text("soond")
        again = toolset.find_toolset(Settings(home=tmp_path / part, jobs=jobs + 10)).folder
        assert (again / part).read_text() == "sound"


def _publish_nothing(_gxx: Path, _sources: object, folder: Path, _settings: Settings) -> None:
    with staging_folder(folder) as work:
        publish_sealed(work, folder)


def test_first_build_says_what_it_is_and_a_later_one_how_long_it_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolset, "_build", _publish_nothing)
    home, told = Settings(home=tmp_path), list[str]()
    folder = toolset.find_toolset(home, told.append).folder
    toolset.find_toolset(home, told.append)  # it is there
    assert told == ["building the simulator, needed once"]
    kept = home.durations / "simulator.json"
    assert list(json.loads(kept.read_text("utf-8"))) == ["1"]
    kept.write_text('{"1": 9.0}', "utf-8")
    remove_folder(folder)
    toolset.find_toolset(home, told.append)
    assert told[1:] == ["building the simulator, needed once, about 9 s left as last time"]


def test_what_a_killed_build_left_is_removed_by_the_next_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toolset, "_build", _publish_nothing)
    left = Settings(home=tmp_path).sim_cache / f"{TEMPORARY_PREFIX}4194304999-toolset"
    left.mkdir(parents=True)  # of a process that is dead
    (left / "runtime.o").write_text("half")
    os.utime(left, (0, 0))
    assert toolset.find_toolset(Settings(home=tmp_path)).folder.is_dir()
    assert not left.exists()
