"""The best kernel that comes with kopt, as it is put beside the winner of a run."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from kopt.config.settings import Settings
from kopt.kernels.shipped_kernels import ShippedKernel
from kopt.search.evaluation import best_known_search
from kopt.search.evaluation.best_known_search import KnownKernelSearch, find_best_known
from kopt.tools.devices.device import Device
from kopt.tools.sim.device import SimDevice
from support.shared_caches import share_caches

pytestmark = pytest.mark.slow  # winners are compiled and run

KERNEL = "silu_and_mul_b8xh14336"


@pytest.fixture
def asked(tmp_path: Path, shared_caches: Path) -> KnownKernelSearch:
    """What a run on the simulator asks for at its end."""
    settings = Settings(home=share_caches(tmp_path / "home", shared_caches), jobs=2)
    return KnownKernelSearch(KERNEL, "sm_100a", SimDevice(settings), settings)


def _on_gpu(asked: KnownKernelSearch, arch: str) -> KnownKernelSearch:
    """Return the same on a GPU, which is not touched: nothing is timed."""
    return replace(asked, device=cast(Device, SimpleNamespace(name="cuda:0")), arch=arch)


def test_on_sim_a_shipped_winner_is_estimated_and_keeps_its_measured_time(
    asked: KnownKernelSearch,
) -> None:
    said: list[str] = []
    known = find_best_known(replace(asked, progress=said.append))
    assert known is not None
    assert (known.standing, known.arch) == ("winner", "sm_90a")
    assert Path(known.source).is_file()
    assert known.estimated_us is not None
    assert 1 < known.estimated_us < 2  # of the kernel with a block for each row: 29 us
    assert known.measured is not None
    assert "H100" in known.measured.gpu
    assert known.measured.speedup is not None
    assert known.measured.speedup > 3
    assert said == ["estimating the kernel that comes with kopt, winner for sm_90a"]


def test_on_a_gpu_only_times_measured_on_its_architecture_count(asked: KnownKernelSearch) -> None:
    known = find_best_known(_on_gpu(asked, "sm_90a"))
    assert known is not None
    assert known.estimated_us is None
    assert known.measured is not None
    assert find_best_known(_on_gpu(asked, "sm_80")) is None


def test_an_unproven_kernel_has_no_measured_time(asked: KnownKernelSearch) -> None:
    fp4 = replace(asked, kernel="nvfp4_quantize_m128xk14336")
    assert find_best_known(_on_gpu(fp4, "sm_100a")) is None


def test_hidden_kernels_are_not_shown(asked: KnownKernelSearch) -> None:
    hidden = replace(asked.settings, without_sources=("winners",))
    assert find_best_known(replace(asked, settings=hidden)) is None


@pytest.mark.parametrize("source", [None, "no header", "/* kopt: 1\nfamily: other\n*/\n"])
def test_a_shipped_kernel_that_cannot_be_run_is_left_out(
    asked: KnownKernelSearch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str | None
) -> None:
    place = tmp_path / "b8xh14336.sm_90a.cu"
    if source is not None:
        place.write_text(source)
    broken = ShippedKernel("winner", "sm_90a", place, place.with_suffix(".receipt.json"))

    def only_this(*_: object) -> tuple[ShippedKernel, ...]:
        return (broken,)

    monkeypatch.setattr(best_known_search, "visible_kernels", only_this)
    assert find_best_known(asked) is None
