"""A task of each benchmark's format imported through the sandbox, and what its problem computes."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from kopt.config.settings import Settings
from kopt.kernels.oracle import Arrays, expected_at, load_oracle
from kopt.kernels.problem_loader import find_kernel, load_problem
from kopt.tools.export.folder_files import folder_files
from kopt.tools.imports.foreign_task import Selection
from kopt.tools.imports.imported_task import ImportedSuite
from kopt.tools.imports.stage import SuiteImportRequest, import_suite
from kopt.tools.suite.suite_file import load_suite
from support.exports import exported_reference, write_files
from support.foreign_checkouts import (
    RANDOM,
    SCALED,
    definition,
    workload,
    write_gpumode,
    write_kernelbench,
    write_robust,
    write_sol,
    write_trace,
)

pytestmark = pytest.mark.slow  # a child loads torch for each task, 10 s


def _imported(form: str, checkout: Path, folder: Path, settings: Settings) -> ImportedSuite:
    return import_suite(SuiteImportRequest(form, checkout, folder, Selection()), settings)


def _kernelbench(root: Path) -> Path:
    return write_kernelbench(root, {"level1/3_Scaled.py": SCALED, "level1/4_Random.py": RANDOM})


def _trace(root: Path) -> Path:
    narrow = {"out": {"shape": ["rows", "columns"], "dtype": "float8_e4m3fn"}}
    reference = definition()["reference"]
    other = str(reference).replace("torch.bfloat16", "torch.float8_e4m3fn")
    documents = [definition(), definition("scaled_fp8", outputs=narrow, reference=other)]
    return write_trace(root, documents, [workload(16), workload(1024)])


FORMATS: dict[str, tuple[Callable[[Path], Path], str, dict[str, str]]] = {
    "kernelbench": (_kernelbench, "l1_3_scaled", {"l1_4_random": "draws random numbers"}),
    "trace": (_trace, "scaled_c96", {"scaled_fp8": "dtype float8_e4m3fn"}),
    "sol": (write_sol, "grouped_scale", {}),
    "robust-kbench": (write_robust, "leaky_scale", {}),
    "gpumode": (write_gpumode, "deck_rowsum_py", {}),
}


def _wanted(form: str, inputs: Arrays) -> npt.NDArray[np.float64]:
    """Return what the made-up task computes."""
    by: dict[str, npt.NDArray[np.float64]] = {
        name: np.asarray(array, dtype=np.float64) for name, array in inputs.items()
    }
    if form == "kernelbench":
        return np.maximum(by["x"], 0) * by["scale"]
    if form == "trace":
        return by["x"] * by["scale"] * 0.5
    if form == "sol":
        table = by["table"][inputs["group"]]
        return by["x"] * np.tile(table, (1, by["x"].shape[1] // table.shape[1]))
    if form == "robust-kbench":
        (weight,) = (by[name] for name in by if name != "x")
        return np.where(by["x"] > 0, by["x"], by["x"] / 25) * weight
    (x,) = by.values()
    return np.asarray(np.maximum(x, 0).sum(axis=1), dtype=np.float64)


@pytest.mark.parametrize("form", FORMATS)
def test_a_task_becomes_a_problem_that_computes_what_it_says(
    form: str, tmp_path: Path, settings: Settings
) -> None:
    write, name, refused = FORMATS[form]
    checkout = write(tmp_path / "checkout")
    result = _imported(form, checkout, tmp_path / "suite", settings)
    rows = {row.task: row for row in result.tasks}
    assert rows.keys() == {name, *refused}
    assert rows[name].outcome == "imported", rows[name].reason
    for other, reason in refused.items():
        assert (rows[other].outcome, reason in rows[other].reason) == ("refused", True)
        assert rows[other].mark == ("random" if "random" in reason else "unsupported")
        assert str(tmp_path) not in rows[other].reason
    suite = load_suite(tmp_path / "suite")
    problem = load_problem(suite.problem_folders[name])
    assert [one.name for one in problem.workloads] == ["small", "official"]
    small, oracle = problem.workloads[0], load_oracle(problem)
    inputs = oracle.make_inputs(small, np.random.default_rng(5), "normal")
    (found,) = expected_at(oracle, inputs, {}, small).values()
    np.testing.assert_allclose(found.exact, _wanted(form, inputs), rtol=1e-12)
    text = (problem.folder / "import.json").read_text("utf-8")
    assert str(checkout) not in text  # nothing of where it was imported from, but the suite's place


def test_an_exported_definition_comes_back_as_the_same_function(
    tmp_path: Path, settings: Settings
) -> None:
    files = folder_files(exported_reference("silu_and_mul_b8xh14336"), "flashinfer-trace")
    checkout = write_files(dict(files), tmp_path / "set")
    result = _imported("trace", checkout, tmp_path / "suite", settings)
    assert [row.outcome for row in result.tasks] == ["imported"]
    back = load_problem(tmp_path / "suite/activation" / result.tasks[0].task)
    packaged, _ = find_kernel("silu_and_mul_b8xh14336")
    assert [one.dtype for one in back.tensors] == [one.dtype for one in packaged.tensors]
    theirs, ours = load_oracle(packaged), load_oracle(back)
    workload = packaged.workloads[0]
    inputs = theirs.make_inputs(workload, np.random.default_rng(5), "normal")
    (wanted,) = expected_at(theirs, inputs, packaged.scalar_values(workload), workload).values()
    official = back.workloads[-1]
    rows = {back.row_axis or "": workload.axes["B"]}
    asked = official.model_copy(update={"axes": {**official.axes, **rows}})
    (found,) = expected_at(ours, inputs, {}, asked).values()
    np.testing.assert_allclose(found.exact, wanted.exact, rtol=1e-9, atol=1e-12)
