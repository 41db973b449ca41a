"""What a worker sees of the machine: enough to import and build, nothing that gives answers."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings, settings_from_environment
from kopt.tools.gpu.messages import Answer, Failed, StartAnswer, StartRequest
from kopt.tools.gpu.worker_policy import WorkerSpec, worker_policy
from kopt.tools.gpu.worker_process import WorkerEnd, WorkerProcess
from support.scripted_engine import ENGINE

HANG_LIMIT_S = 30.0
SECRETS = ("ANTHROPIC_API_KEY", "NVIDIA_API_KEY", "CUDA_MADE_UP_TOKEN", "HF_TOKEN")


@pytest.fixture
def library_settings(settings: Settings) -> Settings:
    """Settings with an environment that holds secrets beside what a library needs."""
    environment = {
        **dict.fromkeys(SECRETS, "made-up-secret"),
        "CUDA_VISIBLE_DEVICES": "GPU-1",
        "PATH": os.environ["PATH"],
    }
    given = settings_from_environment(environment).library_environment
    return replace(settings, library_environment=given)


@pytest.fixture
def worker(library_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerProcess]:
    for name in SECRETS:
        monkeypatch.setenv(name, "made-up-secret")
    worker = WorkerProcess(WorkerSpec(ENGINE), library_settings)
    worker.start(HANG_LIMIT_S)
    yield worker
    worker.end()


def act(worker: WorkerProcess, text: str) -> Answer | WorkerEnd:
    """Let the scripted engine do something."""
    return worker.ask(StartRequest(device_uuid=text), HANG_LIMIT_S)


def test_environment_has_what_libraries_need_and_no_secret(worker: WorkerProcess) -> None:
    act(worker, "environment found")
    text = (worker.folder / "found").read_text("utf-8")
    found = json.loads(text)
    assert found["CUDA_VISIBLE_DEVICES"] == "GPU-1"
    assert found["PATH"].split(os.pathsep)[0] == os.path.dirname(sys.executable)
    assert "made-up-secret" not in text


def test_libraries_keep_what_they_build_below_home(
    worker: WorkerProcess, settings: Settings
) -> None:
    act(worker, "environment found")
    found = json.loads((worker.folder / "found").read_text("utf-8"))
    caches = str(settings.library_cache)
    for name in (
        "HOME",
        "FLASHINFER_WORKSPACE_BASE",
        "CUTE_DSL_CACHE_DIR",
        "TORCHINDUCTOR_CACHE_DIR",
    ):
        assert found[name].startswith(caches)
    assert isinstance(act(worker, f"write {caches}/built"), StartAnswer)


def test_compilers_run_in_a_worker(worker: WorkerProcess) -> None:
    assert isinstance(act(worker, "run g++"), StartAnswer)


def test_cubins_are_readable_and_oracle_outputs_are_not(
    worker: WorkerProcess, settings: Settings
) -> None:
    if worker.level == "plain":
        pytest.skip("plain restricts no files")
    settings.oracle_cache.mkdir(parents=True, exist_ok=True)
    cubin, expected = settings.cubin_cache / "made-up", settings.oracle_cache / "made-up"
    for path in (cubin, expected):
        path.write_bytes(b"content")
    assert isinstance(act(worker, f"read {cubin}"), StartAnswer)
    assert isinstance(act(worker, f"read {expected}"), Failed)
    assert isinstance(act(worker, f"write {cubin}"), Failed)


def test_processor_time_and_memory_are_not_bounded_and_life_is_long(
    settings: Settings, tmp_path: Path
) -> None:
    policy = worker_policy(WorkerSpec(ENGINE), tmp_path, settings)
    assert (policy.cpu_s, policy.memory_bytes) == (None, None)
    assert policy.wall_s > 7 * 24 * 3600


def test_current_folder_is_not_handed_on_although_python_imports_from_it(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    policy = worker_policy(WorkerSpec(ENGINE), tmp_path / "work", settings)
    assert tmp_path not in policy.readable
    assert str(tmp_path) not in policy.environment["PYTHONPATH"].split(os.pathsep)


def test_folders_that_library_variables_name_are_readable_but_no_home(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, driver = tmp_path / "home", tmp_path / "driver"
    for folder in (home, driver):
        folder.mkdir()
    monkeypatch.setenv("HOME", str(home))
    given = (("LD_LIBRARY_PATH", f"{driver}:{home}:{tmp_path}:relative:"),)
    policy = worker_policy(
        WorkerSpec(ENGINE), tmp_path / "work", replace(settings, library_environment=given)
    )
    assert driver in policy.readable
    assert home not in policy.readable
    assert tmp_path not in policy.readable


@pytest.mark.parametrize(
    ("gxx", "gcc"),
    [("g++-13", "gcc-13"), ("clang++", "clang"), ("nvc++", None), ("x86_64-linux-gnu-g++", None)],
)
def test_libraries_build_c_with_the_c_compiler_beside_that_of_cxx(
    settings: Settings, tmp_path: Path, gxx: str, gcc: str | None
) -> None:
    for name in filter(None, (gxx, gcc)):
        program = tmp_path / name
        program.write_text("#!/bin/sh\n", encoding="utf-8")
        program.chmod(0o755)

    environment = worker_policy(
        WorkerSpec(ENGINE), tmp_path, replace(settings, gxx=str(tmp_path / gxx))
    ).environment

    assert environment["CXX"] == str(tmp_path / gxx)
    assert environment.get("CC") != environment["CXX"]
    assert gcc is None or environment["CC"] == str(tmp_path / gcc)
