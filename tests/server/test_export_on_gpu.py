"""Every form of an export built and tested on a GPU by its own commands.

`pytest -n 8 -m gpu` with this file: nvcc, make and g++ are needed; torch and TVM-FFI for their
forms, which are skipped without them.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.problem_loader import load_problems
from kopt.server.commands.export import ExportChoice, kernel_to_export
from kopt.tools.cuda.toolchain import find_toolchain
from kopt.tools.export.exported_kernel import ExportedKernel, Form
from kopt.tools.export.stage import export
from support.exports import exported_reference, exported_sample

pytestmark = pytest.mark.gpu

WINNERS = tuple(
    path
    for problem in load_problems().values()
    for path in sorted((problem.folder / "winners").glob("*.sm_90a.receipt.json"))
)
# Between them: clusters or not, dependent launches, cooperative launches, tensor maps, scratch that
# is zeroed, dynamic shared memory, variants by shape, grids by occupancy, bulk copies.
SAMPLES = (
    "good_pdl_wait",
    "good_cooperative_grid_sync",
    "good_tma_scratch",
    "good_tma_tiles",
    "good_atomic_sums_zeroed_scratch",
    "good_dynamic_shared_64_kib",
    "good_variants_by_shape",
    "good_persistent_blocks",
    "good_bulk_copies",
    "good_cluster_row_sums",
)
BINDINGS: tuple[Form, ...] = ("torch", "tvm-ffi", "flashinfer-trace")
# A table and positions; an inout tensor; two outputs of other dtypes; scratch behind a binding.
BOUND = ("good_rope_vectorized", "good_pdl_wait", "good_merge_state_vectorized", "good_tma_scratch")


def smallest(exported: ExportedKernel) -> str:
    return min(exported.domain, key=lambda one: one.axes[exported.problem.row_axis or ""]).name


def run(command: list[object], folder: Path) -> None:
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"


def nvcc(folder: Path) -> str:
    """Return the word that tells make which compiler to take."""
    return f"NVCC={find_toolchain(Settings(home=folder)).nvcc}"


def build_and_test(exported: ExportedKernel, workload: str, folder: Path) -> None:
    export(exported, "cuda", folder)
    run(["make", "-j4", nvcc(folder)], folder)
    run([sys.executable, "test/run.py", "--workloads", workload], folder)


@pytest.mark.parametrize("name", SAMPLES)
def test_cuda_sources_of_every_kind_of_launch_pass_their_own_test(
    name: str, tmp_path: Path
) -> None:
    exported = exported_sample(name)
    build_and_test(exported, smallest(exported), tmp_path / "export")


@pytest.mark.parametrize("path", WINNERS, ids=lambda path: f"{path.parents[1].name}-{path.stem}")
def test_every_shipped_winner_passes_its_exported_test(path: Path, tmp_path: Path) -> None:
    """Each at the workload of its receipt: a problem's workloads may share a source."""
    exported = kernel_to_export(str(path), ExportChoice(None, None, None), Settings(home=tmp_path))
    build_and_test(exported, path.name.partition(".")[0], tmp_path / "export")


@pytest.mark.parametrize("name", BOUND)
@pytest.mark.parametrize("form", BINDINGS)
def test_a_binding_passes_its_own_test(
    form: Form, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = ("torch",) if form == "torch" else ("torch", "tvm_ffi")
    missing = [module for module in needed if importlib.util.find_spec(module) is None]
    if missing:  # each form has a library of its own; the other forms need none of it
        pytest.skip(f"{' and '.join(missing)} is not installed")
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "torch"))
    monkeypatch.setenv("TVM_FFI_CACHE_DIR", str(tmp_path / "tvm"))
    exported = exported_sample(name)
    export(exported, form, tmp_path / "export")
    run([sys.executable, "test/run.py", "--workloads", smallest(exported)], tmp_path / "export")
    if form == "torch":
        run([sys.executable, "test/test_operator.py"], tmp_path / "export")


def test_a_shape_that_no_build_serves_is_refused_with_the_reason(tmp_path: Path) -> None:
    exported = exported_reference("add_rmsnorm_fp4quant_b128xh2048")
    folder = tmp_path / "export"
    export(exported, "cuda", folder)
    run(["make", "-j4", nvcc(folder)], folder)
    buffers = tmp_path / "buffers"
    buffers.mkdir()
    for tensor in exported.problem.tensors:
        (buffers / f"{tensor.name}.bin").write_bytes(bytes(4096))
    command = [folder / "build" / "run_case", buffers, "1", "1001"]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert (done.returncode, "H must be a multiple of 16" in done.stderr) == (3, True)
