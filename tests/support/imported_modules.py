"""Problems made of the text of a PyTorch file, in this process, and tensors of their cases."""

from pathlib import Path
from typing import Any

import numpy as np

from kopt.config.callbacks import ignore
from kopt.kernels.oracle import load_oracle
from kopt.kernels.problem import storage_shape
from kopt.kernels.problem_loader import load_problem
from kopt.tools.pytorch.importing.child import export
from kopt.tools.pytorch.importing.request import ExportRequest, Mode
from kopt.tools.pytorch.importing.stage import ImportRequest, ImportResult, write_problem
from kopt.tools.pytorch.torch_library import load_torch


def import_text(
    tmp_path: Path, text: str, name: str = "task", mode: Mode = "as-is"
) -> ImportResult:
    """Return the problem of a file with this text, in a folder of `tmp_path`."""
    source, work = tmp_path / f"{name}.py", tmp_path / "work"
    source.write_text(text, "utf-8")
    work.mkdir()
    request = ExportRequest(source=str(source), mode=mode)
    exported = export(request, work, ignore)
    place = tmp_path / "problems" / name
    return write_problem(ImportRequest(request, place.parent, name), exported, work, place)


def case_tensors(result: ImportResult, place: int) -> dict[str, Any]:
    """Return tensors of a workload, outputs empty."""
    torch, problem = load_torch(), load_problem(Path(result.folder))
    workload = problem.workloads[place]
    inputs = load_oracle(problem).make_inputs(workload, np.random.default_rng(place), "normal")
    dtypes = {one.name: getattr(torch, one.dtype) for one in problem.tensors}
    made = {
        name: torch.from_numpy(array.astype(np.float32)).to(dtypes[name])
        for name, array in inputs.items()
    }
    outputs = (one for one in problem.tensors if one.name not in inputs)
    shapes = {one.name: storage_shape(one, workload.axes) for one in outputs}
    return made | {name: torch.empty(one, dtype=dtypes[name]) for name, one in shapes.items()}
