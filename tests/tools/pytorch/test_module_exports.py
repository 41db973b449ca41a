"""Exports that take a module's place, on the CPU, with the graph interpreted as the kernel."""

import importlib
import re
import sys
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kopt.config.errors import ToolError
from kopt.tools.export.exported_kernel import ExportedKernel
from kopt.tools.export.folder_files import folder_files
from kopt.tools.export.stage import export
from kopt.tools.pytorch.torch_library import load_torch
from support.exports import exported_reference
from support.stand_in_kernels import StandIn, exported_import, registering
from support.torch_sources import HEAD

pytestmark = pytest.mark.slow  # torch.export and dynamo are loaded, 10 s

torch = load_torch()
NAME = "stateful_block"
ROWS = 4096
TEXT = (
    HEAD
    + '''def halved(x):
    return x * 0.5

class Inner(nn.Module):
    """A part whose forward pass must not be taken along."""

    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return halved(self.linear(x))

class Model(nn.Module):
    """Two outputs of a part, a buffer, a tied weight and a plain tensor: one pass."""

    def __init__(self, width):
        super(Model, self).__init__()
        self.parts = nn.Sequential(Inner(width), nn.ReLU())
        self.register_buffer("shift", torch.rand(width))
        self.register_buffer("unsaved", torch.rand(3), persistent=False)
        self.table = torch.arange(width) / width
        self.tied = self.parts[0].linear.bias

    def forward(self, x, factor):
        y = self.parts(x) * factor
        return y + self.shift, y * self.table + self.tied

rows = 4096
width = 32

def get_inputs():
    return [torch.randn(rows, width), 2.0]

def get_init_inputs():
    return [width]

if __name__ == "__main__":
    raise SystemExit("a script")
'''
)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> ExportedKernel:
    """Return the first kernel of a module with every kind of state."""
    return exported_import(tmp_path_factory.mktemp("imported"), NAME, TEXT)


def _original(seed: int = 1) -> Any:
    scope: dict[str, Any] = {"__name__": "task"}
    exec(TEXT, scope)  # the test's own file
    torch.manual_seed(seed)
    return scope["Model"](32)


@pytest.fixture(scope="module")
def module(
    exported: ExportedKernel, tmp_path_factory: pytest.TempPathFactory
) -> Generator[ModuleType]:
    """Yield module.py of the export, its package built with the stand-in."""
    folder = tmp_path_factory.mktemp("exported") / "out"
    export(exported, "torch", folder, module=True)
    with pytest.MonkeyPatch.context() as patch:
        extension = importlib.import_module("torch.utils.cpp_extension")
        patch.setattr(extension, "load", registering(exported.problem))
        patch.setattr(sys, "path", [str(folder), *sys.path])
        patch.delitem(sys.modules, NAME, raising=False)  # the user's file, while it was imported
        yield importlib.import_module(f"{NAME}.module")
        for name in [one for one in sys.modules if one.startswith(NAME)]:
            del sys.modules[name]


def test_the_module_has_the_originals_state_dict(module: ModuleType) -> None:
    original = _original()
    made, before = module.KernelModule(original), original.state_dict()
    assert list(made.state_dict()) == list(before)
    for key, tensor in made.state_dict().items():
        assert tensor.data_ptr() == before[key].data_ptr(), key
    assert made.tied is made.parts[0].linear.bias
    made.load_state_dict(_original(2).state_dict(), strict=True)


def test_its_forward_gives_what_the_original_gives(module: ModuleType) -> None:
    original, x = _original(), torch.randn(ROWS, 64)[:, ::2]
    with torch.no_grad():
        wanted, found = original(x, 2.0), module.KernelModule(original)(x, 2.0)
    assert type(found).__name__ == "tuple"
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other)


def test_another_number_and_gradients_are_refused(module: ModuleType) -> None:
    made, x = module.KernelModule(_original()), torch.randn(ROWS, 32)
    with torch.no_grad(), pytest.raises(RuntimeError, match=r"imported with factor = 2\.0, not 3"):
        made(x, 3.0)
    with pytest.raises(RuntimeError, match="has no backward"):
        made(x, 2.0)
    with torch.no_grad(), pytest.raises(RuntimeError, match="not known at shape"):
        made(torch.randn(ROWS - 1, 31), 2.0)


def test_torch_compile_keeps_the_operator(module: ModuleType) -> None:
    made, graphs = module.KernelModule(_original()), list[Any]()

    def keep(graph: Any, _: object) -> Any:
        graphs.append(graph)
        return graph.forward

    x = torch.randn(ROWS, 32)
    with torch.no_grad():
        found = torch.compile(made, backend=keep, fullgraph=True)(x, 2.0)
        wanted = made(x, 2.0)
    (graph,) = graphs
    called = [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
    assert [one for one in called if "kopt" in one] == [f"kopt.{NAME}"]
    assert not [one for one in called if "linear" in one]
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one, other)


def test_fake_tensors_have_the_outputs_shapes_and_opcheck_agrees(
    module: ModuleType, exported: ExportedKernel
) -> None:
    mode: Any = importlib.import_module("torch._subclasses.fake_tensor").FakeTensorMode
    with mode(allow_non_fake_inputs=True) as fake, torch.no_grad():
        made = module.KernelModule(_original())
        found = made(fake.from_tensor(torch.empty(ROWS, 32)), 2.0)
    assert [tuple(one.shape) for one in found] == [(ROWS, 32), (ROWS, 32)]
    tensors = tuple(
        torch.rand([exported.problem.workloads[-1].axes[axis] for axis in one.shape])
        for one in exported.problem.tensors
    )
    operator = getattr(torch.ops.kopt, NAME).default
    torch.library.opcheck(operator, tensors, test_utils=("test_schema", "test_faketensor"))


@dataclass(frozen=True)
class Evaluated:
    """A solution as KernelBench's evaluator loads it: in the scope of the task's own file."""

    text: str
    model: Any
    model_new: Any
    built: list[dict[str, Any]]


@pytest.fixture
def evaluated(exported: ExportedKernel, monkeypatch: pytest.MonkeyPatch) -> Evaluated:
    """Load the export as the evaluator does."""
    text = str(folder_files(exported, "kernelbench")["model_new.py"])
    built: list[dict[str, Any]] = []

    def load_inline(**asked: Any) -> SimpleNamespace:
        built.append(asked)
        return SimpleNamespace(kopt_run=StandIn(exported.problem))

    extension = importlib.import_module("torch.utils.cpp_extension")
    monkeypatch.setattr(extension, "load_inline", load_inline)
    scope: dict[str, Any] = {"__name__": "builtins"}
    exec(TEXT, scope)
    for _ in range(2):  # once to fill the cache of builds, once to evaluate
        exec("import os\n" + text, scope)
    return Evaluated(text, scope["Model"], scope["ModelNew"], built)


def test_the_same_seed_gives_model_new_the_models_weights(evaluated: Evaluated) -> None:
    made: list[Any] = []
    for kind in (evaluated.model, evaluated.model_new):
        torch.manual_seed(42)
        made.append(kind(32))
    before, after = (one.state_dict() for one in made)
    assert list(after) == list(before)
    assert all(torch.equal(after[key], before[key]) for key in before)
    x = torch.randn(ROWS, 32)
    with torch.no_grad():
        for one, other in zip(made[1](x, 2.0), made[0](x, 2.0), strict=True):
            torch.testing.assert_close(one, other)
    with pytest.raises(RuntimeError, match=r"factor = 2\.0"):
        made[1](x, 1.0)


def test_the_scope_of_the_reference_keeps_its_parts(evaluated: Evaluated) -> None:
    assert evaluated.model(32).parts[0].forward.__qualname__ == "Inner.forward"


BYPASSES = (r"\btry\s*:", r"\bexcept\b", r"\bpass\b", r"\bthreading\b", r"_make_subclass")
COMPUTES = (r"torch\.nn\.(?!Module|Parameter)", r"\bF\.\w+\(", r"torch\.(relu|matmul|softmax)")


def test_what_kernelbench_looks_for_in_a_text_is_there_and_nothing_that_it_forbids(
    evaluated: Evaluated,
) -> None:
    assert "__global__" in evaluated.text
    assert "load_inline" in evaluated.text
    for pattern in (*BYPASSES, *COMPUTES):
        assert re.search(pattern, evaluated.text) is None, pattern


def test_one_text_holds_all_sources_and_names_the_function(evaluated: Evaluated) -> None:
    asked = evaluated.built[0]
    (cuda,), (cpp,) = asked["cuda_sources"], asked["cpp_sources"]
    assert asked["functions"] == ["kopt_run"]
    assert '#include "' not in cuda
    assert cpp.startswith("void kopt_run(const at::Tensor& ")
    assert cuda.count("struct Params {") == 1
    assert cuda.count("#define KOPT_B") == cuda.count("#undef KOPT_B") > 1
    assert "-gencode=arch=compute_90a,code=sm_90a" in asked["extra_cuda_cflags"]


def test_other_problems_have_no_module(tmp_path: Path, exported: ExportedKernel) -> None:
    packaged = exported_reference("silu_and_mul_b8xh14336")
    for form, module in (("torch", True), ("kernelbench", False)):
        with pytest.raises(ToolError, match="silu_and_mul was not imported from PyTorch"):
            folder_files(packaged, form, module=module)  # type: ignore[arg-type] # a form
    kept = exported.problem.folder / "import.json"
    text = kept.read_text("utf-8").replace('"returns": "tuple"', '"returns": "other"')
    folder = tmp_path / NAME
    folder.mkdir()
    for path in exported.problem.folder.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    (folder / "import.json").write_text(text, "utf-8")
    other = exported.problem.model_copy(update={"folder": folder})
    with pytest.raises(ToolError, match="more than tensors in a row"):
        folder_files(replace(exported, problem=other), "torch", module=True)


def test_the_test_of_an_export_has_graph_and_arrays(exported: ExportedKernel) -> None:
    files = folder_files(exported, "torch")
    kept = {path.name for path in exported.problem.folder.glob("*.npy")}
    assert kept
    for name in ("graph.json", *kept):
        assert files[f"test/{name}"] == (exported.problem.folder / name).read_bytes()
    assert "test/kopt_oracle/tools/pytorch/oracle.py" in files
