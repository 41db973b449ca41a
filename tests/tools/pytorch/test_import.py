"""PyTorch files made problems, in this process: a minute, torch.export imports half of torch."""

import json
from pathlib import Path

import numpy as np
import pytest

import kopt
from kopt.config.errors import ToolError, UnjudgeableFunction
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.oracle import expected_at, load_oracle
from kopt.kernels.problem_loader import load_problem
from kopt.tools.pytorch.graph import read_graph
from kopt.tools.pytorch.torch_library import load_torch
from support.imported_modules import import_text
from support.torch_sources import HEAD, SOURCES

pytestmark = pytest.mark.slow  # torch.export: 10 s for the first of a process, 1 to 3 s for others

ROWS = {"relu": "B", "softmax": "B", "norm_gelu": "B", "cross_entropy": None, "lenet": "B"}


@pytest.mark.parametrize("name", SOURCES)
def test_a_function_becomes_a_whole_problem(name: str, tmp_path: Path) -> None:
    result = import_text(tmp_path, SOURCES[name], name)
    folder = Path(result.folder)
    problem = load_problem(folder)
    assert [workload.name for workload in problem.workloads] == ["small", "official"]
    assert problem.row_axis == ROWS.get(name, problem.row_axis)
    assert Case(problem, problem.workloads[0], read_candidate(folder / "reference.cu")).header
    oracle, small = load_oracle(problem), problem.workloads[0]
    inputs = oracle.make_inputs(small, np.random.default_rng(1), "normal")
    for entry in expected_at(oracle, inputs, {}, small).values():
        assert np.isfinite(entry.exact).all()
        assert entry.bit_exact or entry.slack is not None
    assert json.loads((folder / "import.json").read_text("utf-8"))["nodes"] == result.nodes


def test_new_seeds_bring_new_weights(tmp_path: Path) -> None:
    problem = load_problem(Path(import_text(tmp_path, SOURCES["groups"]).folder))
    oracle, small = load_oracle(problem), problem.workloads[0]
    one, other = (oracle.make_inputs(small, np.random.default_rng(n), "normal") for n in (1, 2))
    for name in ("gemm_weight", "norm_weight", "norm_bias"):
        assert not np.array_equal(one[name], other[name])


def test_tables_are_stored_at_both_shapes(tmp_path: Path) -> None:
    folder = Path(import_text(tmp_path, SOURCES["transformer"]).folder)
    small, official = (np.load(folder / f"mask.{one}.npy") for one in ("small", "official"))
    assert official.shape == (1024, 1024)
    assert small.shape[0] < 1024
    assert np.array_equal(small, np.tril(np.ones(small.shape)))


DROPOUT = (
    HEAD
    + """class Model(nn.Module):
    def forward(self, x):
        return F.dropout(torch.relu(x), 0.5, self.training)

def get_inputs():
    return [torch.randn(512, 512)]
"""
)


def test_random_functions_are_refused_with_operator_line_and_advice(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"task\.py:7: return F\.dropout.*--mode eval"):
        import_text(tmp_path, DROPOUT)


def test_without_dropout_the_same_function_isimport_text(tmp_path: Path) -> None:
    folder = Path(import_text(tmp_path, DROPOUT, mode="eval").folder)
    operators = {node.op for node in read_graph(folder).nodes}
    assert operators <= {"aten.relu.default", "aten.clone.default"}


def test_an_operator_that_is_unknown_is_named_with_its_line(tmp_path: Path) -> None:
    text = SOURCES["relu"].replace("torch.relu(x)", "torch.special.bessel_j0(x)")
    with pytest.raises(ToolError, match=r"aten\.special_bessel_j0\.default .*task\.py:7"):
        import_text(tmp_path, text)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("torch.fft.rfft(x).abs()", r"aten\._fft_r2c\.default \(task\.py:7: .* complex64"),
        ("torch.linalg.svdvals(x)", r"aten\._linalg_svd\.default is an operator .*task\.py:7"),
    ],
)
def test_complex_numbers_and_factorisations_are_refused_with_their_line(
    answer: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ToolError, match=said):
        import_text(tmp_path, SOURCES["relu"].replace("torch.relu(x)", answer))


def test_mistakes_of_the_user_are_told_with_their_line(tmp_path: Path) -> None:
    text = SOURCES["relu"].replace("torch.relu(x)", "torch.relu(y)")
    with pytest.raises(ToolError, match=r"task\.py:7.*NameError.*'y'"):
        import_text(tmp_path, text)


def test_an_answer_that_no_input_changes_is_no_task(tmp_path: Path) -> None:
    text = SOURCES["relu"].replace("torch.relu(x)", "torch.softmax(x[:, :1], 1)")
    with pytest.raises(UnjudgeableFunction, match="output out is the same for all inputs") as told:
        import_text(tmp_path, text)
    assert told.value.cause == "degenerate"


DEEP = (
    HEAD
    + """class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(*[part for _ in range(DEPTH) for part in BLOCK()])

    def forward(self, x):
        return self.net(x)

DEPTH = 24
batch = 256

def BLOCK():
    return nn.Linear(64, 64, dtype=torch.bfloat16), nn.GELU()

def get_inputs():
    return [torch.randn(batch, 64, dtype=torch.bfloat16)]
"""
)


def test_a_stack_whose_input_is_drowned_by_roundings_is_refused(tmp_path: Path) -> None:
    says = r"output out hardly depends on input x: .* \(\S+ and \S+\), so .*--inputs"
    with pytest.raises(ToolError, match=says):
        import_text(tmp_path, DEEP)
    assert not list(tmp_path.glob("problems/*"))


def test_a_short_stack_isimport_text(tmp_path: Path) -> None:
    result = import_text(tmp_path, DEEP.replace("DEPTH = 24", "DEPTH = 2"))
    assert result.warnings == ()


TWO_INPUTS = (
    HEAD
    + """def both(x, y):
    return torch.tanh(x)

batch, dim = 256, 512

def get_inputs():
    return [torch.randn(batch, dim), torch.randn(batch, dim)]
"""
)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("torch.tanh(x) + 0.0 * y", "input y has no effect on any output"),
        ("torch.sigmoid(x).exp() + 1e-12 * y", "output out hardly depends on input y: "),
    ],
)
def test_an_input_that_a_check_could_not_see_is_refused_by_name(
    answer: str, says: str, tmp_path: Path
) -> None:
    with pytest.raises(ToolError, match=says):
        import_text(tmp_path, TWO_INPUTS.replace("torch.tanh(x)", answer))


def test_an_input_with_one_value_is_named(tmp_path: Path) -> None:
    text = TWO_INPUTS.replace("torch.tanh(x)", "torch.tanh(x) * y")
    text = text.replace(", torch.randn(batch, dim)]", ", torch.full((1,), 3)]")
    assert import_text(tmp_path, text).warnings == (
        "input y is the same in every check: a kernel need not read it",
    )


def test_an_argument_that_is_not_used_is_left_out_and_named(tmp_path: Path) -> None:
    result = import_text(tmp_path, TWO_INPUTS)
    assert result.warnings == ("input y is not used: the problem leaves it out",)
    assert result.unused == {"y": 1}
    problem = load_problem(Path(result.folder))
    assert [tensor.name for tensor in problem.tensors] == ["x", "out"]
    assert problem.description.endswith("; without y, which it does not use")


def test_a_function_too_large_for_this_machine_is_imported_with_a_warning(tmp_path: Path) -> None:
    text = SOURCES["relu"].replace("4096, 16384", "2 * 1048576, 1048576")
    text = text.replace("torch.relu(x)", "torch.minimum(x, torch.tensor(0.5))")
    result = import_text(tmp_path, text)
    (warning,) = result.warnings
    assert "task_official has 17,592,186,044,420 bytes of tensors: no GPU holds them" in warning
    names = sorted(path.name for path in Path(result.folder).glob("*.npy"))
    assert [float(np.load(Path(result.folder) / name)) for name in names] == [0.5, 0.5]


def test_outputs_may_depend_on_inputs_of_their_own(tmp_path: Path) -> None:
    text = TWO_INPUTS.replace("torch.tanh(x)", "torch.tanh(x), torch.argmax(y, 1)")
    assert import_text(tmp_path, text).warnings == ()


def test_a_change_of_graph_json_is_noticed(tmp_path: Path) -> None:
    folder = Path(import_text(tmp_path, SOURCES["relu"]).folder)
    path = folder / "graph.json"
    path.write_text(path.read_text("utf-8").replace("relu", "neg"), "utf-8")
    problem = load_problem(folder)
    with pytest.raises(ToolError, match="changed after its import"):
        load_oracle(problem).make_inputs(problem.workloads[0], np.random.default_rng(1), "normal")


def test_a_module_at_hand_becomes_a_problem(tmp_path: Path) -> None:
    torch = load_torch()
    module = torch.nn.Sequential(torch.nn.Linear(96, 80), torch.nn.Tanh()).eval()
    inputs = [torch.randn(2048, 96)]
    folder = kopt.problem_from(module, inputs, tmp_path, name="tail", precision="ieee")
    problem = load_problem(folder)
    assert folder == tmp_path / "tail"
    assert [workload.name for workload in problem.workloads] == ["small", "official"]
    assert problem.workloads[1].axes["B"] == 2048
    assert problem.row_axis == "B"
    with pytest.raises(ToolError, match="is there already"):
        kopt.problem_from(module, inputs, tmp_path, name="tail")
