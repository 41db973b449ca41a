"""Right results from a worker of a GPU are those of the oracle on the CPU, or come from there."""

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from kopt.config.errors import InfraError
from kopt.config.gpu_specs import load_gpus
from kopt.config.settings import Settings
from kopt.kernels.oracle import Expected
from kopt.tools.gpu import graph_worker
from kopt.tools.gpu.array_file import NamedArrays, write_arrays
from kopt.tools.gpu.described_arrays import ArrayFile
from kopt.tools.gpu.device import CudaDevice
from kopt.tools.gpu.discovery import FoundGpu
from kopt.tools.gpu.messages import (
    CopyCeilingRequest,
    GraphRunsAnswer,
    GraphRunsRequest,
    StartRequest,
)
from kopt.tools.gpu.open_gpu import graph_pool
from kopt.tools.pytorch import oracle
from kopt.tools.pytorch.graph import FILE_NAME, Ref
from kopt.tools.pytorch.graph_engine import GraphEngine
from kopt.tools.pytorch.oracle import ImportedOracle
from support.bench_results import H100
from support.graph_engines import CPU_ENGINE, ENDING_ENGINE, FULL_ENGINE, CpuGraphEngine
from support.imported_graphs import Imported, node
from support.scripted_device import ScriptedDevice

Array = npt.NDArray[Any]
ROWS, INNER, COLUMNS = 6, 40, 32
_STARTS_A_PROCESS = pytest.mark.slow
"""It imports torch: three seconds."""


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every graph be one for a GPU."""
    monkeypatch.setattr(oracle, "MANY_VALUES", -1)


@pytest.fixture
def told() -> list[str]:
    return []


class _Devices:
    """Opens devices whose graphs are run by an engine, and closes them."""

    def __init__(self, scripted: ScriptedDevice, settings: Settings, told: list[str]) -> None:
        self.opened: list[CudaDevice] = []
        self._scripted, self._settings, self._told = scripted, settings, told

    def of(self, engine: str) -> CudaDevice:
        gpu = FoundGpu(H100, load_gpus()["H100"])
        graphs = graph_pool(H100.uuid, self._settings, engine)
        lock, pool = self._scripted.lock, self._scripted.pool()
        self.opened.append(CudaDevice(gpu, pool, lock, self._told.append, graphs=graphs))
        return self.opened[-1]


@pytest.fixture
def devices(settings: Settings, scripted: ScriptedDevice, told: list[str]) -> Generator[_Devices]:
    made = _Devices(scripted, settings, told)
    yield made
    for device in made.opened:
        device.close()


def _product(folder: Path) -> tuple[Imported, dict[str, Array]]:
    """Return relu(a @ b), and inputs."""
    rng = np.random.default_rng(1)
    inputs: dict[str, Array] = {
        "a": rng.standard_normal((ROWS, INNER)).astype(np.float32),
        "b": rng.standard_normal((INNER, COLUMNS)).astype(np.float32),
    }
    shape = (ROWS, COLUMNS)
    product = node("m", "aten.mm.default", (Ref(node="a"), Ref(node="b")), shape)
    return Imported.of(folder, inputs, product, _relu("m", shape)), inputs


def _relu(of: str, shape: tuple[int, ...]) -> Any:
    return node("r", "aten.relu.default", (Ref(node=of),), shape)


def _same(one: Expected, other: Expected) -> bool:
    assert one.slack is not None
    assert other.slack is not None
    slack = np.allclose(one.slack, other.slack, rtol=1e-5, atol=0.0)
    return slack and np.array_equal(one.exact, other.exact)


@_STARTS_A_PROCESS
def test_a_worker_gives_what_the_oracle_itself_computes(
    tmp_path: Path, devices: _Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported, inputs = _product(tmp_path)
    judge = ImportedOracle(imported.folder, precision="tf32")
    own = judge.expected(inputs, {})["out"]
    monkeypatch.setattr(oracle, "MANY_VALUES", -1)
    monkeypatch.setattr(ImportedOracle, "_results", _nothing)
    assert _same(judge.expected(inputs, {}, graphs=devices.of(CPU_ENGINE))["out"], own)


def test_a_small_graph_is_not_worth_a_worker(tmp_path: Path, devices: _Devices) -> None:
    imported, inputs = _product(tmp_path)
    judge = ImportedOracle(imported.folder)
    found = judge.expected(inputs, {}, graphs=devices.of(ENDING_ENGINE))["out"]
    assert _same(found, judge.expected(inputs, {})["out"])


def _nothing(*_: object) -> Any:
    raise AssertionError("the CPU computes what the worker has computed")


@_STARTS_A_PROCESS
@pytest.mark.usefixtures("large")
def test_a_graph_for_which_a_gpu_has_no_memory_runs_on_the_cpu(
    tmp_path: Path, devices: _Devices, told: list[str]
) -> None:
    imported, inputs = _product(tmp_path)
    judge = ImportedOracle(imported.folder)
    found = judge.expected(inputs, {}, graphs=devices.of(FULL_ENGINE))["out"]
    assert _same(found, judge.expected(inputs, {})["out"])
    assert told == ["right results are computed on the CPU: CUDA out of memory"]


@_STARTS_A_PROCESS
@pytest.mark.usefixtures("large")
def test_where_a_worker_ends_the_cpu_computes(
    tmp_path: Path, devices: _Devices, told: list[str]
) -> None:
    imported, inputs = _product(tmp_path)
    judge, device = ImportedOracle(imported.folder), devices.of(ENDING_ENGINE)
    own = judge.expected(inputs, {})["out"]
    for _ in range(2):  # another one starts for the next graph
        assert _same(judge.expected(inputs, {}, graphs=device)["out"], own)
    assert len(told) == 2
    assert all("for right results ended: " in line and "status 3" in line for line in told)


@_STARTS_A_PROCESS
def test_nothing_of_a_graph_stays_on_disk(
    tmp_path: Path, devices: _Devices, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oracle, "MANY_VALUES", -1)
    made: list[Path] = []
    write = write_arrays

    def noting(place: Path, file: str, arrays: NamedArrays) -> ArrayFile:
        made.append(place)
        return write(place, file, arrays)

    monkeypatch.setattr(graph_worker, "write_arrays", noting)
    imported, inputs = _product(tmp_path)
    ImportedOracle(imported.folder).expected(inputs, {}, graphs=devices.of(CPU_ENGINE))
    assert len(made) == 1
    assert [one.name for one in made[0].iterdir() if one.is_file()] == [".lock"]


def _asked(imported: Imported, inputs: Mapping[str, Array], folder: Path) -> GraphRunsRequest:
    text = np.frombuffer((imported.folder / FILE_NAME).read_bytes(), np.uint8)
    file = write_arrays(folder, "inputs", [*inputs.items(), (FILE_NAME, text)])
    dtypes = {name: array.dtype.name for name, array in inputs.items()}
    return GraphRunsRequest(axes={}, tf32=(), samples=2, inputs=file, dtypes=dtypes)


def test_a_tensor_without_axes_stays_one(tmp_path: Path) -> None:
    inputs: dict[str, Array] = {"x": np.arange(3, dtype=np.float32), "by": np.array(2, np.float32)}
    args = (Ref(node="by"), Ref(node="by"))
    imported = Imported.of(tmp_path, inputs, node("p", "aten.mul.Tensor", args, ()))
    answer = CpuGraphEngine().answer(_asked(imported, inputs, tmp_path), tmp_path)
    assert isinstance(answer, GraphRunsAnswer)
    assert answer.results is not None
    assert {one.name: one.shape for one in answer.results.entries}["exact/out"] == ()


def test_narrow_floats_and_integers_arrive_as_they_are(tmp_path: Path) -> None:
    values = np.arange(12).reshape(4, 3).astype(ml_dtypes.bfloat16)
    inputs: dict[str, Array] = {"table": values, "rows": np.array([3, 0], dtype=np.int64)}
    args = (Ref(node="table"), Ref(node="rows"))
    chosen = node("e", "aten.embedding.default", args, (2, 3), "bfloat16")
    imported = Imported.of(tmp_path, inputs, chosen, dtype="bfloat16")
    answer = CpuGraphEngine().answer(_asked(imported, inputs, tmp_path), tmp_path)
    assert isinstance(answer, GraphRunsAnswer)
    assert answer.results is not None
    exact = next(one for one in answer.results.entries if one.name == "exact/out")
    content = (tmp_path / answer.results.file).read_bytes()
    found = np.frombuffer(content, np.float64, 6, exact.offset_bytes)
    assert found.tolist() == [9.0, 10.0, 11.0, 0.0, 1.0, 2.0]


def test_what_torch_says_of_a_graph_that_fails_is_the_answer(tmp_path: Path) -> None:
    inputs: dict[str, Array] = {"x": np.ones((2, 3), np.float32)}
    wrong = node("m", "aten.mm.default", (Ref(node="x"), Ref(node="x")), (2, 3))
    imported = Imported.of(tmp_path, inputs, wrong)
    answer = CpuGraphEngine().answer(_asked(imported, inputs, tmp_path), tmp_path)
    assert isinstance(answer, GraphRunsAnswer)
    assert answer.results is None
    assert answer.refused.startswith("aten.mm.default of m fails")


def test_a_worker_for_graphs_does_nothing_else() -> None:
    with pytest.raises(InfraError, match="knows no copy_ceiling"):
        CpuGraphEngine().answer(CopyCeilingRequest(), Path())


def test_a_gpu_that_torch_does_not_see_is_said(tmp_path: Path) -> None:
    with pytest.raises(InfraError, match="torch sees no GPU GPU-none"):
        GraphEngine().answer(StartRequest(device_uuid="GPU-none"), tmp_path)


@_STARTS_A_PROCESS
@pytest.mark.usefixtures("large")
def test_an_abandoned_device_runs_graphs_once_it_is_readmitted(
    tmp_path: Path, devices: _Devices
) -> None:
    imported, inputs = _product(tmp_path)
    judge, device = ImportedOracle(imported.folder), devices.of(CPU_ENGINE)
    first = judge.expected(inputs, {}, graphs=device)["out"]
    device.abandon()
    with pytest.raises(InfraError, match="was ended"):
        judge.expected(inputs, {}, graphs=device)
    device.readmit()
    assert _same(judge.expected(inputs, {}, graphs=device)["out"], first)
