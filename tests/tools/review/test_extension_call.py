"""Which sources are torch extensions, and how a call is written."""

from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problems
from kopt.tools.review.extension_call import (
    ExtensionCall,
    default_call,
    is_torch_extension,
    read_call,
)
from support.extension_sources import SILU

NORM = load_problems()["fused_add_rmsnorm"]
SILU_AND_MUL = load_problems()["silu_and_mul"]
REFERENCE = Path(NORM.folder / "reference.cu").read_text()


@pytest.mark.parametrize(
    ("source", "is_one"),
    [
        (SILU, True),
        ('TORCH_LIBRARY(mine, m) { m.def("f(Tensor x) -> Tensor"); }', True),
        (REFERENCE, False),
        (REFERENCE + "// PYBIND11_MODULE\n", False),
        ("// PYBIND11_MODULE\n__global__ void k() {}\n", False),
        ("", False),
    ],
)
def test_an_entry_for_torch_makes_an_extension(source: str, is_one: bool) -> None:
    assert is_torch_extension(source) == is_one


def test_a_call_names_results_function_and_arguments() -> None:
    call = read_call(" out = ext.forward( input ) ", SILU_AND_MUL)
    assert call == ExtensionCall("ext.forward", ("input",), ("out",))
    assert read_call("silu(out, input, 2, H)", SILU_AND_MUL).arguments[2:] == ("2", "H")
    assert str(call) == "out = ext.forward(input)"


@pytest.mark.parametrize(
    ("text", "problem", "said"),
    [
        ("forward", SILU_AND_MUL, "is not of the form"),
        ("out = forward(f(input))", SILU_AND_MUL, "is not of the form"),
        ("out = forward(inputs)", SILU_AND_MUL, "did you mean input?"),
        ("outs = forward(input)", SILU_AND_MUL, "did you mean out?"),
        ("input = forward(out)", SILU_AND_MUL, "input is no output"),
        ("forward(input)", SILU_AND_MUL, "neither returns nor is given out"),
        ("forward(input, weight)", NORM, "neither returns nor is given residual"),
    ],
)
def test_a_call_that_does_not_fit_is_refused(text: str, problem: Problem, said: str) -> None:
    with pytest.raises(ToolError, match=r".") as refused:
        read_call(text, problem)
    assert said in str(refused.value)


def test_the_only_function_is_given_inputs_and_scalars() -> None:
    assert str(default_call(SILU, SILU_AND_MUL)) == "out = forward(input)"
    source = SILU.replace('m.def("forward"', 'm.def("backward", &f); m.def("forward"')
    with pytest.raises(ToolError, match="it has backward, forward: say how it is called"):
        default_call(source, SILU_AND_MUL)
