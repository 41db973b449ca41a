"""tcgen05 gives on a Blackwell GPU what the simulator's tests expect of it."""

from collections.abc import Iterator

import numpy as np
import pytest

from kopt.config.settings import Settings
from kopt.tools.device_choice import open_device
from kopt.tools.gpu.device import CudaDevice
from support.gpu_runner import GpuRunner
from support.sim_run import Array
from support.tensor_kernels import BF16, GEMM, gemm_case
from support.tensor_moves import MOVE_ROWS, TensorMoveRow, move_results, moves_case
from support.tensor_products import PRODUCT_ROWS, TensorProductRow, product_results, products_case
from support.tensor_scaled import COPY_ROWS, SCALED_ROWS, scaled_case, scaled_results

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def run(settings: Settings) -> Iterator[GpuRunner]:
    """Yield a GPU that has tensor memory."""
    with open_device("cuda:0", settings) as device:
        assert isinstance(device, CudaDevice)
        if device.facts.arch != "sm_100a":  # the one that knows all kinds
            pytest.skip("tcgen05 with all its kinds needs sm_100a")
        yield GpuRunner(device, settings)


@pytest.fixture(scope="module")
def moves(run: GpuRunner) -> dict[str, Array]:
    """Return what each row of tcgen05.ld and .st leaves."""
    return move_results(MOVE_ROWS, run.out(moves_case(MOVE_ROWS)))


@pytest.fixture(scope="module")
def products(run: GpuRunner) -> dict[str, Array]:
    """Return what each row of tcgen05.mma leaves."""
    return product_results(PRODUCT_ROWS, run.out(products_case(PRODUCT_ROWS)))


@pytest.mark.parametrize("row", MOVE_ROWS, ids=[row.name for row in MOVE_ROWS])
def test_move_gives_what_the_simulator_gives(row: TensorMoveRow, moves: dict[str, Array]) -> None:
    np.testing.assert_array_equal(moves[row.name], row.expected)


@pytest.mark.parametrize("row", PRODUCT_ROWS, ids=[row.name for row in PRODUCT_ROWS])
def test_product_gives_what_the_simulator_gives(
    row: TensorProductRow, products: dict[str, Array]
) -> None:
    np.testing.assert_array_equal(products[row.name], row.expected)


def test_scaled_products_and_copies_give_what_the_simulator_gives(run: GpuRunner) -> None:
    for row, found in zip(
        SCALED_ROWS, scaled_results(SCALED_ROWS, run.out(scaled_case(SCALED_ROWS))), strict=True
    ):
        np.testing.assert_array_equal(found, row.expected, row.form.name)
    copies = scaled_results(COPY_ROWS, run.out(scaled_case(COPY_ROWS)))
    for copy, found in zip(COPY_ROWS, copies, strict=True):
        np.testing.assert_array_equal(found, copy.expected, copy.name)


def test_gemm_gives_what_the_simulator_gives(run: GpuRunner) -> None:
    case, expected = gemm_case(GEMM)
    found = run.out(case).view(BF16).astype(float)
    np.testing.assert_array_equal(found, expected.astype(float))
