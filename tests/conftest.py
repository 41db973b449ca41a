"""What all tests share: caches, results of the samples, the documents' index, the need for a GPU.

Tests marked `gpu` are skipped where there is no NVIDIA GPU, with what is missing.
"""

import ctypes
import gc
import os
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from support.built_docs import build_docs
from support.checked_samples import CheckedSamples
from support.shared_caches import share_caches

# `make test` says that it could not install PyTorch, and CI ends there.
_WITH_TORCH = [
    "tools/pytorch/*",
    "server/test_modules_on_gpu.py",
    "server/commands/test_review_reference.py",
    "server/test_new_on_sim.py",
    "server/test_tutorial_with_torch.py",
]
collect_ignore_glob = [] if find_spec("torch") else _WITH_TORCH

# No test leaves a resident evaluator behind; those that want one say so.
os.environ["KOPT_GPU_IDLE_S"] = "0"

# What is collected stays for the whole run: looking for garbage would visit it again and again.
gc.disable()

_CONTROL_DEVICES = ("/dev/nvidiactl", "/dev/dxg")


@pytest.fixture(scope="session")
def run_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all processes of one test run share."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if hasattr(request.config, "workerinput") else own  # of pytest-xdist


@pytest.fixture(scope="session")
def shared_caches(run_folder: Path) -> Path:
    """Return the folder of the compile caches of all processes."""
    return run_folder / "caches"


@pytest.fixture(scope="session")
def built_docs(run_folder: Path) -> Path:
    """Return a folder with the index of kopt's own documents, to be copied into homes."""
    return build_docs(run_folder / "docs-home")


@pytest.fixture(scope="session")
def checked_samples(
    run_folder: Path, shared_caches: Path, tmp_path_factory: pytest.TempPathFactory
) -> CheckedSamples:
    """Return what checks each sample once."""
    home = share_caches(tmp_path_factory.mktemp("samples") / "home", shared_caches)
    return CheckedSamples(Settings(home=home, jobs=2), run_folder / "samples")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a GPU, unless there is one."""
    marked = [item for item in items if item.get_closest_marker("gpu")]
    reason = _missing() if marked else None
    if reason is not None:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Look for garbage from here on, but not among the tests and their modules."""
    gc.freeze()
    gc.enable()


@lru_cache
def _missing() -> str | None:
    """Return why no GPU can be used; None if one can. NVML creates no CUDA context."""
    if not any(Path(device).exists() for device in _CONTROL_DEVICES):
        return "no NVIDIA driver is loaded"
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return "libnvidia-ml.so.1, a part of the NVIDIA driver, is not found"
    count = ctypes.c_uint()
    if nvml.nvmlInit_v2() != 0:
        return "NVML does not start"
    status = nvml.nvmlDeviceGetCount_v2(ctypes.byref(count))
    nvml.nvmlShutdown()
    return None if status == 0 and count.value > 0 else "NVML sees no GPU"
