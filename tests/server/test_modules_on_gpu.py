"""Exports that take a module's place, built and called on a GPU; torch is needed, no network.

Each task is made up and imported here, its generated kernel exported and compared with the module.
KernelBench's own evaluator runs where KERNELBENCH_SRC names its folder src.
"""

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kopt.tools.export.exported_kernel import ExportedKernel
from kopt.tools.export.folder_files import folder_files
from kopt.tools.export.stage import export
from kopt.tools.pytorch.importing.stage import ImportResult
from kopt.tools.pytorch.importing.user_source import load_function
from kopt.tools.pytorch.torch_library import load_torch
from support.exports import write_files
from support.stand_in_kernels import exported_import
from support.torch_sources import SOURCES

torch = load_torch()
pytestmark = [
    pytest.mark.gpu,
    # torch 2.11 uses its own deprecated decorators when its compiler is imported.
    pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning"),
]

NAMES = ("groups", "transformer", "norm_gelu")
"""Weights in several launches; a stored mask; bfloat16."""


@pytest.fixture(scope="module", params=NAMES)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return the first kernel of a task."""
    name = f"task_{request.param}"
    return exported_import(tmp_path_factory.mktemp(name), name, SOURCES[request.param])


def _small(exported: ExportedKernel) -> tuple[Any, list[Any]]:
    """Return the original module and its inputs at the small shape, on the GPU."""
    folder = exported.problem.folder
    kept = ImportResult.model_validate_json((folder / "import.json").read_bytes())
    request = kept.export.model_copy(
        update={"source": str(folder / "model.py"), "import_path": (str(folder),)}
    )
    torch.manual_seed(3)
    values = {name: pair[0] for name, pair in kept.changed.items()}
    model, inputs = load_function(request).build(values)
    return model.cuda(), [one.cuda() for one in inputs]


def test_a_module_gives_what_the_original_gives_compiled_too(
    exported: ExportedKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(exported, "torch", tmp_path / "out", module=True)
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "out"), *sys.path])
    monkeypatch.delitem(sys.modules, exported.name, raising=False)
    made = importlib.import_module(f"{exported.name}.module")
    original, inputs = _small(exported)
    module = made.KernelModule(original)
    assert list(module.state_dict()) == list(original.state_dict())
    with torch.no_grad():
        wanted, found = original(*inputs), module(*inputs)
        compiled = torch.compile(module, fullgraph=True)(*inputs)
    torch.testing.assert_close(found, wanted, rtol=2e-2, atol=2e-2)
    assert torch.equal(compiled, found)


def test_the_exports_own_test_passes(exported: ExportedKernel, tmp_path: Path) -> None:
    for form in ("torch", "kernelbench"):
        folder = tmp_path / form
        write_files(folder_files(exported, form), folder)
        small = exported.problem.workloads[0].name
        words = [sys.executable, "test/run.py", "--workloads", small]
        environment = os.environ | {"TORCH_EXTENSIONS_DIR": str(tmp_path / f"{form}-extensions")}
        done = subprocess.run(
            words, cwd=folder, capture_output=True, text=True, timeout=600, env=environment
        )
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def test_kernelbenchs_evaluator_accepts_model_new(
    exported: ExportedKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = os.environ.get("KERNELBENCH_SRC")
    if source is None:
        pytest.skip("KERNELBENCH_SRC names no checkout's src: its evaluator is not part of kopt")
    monkeypatch.setattr(sys, "path", [source, *sys.path])
    evaluator = importlib.import_module("kernelbench.eval")
    text = folder_files(exported, "kernelbench")["model_new.py"]
    name = exported.name.removeprefix("task_")
    result = evaluator.eval_kernel_against_ref(
        SOURCES[name],
        text,
        num_correct_trials=3,
        build_dir=str(tmp_path / "build"),
        device=torch.device("cuda:0"),
        precision=torch.bfloat16 if name == "norm_gelu" else torch.float32,
    )
    assert result.compiled, result.metadata
    assert result.correctness, result.metadata
